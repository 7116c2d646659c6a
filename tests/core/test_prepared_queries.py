"""A prepared query gives what its queryset gives, and is built once for each of its forms."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import Exists, JSONField, OuterRef, Q, Value
from django.db.models.functions import Length
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from accounts.access import tokens
from accounts.models import ApiToken
from accounts.tenancy import WorkspaceNotBound
from config.core.database.prepared_queries import Prepared
from pipeline.models import Source, WorkspaceDefaults
from tests.core.rows import NOON, make_sources

pytestmark = pytest.mark.django_db

FIELDS = ("id", "name", "config", "test", "created_at", "failures", "persona_id")


@pytest.fixture
def charlies(db):
    return workspaces.create("Charlie's newsroom", actor="test")


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


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "config", [{}, [], None, "text", 2**70, 1.5, {"nested": {"text": 'Straße "2"', "list": [1, None, True]}}]
)
def test_json_and_moments_are_the_querysets(alices, config):
    (source,) = make_sources(alices, 1)
    Source.everywhere.filter(pk=source.pk).update(config=Value(config, JSONField()), created_at=NOON)
    prepared = Prepared(lambda pk: Source.everywhere.filter(pk=pk).values("config", "created_at"))
    for _ in range(2):
        assert prepared.ask(pk=source.pk) == [{"config": config, "created_at": NOON}]


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
    hers, his = tokens.issue(alices, name="hers"), tokens.issue(charlies, name="his")
    for minted in (hers, his, hers):
        digest = tokens.digest(minted.secret)
        assert [one.pk for one in prepared.ask(digest=digest, now=NOON)] == [minted.token.pk]
    assert prepared.ask(digest=b"\0" * 32, now=NOON) == []


def test_queryset_that_refuses_still_does(alices):
    prepared = Prepared(lambda name: Source.objects.filter(name=name))
    for _ in range(2):
        with pytest.raises(WorkspaceNotBound):
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
    monkeypatch.setattr("config.core.database.prepared_queries._MAX_FORMS", 3)
    prepared = Prepared(lambda most: chosen()[:most])
    for most in range(1, 8):
        prepared.ask(most=most)
    assert len(prepared._forms) == 3


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_query_that_locks_needs_a_transaction_each_time():
    prepared = Prepared(lambda name: Source.everywhere.select_for_update().filter(name=name))
    for _ in range(2):
        with transaction.atomic():
            assert prepared.ask(name="Source 0") == []
        if connection.features.has_select_for_update:
            with pytest.raises(TransactionManagementError):
                prepared.ask(name="Source 0")


@pytest.mark.postgres
def test_postgresql_keeps_the_plan_of_what_is_found_by_its_key(charlies):
    """And of nothing else: a list's best plan depends on the values."""
    by_key = Prepared(lambda pk: Source.everywhere.filter(pk=pk))
    listed = Prepared(lambda pk: Source.everywhere.filter(workspace_id=pk), keeps_plan=False)
    rows = make_sources(charlies, 3)
    for query in (by_key, listed):
        for _ in range(4):
            query.ask(pk=rows[0].pk)
    assert [row.pk for row in by_key.ask(pk=rows[1].pk)] == [rows[1].pk]
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement, custom_plans FROM pg_prepared_statements")
        kept = [(statement, plans) for statement, plans in cursor.fetchall() if 'FROM "source"' in statement]
    assert len(kept) == 1
    statement, plans_of_their_own = kept[0]
    assert 'WHERE "source"."id" = $1' in statement
    # PostgreSQL's own default is to plan the first five executions each.
    assert plans_of_their_own == 0
