"""The simulated platform as many real ones are: a call takes two requests, and a post shows a while after it."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from config.core.http_client import OutboundError
from pipeline.platforms.simulated import BASE_URL, Simulated
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.platforms.base import Sent

SETTLES: Final = timedelta(minutes=1)
_commit = Simulated.commit


def _commit_after_a_look(self: Simulated, *args: Any, http: Any, **options: Any) -> Sent:
    try:
        http.request("GET", f"{BASE_URL}/account")
    except OutboundError as error:
        message = f"The platform couldn't be reached: {error}"
        raise TryLater(message) from error
    return _commit(self, *args, http=http, **options)


@contextmanager
def as_real_ones() -> Iterator[None]:
    with (
        mock.patch.object(Simulated, "commit", _commit_after_a_look),
        mock.patch.object(Simulated, "settles", SETTLES),
    ):
        yield
