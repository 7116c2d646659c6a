"""Who is on the list: double opt-in, leaving and coming back, imports."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import AuditEntry
from config.core.errors import Invalid
from pipeline import limits, mailing
from pipeline.mailing import subscribers
from pipeline.models import MailDelivery, MailQueue, Subscriber
from tests.pipeline.mailing.conftest import subscribe
from tests.pipeline.steps import NOON, claimed, reread

pytestmark = pytest.mark.django_db
SOON = NOON + timedelta(minutes=59)
LATER = NOON + timedelta(hours=1)


def state_of(letter):
    return dict(Subscriber.everywhere.filter(outlet=letter).values_list("email", "status"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (" Ann.Lee+x@Readers.Example ", "ann.lee+x@readers.example"),
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        (f"{'a' * 64}@readers.example", f"{'a' * 64}@readers.example"),
        (f"{'a' * 65}@readers.example", None),
        ("ann@readers", None),
        ("ann lee@readers.example", None),
        ("ann@readers.example>\r\nRCPT TO:<bob@readers.example", None),
        ("änn@readers.example", None),
        ("@readers.example", None),
        ("ann", None),
        ("", None),
    ],
)
def test_addresses_are_normalised(given, kept):
    assert subscribers.normalize_address(given) == kept


def test_a_sign_up_is_asked_once_an_hour(letter, server):
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    subscribers.sign_up(letter, "ann@readers.example", now=SOON)
    assert MailDelivery.everywhere.count() == 1
    subscribers.sign_up(letter, "ann@readers.example", now=LATER)
    assert MailDelivery.everywhere.count() == 2
    assert state_of(letter) == {"ann@readers.example": "pending"}


def test_who_is_on_the_list_is_asked_nothing(letter):
    subscribe(letter, "ann")
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    assert MailDelivery.everywhere.count() == 0


@pytest.mark.parametrize("status", ["unsubscribed", "bounced", "complained"])
def test_who_left_may_subscribe_anew_and_is_asked(letter, status):
    subscribe(letter, "ann", status=status)
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    assert state_of(letter) == {"ann@readers.example": "pending"}
    assert MailDelivery.everywhere.count() == 1


def test_the_question_is_mailed_and_holds_the_way_to_confirm(letter, server):
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    mailing.send_mails(claimed(MailQueue.everywhere.get()))
    (taken,) = server.taken
    row = Subscriber.everywhere.get()
    text, html = (part.get_content() for part in taken.message.iter_parts())
    assert taken.message["Subject"] == "Please confirm: Härbour News"
    assert taken.message["Auto-Submitted"] == "auto-generated"
    assert taken.message["List-Unsubscribe"] is None
    assert f"http://127.0.0.1:8000/subscribe/confirm/{row.token}" in text
    assert f'href="http://127.0.0.1:8000/subscribe/confirm/{row.token}"' in html
    assert subscribers.confirm(row, now=NOON) is True
    assert (reread(row).status, reread(row).confirmed_at) == ("active", NOON)


def test_a_question_that_was_answered_meanwhile_is_not_mailed(letter, server):
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    subscribers.unsubscribe(Subscriber.everywhere.get(), now=NOON)
    mailing.send_mails(claimed(MailQueue.everywhere.get()))
    assert (server.taken, MailDelivery.everywhere.get().status) == ([], "skipped")


def test_an_old_question_brings_nobody_back(letter):
    (ann,) = subscribe(letter, "ann", status="unsubscribed")
    assert subscribers.confirm(ann, now=NOON) is False
    assert reread(ann).status == "unsubscribed"


def test_leaving_and_coming_back(letter):
    (ann,) = subscribe(letter, "ann")
    subscribers.unsubscribe(ann, now=NOON)
    subscribers.unsubscribe(ann, now=LATER)
    assert (reread(ann).status, reread(ann).ended_at) == ("unsubscribed", NOON)
    assert subscribers.come_back(ann, now=LATER) is True
    assert (reread(ann).status, reread(ann).ended_at) == ("active", None)


def test_who_never_confirmed_can_not_come_back(letter):
    (ann,) = subscribe(letter, "ann", status="pending")
    Subscriber.everywhere.update(confirmed_at=None)
    ann = reread(ann)
    subscribers.unsubscribe(ann, now=NOON)
    assert subscribers.come_back(ann, now=NOON) is False
    assert reread(ann).status == "unsubscribed"


# --- By the workspace ------------------------------------------------------------------------------------------------


def test_an_import_takes_addresses_from_any_column_once_and_wakes_nobody(letter):
    subscribe(letter, "cid", status="unsubscribed")
    file = (
        "\ufeffName;Mail\r\nAnn;Ann@readers.example\r\nBob;bob@readers.example\r\n"
        'Ann again;ann@readers.example\r\nNobody;none\r\n;\r\n"Cid; C.";cid@readers.example\r\n'
    )
    done = subscribers.import_file(letter, file.encode(), by="alice", now=NOON)
    assert done == subscribers.ImportResult(added=2, known=1, refused=("Nobody,none",))
    assert state_of(letter) == {
        "ann@readers.example": "active",
        "bob@readers.example": "active",
        "cid@readers.example": "unsubscribed",
    }
    row = Subscriber.everywhere.get(email="ann@readers.example")
    assert (row.origin, row.confirmed_at) == ("import", NOON)
    entry = AuditEntry.everywhere.get(action="subscribers.imported")
    assert entry.details == {"added": 2, "known": 1, "refused": 1}


def test_an_import_has_a_limit(letter, monkeypatch):
    monkeypatch.setattr(limits, "SUBSCRIBERS_IMPORTED", 2)
    lines = "a@readers.example\nb@readers.example\n"
    assert subscribers.import_file(letter, lines.encode(), by="alice", now=NOON).added == 2
    with pytest.raises(Invalid) as refused:
        subscribers.import_file(letter, f"{lines}c@readers.example".encode(), by="alice", now=NOON)
    assert refused.value.detail[0].code == "too_many"


def test_a_list_has_a_limit(letter, monkeypatch):
    monkeypatch.setattr(limits, "SUBSCRIBERS", 1)
    subscribers.add(letter, "ann@readers.example", by="alice", now=NOON)
    with pytest.raises(Invalid):
        subscribers.add(letter, "bob@readers.example", by="alice", now=NOON)
    with pytest.raises(Invalid):
        subscribers.import_file(letter, b"bob@readers.example", by="alice", now=NOON)
    assert state_of(letter) == {"ann@readers.example": "pending"}


def test_a_sheet_finds_no_formula(letter):
    subscribe(letter, "=ann", "bob")
    rows = Subscriber.everywhere.order_by("email")
    lines = "".join(subscribers.as_csv(rows)).splitlines()
    assert [line.split(",")[0] for line in lines] == ["email", "'=ann@readers.example", "bob@readers.example"]


def test_what_is_removed_leaves_the_ledger(letter, server):
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    subscribers.remove(Subscriber.everywhere.get(), by="alice")
    assert Subscriber.everywhere.count() == 0
    assert MailDelivery.everywhere.get().subscriber_id is None
    mailing.send_mails(claimed(MailQueue.everywhere.get()))
    assert (server.taken, MailDelivery.everywhere.get().status) == ([], "skipped")


def test_who_never_confirmed_is_forgotten(letter):
    subscribers.sign_up(letter, "ann@readers.example", now=NOON)
    subscribe(letter, "bob")
    edge = NOON + limits.SUBSCRIBERS_UNCONFIRMED_KEPT
    assert subscribers.forget_unconfirmed(edge) == 0
    assert subscribers.forget_unconfirmed(edge + timedelta(seconds=1)) == 1
    assert state_of(letter) == {"bob@readers.example": "active"}
