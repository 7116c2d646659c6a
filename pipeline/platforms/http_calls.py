"""Asks a platform over HTTP, reads its answer, and says of each failure what may be done about it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from config.core.http_client import OutboundError
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options

LONGEST_WAIT = timedelta(hours=24)
"""No platform may park a publication for longer than this."""
_LONGEST_NUMBER = 9
SECONDS = 20.0
"""Of one call. A hand's lease is longer than two of them."""
UPLOAD_SECONDS = 45.0
"""Of a call that carries a file."""
WORDS = 2000
"""Characters of what a platform says of a failure that are kept. It is told shorter, but not before it is redacted:
a secret that was cut in two is harder to find.
"""
LEAST_WAIT = timedelta(seconds=1)
"""For a limit whose end has just passed: clocks differ."""
_RELATIVE_BELOW = 10**8
"""Seconds; as an epoch it would be 1973."""


def json_object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that the body holds; None where it holds anything else."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        # Nesting without end is one more way of not being JSON.
        return None
    return answer if isinstance(answer, dict) else None


def retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """The wait that the header names in seconds or as a date, at most `LONGEST_WAIT`; None without one."""
    value = next((text.strip() for name, text in headers.items() if name.lower() == "retry-after"), "")
    if value.isascii() and value.isdigit():
        wait = LONGEST_WAIT if len(value) > _LONGEST_NUMBER else timedelta(seconds=int(value))
        return min(wait, LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        # "-0000" means UTC without saying where the server is.
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment - now, timedelta(0)), LONGEST_WAIT)


def ask(http: Client, method: str, url: str, *, what: str, **options: Unpack[Options]) -> Response:
    """A call that may be repeated. `what` names the platform; raises `TryLater` where it can't be reached."""
    options.setdefault("timeout", SECONDS)
    try:
        return http.request(method, url, **options)
    except OutboundError as error:
        message = f"{what} couldn't be reached: {error}"
        raise TryLater(message, code="unreachable") from error
    except ValueError:
        _cannot_be_sent(what)


def ask_once(http: Client, method: str, url: str, *, what: str, **options: Unpack[Options]) -> Response:
    """The call that makes a post public. Raises `TryLater` only where it provably never reached the platform."""
    options.setdefault("timeout", SECONDS)
    try:
        return http.request(method, url, **options)
    except OutboundError as error:
        if error.may_have_reached:
            message = f"The connection to {what} failed after the post was on its way: {error}"
            raise OutcomeUnknown(message) from error
        message = f"{what} couldn't be reached: {error}"
        raise TryLater(message, code="unreachable") from error
    except ValueError:
        _cannot_be_sent(what)


def _cannot_be_sent(what: str) -> NoReturn:
    """The client raises `ValueError` before it sends anything; its words, which may quote a secret, are left out."""
    message = f"An address, a header or the content of the call to {what} can't be sent as it is."
    action = "Look for unusual characters in the outlet's settings and in the content, then retry."
    raise Refused(message, code="cannot_be_sent", action=action) from None


def words_of(response: Response, *names: str) -> str:
    """What the platform says of a failure: the first of `names` that its JSON answer has as text; else nothing.

    A page of HTML, as firewalls send, says nothing that belongs into a message.
    """
    answer = json_object(response.body) or {}
    for name in names:
        value: object = answer
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, str) and value.strip():
            return _whole_words(value.strip())
    return ""


def _whole_words(text: str) -> str:
    if len(text) <= WORDS:
        return text
    kept = text[: WORDS + 1].rsplit(maxsplit=1)[0]
    return kept[:WORDS]


def with_colon(words: str) -> str:
    return f": {words}" if words else ""


def wait_until_reset(
    headers: Mapping[str, str], *names: str, now: datetime, is_relative: bool = False
) -> timedelta | None:
    """The wait that a header names: `Retry-After`, else one of `names` as seconds, epoch seconds or ISO 8601."""
    waited = retry_after(headers, now=now)
    if waited is not None:
        return waited
    there = {name.lower(): value.strip() for name, value in headers.items()}
    for name in names:
        value = there.get(name.lower(), "")
        try:
            number = float(value)
        except ValueError:
            moment = _iso(value)
            if moment is not None:
                return min(max(moment - now, LEAST_WAIT), LONGEST_WAIT)
            continue
        # NaN compares false with everything.
        if not 0 <= number < 10**11:
            continue
        seconds = number if is_relative or number < _RELATIVE_BELOW else number - now.timestamp()
        return min(max(timedelta(seconds=min(seconds, 10**6)), LEAST_WAIT), LONGEST_WAIT)
    return None


def _iso(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def fail_plainly(
    response: Response,
    *,
    what: str,
    words: str,
    now: datetime,
    is_commit: bool,
    after: timedelta | None = None,
) -> NoReturn:
    """What a status means where the platform's own table has nothing to say of it.

    401 and 403 are the account's, 429 asks to wait, another 4xx refuses the content. 5xx and everything that isn't an
    error can be tried again before the commit; from the commit they leave the outcome open, as do a conflict (409),
    which may be with what an earlier try has made, and 408 and 425, which promise nothing.
    """
    status = response.status
    if status in {401, 403}:
        message = f"{what} no longer accepts this account's credentials{with_colon(words)}."
        raise NeedsReconnect(message, platform_status=status, platform_message=words)
    if status == 429:
        message = f"{what} asks to wait{with_colon(words)}."
        wait = after if after is not None else retry_after(response.headers, now=now)
        raise TryLater(
            message,
            code="rate_limited",
            after=wait,
            is_of_account=True,
            platform_status=status,
            platform_message=words,
        )
    may_be_there = status in {408, 425} or (status == 409 and is_commit)
    if 400 <= status < 500 and not may_be_there:
        message = f"{what} refused it (status {status}){with_colon(words)}."
        raise Refused(message, platform_status=status, platform_message=words)
    if is_commit:
        message = f"{what} answered {status}, which doesn't tell whether it took the post."
        raise OutcomeUnknown(message, platform_status=status, platform_message=words)
    message = f"{what} answered {status}{with_colon(words)}."
    raise TryLater(
        message,
        after=retry_after(response.headers, now=now),
        platform_status=status,
        platform_message=words,
    )
