"""One mail: written for its recipient, handed over, and its line of the ledger closed by what the server said."""

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
from pipeline.mailing.queue import overtaken
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
"""Of what a mail server says, as the columns have room for."""


class Halted(Exception):
    """The session is over: by `problem`, of one mailing alone where that is named."""

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
        """False where nothing was said to the server; raises `Halted`, and `Overtaken` where another task has it."""
        mailing = self._mailing(row)
        if mailing is not None and mailing.status == MailingStatus.DONE:
            # It was stopped, and its item erased, since the line was read: there are no words to send.
            return False
        subscriber = Subscriber.everywhere.filter(pk=row.subscriber_id).first() if row.subscriber_id else None
        wanted = "pending" if mailing is None else "active"
        if subscriber is None or subscriber.status != wanted:
            why = "The address isn't on the list any more." if mailing else "It was answered already."
            states.move(row, "skipped", next_at=None, reply=why, updated_at=utc_now())
            return False
        message = self._written(row, mailing, subscriber)
        with self.session.one_mail():
            try:
                reply = self.session.begin(self._sender(row), subscriber.email)
            except SessionLost as error:
                raise Halted(TryLater(str(error), code="connection_lost")) from error
            if reply.verdict == "sent":
                states.move(row, "sending", tries=row.tries + 1, updated_at=utc_now())
                crash_point("mailing.sending")
                reply = self._end(row, message)
        self._record(row, mailing, subscriber, reply)
        return True

    def _end(self, row: MailDelivery, message: bytes) -> SmtpReply:
        try:
            reply = self.session.end(message)
        except SessionLost as error:
            now = utc_now()
            states.move(row, "pending", next_at=now, reply=self._told(str(error)), updated_at=now)
            raise Halted(TryLater(str(error), code="connection_lost")) from error
        except NoAnswer as error:
            crash_point("mailing.sent")
            states.move(row, "unknown", next_at=None, reply=self._told(str(error)), updated_at=utc_now())
            # A server that is silent now would leave the next ones unknown too.
            raise Halted(TryLater(str(error), code="no_answer")) from error
        crash_point("mailing.sent")
        return reply

    def _record(
        self, row: MailDelivery, mailing: Mailing | None, subscriber: Subscriber, reply: SmtpReply
    ) -> None:
        now = utc_now()
        said: dict[str, Any] = {
            "code": reply.code,
            "reply": self._told(reply.text),
            "updated_at": now,
        }
        tries = row.tries + (row.status == MailDeliveryStatus.PENDING)
        verdict = reply.verdict
        if verdict == "sent":
            self.sent += 1
            try:
                states.move(row, "sent", next_at=None, sent_at=now, **said)
            except states.Overtaken:
                _keep_late_word(row, sent_at=now, **said)
                raise
        elif verdict == "later" and tries <= len(limits.MAIL_RETRIES):
            self._again(row, now, after=limits.MAIL_RETRIES[tries - 1], tries=tries, **said)
        elif verdict == "bounced":
            with transaction.atomic():
                states.move(row, "failed", next_at=None, tries=tries, **said)
                bounce(subscriber, said["reply"], now=now)
        elif verdict in {"later", "failed"}:
            states.move(row, "failed", next_at=None, tries=tries, **said)
        else:
            self._again(row, now, after=None, tries=tries, **said)
            raise self._halted(reply, mailing)

    def _told(self, words: str) -> str:
        """Without secrets, and as long as a line of the ledger takes: what stands for a secret may be longer than it."""
        return self.connection.redact(words)[:REPLY_CHARACTERS]

    def _again(self, row: MailDelivery, now: datetime, *, after: timedelta | None, **said: Any) -> None:
        """Pending again, or still: the same mail, later."""
        values = {"next_at": now if after is None else now + after, **said}
        if row.status == MailDeliveryStatus.SENDING:
            states.move(row, "pending", **values)
        elif not type(row).everywhere.filter(pk=row.pk, status=MailDeliveryStatus.PENDING).update(**values):
            raise overtaken()

    def _halted(self, reply: SmtpReply, mailing: Mailing | None) -> Halted:
        said: dict[str, Any] = {
            "platform_status": reply.code,
            "platform_message": self._told(reply.text),
        }
        message = f"The mail server answered {reply.code}."
        if reply.verdict == "reconnect":
            return Halted(NeedsReconnect(message, code="login_refused", **said))
        if reply.verdict == "too_big":
            return Halted(
                Refused("The mail is too big for the mail server.", code="too_big", **said), mailing
            )
        if reply.verdict == "policy":
            message = f"The mail server refuses these mails ({reply.code})."
            return Halted(Refused(message, code="policy", **said))
        return Halted(TryLater(message, code="busy", **said))

    def _mailing(self, row: MailDelivery) -> Mailing | None:
        if row.mailing_id is None:
            return None
        if row.mailing_id not in self._mailings:
            self._mailings = {row.mailing_id: Mailing.everywhere.get(pk=row.mailing_id)}
        return self._mailings[row.mailing_id]

    def _sender(self, row: MailDelivery) -> str:
        """Where an undeliverable mail comes back: an address of its own where a domain takes any."""
        config = self.connection.account.config
        if config.get("bounce_domain"):
            return f"b-{row.pk.hex}@{config['bounce_domain']}"
        return str(config.get("return_address") or config["from_address"])

    def _written(self, row: MailDelivery, mailing: Mailing | None, subscriber: Subscriber) -> bytes:
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


def _keep_late_word(row: MailDelivery, **said: Any) -> None:
    """The lease was lost while the server took the mail, and the next hand called it unknown: the server's word is better."""
    with transaction.atomic():
        fresh = MailDelivery.everywhere.get(pk=row.pk)
        if fresh.status != MailDeliveryStatus.UNKNOWN:
            return
        states.move(fresh, "sent", next_at=None, **said)
        done = Mailing.everywhere.filter(pk=row.mailing_id).exclude(counts=None).first()
        if done is not None:
            done.counts = None
            Mailing.everywhere.filter(pk=done.pk).update(counts=counts_of(done))


def bounce(subscriber: Subscriber, said: str, *, now: datetime, to: str = "bounced") -> bool:
    """Nothing is mailed there any more; False where that is so already."""
    if subscriber.status not in WANTED_SUBSCRIBERS:
        return False
    states.move(subscriber, to, ended_at=now, reason=said[:REPLY_CHARACTERS], updated_at=now)
    return True


def confirmation_for(outlet: Outlet, subscriber: Subscriber, message_id: str) -> tuple[Issue, Envelope]:
    name = str(outlet.config.get("from_name") or outlet.name)
    url = f"{settings.PUBLIC_URL.rstrip('/')}/subscribe/confirm/{subscriber.token}"
    subject = _("Please confirm: %(name)s") % {"name": name}
    asked = _("Confirm your subscription to %(name)s:") % {"name": name}
    ignore = _("If this wasn't you, ignore this mail.")
    html = (
        f'<p>{escape(asked)}</p>\n<p><a href="{escape(url)}">{escape(url)}</a></p>\n<p>{escape(ignore)}</p>'
    )
    issue = Issue(
        " ".join(subject.split()),
        inline_styles(html, style_of(outlet.config)),
        f"{asked}\n\n{url}\n\n{ignore}",
    )
    return issue, Envelope(subscriber.email, message_id)
