"""What comes back: reports are matched to the mail that they are of, and end a subscription only for good reasons."""

from __future__ import annotations

from datetime import timedelta
from email.message import EmailMessage

import pytest

from pipeline import mailing
from pipeline.mailing import bounces
from pipeline.models import MailDelivery
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import NOON, reread

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(letter):
    """A mail to Ann that went out."""
    (ann,) = subscribe(letter, "ann")
    row = mailing.lifecycle.new_delivery(letter, "harbour.example", subscriber_id=ann.pk, now=NOON)
    row.save(force_insert=True)
    mailing.send.states.move(row, "sending")
    mailing.send.states.move(row, "sent", sent_at=NOON, next_at=None)
    return row


def dsn(
    *,
    status="5.1.1",
    action="failed",
    diagnostic="smtp; 550 5.1.1 User unknown",
    to="back@harbour.example",
    message_id="",
    recipient="ann@readers.example",
):
    original = f"Message-ID: {message_id}\r\nSubject: The tram\r\n\r\nwords\r\n" if message_id else ""
    return (
        f"From: MAILER-DAEMON@relay.example\r\nTo: {to}\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nSorry.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; relay.example\r\n\r\n"
        f"Final-Recipient: rfc822; {recipient}\r\nAction: {action}\r\nStatus: {status}\r\n"
        f"Diagnostic-Code: {diagnostic}\r\n\r\n"
        f"--b\r\nContent-Type: message/rfc822\r\n\r\n{original}\r\n--b--\r\n"
    ).encode()


def receive(letter, raw, now=NOON):
    return bounces.receive(mailing.get_or_create_queue(letter).bounce_secret, raw, now=now)


def test_a_hard_bounce_is_found_by_the_message_that_it_quotes(letter, sent):
    outcome = receive(letter, dsn(message_id=sent.message_id, recipient="elsewhere@other.example"))
    assert outcome == "bounced"
    row = reread(sent)
    assert (row.status, row.bounced_at, row.reply) == ("sent", NOON, "smtp; 550 5.1.1 User unknown")
    assert (reread(row.subscriber).status, reread(row.subscriber).reason) == ("bounced", row.reply)


def test_a_hard_bounce_is_found_by_its_own_return_address(letter, sent):
    raw = dsn(to=f"b-{sent.pk.hex}@bounces.harbour.example", recipient="x@y.example")
    assert receive(letter, raw) == "bounced"
    assert reread(sent.subscriber).status == "bounced"


def test_a_hard_bounce_is_found_by_a_recipient_that_was_mailed_lately(letter, sent):
    assert receive(letter, dsn(), now=NOON + timedelta(days=7)) == "bounced"
    assert reread(sent.subscriber).status == "bounced"


def test_nobody_is_taken_off_by_name_alone(letter, sent):
    assert receive(letter, dsn(), now=NOON + timedelta(days=7, seconds=1)) == "ignored"
    (bob,) = subscribe(letter, "bob")
    assert receive(letter, dsn(recipient=bob.email)) == "ignored"
    assert (reread(bob).status, reread(sent.subscriber).status) == ("active", "active")


@pytest.mark.parametrize(
    ("status", "diagnostic", "outcome"),
    [
        ("5.1.1", "smtp; 550 5.1.1 User unknown", "bounced"),
        ("5.1.2", "", "bounced"),
        ("5.2.1", "", "bounced"),
        ("5.4.4", "", "bounced"),
        ("5.0.0", "smtp; 550 5.1.1 User unknown", "bounced"),
        ("5.0.0", "smtp; 550 No such user", "bounced"),
        ("5.0.0", "smtp; 550 5.7.1 Spam", "noted"),
        ("5.0.0", "", "noted"),
        ("5.1.8", "", "noted"),
        ("5.2.2", "smtp; 552 5.2.2 Mailbox full", "noted"),
        ("5.7.1", "smtp; 550 5.7.1 Spam", "noted"),
        ("5.4.7", "smtp; 451 4.4.1 No answer", "noted"),
        ("rubbish", "rubbish", "noted"),
    ],
)
def test_only_an_address_that_is_gone_is_taken_off(letter, sent, status, diagnostic, outcome):
    raw = dsn(status=status, diagnostic=diagnostic, message_id=sent.message_id)
    assert receive(letter, raw) == outcome
    assert reread(sent.subscriber).status == ("bounced" if outcome == "bounced" else "active")
    assert reread(sent).bounced_at == NOON


@pytest.mark.parametrize("action", ["delayed", "delivered", "relayed"])
def test_what_is_not_failed_changes_nothing(letter, sent, action):
    assert receive(letter, dsn(action=action, message_id=sent.message_id)) == "ignored"
    assert (reread(sent).bounced_at, reread(sent.subscriber).status) == (None, "active")


def test_another_newsletter_s_report_is_none_of_ours(letter, sent, workspace, server):
    other = make_letter(workspace, server.port)
    assert receive(other, dsn(message_id=sent.message_id)) == "ignored"
    assert bounces.receive("x" * 32, dsn(message_id=sent.message_id), now=NOON) is None
    assert reread(sent.subscriber).status == "active"


def test_a_complaint_ends_it(letter, sent):
    raw = (
        "From: fbl@provider.example\r\nTo: back@harbour.example\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nAbuse.\r\n"
        "--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: {}\r\nVersion: 1\r\n\r\n"
        f"--b\r\nContent-Type: message/rfc822\r\n\r\nMessage-ID: {sent.message_id}\r\n\r\nwords\r\n\r\n--b--\r\n"
    )
    assert receive(letter, raw.format("not-spam").encode()) == "ignored"
    assert reread(sent.subscriber).status == "active"
    assert receive(letter, raw.format("abuse").encode()) == "complained"
    assert reread(sent.subscriber).status == "complained"
    assert receive(letter, dsn(message_id=sent.message_id)) == "bounced"
    assert reread(sent.subscriber).status == "complained"


def test_a_mail_unsubscribes_by_its_subject(letter, sent, workspace, server):
    mail = EmailMessage()
    mail["Subject"] = f"unsubscribe {sent.subscriber.token}"
    mail.set_content("")
    assert receive(make_letter(workspace, server.port), mail.as_bytes()) == "ignored"
    assert reread(sent.subscriber).status == "active"
    assert receive(letter, mail.as_bytes()) == "unsubscribed"
    assert reread(sent.subscriber).status == "unsubscribed"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\xff rubbish",
        b"Subject: =?utf-8?q?=FF?=\r\n\r\n",
        b"Content-Type: multipart/report; report-type=delivery-status\r\n\r\nno boundary",
        b'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n--b--',
        (
            b'Content-Type: multipart/report; report-type="delivery-status"; boundary="b"\r\n\r\n'
            b"--b\r\nContent-Type: message/delivery-status\r\n\r\n\xff\xfe\r\n--b--"
        ),
        b"To: b-zz@x\r\nReferences: <>\r\n" * 50,
    ],
)
def test_rubbish_is_ignored(letter, sent, raw):
    assert receive(letter, raw) == "ignored"
    assert MailDelivery.everywhere.get().bounced_at is None
