"""What is kept of recipients: exported whole, forgotten in time, gone with who is removed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from config.core.ids import encode
from pipeline import limits, mailing
from pipeline.mailing import subscribers
from pipeline.models import MailDelivery, Mailing, MailQueue, Subscriber
from pipeline.workspace import export
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import NOON, claimed, promise, reread, send

pytestmark = pytest.mark.django_db
KEPT = limits.MAIL_DELIVERIES_KEPT
SECOND = timedelta(seconds=1)


@pytest.fixture
def mailed(newsletter_item, letter, server):
    """Ann got it, Bob's server quoted his address, and Cid is asked whether she subscribed."""
    _ann, bob = subscribe(letter, "ann", "bob")
    server.at_rcpt = {bob.email: f"550 5.1.1 <{bob.email}>: no such user"}
    row = send(promise(newsletter_item, letter))
    subscribers.sign_up(letter, "cid@readers.example", now=NOON)
    mailing.send_mails(claimed(MailQueue.everywhere.get(outlet=letter)))
    made = Mailing.everywhere.get(publication=row)
    assert (made.status, made.counts) == ("done", {"sent": 1, "failed": 1})
    return made


def exported(workspace, *names):
    found = {name: list(content) for name, content in export.collect_parts(workspace) if name in names}
    return [found[name] for name in names]


def test_an_export_holds_the_list_and_each_mail(mailed, letter, workspace, charlies):
    elsewhere = make_letter(charlies, 25)
    (eve,) = subscribe(elsewhere, "eve")
    MailDelivery.everywhere.create(
        workspace=charlies, outlet=elsewhere, subscriber=eve, message_id="<1@eve.example>"
    )
    people, mailings, mails = exported(workspace, "subscribers.jsonl", "mailings.jsonl", "mails.jsonl")
    assert [(one["email"], one["status"]) for one in people] == [
        ("ann@readers.example", "active"),
        ("bob@readers.example", "bounced"),
        ("cid@readers.example", "pending"),
    ]
    name = encode("mlg", mailed.pk)
    assert [(one["id"], one["status"], one["recipients"], one["counts"]) for one in mailings] == [
        (name, "done", 2, {"sent": 1, "failed": 1})
    ]
    assert sorted((one["email"], one["mailing"], one["status"], one["code"]) for one in mails) == [
        ("ann@readers.example", name, "sent", 250),
        ("bob@readers.example", name, "failed", 550),
        ("cid@readers.example", None, "sent", 250),
    ]
    everything = json.dumps([people, mailings, mails])
    # Whoever knows a token unsubscribes its owner.
    tokens = Subscriber.everywhere.values_list("token", flat=True)
    assert [one for one in [*tokens, "eve"] if one in everything] == []


def test_an_export_keeps_the_line_of_who_was_removed(mailed, workspace):
    subscribers.remove(Subscriber.everywhere.get(email="ann@readers.example"), by="alice")
    (mails,) = exported(workspace, "mails.jsonl")
    assert sorted((one["email"] or "", one["status"]) for one in mails) == [
        ("", "sent"),
        ("bob@readers.example", "failed"),
        ("cid@readers.example", "sent"),
    ]


def test_no_word_is_left_of_who_is_removed(mailed, workspace):
    bob = Subscriber.everywhere.get(email="bob@readers.example")
    line = MailDelivery.everywhere.get(subscriber=bob)
    assert bob.email in line.reply
    subscribers.remove(bob, by="alice")
    line = reread(line)
    assert (line.status, line.code, line.subscriber_id, line.reply) == ("failed", 550, None, "")
    assert bob.email not in json.dumps(exported(workspace, "subscribers.jsonl", "mails.jsonl"))
    # The others' lines keep what was said of them.
    assert MailDelivery.everywhere.exclude(reply="").count() == 2


def test_no_word_is_left_of_who_never_confirmed(mailed):
    line = MailDelivery.everywhere.get(mailing=None)
    MailDelivery.everywhere.filter(pk=line.pk).update(reply="250 OK for cid@readers.example")
    assert subscribers.forget_unconfirmed(NOON + limits.SUBSCRIBERS_UNCONFIRMED_KEPT + SECOND) == 1
    assert (reread(line).subscriber_id, reread(line).reply) == (None, "")


def test_lines_are_forgotten_in_time_and_their_counts_stay(mailed):
    edge = NOON + KEPT
    assert subscribers.forget_deliveries(edge) == 0
    # Those of the mailing first, then the mail that asked for confirmation.
    assert [subscribers.forget_deliveries(edge + SECOND) for _ in range(3)] == [2, 1, 0]
    assert MailDelivery.everywhere.count() == 0
    assert mailing.count_deliveries(reread(mailed)) == {"sent": 1, "failed": 1}
    assert Subscriber.everywhere.count() == 3


def test_lines_of_what_is_not_done_are_kept(newsletter_item, letter, workspace):
    """An old mailing that a person may let go on, and a question that still waits for its try."""
    subscribe(letter, "ann")
    made = Mailing.everywhere.get(publication=send(promise(newsletter_item, letter)))
    assert mailing.lifecycle.spread_some(made, now=NOON) is False
    mailing.stop(reread(made), by="alice", now=NOON)
    subscribers.sign_up(letter, "cid@readers.example", now=NOON)
    assert subscribers.forget_deliveries(NOON + 2 * KEPT) == 0
    assert MailDelivery.everywhere.count() == 2


def test_they_are_forgotten_in_portions(mailed, monkeypatch):
    monkeypatch.setattr(subscribers, "MAX_DELETED_ROWS", 1)
    late = NOON + KEPT + SECOND
    assert [subscribers.forget_deliveries(late) for _ in range(4)] == [1, 1, 1, 0]
