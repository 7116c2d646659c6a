"""Calls a platform over HTTP, reads its answer, and raises the plug-in error that a failure means."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from config.core.http_client import OutboundError, read_retry_after
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from config.core.http_client.messages import Options

LONGEST_WAIT = timedelta(hours=24)
"""The longest wait that a platform can ask for."""
TIMEOUT_SECONDS = 20.0
"""The time limit of one call. A worker's lease is longer than two of them."""
UPLOAD_SECONDS = 45.0
"""The time limit of a call that sends a file."""
MAX_MESSAGE_CHARACTERS = 2000
"""The number of characters to which a platform's error message is cut.

It is shown shorter, but only after it was redacted: a secret that was cut in two is harder to find.
"""
MIN_WAIT = timedelta(seconds=1)
"""The wait for a limit whose end has just passed, because clocks differ."""
_MAX_RELATIVE_SECONDS = 10**8
"""The bound below which a number is a wait in seconds: as epoch seconds it would be in 1973."""


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in the body, or `None` if it has anything else."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        # `RecursionError` is raised for JSON that is nested too deeply to be an answer.
        return None
    return answer if isinstance(answer, dict) else None


def retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """Return the wait that `Retry-After` names, at most `LONGEST_WAIT`, or `None` if it names none."""
    return read_retry_after(headers, now=now, longest=LONGEST_WAIT)


def ask(http: Client, method: str, url: str, *, service: str, **options: Unpack[Options]) -> Response:
    """Make a call that may be repeated. `service` names the platform.

    Raises `TryLater` if the platform can't be reached, and `Refused` if the call can't be sent as it is.
    """
    options.setdefault("timeout", TIMEOUT_SECONDS)
    try:
        return http.request(method, url, **options)
    except OutboundError as error:
        message = f"{service} couldn't be reached: {error}"
        raise TryLater(message, code="unreachable") from error
    except ValueError:
        _raise_cannot_be_sent(service)


def ask_once(http: Client, method: str, url: str, *, service: str, **options: Unpack[Options]) -> Response:
    """Make the call that publishes a post.

    Raises `OutcomeUnknown` if it failed but may have arrived, `TryLater` if it provably never reached the
    platform, and `Refused` if it can't be sent as it is.
    """
    options.setdefault("timeout", TIMEOUT_SECONDS)
    try:
        return http.request(method, url, **options)
    except OutboundError as error:
        if error.may_have_reached:
            message = f"The connection to {service} failed after the post was on its way: {error}"
            raise OutcomeUnknown(message) from error
        message = f"{service} couldn't be reached: {error}"
        raise TryLater(message, code="unreachable") from error
    except ValueError:
        _raise_cannot_be_sent(service)


def _raise_cannot_be_sent(service: str) -> NoReturn:
    """Raise `Refused` for a call that the client rejected with `ValueError` before sending.

    The client's message is left out, because it may quote a secret.
    """
    message = f"An address, a header or the content of the call to {service} can't be sent as it is."
    action = "Look for unusual characters in the outlet's settings and in the content, then retry."
    raise Refused(message, code="cannot_be_sent", action=action) from None


def platform_message_of(response: Response, *names: str) -> str:
    """Return the platform's error message, cut: the first of `names` that is a text in its JSON answer.

    A name may be a path such as `error.message`. Without a text, return an empty string: a page of HTML, as
    firewalls send, says nothing that belongs into a message.
    """
    answer = json_object(response.body) or {}
    for name in names:
        value: object = answer
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and value.strip():
            return _truncate_message(value.strip())
    return ""


def _truncate_message(text: str) -> str:
    """Return the message cut to `MAX_MESSAGE_CHARACTERS`, after a whole word if there is one."""
    if len(text) <= MAX_MESSAGE_CHARACTERS:
        return text
    truncated = text[: MAX_MESSAGE_CHARACTERS + 1].rsplit(maxsplit=1)[0]
    return truncated[:MAX_MESSAGE_CHARACTERS]


def with_colon(text: str) -> str:
    """Return `: text`, or an empty string for an empty text."""
    return f": {text}" if text else ""


def wait_until_reset(
    headers: Mapping[str, str], *names: str, now: datetime, is_relative: bool = False
) -> timedelta | None:
    """Return the wait that a header names: `Retry-After`, or else the first usable one of `names`.

    The values of `names` are seconds, epoch seconds or ISO 8601; with `is_relative`, a number is always seconds.
    The wait is at most `LONGEST_WAIT`, and by `names` at least `MIN_WAIT`; `None` if no header names one.
    """
    named_wait = retry_after(headers, now=now)
    if named_wait is not None:
        return named_wait
    values_by_name = {name.lower(): value.strip() for name, value in headers.items()}
    for name in names:
        value = values_by_name.get(name.lower(), "")
        try:
            number = float(value)
        except ValueError:
            moment = parse_iso_datetime(value)
            if moment is not None:
                return min(max(moment - now, MIN_WAIT), LONGEST_WAIT)
            continue
        # NaN compares false with everything.
        if not 0 <= number < 10**11:
            continue
        seconds = number if is_relative or number < _MAX_RELATIVE_SECONDS else number - now.timestamp()
        return min(max(timedelta(seconds=min(seconds, 10**6)), MIN_WAIT), LONGEST_WAIT)
    return None


def parse_iso_datetime(value: str) -> datetime | None:
    """Return the moment of an ISO 8601 text, in UTC if it names no zone, or `None` for another text."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def raise_by_status(
    response: Response,
    *,
    service: str,
    platform_message: str,
    now: datetime,
    is_commit: bool,
    after: timedelta | None = None,
) -> NoReturn:
    """Raise the plug-in error that a status means, if the platform's own table doesn't say.

    401 and 403 concern the account, 429 asks to wait, and another 4xx refuses the content. Any other status, and
    408 and 425, which promise nothing, mean `TryLater` or, if `is_commit`, `OutcomeUnknown`. So does a 409 of a
    commit, because the conflict may be with the post that an earlier try has made.
    """
    status = response.status
    if status in {401, 403}:
        message = f"{service} no longer accepts this account's credentials{with_colon(platform_message)}."
        raise NeedsReconnect(message, platform_status=status, platform_message=platform_message)
    if status == 429:
        message = f"{service} asks to wait{with_colon(platform_message)}."
        wait = after if after is not None else retry_after(response.headers, now=now)
        raise TryLater(
            message,
            code="rate_limited",
            after=wait,
            is_of_account=True,
            platform_status=status,
            platform_message=platform_message,
        )
    is_undecided = status in {408, 425} or (status == 409 and is_commit)
    if 400 <= status < 500 and not is_undecided:
        message = f"{service} refused it (status {status}){with_colon(platform_message)}."
        raise Refused(message, platform_status=status, platform_message=platform_message)
    if is_commit:
        message = f"{service} answered {status}, which doesn't tell whether it took the post."
        raise OutcomeUnknown(message, platform_status=status, platform_message=platform_message)
    message = f"{service} answered {status}{with_colon(platform_message)}."
    raise TryLater(
        message,
        after=retry_after(response.headers, now=now),
        platform_status=status,
        platform_message=platform_message,
    )
