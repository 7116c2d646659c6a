"""Sends messages by mail, Slack or Telegram, and reads the unsubscribe links of mails.

A worker claims a message, sends it without a transaction, then writes the outcome under its lease. If it dies
in between, the next worker takes the row, so a message may arrive twice, but is never lost.
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
from accounts.notices.preferences import find_preferences, save_preferences
from config.core import states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.http_client import Client, OutboundError, Policy
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.notices.preferences import NoticePreferences

_UNSUBSCRIBE_SALT: Final = "accounts.notices.off"
log = structlog.get_logger(__name__)
# The most characters of a message that the channels take.
_MAX_TELEGRAM_CHARACTERS: Final = 4096
_MAX_SLACK_CHARACTERS: Final = 3000
_TEMPLATES: Final[Mapping[str, str]] = {NoticeKind.DIGEST: "digest", NoticeKind.MONTHLY: "monthly"}
_MAX_ANSWER_BYTES: Final = 64 * 1024
_TIMEOUT_SECONDS: Final = 15


@dataclass(frozen=True)
class UnsubscribeLink:
    """The workspace, member and kind of notice that a link is about; it works while they are a member."""

    workspace: Workspace
    choice: NoticePreferences
    """The member's preferences when the link was read."""
    kind: str

    @property
    def is_off(self) -> bool:
        return self.choice.when(self.kind) == OFF


def unsubscribe_url(workspace_id: UUID, user_id: UUID, kind: str) -> str:
    """Return an address that needs no log-in; `resolve_token` reads its token."""
    token = signing.dumps([workspace_id.hex, user_id.hex, kind], salt=_UNSUBSCRIBE_SALT)
    return f"{settings.PUBLIC_URL}/notices/off/{token}"


def resolve_token(token: str) -> UnsubscribeLink | None:
    """Return the workspace, member and kind that an unsubscribe link is about.

    Returns `None` for a token that we didn't sign, for a kind that no longer exists, and if the member has left or
    can't log in, or the workspace was deleted.
    """
    try:
        workspace_id, user_id, kind = signing.loads(token, salt=_UNSUBSCRIBE_SALT)
    except signing.BadSignature:
        return None
    workspace = Workspace.everywhere.filter(pk=UUID(workspace_id)).first()
    preferences = find_preferences(UUID(workspace_id), UUID(user_id))
    if workspace is None or preferences is None or kind not in KINDS:
        return None
    return UnsubscribeLink(workspace, preferences, kind)


def switch(link: UnsubscribeLink, *, is_on: bool) -> None:
    """Turn the link's kind of notice on or off; the member's other choices stay.

    A kind that is turned on is sent immediately. Nothing is written if the kind already is on or off.
    """
    if link.is_off is not is_on:
        return
    preferences = link.choice
    save_preferences(
        link.workspace,
        preferences.user,
        {**preferences.kinds, link.kind: NOW if is_on else OFF},
        by_mail=preferences.by_mail,
        slack_url=preferences.slack_url,
        telegram_token=preferences.telegram_token,
        telegram_chat=preferences.telegram_chat,
    )


class ChannelRefused(Exception):
    """Raised if a channel doesn't take a message; its text is for the member, and contains no secret."""


def deliver_message(message: NoticeMessage, *, now: datetime | None = None) -> None:
    """Send one claimed message and record the outcome; nothing is recorded if the lease is lost.

    The message is dropped if the member has left or has turned the channel off.
    """
    now = now or utc_now()
    try:
        _send_or_drop(message, now)
    except states.Overtaken:
        log.warning("lease_lost", message=message.pk.hex)


def give_up(message: NoticeMessage) -> None:
    """Fail a message whose workers died again and again before they could record anything."""
    states.move(
        message,
        "failed",
        under_lease=True,
        wake_at=None,
        attempts=0,
        error="The service stopped several times while sending this.",
    )


def _send_or_drop(message: NoticeMessage, now: datetime) -> None:
    """Send or drop the message and record the outcome. Raises `Overtaken` if the lease is lost meanwhile."""
    preferences = find_preferences(message.workspace_id, message.user_id)
    if preferences is None or message.channel not in preferences.channels:
        states.move(message, "dropped", under_lease=True, wake_at=None, attempts=0)
        return
    notice: Notice = Notice.everywhere.select_related("workspace").get(pk=message.notice_id)
    # The exchange may last long; meanwhile another task can use the connection to the database.
    work_queue.release_connections()
    try:
        _SENDERS[message.channel](notice, preferences)
    except ChannelRefused as error:
        _retry_or_fail(message, str(error), now)
        return
    crash_point("notices.sent")
    states.move(message, "sent", under_lease=True, wake_at=None, attempts=0, sent_at=now, error="")
    crash_point("notices.recorded")


def _retry_or_fail(message: NoticeMessage, error: str, now: datetime) -> None:
    """Schedule another try, or fail the message after the last of `NOTICE_RETRIES`."""
    failures = message.failures + 1
    values = {"failures": failures, "error": error[:300], "attempts": 0}
    if failures > len(limits.NOTICE_RETRIES):
        states.move(message, "failed", under_lease=True, wake_at=None, **values)
    else:
        message.sleep_until(now + limits.NOTICE_RETRIES[failures - 1], **values)
    log.warning("notice_not_taken", channel=message.channel, failures=failures, error=error)


# --- Channels --------------------------------------------------------------------------------------------------------


def address_of(notice: Notice) -> str:
    """Return the address of the notice's page."""
    return f"{settings.PUBLIC_URL}/w/{encode('ws', notice.workspace_id)}/{notice.path}"


def _send_by_mail(notice: Notice, preferences: NoticePreferences) -> None:
    """Send the notice by mail. Raises `ChannelRefused` if the relay doesn't take it."""
    template = _TEMPLATES.get(notice.kind, "notice")
    unsubscribe_address = unsubscribe_url(notice.workspace_id, preferences.user.pk, notice.kind)
    context = {
        "title": notice.title,
        "text": notice.text,
        "workspace": notice.workspace.name,
        "address": address_of(notice),
        "choices_address": f"{settings.PUBLIC_URL}/w/{encode('ws', notice.workspace_id)}/settings/notices",
        "off_address": unsubscribe_address,
    }
    message = mail_sending.render(template, preferences.user.email, context)
    if notice.kind == NoticeKind.MONTHLY:
        # The unsubscribe button of mail programs (RFC 8058).
        message.extra_headers["List-Unsubscribe"] = f"<{unsubscribe_address}>"
        message.extra_headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    try:
        message.send()
    except OSError as error:
        # The mail library's own exceptions are subclasses of OSError too.
        reason = f"The mail relay did not take it: {type(error).__name__}."
        raise ChannelRefused(reason) from error


def _send_by_slack(notice: Notice, preferences: NoticePreferences) -> None:
    # Slack's own markup in a title could notify everybody in the channel, or hide where a link leads.
    text = escape(_plain_text(notice, _MAX_SLACK_CHARACTERS), quote=False)
    _post_json("Slack", preferences.slack_url, {"text": text})


def _send_by_telegram(notice: Notice, preferences: NoticePreferences) -> None:
    url = f"{settings.TELEGRAM_API_URL}/bot{preferences.telegram_token}/sendMessage"
    text = _plain_text(notice, _MAX_TELEGRAM_CHARACTERS)
    _post_json(
        "Telegram",
        url,
        {"chat_id": preferences.telegram_chat, "text": text, "link_preview_options": {"is_disabled": True}},
    )


def _plain_text(notice: Notice, max_characters: int) -> str:
    """Return the notice as text of at most `max_characters`, with the whole address at the end."""
    address_line = f"\n{address_of(notice)}"
    text = f"{notice.workspace.name}: {notice.title}\n{notice.text}"
    return text[: max_characters - len(address_line)] + address_line


def _post_json(name: str, url: str, body: dict[str, object]) -> None:
    """POST the body to the named channel. Raises `ChannelRefused` without an answer, or with one that isn't 2xx."""
    try:
        response = _client(
            allow_loopback=settings.OUTBOUND_ALLOW_LOOPBACK,
            allow_private=settings.OUTBOUND_ALLOW_PRIVATE,
            user_agent=settings.USER_AGENT,
        ).request(
            "POST",
            url,
            json=body,
            timeout=_TIMEOUT_SECONDS,
            max_bytes=_MAX_ANSWER_BYTES,
            max_redirects=0,
            truncate=True,
            https_only=not settings.WEBHOOKS_ALLOW_HTTP,
        )
    except (OutboundError, ValueError) as error:
        # The error's text may quote the address, which is a secret.
        message = f"{name} could not be reached."
        raise ChannelRefused(message) from error
    if not 200 <= response.status < 300:
        message = f"{name} answered {response.status}: check what you pasted here."
        raise ChannelRefused(message)


@cache
def _client(*, allow_loopback: bool, allow_private: bool, user_agent: str) -> Client:
    return Client(Policy(allow_loopback=allow_loopback, allow_private=allow_private, user_agent=user_agent))


_SENDERS: Final = {"mail": _send_by_mail, "slack": _send_by_slack, "telegram": _send_by_telegram}
