"""The HTTP client of one publishing call: one deadline for all requests, while its task holds the lease."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from config.core.clock import utc_now
from config.core.http_client import Client, Response, TimedOut
from config.core.settings_checks import LONGEST_CALL_SECONDS
from pipeline.platforms import http_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

LONGEST: Final = timedelta(seconds=min(LONGEST_CALL_SECONDS, settings.LEASE_SECONDS * 5 / 6))
"""The longest call, from the start of its attempt with uploads and all requests; shorter than the lease."""


class OneCall(Client):
    """Passes requests on to `client`, none after the deadline and none for longer than what is left until it.

    From the second request on, `is_ours` is asked too: a call of several steps ends where another task has
    taken over.
    """

    def __init__(
        self, client: Client, *, started_at: datetime, ends: float, is_ours: Callable[[], bool]
    ) -> None:
        """`ends` is the deadline by `monotonic()`, which stands still while the machine is suspended."""
        super().__init__(client.policy)
        self._client = client
        # By the wall clock too, which goes on while the machine is suspended.
        self._ends_at = started_at + LONGEST
        self._ends = ends
        self._is_ours = is_ours
        self._has_asked = False

    def request(self, method: str, url: str, **options: Any) -> Response:
        """Send the request. Raises `TimedOut` past the deadline, or where another worker has taken over."""
        seconds_left = min(self._ends - monotonic(), (self._ends_at - utc_now()).total_seconds())
        if seconds_left <= 0:
            message = f"The {LONGEST.total_seconds():g} seconds of the whole call were over."
            raise TimedOut(message)
        if self._has_asked and not self._is_ours():
            message = "Another worker has taken the publication over."
            raise TimedOut(message)
        self._has_asked = True
        options["timeout"] = min(options.get("timeout", http_calls.TIMEOUT_SECONDS), seconds_left)
        return self._client.request(method, url, **options)
