"""A message on its way out by mail, Slack or Telegram, and the address in a mail that switches its kind off.

Claim, then hand over without a transaction, then write what became of it under the lease. A hand that dies between the
two leaves the row to the next one, so a message may arrive twice, and never not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.core import signing

from accounts import limits, mail_sending
from accounts.models import Notice, NoticeKind, NoticeMessage, Workspace
from accounts.notices.kinds import KINDS, NOW, OFF
from accounts.notices.preferences import preferences_of, save_preferences
from config.core import states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.http_client import Client, OutboundError, Policy
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.notices.preferences import NoticePreferences

_SALT: Final = "accounts.notices.off"
log = structlog.get_logger(__name__)
TELEGRAM_CHARACTERS: Final = 4096
SLACK_CHARACTERS: Final = 3000
_TEMPLATES: Final[Mapping[str, str]] = {NoticeKind.DIGEST: "digest", NoticeKind.MONTHLY: "monthly"}
_ANSWER_BYTES: Final = 64 * 1024
_TIMEOUT_SECONDS: Final = 15


@dataclass(frozen=True)
class UnsubscribeLink:
    """The workspace, person and kind of notice that a link is about; it holds as long as they are of the workspace."""

    workspace: Workspace
    choice: NoticePreferences
    kind: str

    @property
    def is_off(self) -> bool:
        return self.choice.when(self.kind) == OFF


def unsubscribe_url(workspace_id: UUID, user_id: UUID, kind: str) -> str:
    """An address that needs no log-in; `resolve_token` reads its token."""
    token = signing.dumps([workspace_id.hex, user_id.hex, kind], salt=_SALT)
    return f"{settings.PUBLIC_URL}/notices/off/{token}"


def resolve_token(token: str) -> UnsubscribeLink | None:
    """None for what nobody signed, and where the person has left, or the workspace is gone."""
    try:
        workspace_id, user_id, kind = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    workspace = Workspace.everywhere.filter(pk=UUID(workspace_id)).first()
    choice = preferences_of(UUID(workspace_id), UUID(user_id))
    if workspace is None or choice is None or kind not in KINDS:
        return None
    return UnsubscribeLink(workspace, choice, kind)


def switch(link: UnsubscribeLink, *, is_on: bool) -> None:
    """What else the person chose stays as it is; doing it again changes nothing."""
    if link.is_off is not is_on:
        return
    choice = link.choice
    save_preferences(
        link.workspace,
        choice.user,
        {**choice.kinds, link.kind: NOW if is_on else OFF},
        by_mail=choice.by_mail,
        slack_url=choice.slack_url,
        telegram_token=choice.telegram_token,
        telegram_chat=choice.telegram_chat,
    )


class ChannelRefused(Exception):
    """The channel did not take it; the message is for the person whose channel it is, and names no secret."""


def deliver_message(message: NoticeMessage, *, now: datetime | None = None) -> None:
    """Work one claimed message. Who has left, or has closed the channel, is sent nothing."""
    now = now or utc_now()
    try:
        _send_or_drop(message, now)
    except states.Overtaken:
        log.warning("lease_lost", message=message.pk.hex)


def give_up(message: NoticeMessage) -> None:
    """The end of a message whose workers died, time after time, before they could record anything."""
    states.move(
        message,
        "failed",
        under_lease=True,
        wake_at=None,
        attempts=0,
        error="The service stopped again and again while sending this.",
    )


def _send_or_drop(message: NoticeMessage, now: datetime) -> None:
    """Raises `Overtaken` where the lease is lost meanwhile."""
    choice = preferences_of(message.workspace_id, message.user_id)
    if choice is None or message.channel not in choice.channels:
        states.move(message, "dropped", under_lease=True, wake_at=None, attempts=0)
        return
    notice: Notice = Notice.everywhere.select_related("workspace").get(pk=message.notice_id)
    # The exchange may last long; meanwhile another task can use the connection to the database.
    work_queue.release_connections()
    try:
        _SEND[message.channel](notice, choice)
    except ChannelRefused as error:
        _failed(message, str(error), now)
        return
    crash_point("notices.sent")
    states.move(message, "sent", under_lease=True, wake_at=None, attempts=0, sent_at=now, error="")
    crash_point("notices.recorded")


def _failed(message: NoticeMessage, error: str, now: datetime) -> None:
    """Try again later, or end it after the last of `NOTICE_RETRIES`."""
    failures = message.failures + 1
    values = {"failures": failures, "error": error[:300], "attempts": 0}
    if failures > len(limits.NOTICE_RETRIES):
        states.move(message, "failed", under_lease=True, wake_at=None, **values)
    else:
        message.sleep_until(now + limits.NOTICE_RETRIES[failures - 1], **values)
    log.warning("notice_not_taken", channel=message.channel, failures=failures, error=error)


# --- Channels --------------------------------------------------------------------------------------------------------


def address_of(notice: Notice) -> str:
    """The page that shows the thing."""
    return f"{settings.PUBLIC_URL}/w/{encode('ws', notice.workspace_id)}/{notice.path}"


def _by_mail(notice: Notice, choice: NoticePreferences) -> None:
    template = _TEMPLATES.get(notice.kind, "notice")
    off_address = unsubscribe_url(notice.workspace_id, choice.user.pk, notice.kind)
    context = {
        "title": notice.title,
        "text": notice.text,
        "workspace": notice.workspace.name,
        "address": address_of(notice),
        "choices_address": f"{settings.PUBLIC_URL}/w/{encode('ws', notice.workspace_id)}/settings/notices",
        "off_address": off_address,
    }
    message = mail_sending.render(template, choice.user.email, context)
    if notice.kind == NoticeKind.MONTHLY:
        # The button of a mail program (RFC 8058).
        message.extra_headers["List-Unsubscribe"] = f"<{off_address}>"
        message.extra_headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    try:
        message.send()
    except OSError as error:
        # What the mail library raises of its own is one too.
        reason = f"The mail relay did not take it: {type(error).__name__}."
        raise ChannelRefused(reason) from error


def _by_slack(notice: Notice, choice: NoticePreferences) -> None:
    # In what it takes for its own signs, a title could call everybody in the channel, or hide where a link leads.
    text = escape(_plain(notice, SLACK_CHARACTERS), quote=False)
    _post("Slack", choice.slack_url, {"text": text})


def _by_telegram(notice: Notice, choice: NoticePreferences) -> None:
    url = f"{settings.TELEGRAM_API_URL}/bot{choice.telegram_token}/sendMessage"
    text = _plain(notice, TELEGRAM_CHARACTERS)
    _post(
        "Telegram",
        url,
        {"chat_id": choice.telegram_chat, "text": text, "link_preview_options": {"is_disabled": True}},
    )


def _plain(notice: Notice, most: int) -> str:
    """Up to `most` characters, the address whole at their end."""
    tail = f"\n{address_of(notice)}"
    head = f"{notice.workspace.name}: {notice.title}\n{notice.text}"
    return head[: most - len(tail)] + tail


def _post(name: str, url: str, body: dict[str, object]) -> None:
    """Raises `ChannelRefused` for every answer but a 2xx, and for none; `name` is the channel's for people."""
    try:
        answer = _client(
            allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
            allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
            user_agent=settings.USER_AGENT,
        ).request(
            "POST",
            url,
            json=body,
            timeout=_TIMEOUT_SECONDS,
            max_bytes=_ANSWER_BYTES,
            max_redirects=0,
            truncate=True,
            https_only=not settings.WEBHOOKS_ALLOW_HTTP,
        )
    except (OutboundError, ValueError) as error:
        # Its own words may quote the address, which is a secret.
        message = f"{name} could not be reached."
        raise ChannelRefused(message) from error
    if not 200 <= answer.status < 300:
        message = f"{name} answered {answer.status}: check what you pasted here."
        raise ChannelRefused(message)


@cache
def _client(*, allow_loopback: bool, allow_private: bool, user_agent: str) -> Client:
    return Client(Policy(allow_loopback=allow_loopback, allow_private=allow_private, user_agent=user_agent))


_SEND: Final = {"mail": _by_mail, "slack": _by_slack, "telegram": _by_telegram}
