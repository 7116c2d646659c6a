"""What an endpoint may be: its address, its events, its description. Nothing here writes."""

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

DESCRIPTION_CHARACTERS: Final = 200
LOOK_SECONDS: Final = 3.0
"""Somebody waits for it before a page."""
_UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f]")


def refuse_unless_usable(
    url: str, events: Sequence[str], description: str, rate: int = limits.WEBHOOK_RATE
) -> None:
    """Raises `Invalid` with everything that is wrong; `rate` is deliveries a second."""
    wrong = [*problems_of_url(url), *_problems_of_events(events)]
    if len(description) > DESCRIPTION_CHARACTERS:
        wrong.append(Detail("description", "too_long", f"Use at most {DESCRIPTION_CHARACTERS} characters."))
    if not 1 <= rate <= limits.WEBHOOK_RATE_MOST:
        message = f"Choose a rate from 1 to {limits.WEBHOOK_RATE_MOST} a second."
        wrong.append(Detail("rate", "out_of_range", message))
    if wrong:
        raise Invalid(*wrong)


def problems_of_url(url: str) -> list[Detail]:
    """Why the address has no form that can be called, else nothing; where it leads is judged at every connection."""

    def problem(code: str, message: str) -> list[Detail]:
        return [Detail("url", code, message)]

    if len(url) > core_limits.URL_CHARACTERS:
        return problem("too_long", f"Use at most {core_limits.URL_CHARACTERS} characters.")
    try:
        parts = urlsplit(url)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        return problem("invalid", "This is not an address that can be called.")
    if not has_host or _UNPRINTABLE.search(url) or parts.scheme not in {"http", "https"}:
        return problem("invalid", "Use a whole address that begins with https:// and holds no spaces.")
    if parts.scheme == "http" and not settings.WEBHOOKS_ALLOW_HTTP:
        return problem("https_required", "Use an https:// address; http is not allowed here.")
    if "@" in parts.netloc:
        return problem("has_credentials", "Leave user name and password out; the signature proves who sends.")
    return []


def refuse_where_closed(url: str) -> None:
    """Connect once, to tell in words at the field that the address leads where no call may go.

    Only that is refused here. A receiver that isn't up yet, or a name that DNS doesn't know yet, is told by the test
    event; and every later connection is judged anew. It talks to the network: never inside a transaction. Raises `Invalid`.
    """
    parts = urlsplit(url)
    policy = Policy(
        allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
        allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
        user_agent=settings.USER_AGENT,
    )
    port = parts.port if parts.port is not None else {"http": 80, "https": 443}[parts.scheme]
    try:
        connect(str(parts.hostname), port, timeout=LOOK_SECONDS, policy=policy).close()
    except AddressRefused as error:
        raise Invalid.one("url", "address_refused", f"{error} Use one that can be reached.") from error
    except OutboundError:
        return


def _problems_of_events(chosen: Sequence[str]) -> list[Detail]:
    """One for each name that is no type of events; `*` stands alone for all of them."""
    if list(chosen) == [EVERY_EVENT]:
        return []
    known = ", ".join(TYPES)
    return [
        Detail(f"events[{place}]", "unknown_event", f"{name!r} is not an event; there are: {known}.")
        for place, name in enumerate(chosen)
        if name not in TYPES
    ]
