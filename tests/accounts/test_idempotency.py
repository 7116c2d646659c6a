"""Idempotency-Key: one effect, one answer, whatever happens in between."""

import hashlib
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings as django_settings
from django.db import connection

from accounts import audit
from accounts.access import idempotency
from accounts.access.authentication import caller_of
from accounts.access.idempotency import (
    InProgress,
    KeyReused,
    StoredAnswer,
    read_key,
    request_digest,
    run_once,
)
from accounts.models import AuditEntry, IdempotencyKey
from config.core.errors import Invalid
from tests.factories import TokenFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db
DIGEST = request_digest("POST", "/v1/raw", b'{"title":"One"}')
OTHER = request_digest("POST", "/v1/raw", b'{"title":"Two"}')


@pytest.fixture
def caller(token):
    return caller_of(token)


class Effect:
    """Leaves a row and answers with its number."""

    def __init__(self, status=201, headers=None):
        self.status, self.headers, self.calls = status, headers or {}, 0

    def __call__(self):
        self.calls += 1
        audit.note("effect", actor="test")
        return StoredAnswer(self.status, f'{{"n":{self.calls}}}'.encode(), self.headers)


def effects():
    return AuditEntry.everywhere.filter(action="effect").count()


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (None, None),
        ("k", "k"),
        ("  k ", "k"),
        ("with space", "with space"),
        ("x" * 255, "x" * 255),
        ("~!", "~!"),
        ('"k"', "k"),
        ('"' + "x" * 255 + '"', "x" * 255),
        (r'"a\"b\\c"', r'a"b\c'),
        ('a"b', 'a"b'),
    ],
)
def test_header_is_read_plain_and_quoted(header, key):
    assert read_key(header) == key


@pytest.mark.parametrize(
    "header",
    [
        "",
        "   ",
        "x" * 256,
        "ä",
        "a\tb",
        "a\x7f",
        '"',
        '""',
        '"a',
        '"a"b',
        '"a";p=1',
        r'"\a"',
        '"' + "x" * 256 + '"',
    ],
)
def test_other_headers_are_refused(header):
    with pytest.raises(Invalid) as refused:
        read_key(header)
    assert [(one.field, one.code, one.message) for one in refused.value.detail] == [
        ("Idempotency-Key", "invalid", "Give 1 to 255 printable ASCII characters.")
    ]


def test_digest_tells_method_path_and_body_apart():
    digests = {
        request_digest("POST", "/v1/raw", b"{}"),
        request_digest("PUT", "/v1/raw", b"{}"),
        request_digest("POST", "/v1/sources", b"{}"),
        request_digest("POST", "/v1/raw", b"{ }"),
        request_digest("POST", "/v1/ra", b"w{}"),
    }
    assert len(digests) == 5
    assert request_digest("post", "/v1/raw/", b"{}") == request_digest("POST", "/v1/raw", b"{}")
    assert len(DIGEST) == hashlib.sha256().digest_size


def test_without_a_key_nothing_is_kept(caller, django_assert_num_queries):
    effect = Effect()
    with django_assert_num_queries(1):
        answer, is_replay = run_once(caller, None, DIGEST, effect)
    assert (answer, is_replay) == (StoredAnswer(201, b'{"n":1}'), False)
    assert IdempotencyKey.everywhere.count() == 0


def test_second_time_is_a_replay(caller):
    effect = Effect(headers={"Location": "/v1/raw/1"})
    first = run_once(caller, "k", DIGEST, effect)
    second = run_once(caller, '"k"', DIGEST, effect)
    expected = StoredAnswer(201, b'{"n":1}', {"Location": "/v1/raw/1"})
    assert first == (expected, False)
    assert second == (expected, True)
    assert (effect.calls, effects()) == (1, 1)


def test_another_request_with_the_key_is_refused(caller):
    run_once(caller, "k", DIGEST, Effect())
    other = Effect()
    with pytest.raises(KeyReused) as refused:
        run_once(caller, "k", OTHER, other)
    assert (refused.value.status, refused.value.code, other.calls) == (422, "idempotency_key_reused", 0)


def test_keys_belong_to_workspace_and_mode(caller, workspace, charlies):
    run_once(caller, "k", DIGEST, Effect())
    for token in (TokenFactory(workspace=workspace, is_test=True), TokenFactory(workspace=charlies)):
        effect = Effect()
        assert run_once(caller_of(token), "k", OTHER, effect)[1] is False
        assert effect.calls == 1
    # Another token of the same workspace shares its keys: a rotation must not repeat an effect.
    assert run_once(caller_of(TokenFactory(workspace=workspace)), "k", DIGEST, Effect())[1] is True


@pytest.mark.parametrize(
    ("status", "kept"), [(200, 1), (207, 1), (299, 1), (199, 0), (300, 0), (409, 0), (500, 0)]
)
def test_only_2xx_is_kept(caller, status, kept):
    run_once(caller, "k", DIGEST, Effect(status))
    assert IdempotencyKey.everywhere.count() == kept


def test_effect_that_raises_leaves_nothing_and_can_be_retried(caller):
    def fail():
        audit.note("effect", actor="test")
        raise Invalid

    with pytest.raises(Invalid):
        run_once(caller, "k", DIGEST, fail)
    assert (effects(), IdempotencyKey.everywhere.count()) == (0, 0)
    assert run_once(caller, "k", OTHER, Effect())[1] is False


def age(by):
    IdempotencyKey.everywhere.update(created_at=datetime.now(UTC) - by)


def test_answer_is_kept_48_hours(caller):
    run_once(caller, "k", DIGEST, Effect())
    age(timedelta(hours=47, minutes=59))
    assert run_once(caller, "k", DIGEST, Effect())[1] is True
    age(timedelta(hours=48))
    assert run_once(caller, "k", OTHER, Effect())[1] is False
    assert bytes(IdempotencyKey.everywhere.get().request_digest) == OTHER


def test_expired_answer_is_not_replaced_by_an_error(caller):
    run_once(caller, "k", DIGEST, Effect())
    age(timedelta(hours=49))
    run_once(caller, "k", OTHER, Effect(500))
    assert bytes(IdempotencyKey.everywhere.get().request_digest) == DIGEST


def test_forgets_in_batches(caller, workspace, monkeypatch):
    monkeypatch.setattr(idempotency, "_DELETED_AT_ONCE", 2)
    for number in range(4):
        run_once(caller, f"k{number}", DIGEST, Effect())
    IdempotencyKey.everywhere.exclude(key="k3").update(created_at=datetime.now(UTC) - timedelta(hours=48))
    now = datetime.now(UTC)
    assert [idempotency.delete_expired(now) for _ in range(3)] == [2, 1, 0]
    assert IdempotencyKey.everywhere.get().key == "k3"


@pytest.mark.django_db(transaction=True)
def test_second_request_while_the_first_runs():
    caller = caller_of(TokenFactory())
    entered, may_end = threading.Event(), threading.Event()
    outcomes = {}

    def slow():
        entered.set()
        may_end.wait(20)
        return Effect()()

    def first():
        try:
            outcomes["first"] = run_once(caller, "k", DIGEST, slow)
        finally:
            connection.close()

    def second():
        try:
            outcomes["second"] = run_once(caller, "k", DIGEST, Effect())
        except InProgress as refused:
            outcomes["second"] = refused
        finally:
            connection.close()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert entered.wait(20)
    threads[1].start()
    if django_settings.IS_POSTGRES:
        threads[1].join(20)
        refused = outcomes["second"]
        assert (refused.status, refused.code, refused.headers) == (
            409,
            "idempotency_in_progress",
            {"Retry-After": "1"},
        )
        # Another key isn't held up.
        assert run_once(caller, "other", DIGEST, Effect())[1] is False
        may_end.set()
    else:
        threads[1].join(0.3)
        assert threads[1].is_alive()
        may_end.set()
        threads[1].join(20)
        assert outcomes["second"] == (StoredAnswer(201, b'{"n":1}'), True)
    threads[0].join(20)
    assert outcomes["first"] == (StoredAnswer(201, b'{"n":1}'), False)
    assert run_once(caller, "k", DIGEST, Effect()) == (StoredAnswer(201, b'{"n":1}'), True)


@pytest.mark.django_db(transaction=True)
def test_many_at_once_make_one_effect(in_threads):
    caller = caller_of(TokenFactory())

    def ask(_number):
        try:
            return run_once(caller, "k", DIGEST, Effect())
        except InProgress:
            return None

    results = [result for result in in_threads(40, ask) if result is not None]
    assert effects() == 1
    assert sum(not is_replay for _, is_replay in results) == 1
    assert {answer.body for answer, _ in results} == {b'{"n":1}'}


CHILD = """
import sys, django
django.setup()
from datetime import UTC, datetime
from accounts import audit; from accounts.access import idempotency, tokens
from accounts.access.authentication import caller_of

def effect():
    audit.note("effect", actor="child")
    return idempotency.StoredAnswer(201, b"{}")

caller = caller_of(tokens.find_token(sys.argv[1], datetime.now(UTC)))
print(idempotency.run_once(caller, "k", b"d" * 32, effect)[1])
"""


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_crash_before_the_commit_leaves_no_effect(tmp_path):
    token = TokenFactory(workspace=WorkspaceFactory())
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "DATA_DIR": str(tmp_path)}
    database = connection.settings_dict
    if django_settings.IS_POSTGRES:
        user = database["USER"] + (f":{database['PASSWORD']}" if database["PASSWORD"] else "")
        environment["DATABASE_URL"] = (
            f"postgres://{user}@{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"
        )
    else:
        (tmp_path / "db.sqlite3").symlink_to(database["NAME"])

    def run(**more):
        return subprocess.run(
            [sys.executable, "-c", CHILD, token.secret],
            env={**environment, **more},
            cwd=django_settings.BASE_DIR,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    crashed = run(CRASH_AT="idempotency.stored")
    assert crashed.returncode == -9, crashed.stderr
    assert (effects(), IdempotencyKey.everywhere.count()) == (0, 0)
    assert [run().stdout.strip() for _ in range(2)] == ["False", "True"]
    assert effects() == 1
