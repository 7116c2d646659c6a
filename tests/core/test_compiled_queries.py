"""A prepared query gives what its queryset gives, and is built once for each of its forms."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Length
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from accounts.access import tokens
from accounts.models import ApiToken, LedgerEntry
from accounts.tenancy import NoWorkspace
from config.core.database.compiled_queries import Prepared, insert, insert_unless_there, update, update_each
from config.core.ids import uuid7
from pipeline.models import RawItem, Source, WorkspaceDefaults

pytestmark = pytest.mark.django_db

FIELDS = ("id", "name", "config", "test", "created_at", "failures", "persona_id")
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
def alices(db):
    return workspaces.create("Alice's newsroom", actor="test")


@pytest.fixture
def charlies(db):
    return workspaces.create("Charlie's newsroom", actor="test")


def make_sources(workspace, count):
    return [
        Source.everywhere.create(
            workspace=workspace,
            name=f"Source {number}",
            type="rss",
            config={"url": f"https://news.example/{number}"},
            created_at=NOON + timedelta(microseconds=number),
        )
        for number in range(count)
    ]


class Counting:
    """A query that counts how often it is built."""

    def __init__(self, make):
        self.make = make
        self.times = 0

    def __call__(self, **values):
        self.times += 1
        return self.make(**values)


def chosen(**filters):
    return Source.everywhere.filter(**filters).order_by("id").values(*FIELDS)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda rows: {"pk": rows[0].pk}, lambda rows: {"pk": rows[3].pk}),
        (
            lambda rows: {"workspace_id": rows[0].workspace_id},
            lambda rows: {"workspace_id": rows[-1].workspace_id},
        ),
        (
            lambda rows: {"pk__in": [rows[0].pk, rows[1].pk]},
            lambda rows: {"pk__in": [rows[3].pk, rows[0].pk]},
        ),
        (lambda rows: {"name": "Source 1"}, lambda rows: {"name": "Source 2"}),
        (
            lambda rows: {"name__in": ["Source 1", "Source 2"]},
            lambda rows: {"name__in": ["Source 0", "nobody's"]},
        ),
        (
            lambda rows: {"created_at__lt": NOON},
            lambda rows: {"created_at__lt": NOON + timedelta(microseconds=2)},
        ),
        (
            lambda rows: {"pk__gt": rows[0].pk, "test": False},
            lambda rows: {"pk__gt": rows[2].pk, "test": False},
        ),
    ],
)
def test_answer_is_the_querysets(alices, charlies, first, second):
    rows = [*make_sources(alices, 4), *make_sources(charlies, 1)]
    counting = Counting(chosen)
    prepared = Prepared(counting)
    # The first is asked as a queryset, the others are not.
    for values in (first(rows), second(rows), first(rows)):
        assert prepared.ask(**values) == list(chosen(**values))
    assert prepared.ask(**second(rows)) != prepared.ask(**first(rows))
    assert counting.times == 2


def test_what_does_not_vary_is_a_form_of_its_own(alices):
    make_sources(alices, 3)
    counting = Counting(lambda most, test: chosen(test=test)[:most])
    prepared = Prepared(counting)
    for most, test in [(1, False), (2, False), (1, True), (1, False), (2, False)]:
        assert prepared.ask(most=most, test=test) == list(chosen(test=test)[:most])
    assert counting.times == 6


def test_two_operands_of_equal_value_stay_apart(alices):
    one, two, three = make_sources(alices, 3)
    prepared = Prepared(lambda after, before: chosen(pk__gt=after, pk__lt=before))
    assert prepared.ask(after=one.pk, before=one.pk) == []
    assert [row["id"] for row in prepared.ask(after=one.pk, before=three.pk)] == [two.pk]


def test_instances_come_with_what_they_refer_to(alices, charlies):
    prepared = Prepared(
        lambda workspace: WorkspaceDefaults.objects.of(workspace).select_related("push_source__workspace")
    )
    assert [one.workspace_id for one in prepared.ask(workspace=charlies.pk)] == [charlies.pk]
    with CaptureQueriesContext(connection) as captured:
        (defaults,) = prepared.ask(workspace=alices.pk)
        assert defaults == WorkspaceDefaults(pk=defaults.pk)
        assert defaults.push_source.is_push
        assert defaults.push_source.workspace.name == "Alice's newsroom"
    assert len(captured) == 1
    (plain,) = WorkspaceDefaults.objects.of(alices)
    assert (defaults.pk, defaults.engines, defaults.outlets) == (plain.pk, plain.engines, plain.outlets)
    assert not defaults._state.adding


def test_instances_come_with_their_annotations(alices, charlies):
    prepared = Prepared(
        lambda workspace: (
            Source.everywhere.select_related("workspace")
            .annotate(
                letters=Length("name"),
                is_here=Exists(Source.everywhere.filter(pk=OuterRef("pk"))),
            )
            .filter(workspace_id=workspace)
            .order_by("id")
        )
    )
    for owner, count in ((alices, 2), (charlies, 3)):
        make_sources(owner, count)
        plain = list(prepared._make(workspace=owner.pk))
        found = prepared.ask(workspace=owner.pk)
        assert [(one.pk, one.letters, one.is_here, one.workspace.name) for one in found] == [
            (one.pk, one.letters, True, owner.name) for one in plain
        ]


def test_bytes_are_operands(alices, charlies):
    prepared = Prepared(
        lambda digest, now: ApiToken.everywhere.filter(digest=digest).filter(
            Q(expires_at=None) | Q(expires_at__gt=now)
        )
    )
    hers, his = tokens.mint(alices, name="hers"), tokens.mint(charlies, name="his")
    for minted in (hers, his, hers):
        digest = tokens.digest(minted.secret)
        assert [one.pk for one in prepared.ask(digest=digest, now=NOON)] == [minted.token.pk]
    assert prepared.ask(digest=b"\0" * 32, now=NOON) == []


def test_queryset_that_refuses_still_does(alices):
    prepared = Prepared(lambda name: Source.objects.filter(name=name))
    for _ in range(2):
        with pytest.raises(NoWorkspace):
            prepared.ask(name="Source 0")


def test_empty_list_of_operands_asks_nothing(alices):
    prepared = Prepared(lambda keys: chosen(pk__in=keys))
    with CaptureQueriesContext(connection) as captured:
        assert [prepared.ask(keys=[]), prepared.ask(keys=[])] == [[], []]
    assert len(captured) == 0


def test_value_that_is_no_operand_is_refused(alices):
    prepared = Prepared(lambda name: Source.everywhere.filter(name__icontains=name))
    with pytest.raises(LookupError, match="plain operand"):
        prepared.ask(name="source")


def test_forms_are_bounded(alices, monkeypatch):
    monkeypatch.setattr("config.core.database.compiled_queries._FORMS_KEPT", 3)
    prepared = Prepared(lambda most: chosen()[:most])
    for most in range(1, 8):
        prepared.ask(most=most)
    assert len(prepared._forms) == 3


def test_insert_stores_what_save_stores(alices):
    def make(number):
        return RawItem(
            workspace=alices,
            source=Source.everywhere.filter(workspace=alices, is_push=True, test=False).get(),
            dedup_key=f"x:{number}",
            title="Ünïcode",
            metadata={"a": [1, None]},
            engines=["Short Post"],
            content_hash="0" * 64,
            published_at=NOON,
            created_at=NOON,
            updated_at=NOON,
        )

    saved, inserted = make(1), make(2)
    saved.save(force_insert=True)
    with CaptureQueriesContext(connection) as captured:
        insert([inserted])
    assert len(captured) == 1
    assert not inserted._state.adding
    several = [make(3), make(4)]
    insert(several)
    rows = list(RawItem.everywhere.filter(workspace=alices).order_by("dedup_key").values())
    assert [row.pop("id") for row in rows] == [one.pk for one in (saved, inserted, *several)]
    assert [row.pop("dedup_key") for row in rows] == ["x:1", "x:2", "x:3", "x:4"]
    assert rows[1:] == rows[:1] * 3
    inserted.title = "changed"
    inserted.save(update_fields=["title"])
    assert RawItem.everywhere.get(pk=inserted.pk).title == "changed"


def test_insert_of_nothing_asks_nothing(db):
    with CaptureQueriesContext(connection) as captured:
        insert([])
    assert len(captured) == 0


def test_insert_meets_constraints(alices):
    def entry():
        return LedgerEntry(workspace=alices, kind="reserve", amount=-1, reserved_change=1, subject=subject)

    subject = uuid7()
    insert([entry()])
    with pytest.raises(IntegrityError), transaction.atomic():
        insert([entry()])
    assert LedgerEntry.everywhere.filter(subject=subject).count() == 1


def test_insert_unless_there_stores_once_and_spoils_nothing(alices):
    def entry():
        return LedgerEntry(workspace=alices, kind="reserve", amount=-1, reserved_change=1, subject=subject)

    subject = uuid7()
    first, second = entry(), entry()
    with transaction.atomic():
        stored = [insert_unless_there(first), insert_unless_there(second)]
        count = LedgerEntry.everywhere.filter(subject=subject).count()
    assert stored == [True, False]
    assert (count, first._state.adding, second._state.adding) == (1, False, True)


def test_update_writes_what_the_querysets_update_writes(alices):
    one, other, third = make_sources(alices, 3)
    values = {
        "name": "Été",
        "config": {"url": "https://news.example/é", "deep": [None, {"a": 1.5}]},
        "test": True,
        "failures": 7,
        "persona": None,
        "created_at": NOON + timedelta(microseconds=5),
        "last_error": None,
    }
    where = {"pk": one.pk, "test": False, "workspace_id": alices.pk}
    assert update(Source, where, values, raised=["version"]) == 1
    assert Source.everywhere.filter(pk=other.pk).update(**values, version=F("version") + 1) == 1
    kept = ("id", "wake_at", "secret", "updated_at")
    mine, theirs = ({**row} for row in Source.everywhere.filter(pk__in=[one.pk, other.pk]).values())
    assert {name: value for name, value in mine.items() if name not in kept} == {
        name: value for name, value in theirs.items() if name not in kept
    }
    assert mine["version"] == one.version + 1
    # It isn't as it was any more, and nobody else was touched.
    assert update(Source, where, values) == 0
    assert Source.everywhere.get(pk=third.pk).name == "Source 2"


def test_update_leaves_expressions_and_instances_to_the_queryset(alices):
    (one,) = make_sources(alices, 1)
    values = {"failures": F("failures") + 2, "workspace": alices}
    assert update(Source, {"pk": one.pk}, values, raised=["version"]) == 1
    found = Source.everywhere.get(pk=one.pk)
    assert (found.failures, found.version) == (one.failures + 2, one.version + 1)


# --- Many rows in one statement --------------------------------------------------------------------------------------


def test_each_of_many_rows_is_changed_as_it_is_told(alices):
    rows = make_sources(alices, 4)
    changes = [
        (
            {"pk": row.pk, "name": row.name},
            {"last_polled_at": NOON, "fetch_state": {"a": number}, "failures": number},
        )
        for number, row in enumerate(rows)
    ]
    changes[0][0]["name"] = "another"
    assert update_each(Source, changes, raised=("version",)) == 3
    after = [Source.everywhere.get(pk=row.pk) for row in rows]
    assert [row.failures for row in after] == [0, 1, 2, 3]
    assert [row.version - before.version for row, before in zip(after, rows, strict=True)] == [0, 1, 1, 1]
    assert [row.fetch_state for row in after[1:]] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [row.last_polled_at for row in after] == [None, NOON, NOON, NOON]


def test_many_rows_are_stored_in_portions(monkeypatch, alices):
    columns = len(Source._meta.local_concrete_fields)
    monkeypatch.setattr(type(connection.features), "max_query_params", 2 * columns + 1)
    new = [
        Source(workspace=alices, name=f"New {number}", type="rss", config={"n": number})
        for number in range(5)
    ]
    with CaptureQueriesContext(connection) as asked:
        insert(new)
    assert len(asked) == 3
    found = Source.everywhere.filter(pk__in=[row.pk for row in new])
    assert {row.name: row.config for row in found} == {row.name: row.config for row in new}
    assert not any(row._state.adding for row in new)
