"""What somebody in whose browser nobody is logged in can store, lift and learn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.test import Client
from django.urls import reverse

from accounts import limits, users
from accounts.access import counter_caches
from accounts.models import GuardCount, User
from accounts.pages import anonymous_sessions
from accounts.pages import kept_forms as typed
from config.core import limits as core_limits
from config.operations import retention
from tests.factories import MembershipFactory, UserFactory

PASSWORD = "a long enough phrase 9"
LONG = "q" * 800_000


@pytest.fixture
def person(db):
    user = UserFactory(email="alice@example.test", password=PASSWORD)
    user.mark_email_verified()
    return user


def log_in(client, email, password=PASSWORD):
    return client.post("/account/login/", {"login": email, "password": password})


def stored() -> int:
    """Bytes of what strangers can have us keep."""
    rows = [*Session.objects.values_list("session_data", flat=True)]
    rows += [key + value for key, value in GuardCount.everywhere.values_list("key", "value")]
    return sum(len(row) for row in rows)


# --- What they store -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/account/profile", "/new"])
@pytest.mark.parametrize("field", [{"name": LONG}, {LONG: "x"}], ids=["value", "name"])
def test_a_hundred_anonymous_posts_add_less_than_100_kb(db, path, field):
    for _ in range(100):
        answer = Client().post(path, field)
        assert (answer.status_code, answer["Location"]) == (302, f"/account/login/?next={path}")
    assert (Session.objects.count(), stored() < 100_000) == (0, True)


def test_a_made_up_proof_is_none(client, db, person):
    client.cookies["known"] = f"{person.pk}:1vNuqa:c2lnbmF0dXJl"
    client.post("/new", {"name": "Ferry news"})
    assert Session.objects.count() == 0


def test_who_was_logged_in_can_have_few_forms_kept(person, left_alone):
    proof = left_alone(person).cookies["known"].value
    for _ in range(limits.TYPED_KEPT_OF_PERSON + 10):
        client = Client()
        client.cookies["known"] = proof
        client.post("/new", {"name": "Ferry news"})
    assert Session.objects.count() == limits.TYPED_KEPT_OF_PERSON


@pytest.mark.parametrize(
    ("limit", "most"), [("TYPED_KEPT_OF_ADDRESS", 3), ("TYPED_KEPT_IN_SUM_BYTES", 3 * len("nameFerry news"))]
)
def test_all_of_them_together_are_bounded(db, monkeypatch, left_alone, limit, most):
    monkeypatch.setattr(limits, limit, most)
    for _ in range(5):
        left_alone(UserFactory()).post("/new", {"name": "Ferry news"})
    kept = left_alone(UserFactory())
    kept.post("/new", {"name": "Ferry news"})
    assert "typed" not in kept.session


def test_a_form_is_kept_for_an_hour_and_a_log_in_for_two_weeks(person, left_alone):
    client = left_alone(person)
    client.post("/new", {"name": "Ferry news"})
    left = Session.objects.get().expire_date - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    log_in(client, person.email)
    [row] = Session.objects.all()
    assert row.expire_date - datetime.now(UTC) > timedelta(days=13)
    assert client.get("/new").context["form"].initial == {"name": "Ferry news"}


WAYS = {
    "sign-up": ("/account/signup/", {"email": "{}@example.test", "password1": PASSWORD}),
    "reset": ("/account/password/reset/", {"email": "{}@example.test"}),
    "code": ("/account/login/code/", {"email": "{}@example.test"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_sessions_of_strangers_are_small_short_and_few(db, way, monkeypatch):
    monkeypatch.setattr(limits, "STRANGERS_SESSIONS_OF_ADDRESS", 5)
    path, fields = WAYS[way]
    answers = [
        Client().post(path, {name: value.format(number) for name, value in fields.items()})
        for number in range(7)
    ]
    assert [answer.status_code for answer in answers] == [302] * 5 + [429] * 2
    assert Session.objects.count() == 5
    assert all(row.expire_date - datetime.now(UTC) <= timedelta(hours=1) for row in Session.objects.all())
    assert stored() < 5_000 + 20_000


@pytest.mark.parametrize("way", WAYS)
def test_the_way_back_can_be_no_store(db, way):
    path, fields = WAYS[way]
    given = {name: value.format("newcomer") for name, value in fields.items()}
    answer = Client().post(path, {**given, "next": "/" + "".join(f"{number:x}" for number in range(200_000))})
    assert stored() < 10_000
    assert answer.status_code in {302, 413}


def test_their_sessions_are_bounded_in_sum(db, monkeypatch):
    monkeypatch.setattr(limits, "STRANGERS_SESSIONS", 3)
    for number in range(5):
        Client(REMOTE_ADDR=f"127.0.0.{number + 1}").post(
            "/account/password/reset/", {"email": "a@example.test"}
        )
    assert Session.objects.count() == 3


def test_who_has_given_the_right_password_is_no_stranger(person, monkeypatch):
    from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret

    TOTP.activate(person, generate_totp_secret())
    monkeypatch.setattr(limits, "STRANGERS_SESSIONS", 0)
    answer = log_in(Client(), person.email)
    assert (answer.status_code, answer["Location"]) == (302, "/account/2fa/authenticate/")


def test_sign_ups_are_bounded_in_sum_for_known_addresses_too(person, monkeypatch):
    monkeypatch.setattr(limits, "SIGN_UPS", 1)
    said = []
    for email in ("new@example.test", "newer@example.test", person.email):
        answer = Client().post("/account/signup/", {"email": email, "password1": PASSWORD})
        said.append((answer.status_code, "Too many sign-ups." in answer.content.decode()))
    assert said == [(302, False), (200, True), (200, True)]
    assert User.objects.count() == 2


def test_an_account_that_nobody_proves_is_forgotten(person, django_user_model):
    Client().post("/account/signup/", {"email": "nobody@example.test", "password1": PASSWORD})
    made_by_operator = UserFactory(email="operator@example.test")
    member = MembershipFactory(user__email="member@example.test").user
    EmailAddress.objects.create(user=member, email=member.email, verified=False)
    later = datetime.now(UTC) + limits.UNVERIFIED_KEPT
    assert users.delete_unverified(later - timedelta(minutes=1)) == 0
    assert users.delete_unverified(later) == 1
    assert set(User.objects.values_list("email", flat=True)) == {
        person.email,
        made_by_operator.email,
        member.email,
    }
    assert users.delete_unverified in {kept.forget for kept in retention.RULES}


def test_a_large_file_of_a_stranger_is_refused_unread(newsroom):
    address = reverse("making", kwargs={"ws": newsroom.pk})
    answer = Client().post(address, {"file": "x"}, CONTENT_LENGTH=str(core_limits.RAW_BODY_BYTES + 1))
    assert (answer.status_code, answer.content) == (413, b"Log in first, then send the file again.\n")


# --- What they lift --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["MemoryCounterCache", "DatabaseCounterCache"])
def guards(request, settings, db):
    """Where several processes count, and where one does."""
    backend = {"BACKEND": f"accounts.access.counter_caches.{request.param}"}
    settings.CACHES = {
        name: {**backend, "LOCATION": f"{request.node.name} {name}"}
        for name in ("default", "counts", "marks")
    }
    return caches["default"]


@pytest.mark.both_databases
def test_a_lock_outlasts_whatever_a_stranger_sends(person, rf):
    """Where marks of forms and counts shared a memory of 300 entries, 320 posts lifted it."""
    stranger = UserFactory()
    for _ in range(5):
        log_in(Client(), person.email, "a wrong guess")
    assert "Too many failed" in log_in(Client(), person.email).content.decode()
    for number in range(1000):
        request = rf.post("/new", {"once": f"mark{number}"})
        request.user = stranger
        assert typed.is_first_sending(request)
        caches["counts"].add(f"guess{number}", 1, 3600)
        caches["default"].add(f"try{number}", [1.0], 3600)
    assert "Too many failed" in log_in(Client(), person.email).content.decode()


def test_where_the_memory_is_full_what_has_ended_goes_first_and_a_lock_last(monkeypatch):
    monkeypatch.setattr(counter_caches, "MAX_ENTRIES_IN_MEMORY", 30)
    memory = counter_caches.MemoryCounterCache("full", {})
    memory.set("ended", [1.0] * 9, 1)
    memory.set("lock", [1.0] * 5, 300)
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=2)):
        for number in range(500):
            memory.set(f"try{number}", [1.0], 300)
        assert (memory.get("ended"), memory.get("lock")) == (None, [1.0] * 5)


def test_counts_end_by_their_time_alone(guards):
    now = datetime.now(UTC)
    with time_machine.travel(now, tick=False) as clock:
        assert guards.add("once", "first", 10) is True
        assert (guards.add("once", "second", 10), guards.get("once")) == (False, "first")
        guards.set("count", 1, 10)
        assert (guards.incr("count"), guards.incr("count", 3), guards.get("count")) == (2, 5, 5)
        assert (guards.touch("count", 30), guards.touch("nothing", 30)) == (True, False)
        clock.shift(11)
        assert (guards.get("once"), guards.get("once", "gone"), guards.get("count")) == (None, "gone", 5)
        assert guards.add("once", "third", 10) is True
        guards.set("once", ["fourth"], 10)
        assert (guards.get("once"), guards.delete("once"), guards.delete("once")) == (["fourth"], True, False)
        with pytest.raises(ValueError, match="not found"):
            guards.incr("once")
        guards.set("for_good", 1, None)
        clock.shift(3600)
        assert guards.get("for_good") == 1
        guards.clear()
        assert guards.get("for_good") is None


def test_what_has_ended_is_forgotten(settings, db, monkeypatch):
    monkeypatch.setattr(counter_caches, "_DELETED_AT_ONCE", 2)
    table = counter_caches.DatabaseCounterCache("", {})
    for number in range(3):
        table.set(f"ended{number}", 1, 10)
    table.set("lasts", 1, 1000)
    later = datetime.now(UTC) + timedelta(seconds=11)
    assert [counter_caches.delete_ended_counts(later) for _ in range(3)] == [2, 1, 0]
    assert table.get("lasts") == 1
    # What a browser sent is a name too.
    assert [table.add("a\0b" * 200, 1, 10) for _ in range(2)] == [True, False]
    assert counter_caches.delete_ended_counts in {kept.forget for kept in retention.RULES}


def test_log_ins_are_not_counted_where_redis_could_drop_them(settings):
    assert settings.CACHES["default"]["BACKEND"].startswith("accounts.access.counter_caches.")
    assert {"default", "counts", "marks"} == set(settings.CACHES)
    places = [(one["BACKEND"], one.get("LOCATION")) for one in settings.CACHES.values()]
    assert settings.CACHES["default"] not in [settings.CACHES["counts"], settings.CACHES["marks"]], places


# --- What they learn -------------------------------------------------------------------------------------------------


@pytest.fixture
def hashed(monkeypatch):
    """How often a password was hashed: what makes an answer take half a second instead of a hundredth."""
    calls = []
    real = PBKDF2PasswordHasher.encode

    def encode(self, password, salt, iterations=None):
        calls.append(iterations or self.iterations)
        return real(self, password, salt, iterations)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", encode)
    return calls


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        ("/account/signup/", {"email": "{}", "password1": PASSWORD}, 1),
        ("/account/login/", {"login": "{}", "password": "a wrong guess"}, 1),
        ("/account/password/reset/", {"email": "{}"}, 0),
        ("/account/login/code/", {"email": "{}"}, 0),
    ],
)
def test_known_and_unknown_addresses_are_hashed_as_often(person, hashed, path, fields, expected, mailoutbox):
    told = []
    for email in (person.email, "unknown@example.test"):
        hashed.clear()
        before = len(mailoutbox)
        answer = Client().post(path, {name: value.format(email) for name, value in fields.items()})
        told.append((answer.status_code, answer.get("Location"), list(hashed), len(mailoutbox) - before))
    assert told[0] == told[1]
    assert len(told[0][2]) == expected


def test_an_address_is_changed_to_a_known_one_as_to_an_unknown_one(person, hashed, mailoutbox):
    UserFactory(email="bob@example.test").mark_email_verified()
    told = []
    for email in ("bob@example.test", "unknown@example.test"):
        client = Client()
        log_in(client, person.email)
        caches["default"].clear()
        hashed.clear()
        before = len(mailoutbox)
        answer = client.post("/account/email/", {"email": email, "action_add": ""})
        told.append((answer.status_code, answer.get("Location"), list(hashed), len(mailoutbox) - before))
    assert told[0] == told[1]
    assert told[0][2] == []


def test_whoever_invites_learns_nothing(alice, newsroom, bob, charlie, as_person, hashed, mailoutbox):
    owner, told = as_person(alice), []
    for email in (charlie.email, "unknown@example.test"):
        hashed.clear()
        before = len(mailoutbox)
        answer = owner.post(
            reverse("member_invite", kwargs={"ws": newsroom.pk}), {"email": email, "role": "editor"}
        )
        told.append((answer.status_code, answer.get("Location"), list(hashed), len(mailoutbox) - before))
    assert told[0] == told[1]
    assert (told[0][0], told[0][2]) == (302, [])


def test_the_middleware_is_the_one_of_the_settings(settings):
    assert "accounts.pages.anonymous_sessions.Session" in settings.MIDDLEWARE
    assert issubclass(anonymous_sessions.Session, anonymous_sessions.BoundedSessions)
