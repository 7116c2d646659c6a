"""Validates an endpoint's address, events, description and rate, and writes nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.conf import settings

from config.core import limits as core_limits
from config.core.errors import Detail, Invalid
from config.core.http_client import AddressRefused, OutboundError, Policy, connect
from pipeline.events import TYPES
from webhooks import limits
from webhooks.models import EVERY_EVENT

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DESCRIPTION_CHARACTERS: Final = 200
"""The most characters of an endpoint's description."""
CONNECT_SECONDS: Final = 3.0
"""Seconds of a try to connect, few because somebody waits for the page."""
_SPACE_OR_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")


def validate_endpoint(
    url: str, events: Sequence[str], description: str, rate: int = limits.WEBHOOK_RATE
) -> None:
    """Raise `Invalid` with everything that is wrong with the values; `rate` is in attempts a second."""
    problems = [*_find_url_problems(url), *_find_event_problems(events)]
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        problems.append(
            Detail("description", "too_long", f"Use at most {MAX_DESCRIPTION_CHARACTERS} characters.")
        )
    if not 1 <= rate <= limits.WEBHOOK_RATE_MOST:
        message = f"Choose a rate from 1 to {limits.WEBHOOK_RATE_MOST} a second."
        problems.append(Detail("rate", "out_of_range", message))
    if problems:
        raise Invalid(*problems)


def _find_url_problems(url: str) -> list[Detail]:
    """Return the first problem of the address as it is written; where it leads is checked at each connection."""

    def problem(code: str, message: str) -> list[Detail]:
        return [Detail("url", code, message)]

    if len(url) > core_limits.URL_CHARACTERS:
        return problem("too_long", f"Use at most {core_limits.URL_CHARACTERS} characters.")
    try:
        parts = urlsplit(url)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        return problem("invalid", "This is not an address that can be called.")
    if not has_host or _SPACE_OR_CONTROL.search(url) or parts.scheme not in {"http", "https"}:
        return problem("invalid", "Use a whole address that begins with https:// and holds no spaces.")
    if parts.scheme == "http" and not settings.WEBHOOKS_ALLOW_HTTP:
        return problem("https_required", "Use an https:// address; http is not allowed here.")
    if "@" in parts.netloc:
        return problem("has_credentials", "Leave user name and password out; the signature proves who sends.")
    return []


def connect_and_validate_address(url: str) -> None:
    """Connect once, so never within a transaction. Raises `Invalid` if the address leads where no call may go.

    Other failures pass: a receiver that isn't up yet, or a name that DNS doesn't know yet, shows with the test
    event. Every later connection is checked again.
    """
    parts = urlsplit(url)
    policy = Policy(
        allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
        allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
        user_agent=settings.USER_AGENT,
    )
    port = parts.port if parts.port is not None else {"http": 80, "https": 443}[parts.scheme]
    try:
        connect(str(parts.hostname), port, timeout=CONNECT_SECONDS, policy=policy).close()
    except AddressRefused as error:
        raise Invalid.one("url", "address_refused", f"{error} Use one that can be reached.") from error
    except OutboundError:
        return


def _find_event_problems(names: Sequence[str]) -> list[Detail]:
    """Return a problem for each name that isn't a type of events; `*` alone stands for all types."""
    if list(names) == [EVERY_EVENT]:
        return []
    known_names = ", ".join(TYPES)
    return [
        Detail(f"events[{index}]", "unknown_event", f"{name!r} is not an event; there are: {known_names}.")
        for index, name in enumerate(names)
        if name not in TYPES
    ]
