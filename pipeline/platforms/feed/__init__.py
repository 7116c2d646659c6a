"""Publishes to the workspace's own public feed, the outlet that can't fail.

`commit` sends nothing: the publication's row is the entry, and the feed lists every published one. The entry's id
follows from the publication's key, so that a repeated commit makes no second entry. The caller puts the address of
the outlet's feed into `account.config` as `feed_url`, those of all its forms as `feed_urls` and the operator's
WebSub hubs as `hubs`; they aren't settings that a person can change.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from pipeline.engines.base import BUCKETS
from pipeline.platforms import rules
from pipeline.platforms.base import Account, Found, Platform, Sent
from pipeline.platforms.http_calls import ask
from pipeline.platforms.payload_types import Adapted, Length
from pipeline.plugins import ConfigInvalid, Evidence, Problem, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client

MAX_TITLE_CHARACTERS = 200
HUB_TIMEOUT_SECONDS = 8.0
# A random UUID that must never change: every id in every feed is derived from it.
_NAMESPACE = uuid.UUID("5b0a0a53-6f3d-4f0b-9a59-3f6c3b1d2c77")


def entry_id(key: str) -> str:
    """Return the permanent id of the entry of a publication's key, such as `urn:uuid:…`."""
    return uuid.uuid5(_NAMESPACE, key).urn


class Feed(Platform):
    kind = "feed"
    label = "Workspace feed"
    icon = "rss"
    evidence = Evidence("software", "feedparser 6.0", "tests/platforms/test_feed_documents.py")
    buckets = BUCKETS
    is_own_feed = True
    is_connectable = False
    can_reconcile = True
    posts_are_ours = True
    can_remove = True
    has_finish = True
    idempotency = "ours"
    config_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "title": "Title of the feed", "maxLength": MAX_TITLE_CHARACTERS}
        },
        "additionalProperties": False,
    }

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        problems = [
            Problem(f"config.{name}", "unknown_field", f"A feed has no setting {name!r}.")
            for name in config
            if name != "title"
        ]
        title = config.get("title", "")
        if not isinstance(title, str):
            problems.append(Problem("config.title", "invalid", "The title has to be a text."))
        elif len(title.strip()) > MAX_TITLE_CHARACTERS:
            message = f"The title has {len(title.strip())} characters; the maximum is {MAX_TITLE_CHARACTERS}."
            problems.append(Problem("config.title", "too_long", message))
        if problems:
            raise ConfigInvalid(problems)
        return {"title": title.strip()} if title.strip() else {}

    def length(self, account: Account, post: Adapted) -> Length:
        del account
        return Length(len(post.payload.body), None, self.text_unit)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        del account
        return rules.find_empty(post.payload)

    def commit(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        del post, state, http, now
        return _to_sent(account, key)

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found:
        del post, state, http, now
        return Found(_to_sent(account, key))

    def wants_finish(self, account: Account) -> bool:
        return bool(account.config.get("hubs"))

    def finish(
        self, account: Account, post: Adapted, sent: Sent, *, http: Client, now: datetime
    ) -> Mapping[str, Any] | None:
        """Notify each hub that the feed has changed. Raises `TryLater` if one fails; the next try notifies all."""
        del post, sent, now
        failed = [hub for hub in account.config.get("hubs", ()) if not _notify_hub(hub, account, http)]
        if failed:
            message = f"{len(failed)} of the hubs couldn't be told that the feed has changed."
            raise TryLater(message, code="hub_failed")
        return None

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        """Notify the hubs; the entry goes with its row, and a hub that can't be reached changes nothing."""
        del sent, now
        for hub in account.config.get("hubs", ()):
            _notify_hub(hub, account, http)


def _notify_hub(hub: str, account: Account, http: Client) -> bool:
    """Notify the hub, and return whether it took the notification."""
    # These are the fields that publishers send; W3C WebSub, section 4, doesn't define this call.
    fields = [("hub.mode", "publish"), *(("hub.url", url) for url in account.config.get("feed_urls", ()))]
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    try:
        response = ask(
            http,
            "POST",
            hub,
            service="The hub",
            body=urlencode(fields).encode(),
            headers=headers,
            timeout=HUB_TIMEOUT_SECONDS,
        )
    except TryLater:
        return False
    return 200 <= response.status < 300


def _to_sent(account: Account, key: str) -> Sent:
    """Return the entry of a publication's key as `Sent`."""
    identity = entry_id(key)
    feed_url = account.config.get("feed_url", "")
    return Sent(external_id=identity, url=f"{feed_url}#{identity}" if feed_url else "")


PLUGIN = Feed()
