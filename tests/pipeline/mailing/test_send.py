"""A published newsletter is mailed to each subscriber at most once, whatever its server says."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta

import dkim
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.db import connection

from accounts.models import Notice
from config.core import states
from config.core.http_client import Policy
from config.core.ids import encode
from pipeline import limits, mailing, outlets, publish
from pipeline.mailing import lifecycle, send_mailings
from pipeline.mailing import send as sending
from pipeline.models import MailDelivery, Mailing, MailQueue, Publication, Subscriber
from pipeline.platforms.base import Account
from pipeline.platforms.email_newsletter import message as email_message
from pipeline.platforms.email_newsletter import session as email_session
from pipeline.publish import steps as publish_steps
from pipeline.review import decisions
from tests.pipeline.mailing import mail_server
from tests.pipeline.mailing.conftest import make_letter, subscribe, with_login
from tests.pipeline.steps import NOON, claimed, promise, reread, send, told

pytestmark = pytest.mark.django_db


def issued(item, letter):
    """Published, with its mailing waiting for a hand."""
    row = send(promise(item, letter))
    assert row.status == "published"
    return Mailing.everywhere.get(publication=row)


def run(letter, times=1):
    for _ in range(times):
        mailing.send_mails(claimed(MailQueue.everywhere.get(outlet=letter)))


def ledger(made):
    rows = MailDelivery.everywhere.filter(mailing=made).select_related("subscriber").order_by("subscriber_id")
    return {row.subscriber.email.partition("@")[0]: row.status for row in rows}


def later(clock, **span):
    clock.shift(timedelta(**span))


# --- Publishing ------------------------------------------------------------------------------------------------------


def test_publishing_makes_the_mailing_and_says_its_id(
    newsletter_item, letter, server, woken, django_capture_on_commit_callbacks
):
    subscribe(letter, "ann")
    # One wake for a transaction; that of the making hasn't been committed here.
    connection.run_on_commit.clear()
    with django_capture_on_commit_callbacks(execute=True):
        made = issued(newsletter_item, letter)
    row = Publication.everywhere.get()
    assert (row.external_id, row.url) == (encode("mlg", made.pk), "")
    assert (made.status, made.subject, made.recipients) == ("spreading", "The tram is coming", 0)
    assert server.taken == []
    assert woken


def test_publishing_twice_makes_one_mailing(newsletter_item, letter, server):
    subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    row = Publication.everywhere.select_related("outlet", "item").get()
    post = publish.record_outcome._post_of(row, publish.record_outcome.platform_of(row.platform))
    assert lifecycle.issue(row, post, now=NOON).external_id == encode("mlg", made.pk)
    assert Mailing.everywhere.count() == 1


def test_a_killed_commit_is_found_by_itself(newsletter_item, letter, server):
    """The call was armed, and the hand was killed before it wrote anything down."""
    subscribe(letter, "ann")
    row = promise(newsletter_item, letter)
    held = publish.steps._reload_keeping_lease(claimed(row))
    publish.send._arm(held, NOON, publish.send.post_for(held, publish.send.connect(held.outlet)))
    assert reread(row).status == "publishing"
    publish_steps.advance_publication(claimed(row))
    assert reread(row).status == "published"
    assert Mailing.everywhere.count() == 1


def test_what_a_person_says_was_sent_is_not_mailed(newsletter_item, letter, server):
    subscribe(letter, "ann")
    row = promise(newsletter_item, letter)
    assert publish.mark_unsent_unknown(now=NOON) == 1
    publish_steps.advance_publication(claimed(row))
    assert reread(row).status == "unknown"
    publish.settle_publication(reread(row), was_sent=True, by="operator", now=NOON)
    assert reread(row).status == "published"
    assert Mailing.everywhere.count() == 0


# --- What is mailed --------------------------------------------------------------------------------------------------


def test_every_subscriber_gets_one_mail_with_its_headers(newsletter_item, letter, server):
    ann, _bob = subscribe(letter, "ann", "bob")
    subscribe(letter, "zoe", status="unsubscribed")
    made = issued(newsletter_item, letter)
    run(letter)
    assert server.recipients() == ["ann@readers.example", "bob@readers.example"]
    assert len({one.session for one in server.taken}) == 1
    mail = server.taken[0].message
    delivery = MailDelivery.everywhere.get(subscriber=ann)
    link = f"http://127.0.0.1:8000/u/{ann.token}"
    assert mail["From"] == "Härbour News <news@harbour.example>"
    assert mail["To"] == "ann@readers.example"
    assert mail["Subject"] == "The tram is coming"
    assert mail["Message-ID"] == delivery.message_id == f"<{delivery.pk.hex}@harbour.example>"
    assert mail["List-Id"] == f"<{encode('out', letter.pk)}.harbour.example>"
    assert mail["List-Unsubscribe"] == f"<{link}>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert (mail["Precedence"], mail["Auto-Submitted"]) == ("bulk", None)
    assert mail["Date"].datetime == NOON
    assert mail.get_content_type() == "multipart/alternative"
    text, html = (part.get_content() for part in mail.iter_parts())
    assert "The city council approved the new tram line" in text
    assert f"Unsubscribe: {link}" in text
    assert "Harbour News, 1 Quay Street" in text
    assert f'<a href="{link}"' in html
    assert ">The tram is coming</h1>" in html
    assert ledger(made) == {"ann": "sent", "bob": "sent"}
    done = reread(made)
    assert (done.status, done.counts, done.recipients, done.html) == ("done", {"sent": 2}, 2, "")
    assert reread(MailQueue.everywhere.get()).wake_at is None


def test_return_mailbox_and_bounce_domain_shape_the_envelope(newsletter_item, workspace, server):
    letter = make_letter(
        workspace, server.port, return_address="back@harbour.example", bounce_domain="b.harbour.example"
    )
    (ann,) = subscribe(letter, "ann")
    issued(newsletter_item, letter)
    run(letter)
    (taken,) = server.taken
    assert taken.sender == f"b-{MailDelivery.everywhere.get().pk.hex}@b.harbour.example"
    mailto = f"<mailto:back@harbour.example?subject=unsubscribe%20{ann.token}>"
    assert taken.message["List-Unsubscribe"].replace("\r\n", "") == (
        f"<http://127.0.0.1:8000/u/{ann.token}>, {mailto}"
    )


def test_the_signature_covers_what_providers_ask_for(newsletter_item, workspace, server):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    letter = make_letter(workspace, server.port, dkim_domain="harbour.example", dkim_selector="news1")
    # As a form's single line leaves it.
    letter.credentials = {"dkim_key": pem.replace("\n", " ")}
    letter.save(update_fields=["credentials"])
    subscribe(letter, "ann")
    issued(newsletter_item, letter)
    run(letter)
    (taken,) = server.taken
    account = send_mailings.connect(reread(letter)).account
    record = email_message.dns_record(account).partition("TXT ")[2].strip('"')

    def dns(name, timeout=5):
        return record.encode() if name == b"news1._domainkey.harbour.example." else None

    assert dkim.verify(taken.raw, dnsfunc=dns) is True
    tampered = taken.raw.replace(b"/u/", b"/v/", 1)
    assert tampered != taken.raw
    assert dkim.verify(tampered, dnsfunc=dns) is False
    signature = dict(dkim.util.parse_tag_value(taken.message["DKIM-Signature"].encode()))
    signed = signature[b"h"].decode().replace(" ", "").lower().split(":")
    assert {"list-unsubscribe", "list-unsubscribe-post", "from", "subject", "message-id"} <= set(signed)


# --- What the server says --------------------------------------------------------------------------------------------


def test_who_is_unknown_there_is_taken_off_the_list(newsletter_item, letter, server):
    _ann, bob, cid = subscribe(letter, "ann", "bob", "cid")
    server.at_rcpt = {bob.email: "550 5.1.1 No such user"}
    server.at_end = {cid.email: "554 5.6.0 I don't like the words"}
    made = issued(newsletter_item, letter)
    run(letter)
    assert ledger(made) == {"ann": "sent", "bob": "failed", "cid": "failed"}
    row = reread(bob)
    assert (row.status, row.reason) == ("bounced", "5.1.1 No such user")
    assert reread(cid).status == "active"
    assert (reread(made).status, reread(made).counts) == ("done", {"sent": 1, "failed": 2})


def test_what_a_server_says_is_kept_without_the_password_and_not_longer_than_its_place(
    newsletter_item, workspace, tls_server, monkeypatch
):
    """A short password that is quoted again and again makes the words longer when it is taken out."""
    monkeypatch.setattr(mail_server, "PASSWORD", "qwerty")
    letter = with_login(make_letter(workspace, tls_server.port), password="qwerty")
    (ann, bob) = subscribe(letter, "ann", "bob")
    said = ("qwerty " * 42).strip()
    tls_server.at_rcpt = {ann.email: f"550 5.1.1 {said}"}
    tls_server.at_end = {bob.email: f"451 4.3.0 {said}"}
    issued(newsletter_item, letter)
    run(letter)
    expected = [f"5.1.1 {'[secret] ' * 42}"[:300], f"4.3.0 {'[secret] ' * 42}"[:300]]
    rows = MailDelivery.everywhere.order_by("subscriber__email")
    assert list(rows.values_list("status", "reply")) == [("failed", expected[0]), ("pending", expected[1])]
    assert (reread(ann).status, reread(ann).reason) == ("bounced", expected[0])


def test_not_now_is_tried_later_and_longer(newsletter_item, letter, server, clock):
    ann, bob = subscribe(letter, "ann", "bob")
    server.at_rcpt = {ann.email: ["451 4.7.1 Greylisted", "450 Busy"]}
    made = issued(newsletter_item, letter)
    run(letter)
    delivery = MailDelivery.everywhere.get(subscriber=ann)
    assert (delivery.status, delivery.tries, delivery.code) == ("pending", 1, 451)
    assert delivery.next_at == NOON + limits.MAIL_RETRIES[0]
    assert MailQueue.everywhere.get().wake_at == delivery.next_at
    later(clock, minutes=5)
    run(letter)
    delivery = reread(delivery)
    assert delivery.next_at == NOON + limits.MAIL_RETRIES[0] + limits.MAIL_RETRIES[1]
    later(clock, minutes=15)
    run(letter)
    assert server.recipients() == [bob.email, ann.email]
    assert server.taken[1].message["Message-ID"] == delivery.message_id
    assert (reread(delivery).tries, reread(made).status) == (3, "done")


def test_not_now_for_ever_ends(newsletter_item, letter, server, clock):
    (ann,) = subscribe(letter, "ann")
    server.at_end = {ann.email: "452 4.3.1 Full"}
    made = issued(newsletter_item, letter)
    for _ in range(len(limits.MAIL_RETRIES) + 1):
        run(letter)
        later(clock, hours=25)
    delivery = MailDelivery.everywhere.get()
    assert (delivery.status, delivery.tries) == ("failed", len(limits.MAIL_RETRIES) + 1)
    assert (reread(made).status, reread(ann).status, server.taken) == ("done", "active", [])


def test_421_ends_the_session_and_nobody_is_skipped(newsletter_item, letter, server, clock):
    ann, bob, cid = subscribe(letter, "ann", "bob", "cid")
    server.at_end = {bob.email: ["421 4.3.2 Shutting down"]}
    made = issued(newsletter_item, letter)
    run(letter)
    assert ledger(made) == {"ann": "sent", "bob": "pending", "cid": "pending"}
    queue = MailQueue.everywhere.get()
    assert (queue.failures, queue.error["code"]) == (1, "busy")
    assert queue.rests_until == queue.wake_at == NOON + limits.MAIL_SESSION_WAITS[0]
    later(clock, minutes=1)
    run(letter)
    assert Counter(server.recipients()) == Counter([ann.email, bob.email, cid.email])
    queue = reread(queue)
    assert (queue.failures, queue.error, reread(made).status) == (0, None, "done")


def test_policy_stops_the_run_and_a_person_lets_it_go_on(newsletter_item, letter, server, alice):
    ann, bob = subscribe(letter, "ann", "bob")
    server.at_end = {ann.email: ["550 5.7.1 This looks like spam"]}
    made = issued(newsletter_item, letter)
    run(letter)
    stopped = reread(made)
    assert (stopped.status, stopped.error["code"]) == ("stopped", "policy")
    assert "5.7.1 This looks like spam" in stopped.error["message"]
    assert (server.taken, ledger(made)) == ([], {"ann": "pending", "bob": "pending"})
    assert list(Notice.everywhere.values_list("kind", flat=True)) == ["post_failed"]
    assert reread(letter).status == "ok"
    MailQueue.everywhere.update(rests_until=None)
    mailing.resume(stopped, by="alice", now=NOON)
    run(letter)
    assert server.recipients() == [ann.email, bob.email]
    assert reread(made).status == "done"


def words_of(made):
    row = reread(made)
    return row.status, row.subject, row.html, row.text


def test_an_item_that_is_erased_leaves_no_words_in_a_mailing_that_is_done(newsletter_item, letter, server):
    subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    run(letter)
    assert words_of(made) == ("done", "The tram is coming", "", "")
    decisions.erase(reread(newsletter_item), now=NOON)
    assert words_of(made) == ("done", "", "", "")
    assert reread(made).counts == {"sent": 1}


def test_a_stopped_mailing_ends_when_its_item_is_erased(newsletter_item, letter, server):
    subscribe(letter, "ann", "bob")
    made = issued(newsletter_item, letter)
    assert lifecycle.spread_some(made, now=NOON) is False
    mailing.stop(reread(made), by="alice", now=NOON)
    decisions.erase(reread(newsletter_item), now=NOON)
    assert words_of(made) == ("done", "", "", "")
    assert (reread(made).counts, reread(made).ended_at) == ({"pending": 2}, NOON)
    with pytest.raises(states.MoveRefused):
        mailing.resume(reread(made), by="alice", now=NOON)
    run(letter)
    assert server.taken == []


def test_a_mailing_under_way_keeps_its_words_until_it_is_done(newsletter_item, letter, server):
    (ann,) = subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    decisions.erase(reread(newsletter_item), now=NOON)
    assert words_of(made)[:2] == ("spreading", "The tram is coming")
    run(letter)
    assert (server.recipients(), words_of(made)) == ([ann.email], ("done", "", "", ""))


def test_a_mailing_that_is_stopped_after_its_item_was_erased_ends(newsletter_item, letter, server):
    (ann,) = subscribe(letter, "ann")
    server.at_end = {ann.email: ["550 5.7.1 This looks like spam"]}
    made = issued(newsletter_item, letter)
    decisions.erase(reread(newsletter_item), now=NOON)
    run(letter)
    assert (server.taken, words_of(made), reread(made).error["code"]) == ([], ("done", "", "", ""), "policy")


def test_no_mail_without_words_leaves_when_a_mailing_ends_between_two_looks(
    newsletter_item, letter, server, monkeypatch
):
    """It was stopped and its item erased after the hand had read whom to mail."""
    subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    look = send_mailings._due_deliveries

    def waiting(row, now, most):
        found = look(row, now, most)
        if found and most > 1:
            mailing.stop(reread(made), by="alice", now=NOON)
            decisions.erase(reread(newsletter_item), now=NOON)
        return found

    monkeypatch.setattr(send_mailings, "_due_deliveries", waiting)
    run(letter)
    assert (server.taken, ledger(made)) == ([], {"ann": "pending"})


def test_a_mail_that_is_too_big_stops_its_mailing_alone(newsletter_item, letter, server):
    (ann,) = subscribe(letter, "ann")
    server.at_end = {ann.email: ["552 5.3.4 Message too big"]}
    made = issued(newsletter_item, letter)
    run(letter)
    assert (reread(made).status, reread(made).error["code"]) == ("stopped", "too_big")


def test_login_that_is_refused_asks_for_a_reconnect(newsletter_item, workspace, server, tls_server):
    letter = with_login(make_letter(workspace, tls_server.port))
    subscribe(letter, "ann")
    tls_server.refuses_login = "535 5.7.8 Bad credentials"
    made = issued(newsletter_item, letter)
    run(letter)
    assert reread(letter).status == "needs_reconnect"
    assert reread(letter).last_error["code"] == "login_refused"
    assert len(told(workspace, "outlet.needs_reconnect")) == 1
    assert (reread(made).status, ledger(made)) == ("sending", {"ann": "pending"})


def test_a_line_goes_on_when_its_account_is_connected_again(newsletter_item, workspace, tls_server, clock):
    letter = with_login(make_letter(workspace, tls_server.port))
    (ann,) = subscribe(letter, "ann")
    tls_server.refuses_login = "535 5.7.8 Bad credentials"
    issued(newsletter_item, letter)
    run(letter)
    run(letter)
    queue = MailQueue.everywhere.get()
    assert (reread(letter).status, queue.wake_at) == ("needs_reconnect", NOON + timedelta(minutes=5))

    tls_server.refuses_login = ""
    later(clock, seconds=30)
    moment = NOON + timedelta(seconds=30)
    outlets.reconnect(
        reread(letter), config={}, credentials={"password": mail_server.PASSWORD}, by="bob", now=moment
    )
    queue = reread(queue)
    assert (queue.wake_at, queue.rests_until) == (moment, None)
    run(letter)
    assert tls_server.recipients() == [ann.email]
    # Nothing waits any more, so that nothing is woken.
    outlets.reconnect(
        reread(letter), config={}, credentials={"password": mail_server.PASSWORD}, by="bob", now=moment
    )
    assert reread(queue).wake_at is None


def test_a_line_goes_on_when_the_daily_look_finds_its_account_working(
    newsletter_item, workspace, tls_server, clock
):
    letter = with_login(make_letter(workspace, tls_server.port))
    subscribe(letter, "ann")
    tls_server.refuses_login = "535 5.7.8 Bad credentials"
    issued(newsletter_item, letter)
    run(letter)
    tls_server.refuses_login = ""
    later(clock, seconds=30)
    outlets.maintain_outlet(claimed(letter))
    assert (reread(letter).status, MailQueue.everywhere.get().wake_at) == (
        "ok",
        NOON + timedelta(seconds=30),
    )


def test_a_line_goes_on_when_its_outlet_is_switched_on(newsletter_item, letter, server, clock):
    (ann,) = subscribe(letter, "ann")
    issued(newsletter_item, letter)
    outlets.switch_off(letter, by="bob", now=NOON)
    run(letter)
    assert (server.taken, MailQueue.everywhere.get().wake_at) == ([], NOON + timedelta(minutes=5))
    moment = NOON + timedelta(seconds=30)
    outlets.switch_on(letter, by="bob", now=moment)
    assert MailQueue.everywhere.get().wake_at == moment
    run(letter)
    assert server.recipients() == [ann.email]


def test_a_line_that_is_given_back_at_that_moment_goes_on_too(newsletter_item, letter, server, monkeypatch):
    """It was switched on after the hand looked, and before the hand gave the line back."""
    subscribe(letter, "ann")
    issued(newsletter_item, letter)
    outlets.switch_off(letter, by="bob", now=NOON)
    look = send_mailings._paused_until
    looks = []

    def held_until(row, now):
        found = look(row, now)
        looks.append(found)
        if len(looks) == 2:
            outlets.switch_on(letter, by="bob", now=NOON)
        return found

    monkeypatch.setattr(send_mailings, "_paused_until", held_until)
    run(letter)
    closed = NOON + timedelta(minutes=5)
    assert (looks, MailQueue.everywhere.get().wake_at) == ([closed, closed, None], NOON)


def test_log_in_over_tls_with_a_password(newsletter_item, workspace, tls_server):
    letter = with_login(make_letter(workspace, tls_server.port))
    (ann,) = subscribe(letter, "ann")
    issued(newsletter_item, letter)
    run(letter)
    assert tls_server.recipients() == [ann.email]


@pytest.mark.parametrize(("word", "arrived"), [("DROP", 0), ("TAKE_AND_DROP", 1)])
def test_silence_after_the_dot_is_unknown_and_never_sent_again(
    newsletter_item, letter, server, clock, word, arrived
):
    ann, bob, cid = subscribe(letter, "ann", "bob", "cid")
    server.at_end = {bob.email: word}
    made = issued(newsletter_item, letter)
    run(letter)
    assert ledger(made) == {"ann": "sent", "bob": "unknown", "cid": "pending"}
    later(clock, minutes=1)
    run(letter)
    later(clock, days=3)
    run(letter)
    assert ledger(made) == {"ann": "sent", "bob": "unknown", "cid": "sent"}
    assert Counter(server.recipients()) == Counter([ann.email, cid.email, *[bob.email] * arrived])
    assert reread(made).counts == {"sent": 2, "unknown": 1}


def test_a_server_that_is_away_is_tried_again_and_told_once(newsletter_item, letter, server, clock):
    (ann,) = subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    letter.config["port"] = 1
    letter.save(update_fields=["config"])
    for number in range(1, 6):
        run(letter)
        queue = MailQueue.everywhere.get()
        assert (queue.failures, queue.error["code"]) == (number, "unreachable")
        clock.move_to(queue.wake_at)
    assert Notice.everywhere.count() == 1
    letter.config["port"] = server.port
    letter.save(update_fields=["config"])
    run(letter)
    assert (server.recipients(), reread(made).status) == ([ann.email], "done")


# --- Who gets it, and when -------------------------------------------------------------------------------------------


def test_who_left_meanwhile_gets_nothing(newsletter_item, letter, server):
    ann, bob = subscribe(letter, "ann", "bob")
    made = issued(newsletter_item, letter)
    while lifecycle.spread_some(made, now=NOON):
        pass
    bob.delete()
    sending.end_subscription(ann, "gone", now=NOON)
    run(letter)
    assert server.taken == []
    assert reread(made).counts == {"skipped": 2}


def test_spreading_goes_in_portions_and_leaves_out_who_came_later(
    newsletter_item, letter, server, monkeypatch
):
    monkeypatch.setattr(limits, "MAIL_SPREAD_AT_ONCE", 2)
    subscribe(letter, "ann", "bob", "cid", "dan", "eve")
    made = issued(newsletter_item, letter)
    (fay,) = subscribe(letter, "fay")
    Subscriber.everywhere.filter(pk=fay.pk).update(confirmed_at=NOON + timedelta(seconds=1))
    assert lifecycle.spread_some(made, now=NOON) is True
    assert MailDelivery.everywhere.count() == 2
    assert lifecycle.spread_some(made, now=NOON) is True
    assert lifecycle.spread_some(made, now=NOON) is False
    assert (reread(made).status, reread(made).recipients) == ("sending", 5)
    assert list(ledger(made)) == ["ann", "bob", "cid", "dan", "eve"]


def test_the_pace_is_kept(newsletter_item, letter, server, pauses):
    subscribe(letter, "ann", "bob", "cid")
    issued(newsletter_item, letter)
    run(letter)
    assert pauses == [0.1, 0.1, 0.1]


def test_a_slow_pace_gives_the_line_back(newsletter_item, letter, server, clock, pauses):
    letter.config["mails_per_minute"] = 6
    letter.save(update_fields=["config"])
    subscribe(letter, "ann", "bob")
    issued(newsletter_item, letter)
    run(letter)
    queue = MailQueue.everywhere.get()
    assert (len(server.taken), pauses, queue.wake_at) == (1, [], NOON + timedelta(seconds=10))
    # Woken too early, it keeps to it.
    run(letter)
    assert (len(server.taken), reread(queue).wake_at) == (1, NOON + timedelta(seconds=10))
    later(clock, seconds=10)
    run(letter)
    assert len(server.taken) == 2


def test_a_workspace_that_rests_mails_nothing(newsletter_item, letter, server, workspace):
    subscribe(letter, "ann")
    issued(newsletter_item, letter)
    type(workspace).everywhere.filter(pk=workspace.pk).update(whitelisted_at=None)
    run(letter)
    assert server.taken == []
    assert MailQueue.everywhere.get().wake_at == NOON + timedelta(seconds=30)


def test_what_a_killed_hand_left_is_unknown(newsletter_item, letter, server):
    ann, bob = subscribe(letter, "ann", "bob")
    made = issued(newsletter_item, letter)
    while lifecycle.spread_some(made, now=NOON):
        pass
    row = MailDelivery.everywhere.get(subscriber=ann)
    mailing.send.states.move(row, "sending")
    run(letter)
    assert ledger(made) == {"ann": "unknown", "bob": "sent"}
    assert server.recipients() == [bob.email]


def test_what_a_server_says_after_the_lease_is_kept(newsletter_item, letter, server, monkeypatch):
    """A machine that was suspended after the dot: the next hand has called the mail unknown, and ended the
    mailing."""
    subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    end = sending.Postman._finish

    def suspended(self, row, message):
        reply = end(self, row, message)
        run(letter)
        assert (ledger(made), reread(made).counts) == ({"ann": "unknown"}, {"unknown": 1})
        return reply

    monkeypatch.setattr(sending.Postman, "_finish", suspended)
    run(letter)
    assert (ledger(made), reread(made).counts) == ({"ann": "sent"}, {"sent": 1})
    assert len(server.taken) == 1


def test_a_server_that_answers_byte_by_byte_is_left_at_the_deadline(monkeypatch):
    """Every single read has an answer in time; the whole mail has not."""
    monkeypatch.setattr(email_session, "WHOLE_SECONDS", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        line, _ = listener.accept()
        with line, suppress(OSError):
            for reply in (b"220 hello", b"250 ok", b"250 ok", b"250 ok", b"354 go on"):
                line.sendall(reply + b"\r\n")
                line.recv(1000)
            line.sendall(b"250-")
            while True:
                line.sendall(b".")
                time.sleep(0.05)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    port = listener.getsockname()[1]
    account = Account(
        "out_1",
        {"host": "127.0.0.1", "port": port, "encryption": "none", "from_address": "a@b.example"},
    )
    session = email_session.open_session(account, Policy(user_agent="t", allow_loopback=True))
    began = time.monotonic()
    with session.one_mail():
        session.begin("a@b.example", "c@d.example")
        with pytest.raises(email_session.NoAnswer):
            session.end(b"Subject: x\r\n\r\nx\r\n")
    assert time.monotonic() - began < 15
    session.close()
    listener.close()


def test_who_lost_the_lease_sends_nothing_more(newsletter_item, letter, server, monkeypatch):
    subscribe(letter, "ann", "bob")
    made = issued(newsletter_item, letter)
    deliver = sending.Postman.deliver

    def overtake(self, row):
        done = deliver(self, row)
        MailQueue.everywhere.update(lease_token=99)
        return done

    monkeypatch.setattr(sending.Postman, "deliver", overtake)
    run(letter)
    assert len(server.taken) == 1
    assert sorted(ledger(made).values()) == ["pending", "sent"]


def test_what_is_put_in_line_meanwhile_is_looked_at(letter, server):
    row = claimed(mailing.get_or_create_queue(letter))
    looked = []

    def when():
        if not looked:
            # Between the look and the giving back.
            mailing.queue.wake_queue(letter, NOON)
        looked.append(len(looked))
        return NOON if len(looked) > 1 else None

    mailing.queue.release_queue(row, when)
    assert (looked, reread(row).wake_at, reread(row).attempts) == ([0, 1], NOON, 0)


def test_a_line_in_hand_is_not_taken_away(letter, server):
    row = claimed(mailing.get_or_create_queue(letter))
    mailing.queue.wake_queue(letter, NOON)
    fresh = reread(row)
    assert (fresh.wake_at, fresh.lease_token, fresh.asks) == (row.wake_at, row.lease_token, 1)
    mailing.queue.release_queue(row, lambda: None)
    mailing.queue.wake_queue(letter, NOON)
    assert reread(row).wake_at == NOON


def test_a_restored_ledger_mails_nobody_by_itself(newsletter_item, letter, server):
    subscribe(letter, "ann")
    made = issued(newsletter_item, letter)
    assert mailing.doubt_restored(now=NOON) == 1
    run(letter)
    assert (server.taken, reread(made).error["code"]) == ([], "restored")


@pytest.mark.slow
def test_ten_thousand_are_spread_in_portions(newsletter_item, letter):
    rows = [
        Subscriber(
            workspace_id=letter.workspace_id, outlet=letter, email=f"r{n}@x.example", confirmed_at=NOON
        )
        for n in range(10_000)
    ]
    for row in rows:
        row.status = "active"
    Subscriber.everywhere.bulk_create(rows, batch_size=1000)
    made = issued(newsletter_item, letter)
    portions = 1
    while lifecycle.spread_some(made, now=NOON):
        portions += 1
    assert (portions, reread(made).recipients) == (21, 10_000)
    assert MailDelivery.everywhere.filter(mailing=made).count() == 10_000
