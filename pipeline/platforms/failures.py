"""Maps a platform's error answers to plug-in errors by a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pipeline.platforms.http_calls import json_object, raise_by_status, with_colon
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from config.core.http_client import Response

Means = type[NeedsReconnect] | type[Refused] | type[TryLater]


@dataclass(frozen=True)
class Failure:
    """One row of a platform's table: the plug-in error for answers that match.

    An answer matches if its status is `status`, its machine code is in `codes`, and its message contains one of
    `words`, in lower case; an empty field matches everything.
    """

    means: Means
    code: str
    message: str
    action: str = ""
    status: int | None = None
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    field: str | None = None

    def meets(self, status: int, code: str, platform_message: str) -> bool:
        """Return whether the row matches this answer."""
        lower = platform_message.lower()
        return (
            (self.status is None or self.status == status)
            and (not self.codes or code in self.codes)
            and (not self.words or any(text in lower for text in self.words))
        )

    def error(self, *, status: int, platform_message: str, after: timedelta | None) -> Exception:
        """Return the error to raise, with the platform's message after the row's.

        `after`, the wait that the platform asks for, counts only for `TryLater`.
        """
        message = f"{self.message.removesuffix('.')}{with_colon(platform_message.removesuffix('.'))}."
        if self.means is Refused:
            return Refused(
                message,
                code=self.code,
                field=self.field,
                action=self.action,
                platform_status=status,
                platform_message=platform_message,
            )
        if self.means is TryLater:
            return TryLater(
                message,
                code=self.code,
                after=after,
                is_of_account=self.code == "rate_limited",
                action=self.action,
                platform_status=status,
                platform_message=platform_message,
            )
        return NeedsReconnect(
            message,
            code=self.code,
            action=self.action,
            platform_status=status,
            platform_message=platform_message,
        )


def raise_from_table(
    table: Sequence[Failure],
    response: Response,
    *,
    service: str,
    code: str,
    platform_message: str,
    now: datetime,
    is_commit: bool,
    after: timedelta | None = None,
) -> NoReturn:
    """Raise the error of the first matching row or, without one, the error that the status means.

    Before the table, a 403 without a code or JSON is a firewall's, which is `TryLater`. A status of 500 or more
    is never looked up in the table, because it doesn't prove a refusal. An answer below 300 that no row matches
    is `OutcomeUnknown` if `is_commit`, or else `TryLater`.
    """
    status = response.status
    if status == 403 and not code and json_object(response.body) is None:
        # A firewall's page doesn't tell anything about the account.
        message = f"A firewall in front of {service} refused the call."
        raise TryLater(message, code="firewall", platform_status=status)
    if status < 500:
        for row in table:
            if row.meets(status, code, platform_message):
                raise row.error(status=status, platform_message=platform_message, after=after)
    if status < 300:
        message = f"{service}'s answer couldn't be understood{with_colon(platform_message)}."
        kind = OutcomeUnknown if is_commit else TryLater
        raise kind(message, platform_status=status, platform_message=platform_message)
    raise_by_status(
        response,
        service=service,
        platform_message=platform_message,
        now=now,
        is_commit=is_commit,
        after=after,
    )
