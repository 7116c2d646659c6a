"""Composes one mail for its recipient, hands it to the mail server, and records the server's reply."""

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
from pipeline.mailing.lifecycle import count_deliveries
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

MAX_REPLY_CHARACTERS: Final = 300
"""The most characters of a mail server's reply that are stored."""


class Halted(Exception):
    """Raised if `problem` ends the session; if `mailing` is set, the problem is of that mailing alone."""

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
        self.sent_count = 0
        self._mailings: dict[UUID, Mailing] = {}

    def deliver(self, row: MailDelivery) -> bool:
        """Send one mail, and return whether the server was contacted.

        A mail to a subscriber who left the list is skipped. Raises `Halted` if the session must end, and
        `Overtaken` if another task has the delivery.
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
        """Send the content and return the server's reply. Raises `Halted` if the session breaks.

        The delivery is pending again if the server never got the whole content, and else of unknown outcome.
        """
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
        """Record the server's reply.

        Raises `Halted` if it concerns more than this mail, and `Overtaken` if another task has the delivery.
        """
        now = utc_now()
        values: dict[str, Any] = {
            "code": reply.code,
            "reply": self._storable_reply(reply.text),
            "updated_at": now,
        }
        # A delivery that became `sending` has counted this try already.
        tries = row.tries + (row.status == MailDeliveryStatus.PENDING)
        verdict = reply.verdict
        if verdict == "sent":
            self.sent_count += 1
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
                end_subscription(subscriber, values["reply"], now=now)
        elif verdict in {"later", "failed"}:
            states.move(row, "failed", next_at=None, tries=tries, **values)
        else:
            self._retry_later(row, now, after=None, tries=tries, **values)
            raise self._to_halt(reply, mailing)

    def _storable_reply(self, text: str) -> str:
        """Return the text without secrets, cut to the column's length.

        The text is cut last, because the replacement of a secret may be longer than the secret.
        """
        return self.connection.redact(text)[:MAX_REPLY_CHARACTERS]

    def _retry_later(
        self, row: MailDelivery, now: datetime, *, after: timedelta | None, **values: Any
    ) -> None:
        """Make the delivery pending again, to be sent after `after`, or at once if that is `None`.

        Raises `Overtaken` if another task has the delivery.
        """
        updates = {"next_at": now if after is None else now + after, **values}
        if row.status == MailDeliveryStatus.SENDING:
            states.move(row, "pending", **updates)
        elif not type(row).everywhere.filter(pk=row.pk, status=MailDeliveryStatus.PENDING).update(**updates):
            raise lost_lease_error()

    def _to_halt(self, reply: SmtpReply, mailing: Mailing | None) -> Halted:
        """Return the error for a reply that concerns the login, this mailing, all mails, or the present moment."""
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
        """Return the delivery's mailing, which is read once for all of its mails; `None` for a confirmation."""
        if row.mailing_id is None:
            return None
        if row.mailing_id not in self._mailings:
            self._mailings = {row.mailing_id: Mailing.everywhere.get(pk=row.mailing_id)}
        return self._mailings[row.mailing_id]

    def _return_address(self, row: MailDelivery) -> str:
        """Return the address for bounces: an address for this mail alone if the outlet has a bounce domain."""
        config = self.connection.account.config
        if config.get("bounce_domain"):
            return f"b-{row.pk.hex}@{config['bounce_domain']}"
        return str(config.get("return_address") or config["from_address"])

    def _compose(self, row: MailDelivery, mailing: Mailing | None, subscriber: Subscriber) -> bytes:
        if mailing is None:
            issue, envelope = compose_confirmation(self.outlet, subscriber, row.message_id)
        else:
            issue = Issue(mailing.subject, mailing.html, mailing.text, mailing.language)
            envelope = self._build_envelope(row, subscriber)
        return compose_mail(self.connection.account, issue, envelope, now=utc_now())

    def _build_envelope(self, row: MailDelivery, subscriber: Subscriber) -> Envelope:
        """Return the envelope of a newsletter's mail, with the ways to unsubscribe."""
        config = self.connection.account.config
        mailbox = str(config.get("return_address", ""))
        domain = str(config["from_address"]).rpartition("@")[2]
        mailto = f"mailto:{mailbox}?subject={quote('unsubscribe ' + subscriber.token)}" if mailbox else ""
        return Envelope(
            subscriber.email,
            row.message_id,
            list_id=f"{ids.encode('out', self.outlet.pk)}.{domain}",
            unsubscribe_url=f"{settings.PUBLIC_URL.rstrip('/')}/u/{subscriber.token}",
            unsubscribe_mailto=mailto,
            footer=Footer(
                _("You subscribed to %(name)s.") % {"name": config.get("from_name") or self.outlet.name},
                _("Unsubscribe"),
            ),
        )


def _record_late_success(row: MailDelivery, **values: Any) -> None:
    """Mark a delivery as sent that another worker marked as unknown while the server's answer was awaited.

    Does nothing for other statuses. The stored counts of a mailing that is done are counted again.
    """
    with transaction.atomic():
        fresh = MailDelivery.everywhere.get(pk=row.pk)
        if fresh.status != MailDeliveryStatus.UNKNOWN:
            return
        states.move(fresh, "sent", next_at=None, **values)
        ended_mailing = Mailing.everywhere.filter(pk=row.mailing_id).exclude(counts=None).first()
        if ended_mailing is not None:
            ended_mailing.counts = None
            Mailing.everywhere.filter(pk=ended_mailing.pk).update(counts=count_deliveries(ended_mailing))


def end_subscription(subscriber: Subscriber, reason: str, *, now: datetime, to: str = "bounced") -> None:
    """Stop mailing the subscriber, unless the subscription has ended already.

    Raises `Overtaken` if the subscriber changed since they were read.
    """
    if subscriber.status in WANTED_SUBSCRIBERS:
        states.move(subscriber, to, ended_at=now, reason=reason[:MAX_REPLY_CHARACTERS], updated_at=now)


def compose_confirmation(outlet: Outlet, subscriber: Subscriber, message_id: str) -> tuple[Issue, Envelope]:
    """Return the mail that asks a subscriber to confirm, and its envelope."""
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
