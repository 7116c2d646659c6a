"""A platform's table of failures: what each of its answers means, and what a person does about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pipeline.platforms.http_calls import fail_plainly, json_object, with_colon
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from config.core.http_client import Response

Means = type[NeedsReconnect] | type[Refused] | type[TryLater]


@dataclass(frozen=True)
class Failure:
    """One row: it meets an answer whose `status` is that one, whose machine code is one of `codes`, and whose words
    hold one of `words`; what is left empty meets everything.
    """

    means: Means
    code: str
    message: str
    action: str = ""
    status: int | None = None
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    field: str | None = None

    def meets(self, status: int, code: str, words: str) -> bool:
        lower = words.lower()
        return (
            (self.status is None or self.status == status)
            and (not self.codes or code in self.codes)
            and (not self.words or any(one in lower for one in self.words))
        )

    def error(self, *, status: int, words: str, after: timedelta | None) -> Exception:
        message = f"{self.message.removesuffix('.')}{with_colon(words.removesuffix('.'))}."
        if self.means is Refused:
            return Refused(
                message,
                code=self.code,
                field=self.field,
                action=self.action,
                platform_status=status,
                platform_message=words,
            )
        if self.means is TryLater:
            return TryLater(
                message,
                code=self.code,
                after=after,
                is_of_account=self.code == "rate_limited",
                action=self.action,
                platform_status=status,
                platform_message=words,
            )
        return NeedsReconnect(
            message, code=self.code, action=self.action, platform_status=status, platform_message=words
        )


def fail(
    table: Sequence[Failure],
    response: Response,
    *,
    what: str,
    code: str,
    words: str,
    now: datetime,
    is_commit: bool,
    after: timedelta | None = None,
) -> NoReturn:
    """Raise what the table says of an answer; where it says nothing, what its status says."""
    status = response.status
    if status == 403 and not code and json_object(response.body) is None:
        # A firewall's page says nothing of the account.
        message = f"A firewall before {what} refused the call."
        raise TryLater(message, code="firewall", platform_status=status)
    if status < 500:
        for row in table:
            if row.meets(status, code, words):
                raise row.error(status=status, words=words, after=after)
    if status < 300:
        message = f"{what}'s answer couldn't be understood{with_colon(words)}."
        kind = OutcomeUnknown if is_commit else TryLater
        raise kind(message, platform_status=status, platform_message=words)
    fail_plainly(response, what=what, words=words, now=now, is_commit=is_commit, after=after)
