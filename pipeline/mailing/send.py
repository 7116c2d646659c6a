"""Sends one mail: composes it for its recipient, hands it over, and records what the server said."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from config.core import ids, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits
from pipeline.mailing.lifecycle import counts_of
from pipeline.mailing.queue import lost_lease_error
from pipeline.models import MailDelivery, MailDeliveryStatus, Mailing, MailingStatus, Subscriber
from pipeline.platforms.email_newsletter.frame import inline_styles
from pipeline.platforms.email_newsletter.message import Envelope, Footer, Issue, compose_mail, style_of
from pipeline.platforms.email_newsletter.session import NoAnswer, SessionLost, SmtpReply, SmtpSession
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.states import WANTED_SUBSCRIBERS

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from uuid import UUID

    from pipeline.models import Outlet
    from pipeline.outlets.outlet_client import OutletConnection

REPLY_CHARACTERS: Final = 300
"""Characters of a mail server's reply that are stored."""


class Halted(Exception):
    """Raised when the session is over because of `problem`, which concerns only `mailing` if that is set."""

    def __init__(self, problem: TryLater | Refused | NeedsReconnect, mailing: Mailing | None = None) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.mailing = mailing


class Postman:
    """Sends mails of one outlet over one session."""

    def __init__(self, outlet: Outlet, connection: OutletConnection, session: SmtpSession) -> None:
        self.outlet = outlet
        self.connection = connection
        self.session = session
        self.sent = 0
        self._mailings: dict[UUID, Mailing] = {}

    def deliver(self, row: MailDelivery) -> bool:
        """Send one mail; False if the server wasn't contacted.

        Raises `Halted`, and `Overtaken` if another task has it.
        """
        mailing = self._load_mailing(row)
        if mailing is not None and mailing.status == MailingStatus.DONE:
            # It was stopped and its item erased since the delivery was read: there is no content to send.
            return False
        subscriber = Subscriber.everywhere.filter(pk=row.subscriber_id).first() if row.subscriber_id else None
        required_status = "pending" if mailing is None else "active"
        if subscriber is None or subscriber.status != required_status:
            reason = "The address is no longer on the list." if mailing else "It was answered already."
            states.move(row, "skipped", next_at=None, reply=reason, updated_at=utc_now())
            return False
        message = self._compose(row, mailing, subscriber)
        with self.session.one_mail():
            try:
                reply = self.session.begin(self._return_address(row), subscriber.email)
            except SessionLost as error:
                raise Halted(TryLater(str(error), code="connection_lost")) from error
            if reply.verdict == "sent":
                states.move(row, "sending", tries=row.tries + 1, updated_at=utc_now())
                crash_point("mailing.sending")
                reply = self._finish(row, message)
        self._record(row, mailing, subscriber, reply)
        return True

    def _finish(self, row: MailDelivery, message: bytes) -> SmtpReply:
        try:
            reply = self.session.end(message)
        except SessionLost as error:
            now = utc_now()
            states.move(row, "pending", next_at=now, reply=self._storable_reply(str(error)), updated_at=now)
            raise Halted(TryLater(str(error), code="connection_lost")) from error
        except NoAnswer as error:
            crash_point("mailing.sent")
            states.move(
                row, "unknown", next_at=None, reply=self._storable_reply(str(error)), updated_at=utc_now()
            )
            # A server that doesn't answer now would leave the next mails unknown too.
            raise Halted(TryLater(str(error), code="no_answer")) from error
        crash_point("mailing.sent")
        return reply

    def _record(
        self, row: MailDelivery, mailing: Mailing | None, subscriber: Subscriber, reply: SmtpReply
    ) -> None:
        now = utc_now()
        values: dict[str, Any] = {
            "code": reply.code,
            "reply": self._storable_reply(reply.text),
            "updated_at": now,
        }
        tries = row.tries + (row.status == MailDeliveryStatus.PENDING)
        verdict = reply.verdict
        if verdict == "sent":
            self.sent += 1
            try:
                states.move(row, "sent", next_at=None, sent_at=now, **values)
            except states.Overtaken:
                _record_late_success(row, sent_at=now, **values)
                raise
        elif verdict == "later" and tries <= len(limits.MAIL_RETRIES):
            self._retry_later(row, now, after=limits.MAIL_RETRIES[tries - 1], tries=tries, **values)
        elif verdict == "bounced":
            with transaction.atomic():
                states.move(row, "failed", next_at=None, tries=tries, **values)
                bounce(subscriber, values["reply"], now=now)
        elif verdict in {"later", "failed"}:
            states.move(row, "failed", next_at=None, tries=tries, **values)
        else:
            self._retry_later(row, now, after=None, tries=tries, **values)
            raise self._to_halt(reply, mailing)

    def _storable_reply(self, text: str) -> str:
        """Return the text without secrets, cut to the column's length.

        What replaces a secret may be longer than it, so it is cut afterwards.
        """
        return self.connection.redact(text)[:REPLY_CHARACTERS]

    def _retry_later(
        self, row: MailDelivery, now: datetime, *, after: timedelta | None, **values: Any
    ) -> None:
        """Make the delivery pending again, to be sent later."""
        updates = {"next_at": now if after is None else now + after, **values}
        if row.status == MailDeliveryStatus.SENDING:
            states.move(row, "pending", **updates)
        elif not type(row).everywhere.filter(pk=row.pk, status=MailDeliveryStatus.PENDING).update(**updates):
            raise lost_lease_error()

    def _to_halt(self, reply: SmtpReply, mailing: Mailing | None) -> Halted:
        details: dict[str, Any] = {
            "platform_status": reply.code,
            "platform_message": self._storable_reply(reply.text),
        }
        message = f"The mail server answered {reply.code}."
        if reply.verdict == "reconnect":
            return Halted(NeedsReconnect(message, code="login_refused", **details))
        if reply.verdict == "too_big":
            return Halted(
                Refused("The mail is too big for the mail server.", code="too_big", **details), mailing
            )
        if reply.verdict == "policy":
            message = f"The mail server refuses these mails ({reply.code})."
            return Halted(Refused(message, code="policy", **details))
        return Halted(TryLater(message, code="busy", **details))

    def _load_mailing(self, row: MailDelivery) -> Mailing | None:
        if row.mailing_id is None:
            return None
        if row.mailing_id not in self._mailings:
            self._mailings = {row.mailing_id: Mailing.everywhere.get(pk=row.mailing_id)}
        return self._mailings[row.mailing_id]

    def _return_address(self, row: MailDelivery) -> str:
        """Return the address for undeliverable mail: one of its own if a domain accepts any."""
        config = self.connection.account.config
        if config.get("bounce_domain"):
            return f"b-{row.pk.hex}@{config['bounce_domain']}"
        return str(config.get("return_address") or config["from_address"])

    def _compose(self, row: MailDelivery, mailing: Mailing | None, subscriber: Subscriber) -> bytes:
        if mailing is None:
            issue, envelope = confirmation_for(self.outlet, subscriber, row.message_id)
        else:
            issue = Issue(mailing.subject, mailing.html, mailing.text, mailing.language)
            envelope = self._envelope(row, subscriber)
        return compose_mail(self.connection.account, issue, envelope, now=utc_now())

    def _envelope(self, row: MailDelivery, subscriber: Subscriber) -> Envelope:
        config = self.connection.account.config
        mailbox = str(config.get("return_address", ""))
        domain = str(config["from_address"]).rpartition("@")[2]
        return Envelope(
            subscriber.email,
            row.message_id,
            list_id=f"{ids.encode('out', self.outlet.pk)}.{domain}",
            unsubscribe_url=f"{settings.PUBLIC_URL.rstrip('/')}/u/{subscriber.token}",
            unsubscribe_mailto=f"mailto:{mailbox}?subject={quote('unsubscribe ' + subscriber.token)}"
            if mailbox
            else "",
            footer=Footer(
                _("You subscribed to %(name)s.") % {"name": config.get("from_name") or self.outlet.name},
                _("Unsubscribe"),
            ),
        )


def _record_late_success(row: MailDelivery, **values: Any) -> None:
    """Record that the server took a mail after the lease was lost and the next worker called it unknown."""
    with transaction.atomic():
        fresh = MailDelivery.everywhere.get(pk=row.pk)
        if fresh.status != MailDeliveryStatus.UNKNOWN:
            return
        states.move(fresh, "sent", next_at=None, **values)
        ended_mailing = Mailing.everywhere.filter(pk=row.mailing_id).exclude(counts=None).first()
        if ended_mailing is not None:
            ended_mailing.counts = None
            Mailing.everywhere.filter(pk=ended_mailing.pk).update(counts=counts_of(ended_mailing))


def bounce(subscriber: Subscriber, reason: str, *, now: datetime, to: str = "bounced") -> bool:
    """Stop mailing the subscriber; False if that is so already."""
    if subscriber.status not in WANTED_SUBSCRIBERS:
        return False
    states.move(subscriber, to, ended_at=now, reason=reason[:REPLY_CHARACTERS], updated_at=now)
    return True


def confirmation_for(outlet: Outlet, subscriber: Subscriber, message_id: str) -> tuple[Issue, Envelope]:
    """Return the mail that asks a subscriber to confirm."""
    name = str(outlet.config.get("from_name") or outlet.name)
    url = f"{settings.PUBLIC_URL.rstrip('/')}/subscribe/confirm/{subscriber.token}"
    subject = _("Please confirm: %(name)s") % {"name": name}
    request = _("Confirm your subscription to %(name)s:") % {"name": name}
    ignore_hint = _("If this wasn't you, ignore this mail.")
    html = f'<p>{escape(request)}</p>\n<p><a href="{escape(url)}">{escape(url)}</a></p>\n<p>{escape(ignore_hint)}</p>'
    issue = Issue(
        " ".join(subject.split()),
        inline_styles(html, style_of(outlet.config)),
        f"{request}\n\n{url}\n\n{ignore_hint}",
    )
    return issue, Envelope(subscriber.email, message_id)
