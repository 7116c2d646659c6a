"""The workspace's own public feed: the outlet that can't fail.

Committing sends nothing: the publication's row is the entry, and the feed's address lists every published
one. The entry's id follows from the publication's key, so that doing it twice makes one entry. The stage
hands the address of the outlet's feed in as `account.config["feed_url"]`; it isn't among the settings that a
person can give.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from pipeline.engines.base import BUCKETS
from pipeline.platforms.base import Account, Found, Length, Payload, Platform, Sent
from pipeline.plugins import ConfigInvalid, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.ground.outbound import Client

MAX_TITLE = 200
# Random once, never changed: every id in every feed follows from it.
_NAMESPACE = uuid.UUID("5b0a0a53-6f3d-4f0b-9a59-3f6c3b1d2c77")


def entry_id(key: str) -> str:
    """The id of the entry that a publication's key stands for: the same for ever, `urn:uuid:…`."""
    return uuid.uuid5(_NAMESPACE, key).urn


class Feed(Platform):
    kind = "feed"
    label = "Workspace feed"
    buckets = BUCKETS
    can_reconcile = True
    posts_are_ours = True
    can_remove = True
    config_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {"title": {"type": "string", "title": "Title of the feed", "maxLength": MAX_TITLE}},
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
        elif len(title.strip()) > MAX_TITLE:
            message = f"The title has {len(title.strip())} characters; {MAX_TITLE} are the most."
            problems.append(Problem("config.title", "too_long", message))
        if problems:
            raise ConfigInvalid(problems)
        return {"title": title.strip()} if title.strip() else {}

    def length(self, payload: Payload) -> Length:
        return Length(len(payload.body), None, self.text_unit)

    def validate(self, account: Account, payload: Payload) -> tuple[Problem, ...]:
        del account
        if payload.title.strip() or payload.body.strip() or payload.assets:
            return ()
        return (Problem("body", "empty", "There is nothing to publish: no title, no words, no file."),)

    def commit(
        self,
        account: Account,
        payload: Payload,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        del payload, state, http, now
        return _entry(account, key)

    def reconcile(
        self,
        account: Account,
        payload: Payload,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found:
        del payload, state, http, now
        return Found(_entry(account, key))


def _entry(account: Account, key: str) -> Sent:
    identity = entry_id(key)
    feed_url = account.config.get("feed_url", "")
    return Sent(external_id=identity, url=f"{feed_url}#{identity}" if feed_url else "")


PLUGIN = Feed()
