"""Counts of a member's posts at LinkedIn (memberCreatorPostAnalytics): one metric a call, about a day late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pipeline.platforms.answers import json_object
from pipeline.platforms.base import METRICS, Account, Sample, Sent
from pipeline.platforms.http_calls import ask
from pipeline.platforms.linkedin.errors import fail, headers
from pipeline.platforms.tokens import scopes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.core.http_client import Client

SCOPE: Final = "r_member_postAnalytics"
LATE: Final = timedelta(days=2)
TYPES: Final = {
    "impressions": "IMPRESSION",
    "likes": "REACTION",
    "comments": "COMMENT",
    "shares": "RESHARE",
    "clicks": "LINK_CLICKS",
}


def samples(
    account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
) -> tuple[tuple[Sample, ...], ...]:
    may_read = SCOPE in scopes_of(account)
    return tuple(
        tuple(_sample(account, metric, one, at, may_read=may_read, http=http, now=now) for metric in METRICS)
        for one, at in sent
    )


def _sample(
    account: Account, metric: str, sent: Sent, at: datetime, *, may_read: bool, http: Client, now: datetime
) -> Sample:
    if metric not in TYPES:
        return Sample(metric, None, "unsupported")
    if not may_read:
        return Sample(metric, None, "unavailable")
    kind = "ugc" if ":ugcPost:" in sent.external_id else "share"
    entity = f"({kind}:{quote(sent.external_id, safe='')})"
    url = (
        f"{account.base_url}/rest/memberCreatorPostAnalytics?q=entity&entity={entity}"
        f"&queryType={TYPES[metric]}&aggregation=TOTAL"
    )
    response = ask(http, "GET", url, what="LinkedIn", headers=headers(account))
    answer = json_object(response.body)
    if response.status in {400, 403, 404, 422} and answer is not None:
        # One metric that is refused, as ended ones are, takes no other along.
        return Sample(metric, None, "unavailable")
    if response.status != 200 or answer is None:
        fail(response, account=account, now=now, is_commit=False)
    value = _count(answer.get("elements"))
    if value is not None:
        return Sample(metric, value)
    return Sample(metric, None, "delayed" if now - at < LATE else "unavailable")


def _count(elements: Any) -> int | None:
    first = elements[0] if isinstance(elements, list) and elements else None
    value = first.get("count") if isinstance(first, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
