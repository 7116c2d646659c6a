"""Hands a post to a person at its due time, for sites without an API; the person reports the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pipeline.engines.base import BUCKETS
from pipeline.platforms import rules
from pipeline.platforms.base import Account, AccountInfo, CannotTell, Platform, Setting
from pipeline.platforms.fitting import PART_SEPARATOR
from pipeline.platforms.payload_types import Adapted, Payload
from pipeline.plugins import Evidence, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client

MAX_INSTRUCTIONS_CHARACTERS = 2000


class Handoff(Platform):
    kind = "handoff"
    label = "Posted by hand"
    icon = "user"
    summary = "A package ready to copy, for places without an interface such as Substack, Medium or Reddit."
    evidence = Evidence("none")
    buckets = BUCKETS
    is_by_hand = True
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("place", "Place", "Where it is posted, such as Substack.", max_length=80),
        Setting(
            "address",
            "Address",
            "The page where a new post is started.",
            kind="url",
            is_required=False,
            max_length=2048,
        ),
        Setting(
            "instructions",
            "Instructions",
            "Steps for the person who posts it, one per line.",
            is_required=False,
            max_length=MAX_INSTRUCTIONS_CHARACTERS,
        ),
    )

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        del http, now
        place = str(account.config.get("place", ""))
        return AccountInfo(external_id=place, name=place, url=str(account.config.get("address", "")))

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        del account
        content_parts = payload.content.get("parts")
        parts = tuple(str(part) for part in content_parts) if isinstance(content_parts, list | tuple) else ()
        is_same = bool(parts) and PART_SEPARATOR.join(parts) == payload.body
        return Adapted(payload, parts if is_same else (payload.body,))

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
    ) -> NoReturn:
        message = "A person posts it: there is no call to make."
        raise NotImplementedError(message)

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> CannotTell:
        del account, post, state, http, key, now
        return CannotTell("Only the person who posts it can say.")


PLUGIN = Handoff()
