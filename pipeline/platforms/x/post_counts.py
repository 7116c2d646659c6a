"""Counts of posts at X: public ones of any age, the owner's own (clicks) for 30 days."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.base import METRICS, Account, Sample, Sent
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.platforms.x import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response

PAGE: Final = 100
OWN_FOR: Final = timedelta(days=30)
_PUBLIC: Final = "public_metrics,attachments"


def samples_in(
    account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
) -> tuple[tuple[Sample, ...], ...]:
    young = [one.external_id for one, at in sent if now - at <= OWN_FOR]
    old = [one.external_id for one, at in sent if now - at > OWN_FOR]
    counts: dict[str, dict[str, int]] = {}
    for ids, is_own in ((young, True), (old, False)):
        unique = list(dict.fromkeys(ids))
        for start in range(0, len(unique), PAGE):
            counts.update(_page(account, unique[start : start + PAGE], is_own=is_own, http=http, now=now))
    return tuple(
        tuple(_sample(metric, counts.get(one.external_id, {})) for metric in METRICS) for one, _ in sent
    )


def _sample(metric: str, counts: Mapping[str, int]) -> Sample:
    value = counts.get(metric)
    return Sample(metric, value) if value is not None else Sample(metric, None, "unavailable")


def _page(
    account: Account, ids: Sequence[str], *, is_own: bool, http: Client, now: datetime
) -> dict[str, dict[str, int]]:
    def asked(fields: str) -> Response:
        url = (
            f"{account.base_url}/tweets?ids={','.join(ids)}&post.fields={fields}"
            "&expansions=attachments.media_keys&media.fields=public_metrics"
        )
        return ask(http, "GET", url, what="X", headers=bearer_header(account))

    response = asked(f"{_PUBLIC},non_public_metrics" if is_own else _PUBLIC)
    if is_own and response.status in {400, 403} and json_object(response.body) is not None:
        # The owner's counts are refused as a group; the public ones are still to be had.
        response = asked(_PUBLIC)
    answer = json_object(response.body)
    if response.status != 200 or answer is None:
        errors.fail(response, now=now, is_commit=False)
    includes = answer.get("includes")
    media = includes.get("media") if isinstance(includes, dict) else None
    views = {
        str(one.get("media_key")): _count(one.get("public_metrics"), "view_count") for one in _dicts(media)
    }
    return {str(one.get("id")): _counts(one, views) for one in _dicts(answer.get("data"))}


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _counts(one: Mapping[str, Any], views: Mapping[str, int | None]) -> dict[str, int]:
    public, own = one.get("public_metrics"), one.get("non_public_metrics")
    attachments = one.get("attachments")
    keys = attachments.get("media_keys") if isinstance(attachments, dict) else None
    seen = [views.get(str(key)) for key in keys] if isinstance(keys, list) else []
    reposts = _count(public, "repost_count")
    shared = [_count(public, "retweet_count") if reposts is None else reposts, _count(public, "quote_count")]
    found = {
        "impressions": _count(public, "impression_count"),
        "views": next((count for count in seen if count is not None), None),
        "likes": _count(public, "like_count"),
        "comments": _count(public, "reply_count"),
        "shares": sum(count for count in shared if count is not None)
        if any(c is not None for c in shared)
        else None,
        "clicks": _count(own, "url_link_clicks"),
    }
    return {metric: count for metric, count in found.items() if count is not None}


def _count(group: object, name: str) -> int | None:
    value = group.get(name) if isinstance(group, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
