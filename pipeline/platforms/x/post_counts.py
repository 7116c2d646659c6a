"""Reads counts of posts at X: public counts of any age, and the owner's own (clicks) for 30 days."""

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

IDS_PER_CALL: Final = 100
OWN_COUNTS_LIFETIME: Final = timedelta(days=30)
"""The age of a post up to which X tells the owner's own counts."""
_PUBLIC_FIELDS: Final = "public_metrics,attachments"


def read_samples(
    account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
) -> tuple[tuple[Sample, ...], ...]:
    """Read and return a tuple of samples for each publication, in the same order."""
    young = [post.external_id for post, at in sent if now - at <= OWN_COUNTS_LIFETIME]
    old = [post.external_id for post, at in sent if now - at > OWN_COUNTS_LIFETIME]
    counts: dict[str, dict[str, int]] = {}
    for ids, is_own in ((young, True), (old, False)):
        unique = list(dict.fromkeys(ids))
        for start in range(0, len(unique), IDS_PER_CALL):
            counts.update(
                _read_counts(account, unique[start : start + IDS_PER_CALL], is_own=is_own, http=http, now=now)
            )
    return tuple(
        tuple(_to_sample(metric, counts.get(post.external_id, {})) for metric in METRICS) for post, _ in sent
    )


def _to_sample(metric: str, counts: Mapping[str, int]) -> Sample:
    value = counts.get(metric)
    return Sample(metric, value) if value is not None else Sample(metric, None, "unavailable")


def _read_counts(
    account: Account, ids: Sequence[str], *, is_own: bool, http: Client, now: datetime
) -> dict[str, dict[str, int]]:
    """Return the counts of these posts by id, with `is_own` also the owner's own counts if X allows it.

    Raises as `raise_for_response` if X fails.
    """

    def request(fields: str) -> Response:
        url = (
            f"{account.base_url}/tweets?ids={','.join(ids)}&post.fields={fields}"
            "&expansions=attachments.media_keys&media.fields=public_metrics"
        )
        return ask(http, "GET", url, service="X", headers=bearer_header(account))

    response = request(f"{_PUBLIC_FIELDS},non_public_metrics" if is_own else _PUBLIC_FIELDS)
    if is_own and response.status in {400, 403} and json_object(response.body) is not None:
        # X refuses the owner's counts for all posts at once; the public ones can still be read.
        response = request(_PUBLIC_FIELDS)
    answer = json_object(response.body)
    if response.status != 200 or answer is None:
        errors.raise_for_response(response, now=now, is_commit=False)
    includes = answer.get("includes")
    media = includes.get("media") if isinstance(includes, dict) else None
    views = {
        str(file.get("media_key")): _count_in(file.get("public_metrics"), "view_count")
        for file in _dicts_in(media)
    }
    return {str(post.get("id")): _counts_of(post, views) for post in _dicts_in(answer.get("data"))}


def _dicts_in(value: object) -> Iterable[dict[str, Any]]:
    """Return the dicts in a list, or none if the value is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _counts_of(post: Mapping[str, Any], views: Mapping[str, int | None]) -> dict[str, int]:
    """Return the known counts of a post by metric; `views` are those of files by their keys."""
    public, own = post.get("public_metrics"), post.get("non_public_metrics")
    attachments = post.get("attachments")
    keys = attachments.get("media_keys") if isinstance(attachments, dict) else None
    view_counts = [views.get(str(key)) for key in keys] if isinstance(keys, list) else []
    reposts = _count_in(public, "repost_count")
    # X has two names for this count.
    if reposts is None:
        reposts = _count_in(public, "retweet_count")
    share_counts = [count for count in (reposts, _count_in(public, "quote_count")) if count is not None]
    counts = {
        "impressions": _count_in(public, "impression_count"),
        "views": next((count for count in view_counts if count is not None), None),
        "likes": _count_in(public, "like_count"),
        "comments": _count_in(public, "reply_count"),
        "shares": sum(share_counts) if share_counts else None,
        "clicks": _count_in(own, "url_link_clicks"),
    }
    return {metric: count for metric, count in counts.items() if count is not None}


def _count_in(group: object, name: str) -> int | None:
    """Return a count of a group, or `None` if it isn't known."""
    value = group.get(name) if isinstance(group, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
