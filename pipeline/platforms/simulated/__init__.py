"""Publishes to a simulated server that nobody reads, for demonstration, tests and test tokens.

It speaks HTTP like a real platform. The server (`https://simulated.invalid`) has no idempotency: two equal calls
make two posts. Requests and answers are JSON, and every address below is under that host. `ref` is the
publication's key, the same for each of its tries.

`POST /posts` with `{"ref", "outlet", "title", "body", "bucket", "revision", "script"}`
    `script` is a list of words that tells the server how to answer. The n-th POST with the same `ref` plays
    the n-th word; when the words run out, or there are none, `ok` is played.

    ok                     stores the post; 201 `{"id": str, "url": str}`
    slow                   the same after two seconds
    429                    stores nothing; 429 with `Retry-After: 1` and `{"error"}`
    reject                 stores nothing; 422 `{"error": str, "field": "title" | "body" | …}`
    expired                stores nothing; 401 `{"error"}`
    error                  stores nothing, which the caller can't know; 500 `{"error"}`
    timeout_after_accept   stores the post; the client raises `TimedOut` with `may_have_reached` True
    timeout_before_accept  stores nothing; the client raises `TimedOut` with `may_have_reached` False
    silence                as timeout_after_accept, and look-ups of this `ref` answer 503 from then on

    A caller whose time is up before the answer gets `TimedOut` with `may_have_reached` True. What was stored stays.

    The server answers 422, whatever the script says, to a body of more than 5,000 code points.

`GET /posts?ref=<key>`
    200 `{"data": [{"id", "url"}, …]}`, oldest first; an empty list proves that nothing was stored. A stored
    post is listed at once. Only `silence` changes this answer.

`DELETE /posts/<id>`
    204, also for a post that isn't there; the post isn't listed any more.

`GET /metrics?ids=<id>,<id>` (at most 100, each percent-encoded)
    200 `{"data": {"<id>": {"impressions", "views", "likes", "comments", "shares", "clicks"}}}`, cumulative
    counts as `made_up_metrics(id, published_at, now)` gives them; an id that isn't stored is left out.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from urllib.parse import quote

from config.core.http_client import OutboundError
from pipeline.engines.base import BUCKETS
from pipeline.platforms.base import METRICS, Absent, Account, CannotTell, Found, Platform, Sample, Sent
from pipeline.platforms.http_calls import json_object, retry_after
from pipeline.platforms.payload_types import Adapted, Length, Payload
from pipeline.plugins import (
    ConfigInvalid,
    Evidence,
    NeedsReconnect,
    OutcomeUnknown,
    Problem,
    Refused,
    TryLater,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response

BASE_URL = "https://simulated.invalid"
MAX_TEXT_CHARACTERS = 5_000
IDS_PER_METRICS_CALL = 100
MAX_SCRIPT_WORDS = 20
SCRIPT_WORDS = (
    "ok",
    "slow",
    "429",
    "reject",
    "expired",
    "error",
    "timeout_after_accept",
    "timeout_before_accept",
    "silence",
)

_CREATED = 201
_OK = 200
_NO_CONTENT = 204
_REJECTED_STATUSES = frozenset({400, 422})
_UNAUTHORIZED_STATUSES = frozenset({401, 403})
_BUSY_STATUSES = frozenset({429, 503})
_HALF_LIFE_SECONDS = {
    "impressions": 6 * 3600,
    "views": 8 * 3600,
    "likes": 10 * 3600,
    "comments": 16 * 3600,
    "shares": 20 * 3600,
    "clicks": 12 * 3600,
}


def made_up_metrics(post_id: str, published_at: datetime, now: datetime) -> dict[str, int]:
    """Return plausible cumulative counts, the same for the same arguments; none falls as `now` advances.

    Each metric nears its own final value, half of which it has after some hours; likes, comments, shares and
    clicks stay below views, views below impressions.
    """
    seconds = max(0, int((now - published_at).total_seconds()))
    digest = hashlib.sha256(post_id.encode("utf-8", "surrogatepass")).digest()
    finals = {"impressions": 200 + int.from_bytes(digest[:2]) % 9_800}
    finals["views"] = finals["impressions"] * (40 + digest[2] % 50) // 100
    finals["likes"] = finals["views"] * (2 + digest[3] % 9) // 100
    finals["comments"] = finals["likes"] * (5 + digest[4] % 20) // 100
    finals["shares"] = finals["likes"] * (5 + digest[5] % 30) // 100
    finals["clicks"] = finals["views"] * (1 + digest[6] % 6) // 100
    # Integer arithmetic, so that rounding never lowers a count.
    return {metric: finals[metric] * seconds // (seconds + _HALF_LIFE_SECONDS[metric]) for metric in METRICS}


def _script_problems(script: object, field: str) -> list[Problem]:
    """Return the problems of a script given in the settings or with a payload."""
    if not isinstance(script, list | tuple):
        return [Problem(field, "invalid", "The script has to be a list of words.")]
    problems = [
        Problem(field, "invalid", f"The script can't play {word!r}; it knows {', '.join(SCRIPT_WORDS)}.")
        for word in script
        if word not in SCRIPT_WORDS
    ]
    if len(script) > MAX_SCRIPT_WORDS:
        problems.append(Problem(field, "too_long", f"The script has more than {MAX_SCRIPT_WORDS} words."))
    return problems


def _settings_script(payload: Payload) -> object:
    """Return the script in the payload's settings, a single word as a list, or `None` without one."""
    script = payload.settings.get("script")
    return [script] if isinstance(script, str) else script


def _script_of(account: Account, payload: Payload) -> list[str]:
    """Return the script that the server is to play: the payload's, or else the account's."""
    payload_script = _settings_script(payload)
    script = payload_script if isinstance(payload_script, list | tuple) else account.config.get("script", ())
    return [str(word) for word in script]


class Simulated(Platform):
    kind = "simulated"
    label = "Test channel"
    icon = "eye"
    evidence = Evidence("none")
    buckets = BUCKETS
    shows_link_card = True
    is_simulated = True
    is_connectable = False
    can_reconcile = True
    settles = timedelta(0)
    """It is zero, because the server ends with the call, and lists what it stored at once."""
    can_remove = True
    metrics_given = METRICS
    text_limit = MAX_TEXT_CHARACTERS
    config_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "script": {
                "type": "array",
                "title": "How it answers, try by try",
                "items": {"enum": list(SCRIPT_WORDS)},
                "maxItems": MAX_SCRIPT_WORDS,
                "default": [],
            }
        },
        "additionalProperties": False,
    }

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        problems = [
            Problem(f"config.{name}", "unknown_field", f"A test channel has no setting {name!r}.")
            for name in config
            if name != "script"
        ]
        script = config.get("script", [])
        problems += _script_problems(script, "config.script")
        if problems:
            raise ConfigInvalid(problems)
        return {"script": list(script)}

    def length(self, account: Account, post: Adapted) -> Length:
        del account
        return Length(len(post.payload.body), MAX_TEXT_CHARACTERS, self.text_unit)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        problems: list[Problem] = []
        length = self.length(account, post)
        if length.count > MAX_TEXT_CHARACTERS:
            message = f"The text has {length.count} characters; the maximum is {MAX_TEXT_CHARACTERS}."
            problems.append(Problem("body", "too_long", message))
        script = _settings_script(post.payload)
        if script is not None:
            problems += _script_problems(script, "settings.script")
        return tuple(problems)

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
        del state
        payload = post.payload
        body = {
            "ref": key,
            "outlet": account.outlet,
            "title": payload.title,
            "body": payload.body,
            "bucket": payload.bucket,
            "revision": payload.revision,
            "script": _script_of(account, payload),
        }
        try:
            response = http.request("POST", f"{BASE_URL}/posts", json=body)
        except OutboundError as error:
            if error.may_have_reached:
                message = f"The connection failed after the post was on its way: {error}"
                raise OutcomeUnknown(message) from error
            message = f"The platform couldn't be reached: {error}"
            raise TryLater(message) from error
        sent = _read_post(json_object(response.body)) if response.status == _CREATED else None
        return sent if sent is not None else _raise_for_response(response, now)

    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found | Absent | CannotTell:
        """Look the key up; an answer that proves nothing is `CannotTell`, so no anticipated failure is raised."""
        del account, post, state, now
        try:
            response = http.request("GET", f"{BASE_URL}/posts?ref={quote(key, safe='')}")
        except OutboundError as error:
            return CannotTell(f"The platform couldn't be asked: {error}")
        if response.status != _OK:
            return CannotTell(f"The platform answered {response.status} when it was asked for the post.")
        answer = json_object(response.body)
        posts = answer.get("data") if answer is not None else None
        if not isinstance(posts, list):
            return CannotTell("The platform's list of posts couldn't be read.")
        if not posts:
            return Absent()
        # More than one means that the post was sent twice: the first is the one that people have seen.
        sent = _read_post(posts[0])
        if sent is None:
            return CannotTell("The platform's list of posts couldn't be read.")
        return Found(sent)

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        del account, now
        try:
            response = http.request("DELETE", f"{BASE_URL}/posts/{quote(sent.external_id, safe='')}")
        except OutboundError as error:
            message = f"The platform couldn't be reached: {error}."
            raise TryLater(message) from error
        if response.status != _NO_CONTENT:
            message = f"The platform answered {response.status} when it was asked to delete the post."
            raise TryLater(message, platform_status=response.status)

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        """Return the counts; those of a post that the platform doesn't have are `unavailable`.

        Raises `TryLater` if the counts can't be read, and `NeedsReconnect` if the account isn't accepted.
        """
        del account
        counts: dict[str, Any] = {}
        ids = list(dict.fromkeys(post.external_id for post, _ in sent))
        for start in range(0, len(ids), IDS_PER_METRICS_CALL):
            counts.update(_read_metrics(ids[start : start + IDS_PER_METRICS_CALL], http, now))
        return tuple(_samples_of(counts.get(post.external_id)) for post, _ in sent)


def _read_post(answer: object) -> Sent | None:
    """Return the post in the server's answer, or `None` if it can't be read."""
    if not isinstance(answer, dict):
        return None
    external_id, url = answer.get("id"), answer.get("url")
    if not isinstance(external_id, str) or not external_id or not isinstance(url, str):
        return None
    return Sent(external_id=external_id, url=url)


def _error_of(response: Response) -> tuple[str, str | None]:
    """Return the server's error message, and the field that it names or `None`."""
    answer = json_object(response.body) or {}
    error, field = answer.get("error"), answer.get("field")
    platform_message = error if isinstance(error, str) and error else "no reason given"
    return platform_message, field if isinstance(field, str) and field else None


def _raise_for_response(response: Response, now: datetime) -> NoReturn:
    """Raise the plug-in error for a failed commit.

    It is `OutcomeUnknown` unless the protocol says of the status that nothing was stored.
    """
    status = response.status
    platform_message, field = _error_of(response)
    if status in _BUSY_STATUSES:
        message = f"The platform asks to wait: {platform_message}"
        after = retry_after(response.headers, now=now)
        raise TryLater(
            message,
            code="rate_limited",
            after=after,
            platform_status=status,
            platform_message=platform_message,
        )
    if status in _REJECTED_STATUSES:
        message = f"The platform refused the post: {platform_message}"
        raise Refused(message, field=field, platform_status=status, platform_message=platform_message)
    if status in _UNAUTHORIZED_STATUSES:
        message = "The platform no longer accepts this account's credentials; reconnect it."
        raise NeedsReconnect(message, platform_status=status)
    message = f"The platform answered {status}, which doesn't tell whether it took the post."
    raise OutcomeUnknown(message, platform_status=status)


def _read_metrics(ids: Sequence[str], http: Client, now: datetime) -> dict[str, Any]:
    """Return the counts of these posts by id. Raises as `Simulated.metrics`."""
    query = ",".join(quote(post_id, safe="") for post_id in ids)
    try:
        response = http.request("GET", f"{BASE_URL}/metrics?ids={query}")
    except OutboundError as error:
        message = f"The platform couldn't be asked for its counts: {error}"
        raise TryLater(message) from error
    if response.status in _UNAUTHORIZED_STATUSES:
        message = "The platform no longer accepts this account's credentials; reconnect it."
        raise NeedsReconnect(message, platform_status=response.status)
    answer = json_object(response.body) if response.status == _OK else None
    counts = answer.get("data") if answer is not None else None
    if not isinstance(counts, dict):
        message = f"The platform's counts couldn't be read (status {response.status})."
        after = retry_after(response.headers, now=now)
        raise TryLater(message, after=after, platform_status=response.status)
    return counts


def _samples_of(counts: object) -> tuple[Sample, ...]:
    """Return the samples of one post's counts."""
    values = counts if isinstance(counts, dict) else {}
    return tuple(_to_sample(metric, values.get(metric)) for metric in METRICS)


def _to_sample(metric: str, value: object) -> Sample:
    """Return one metric's sample, which is `unavailable` if the value is no count."""
    # In Python a bool is an int, but it is no count.
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Sample(metric, value)
    return Sample(metric, None, "unavailable")


PLUGIN = Simulated()
