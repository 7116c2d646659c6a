"""Credits: reservations are exact, months turn once, and the ledger's sums are the balance."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.transaction import TransactionManagementError

from accounts.ledger import credits, months, reports
from accounts.ledger.credits import PlanLimits, QuotaExceeded
from accounts.ledger.reports import Mismatch, UsageReport
from accounts.models import AuditEntry, CreditBalance, LedgerEntry, Workspace
from config.core.errors import error_body
from tests.factories import PlanFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture
def workspace(db):
    return WorkspaceFactory(credits_per_month=100, opened_at=NOW)


@pytest.fixture(autouse=True)
def _ledger_always_agrees(db):
    yield
    assert reports.check() == []


def numbers(workspace):
    balance = CreditBalance.everywhere.get(workspace=workspace)
    return {
        "granted": balance.granted,
        "available": balance.available,
        "reserved": balance.reserved,
        "used": balance.used,
    }


def entries(workspace):
    rows = LedgerEntry.objects.of(workspace).order_by("id")
    return [(row.kind, row.amount, row.reserved_change, row.used_change) for row in rows]


def reserve(workspace, amounts, now=NOW):
    with transaction.atomic():
        credits.reserve(workspace, amounts, now=now)


GRANT = ("grant", 100, 0, 0)


def test_account_opens_with_the_months_grant(workspace):
    assert numbers(workspace) == {"granted": 100, "available": 100, "reserved": 0, "used": 0}
    assert entries(workspace) == [GRANT]
    assert CreditBalance.everywhere.get().period_start == date(2026, 11, 1)


def test_account_of_a_plan_without_credits_has_no_grant():
    workspace = WorkspaceFactory(credits_per_month=0)
    assert entries(workspace) == []
    assert numbers(workspace)["available"] == 0


def test_reserve_is_two_statements(workspace, django_assert_num_queries):
    first, second = uuid4(), uuid4()
    with transaction.atomic(), django_assert_num_queries(2):
        credits.reserve(workspace, {first: 7, second: 3}, now=NOW)

    assert numbers(workspace) == {"granted": 100, "available": 90, "reserved": 10, "used": 0}
    assert entries(workspace) == [GRANT, ("reserve", -7, 7, 0), ("reserve", -3, 3, 0)]
    assert list(LedgerEntry.objects.of(workspace).order_by("id").values_list("subject", flat=True)) == [
        None,
        first,
        second,
    ]


@pytest.mark.parametrize("amounts", [{}, {UUID(int=1): 0}])
def test_nothing_to_reserve_is_no_statement(workspace, amounts, django_assert_num_queries):
    with transaction.atomic(), django_assert_num_queries(0):
        credits.reserve(workspace, amounts, now=NOW)
    assert entries(workspace) == [GRANT]


def test_zero_amounts_make_no_entry_beside_others(workspace):
    reserve(workspace, {uuid4(): 0, uuid4(): 5})
    assert entries(workspace) == [GRANT, ("reserve", -5, 5, 0)]


def test_all_or_nothing(workspace):
    reserve(workspace, {uuid4(): 60})
    credits.settle(
        workspace.pk, LedgerEntry.objects.of(workspace).get(kind="reserve").subject, used=55, now=NOW
    )
    reserve(workspace, {uuid4(): 3})
    with pytest.raises(QuotaExceeded) as refused:
        reserve(workspace, {uuid4(): 40, uuid4(): 3})

    assert refused.value.status == 402
    assert error_body(refused.value.code, refused.value.detail) == {
        "error": "quota_exceeded",
        "detail": [
            {
                "field": None,
                "code": "quota_exceeded",
                "message": "This needs 43 credits and 42 of 100 are left (3 are reserved by work in "
                "progress); the next ones come at 2026-12-01T00:00:00.000Z.",
                "limit": 100,
                "used": 55,
                "resets_at": "2026-12-01T00:00:00.000Z",
            }
        ],
    }
    assert numbers(workspace) == {"granted": 100, "available": 42, "reserved": 3, "used": 55}


def test_refusal_of_one_credit_says_so(workspace):
    reserve(workspace, {uuid4(): 100})
    with pytest.raises(QuotaExceeded) as refused:
        reserve(workspace, {uuid4(): 1})
    assert refused.value.detail[0].message.startswith("This needs 1 credit and 0 of 100 are left")


def test_exactly_what_is_left_can_be_reserved(workspace):
    reserve(workspace, {uuid4(): 100})
    assert numbers(workspace)["available"] == 0
    with pytest.raises(QuotaExceeded):
        reserve(workspace, {uuid4(): 1})


def test_refusal_names_no_negative_rest(workspace):
    credits.adjust(workspace, -150, "chargeback", "operator", now=NOW)
    with pytest.raises(QuotaExceeded, match="and 0 of -50 are left"):
        reserve(workspace, {uuid4(): 1})


def test_negative_amounts_are_our_own_bug(workspace):
    with pytest.raises(ValueError, match="negative"):
        reserve(workspace, {uuid4(): -1})
    with pytest.raises(ValueError, match="negative"):
        credits.settle(workspace.pk, uuid4(), used=-1, now=NOW)


def test_callers_rollback_takes_the_reservation_along(workspace):
    with transaction.atomic():
        credits.reserve(workspace, {uuid4(): 5}, now=NOW)
        transaction.set_rollback(True)
    assert entries(workspace) == [GRANT]
    assert numbers(workspace)["available"] == 100


def test_subject_reserves_once(workspace):
    subject = uuid4()
    reserve(workspace, {subject: 5})
    with pytest.raises(IntegrityError):
        reserve(workspace, {subject: 5})
    assert numbers(workspace)["available"] == 95


def test_unlimited_workspace_reserves_beyond_its_credits(workspace):
    Workspace.everywhere.filter(pk=workspace.pk).update(is_unlimited=True)
    workspace.refresh_from_db()
    subject = uuid4()
    reserve(workspace, {subject: 250})
    assert numbers(workspace) == {"granted": 100, "available": -150, "reserved": 250, "used": 0}
    credits.settle(workspace.pk, subject, used=250, now=NOW)
    reserve(workspace, {uuid4(): 10}, now=DECEMBER)
    assert numbers(workspace) == {"granted": 100, "available": 90, "reserved": 10, "used": 0}


def test_settle_gives_the_rest_back(workspace):
    subject = uuid4()
    reserve(workspace, {subject: 10})
    assert credits.settle(workspace.pk, subject, used=6, now=NOW) is True
    assert numbers(workspace) == {"granted": 100, "available": 94, "reserved": 0, "used": 6}
    assert entries(workspace)[-1] == ("settle", 4, -10, 6)


def test_more_than_reserved_is_charged(workspace):
    subject = uuid4()
    reserve(workspace, {subject: 10})
    credits.settle(workspace.pk, subject, used=13, now=NOW)
    assert numbers(workspace) == {"granted": 100, "available": 87, "reserved": 0, "used": 13}


def test_release_gives_everything_back(workspace):
    subject = uuid4()
    reserve(workspace, {subject: 10})
    assert credits.release(workspace.pk, subject, now=NOW, reason="r" * 300) is True
    assert numbers(workspace) == {"granted": 100, "available": 100, "reserved": 0, "used": 0}
    assert entries(workspace)[-1] == ("release", 10, -10, 0)
    assert LedgerEntry.objects.of(workspace).get(kind="release").reason == "r" * 200


@pytest.mark.parametrize("first", ["settle", "release"])
@pytest.mark.parametrize("second", ["settle", "release"])
def test_subject_is_closed_once(workspace, first, second):
    subject = uuid4()
    acts = {
        "settle": lambda: credits.settle(workspace.pk, subject, used=4, now=NOW),
        "release": lambda: credits.release(workspace.pk, subject, now=NOW, reason="failed"),
    }
    reserve(workspace, {subject: 10})
    assert acts[first]() is True
    before = (numbers(workspace), entries(workspace))
    assert acts[second]() is False
    assert (numbers(workspace), entries(workspace)) == before


def test_what_was_not_reserved_cannot_be_closed(workspace):
    reserve(workspace, {uuid4(): 10})
    assert credits.settle(workspace.pk, uuid4(), used=5, now=NOW) is False
    assert credits.release(workspace.pk, uuid4(), now=NOW, reason="") is False
    assert numbers(workspace)["reserved"] == 10


def test_another_workspaces_reservation_cannot_be_closed(workspace):
    other = WorkspaceFactory(opened_at=NOW)
    subject = uuid4()
    reserve(other, {subject: 10})
    assert credits.release(workspace.pk, subject, now=NOW, reason="") is False
    assert numbers(other)["reserved"] == 10


# --- Months


def test_month_turns_with_the_first_reservation(workspace):
    done, running = uuid4(), uuid4()
    reserve(workspace, {done: 30, running: 20})
    credits.settle(workspace.pk, done, used=25, now=NOW)

    reserve(workspace, {uuid4(): 5}, now=DECEMBER)

    assert numbers(workspace) == {"granted": 100, "available": 95, "reserved": 25, "used": 0}
    assert entries(workspace)[-3:] == [
        ("expire", -55, 0, -25),
        ("grant", 100, 0, 0),
        ("reserve", -5, 5, 0),
    ]
    reasons = LedgerEntry.objects.of(workspace).filter(kind__in=["expire", "grant"]).order_by("id")
    assert [row.reason for row in reasons] == [
        "credits of 2026-11",
        "2026-11 has ended",
        "credits of 2026-12",
    ]
    assert CreditBalance.everywhere.get().period_start == date(2026, 12, 1)

    # What was reserved before counts in the month in which it is used.
    credits.settle(workspace.pk, running, used=20, now=DECEMBER)
    assert numbers(workspace) == {"granted": 100, "available": 95, "reserved": 5, "used": 20}


def test_month_turns_with_a_settlement(workspace):
    subject = uuid4()
    reserve(workspace, {subject: 20})
    credits.settle(workspace.pk, subject, used=15, now=DECEMBER)
    assert numbers(workspace) == {"granted": 100, "available": 105, "reserved": 0, "used": 15}


def test_month_turns_with_an_adjustment(workspace):
    credits.adjust(workspace, 7, "sorry", "operator", now=DECEMBER)
    assert numbers(workspace) == {"granted": 107, "available": 107, "reserved": 0, "used": 0}


def test_nothing_left_and_nothing_used_expires_without_an_entry(workspace):
    reserve(workspace, {uuid4(): 100})
    reserve(workspace, {uuid4(): 1}, now=DECEMBER)
    assert [kind for kind, *_ in entries(workspace)] == ["grant", "reserve", "grant", "reserve"]
    assert numbers(workspace)["reserved"] == 101


def test_new_month_goes_by_the_plan_of_that_moment(workspace):
    Workspace.everywhere.filter(pk=workspace.pk).update(
        credits_per_month=None, plan=PlanFactory(credits_per_month=7)
    )
    credits.turn_month_if_over(workspace.pk, DECEMBER)
    credits.turn_month_if_over(workspace.pk, DECEMBER)
    assert numbers(workspace) == {"granted": 7, "available": 7, "reserved": 0, "used": 0}
    assert len(entries(workspace)) == 3


def test_clock_that_lags_does_not_turn_the_month_back(workspace):
    reserve(workspace, {uuid4(): 1}, now=DECEMBER)
    reserve(workspace, {uuid4(): 2}, now=DECEMBER - timedelta(milliseconds=1))
    assert numbers(workspace) == {"granted": 100, "available": 97, "reserved": 3, "used": 0}
    assert CreditBalance.everywhere.get().period_start == date(2026, 12, 1)


def test_refusal_in_a_new_month_speaks_of_the_new_month(workspace):
    reserve(workspace, {uuid4(): 90})
    with pytest.raises(QuotaExceeded) as refused:
        reserve(workspace, {uuid4(): 101}, now=DECEMBER)
    assert refused.value.detail[0].extra == {
        "limit": 100,
        "used": 0,
        "resets_at": "2027-01-01T00:00:00.000Z",
    }


@pytest.mark.parametrize(
    ("moment", "month", "then"),
    [
        (
            datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC),
            date(2026, 11, 1),
            datetime(2026, 12, 1, tzinfo=UTC),
        ),
        (datetime(2026, 12, 31, tzinfo=UTC), date(2026, 12, 1), datetime(2027, 1, 1, tzinfo=UTC)),
        (
            datetime.fromisoformat("2026-12-01T00:30:00+01:00"),
            date(2026, 11, 1),
            datetime(2026, 12, 1, tzinfo=UTC),
        ),
    ],
)
def test_months_are_calendar_months_in_utc(moment, month, then):
    assert months.month_of(moment) == month
    assert months.start_of_next_month(month) == then


# --- Reports


def test_usage(workspace, django_assert_num_queries):
    subject = uuid4()
    reserve(workspace, {subject: 30, uuid4(): 5})
    credits.settle(workspace.pk, subject, used=28, now=NOW)
    with django_assert_num_queries(1):
        report = reports.usage(workspace, NOW)
    assert report == UsageReport(limit=100, used=28, reserved=5, available=67, resets_at=DECEMBER)


def test_usage_of_a_month_that_nobody_has_turned_is_not_written(workspace):
    reserve(workspace, {uuid4(): 30})
    before = entries(workspace)
    january = datetime(2027, 1, 15, tzinfo=UTC)
    assert reports.usage(workspace, january) == UsageReport(100, 0, 30, 100, datetime(2027, 2, 1, tzinfo=UTC))
    assert entries(workspace) == before


def test_adjust_counts_into_the_months_limit_and_is_audited(workspace):
    credits.adjust(workspace, 50, "a gift", "operator@example.test", now=NOW)
    credits.adjust(workspace, -20, "half of it back", "operator@example.test", now=NOW)
    credits.adjust(workspace, 0, "nothing", "operator@example.test", now=NOW)
    assert numbers(workspace) == {"granted": 130, "available": 130, "reserved": 0, "used": 0}
    assert entries(workspace) == [GRANT, ("adjust", 50, 0, 0), ("adjust", -20, 0, 0)]
    notes = AuditEntry.objects.of(workspace).order_by("id")
    assert [(note.action, note.actor, note.details) for note in notes] == [
        ("credits.adjusted", "operator@example.test", {"amount": 50, "reason": "a gift"}),
        ("credits.adjusted", "operator@example.test", {"amount": -20, "reason": "half of it back"}),
    ]


def test_adjust_goes_by_the_clock_by_default():
    workspace = WorkspaceFactory(credits_per_month=100)
    credits.adjust(workspace, 5, "gift", "operator")
    assert numbers(workspace)["available"] == 105


def test_limits_are_the_plans_unless_overridden():
    plan = PlanFactory(credits_per_month=500, active_sources_most=5, poll_interval_minutes_least=30)
    assert credits.plan_limits(WorkspaceFactory(plan=plan)) == PlanLimits(500, 5, 30)
    overridden = WorkspaceFactory(
        plan=plan, credits_per_month=0, active_sources_most=9, poll_interval_minutes_least=1
    )
    assert credits.plan_limits(overridden) == PlanLimits(0, 9, 1)


def test_check_names_every_sum_that_is_off(workspace, django_assert_num_queries):
    WorkspaceFactory()
    with transaction.atomic():
        CreditBalance.everywhere.filter(workspace=workspace).update(available=99, used=1)
        with django_assert_num_queries(1):
            found = reports.check()
        transaction.set_rollback(True)
    assert found == [
        Mismatch(workspace.pk, "available", 100, 99),
        Mismatch(workspace.pk, "used", 0, 1),
    ]


def test_check_names_a_missing_balance(workspace):
    with transaction.atomic():
        CreditBalance.everywhere.filter(workspace=workspace).delete()
        found = reports.check()
        transaction.set_rollback(True)
    assert found == [
        Mismatch(workspace.pk, "available", 100, None),
        Mismatch(workspace.pk, "reserved", 0, None),
        Mismatch(workspace.pk, "used", 0, None),
    ]


def test_public_id_is_prefixed(workspace):
    assert credits.public_id(LedgerEntry.objects.of(workspace).get()).startswith("led_")


# --- At once


def attempt(workspace, amounts, now=NOW):
    try:
        reserve(workspace, amounts, now)
    except QuotaExceeded:
        return False
    return True


@pytest.mark.django_db(transaction=True)
def test_reserve_wants_the_callers_transaction():
    workspace = WorkspaceFactory(credits_per_month=100, opened_at=NOW)
    with pytest.raises(TransactionManagementError, match="inside the transaction that stores"):
        credits.reserve(workspace, {uuid4(): 1}, now=NOW)
    assert numbers(workspace)["available"] == 100


@pytest.mark.django_db(transaction=True)
def test_50_parallel_reservations_on_credits_for_10(in_threads):
    workspace = WorkspaceFactory(credits_per_month=10 * 7 + 6, opened_at=NOW)
    results = in_threads(50, lambda _number: attempt(workspace, {uuid4(): 7}))
    assert sum(results) == 10
    assert numbers(workspace) == {"granted": 76, "available": 6, "reserved": 70, "used": 0}
    assert reports.check() == []


@pytest.mark.django_db(transaction=True)
def test_month_turns_once_however_many_reserve(in_threads):
    workspace = WorkspaceFactory(credits_per_month=10, opened_at=NOW)
    results = in_threads(30, lambda _number: attempt(workspace, {uuid4(): 1}, DECEMBER))
    assert sum(results) == 10
    kinds = [kind for kind, *_ in entries(workspace)]
    assert (kinds.count("expire"), kinds.count("grant"), kinds.count("reserve")) == (1, 2, 10)
    assert reports.check() == []


@pytest.mark.django_db(transaction=True)
def test_two_workers_settle_once(in_threads):
    workspace = WorkspaceFactory(credits_per_month=100, opened_at=NOW)
    subjects = [uuid4() for _ in range(5)]
    reserve(workspace, dict.fromkeys(subjects, 10))

    def close(number):
        subject = subjects[number % 5]
        if number % 2:
            return credits.settle(workspace.pk, subject, used=4, now=NOW)
        return credits.release(workspace.pk, subject, now=NOW, reason="failed")

    results = in_threads(40, close)
    assert sum(results) == 5
    balance = numbers(workspace)
    assert balance["reserved"] == 0
    assert balance["available"] + balance["used"] == 100
    assert reports.check() == []
