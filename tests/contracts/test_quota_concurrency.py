"""Credits are exact, however many push at once."""

from __future__ import annotations

import pytest

from accounts.ledger import credits as credit_account
from accounts.ledger import reports
from pipeline.models import Event, GeneratedItem, Generation, RawBody, RawItem
from tests.contracts.conftest import refusal

TABLES = (RawItem, RawBody, Generation, GeneratedItem, Event)


@pytest.mark.django_db(transaction=True)
def test_fifty_pushes_on_credits_for_ten(alice, in_threads):
    credit_account.adjust(alice.workspace, -990, "for this test", "operator")
    contents = [alice.content() for _ in range(50)]
    alice.api.get("/workspace")
    answers = in_threads(
        50, lambda number: alice.client_of_thread().post("/raw", contents[number]), threads=16
    )
    taken = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code == 402]
    assert (len(taken), len(refused)) == (10, 40)
    assert {refusal(answer)[1] for answer in refused} == {"quota_exceeded"}
    assert [table.everywhere.count() for table in TABLES] == [10] * 5
    assert {str(row) for row in RawItem.everywhere.values_list("external_id", flat=True)} == {
        answer.json()["external_id"] for answer in taken
    }
    usage = alice.api.read("/usage")
    assert (usage["available"], usage["reserved"], usage["used"]) == (0, 10, 0)
    assert reports.check() == []


@pytest.mark.django_db(transaction=True)
def test_same_content_pushed_by_many_at_once_is_taken_once(alice, in_threads):
    content = alice.content()
    alice.api.get("/workspace")
    answers = in_threads(16, lambda _: alice.client_of_thread().post("/raw", content), threads=8)
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert [table.everywhere.count() for table in TABLES] == [1] * 5
    assert alice.api.read("/usage")["reserved"] == 1
