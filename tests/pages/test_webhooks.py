"""Endpoints as their owner sets them up, page by page."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.utils import timezone

from accounts import limits, workspaces
from accounts.models import AuditEntry
from config.core.ids import encode
from pipeline.events import TYPES
from tests.documents.text import between
from tests.documents.text import read as read_document
from tests.documents.text import rows as rows_of
from tests.pages.answers import at, said
from tests.pipeline.steps import reread
from tests.webhooks.factories import make_delivery, make_endpoint
from webhooks.models import Delivery, Endpoint
from webhooks.pages import labels

FORM = {"url": "http://127.0.0.1:9/hook", "which": "usual", "mode": "live"}
PASSWORD = "a long enough phrase 9"


def audited():
    return list(AuditEntry.everywhere.filter(action__startswith="endpoint").values_list("action", "actor"))


# --- Add -------------------------------------------------------------------------------------------------------------


def test_add_makes_it_and_sends_a_test_event(owner, newsroom):
    form = {**FORM, "which": "chosen", "events": ["raw.failed", "raw.ingested"], "description": "CRM"}
    answer = owner.post(at(newsroom, "webhook_add"), form)
    endpoint, delivery = Endpoint.everywhere.get(), Delivery.everywhere.get()
    assert answer.status_code == 302
    assert answer["Location"] == (
        at(newsroom, "webhook_secret", whe=endpoint.pk) + f"?sent={encode('dlv', delivery.pk)}"
    )
    assert (endpoint.workspace_id, endpoint.url, endpoint.description, endpoint.test) == (
        newsroom.pk,
        "http://127.0.0.1:9/hook",
        "CRM",
        False,
    )
    assert endpoint.events == ["raw.failed", "raw.ingested"]
    assert (delivery.endpoint_id, delivery.event.type, delivery.status) == (
        endpoint.pk,
        "webhook.test",
        "pending",
    )
    assert audited() == [
        ("endpoint.added", "alice@example.test"),
        ("endpoint.tested", "alice@example.test"),
    ]


@pytest.mark.parametrize(("which", "events"), [("usual", []), ("all", ["*"])])
def test_add_keeps_which_events_were_meant(owner, newsroom, which, events):
    # What is ticked below doesn't count unless "chosen" is on.
    owner.post(
        at(newsroom, "webhook_add"), {**FORM, "which": which, "events": ["raw.failed"], "mode": "test"}
    )
    assert (Endpoint.everywhere.get().events, Endpoint.everywhere.get().test) == (events, True)


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"url": "http://10.1.2.3/hook"}, "url", "10.1.2.3 leads to 10.1.2.3, which is not a public"),
        ({"url": "http://169.254.169.254/latest"}, "url", "which is not a public internet address"),
        ({"url": "ftp://example.com/"}, "url", "Use a whole address that begins with https://"),
        ({"url": "https://a:b@example.com/"}, "url", "Leave user name and password out"),
        ({"url": ""}, "url", "This field is required"),
        ({"which": "chosen"}, "events", "Choose at least one event."),
        (
            {"which": "chosen", "events": ["raw.injested"]},
            "events",
            "raw.injested is not one of the available",
        ),
        ({"description": "x" * 201}, "description", "at most 200 characters"),
        ({"rate": "0"}, "rate", "greater than or equal to 1"),
        ({"rate": "101"}, "rate", "less than or equal to 100"),
    ],
)
def test_add_says_at_the_field_what_is_wrong(owner, newsroom, changes, field, sentence):
    answer = owner.post(at(newsroom, "webhook_add"), {**FORM, **changes})
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == [field]
    assert sentence in answer.context["form"].errors[field][0]
    assert Endpoint.everywhere.count() == Delivery.everywhere.count() == 0


@pytest.mark.parametrize(("typed", "rate"), [("7", 7), ("", 20)])
def test_add_keeps_the_rate(owner, newsroom, typed, rate):
    owner.post(at(newsroom, "webhook_add"), {**FORM, "rate": typed})
    assert Endpoint.everywhere.get().rate == rate


def test_edit_changes_the_rate_and_keeps_it_where_none_is_sent(owner, newsroom, endpoint):
    form = {**FORM, "url": endpoint.url}
    for typed, rate in (("3", 3), ("", 3), ("100", 100)):
        owner.post(at(newsroom, "webhook_edit", whe=endpoint.pk), {**form, "rate": typed})
        endpoint.refresh_from_db()
        assert endpoint.rate == rate
    shown = owner.get(at(newsroom, "webhook_edit", whe=endpoint.pk))
    assert shown.context["form"]["rate"].value() == 100


def test_add_says_that_http_is_not_allowed(owner, newsroom, settings):
    settings.WEBHOOKS_ALLOW_HTTP = False
    answer = owner.post(at(newsroom, "webhook_add"), FORM)
    assert answer.context["form"].errors == {"url": ["Use an https:// address; http is not allowed here."]}


def test_add_refuses_loopback_where_the_operator_does(owner, newsroom, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = False
    answer = owner.post(at(newsroom, "webhook_add"), FORM)
    assert "127.0.0.1 leads to 127.0.0.1" in answer.context["form"].errors["url"][0]


def test_add_looks_at_the_address_outside_of_any_transaction(owner, newsroom, monkeypatch):
    from django.db import connection

    from webhooks import endpoint_validation

    seen = []
    # The test's own transaction is the only one.
    before = len(connection.savepoint_ids)
    real = endpoint_validation.connect

    def connect(*args, **kwargs):
        seen.append((len(connection.savepoint_ids) - before, kwargs["timeout"]))
        return real(*args, **kwargs)

    monkeypatch.setattr(endpoint_validation, "connect", connect)
    owner.post(at(newsroom, "webhook_add"), FORM)
    assert seen == [(0, 3.0)]


def test_a_second_click_adds_no_second_endpoint(owner, newsroom):
    form = {**FORM, "once": "abc"}
    owner.post(at(newsroom, "webhook_add"), form)
    again = owner.post(at(newsroom, "webhook_add"), form)
    assert (again.status_code, again["Location"]) == (302, at(newsroom, "webhooks"))
    assert Endpoint.everywhere.count() == Delivery.everywhere.count() == 1


def test_a_refused_form_may_be_sent_again(owner, newsroom):
    owner.post(at(newsroom, "webhook_add"), {**FORM, "url": "http://10.0.0.1/", "once": "abc"})
    owner.post(at(newsroom, "webhook_add"), {**FORM, "once": "abc"})
    assert Endpoint.everywhere.get().url == FORM["url"]


def test_what_was_typed_outlives_the_session(newsroom, alice, left_alone):
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    client = left_alone(alice)
    page = at(newsroom, "webhook_add")
    answer = client.post(
        page, {**FORM, "which": "chosen", "events": ["raw.failed", "raw.skipped"], "description": "CRM"}
    )
    assert (answer.status_code, answer["Location"]) == (302, f"/account/login/?next={page}")
    client.post(answer["Location"], {"login": alice.email, "password": PASSWORD})
    assert client.get(page).context["form"].initial == {
        "url": FORM["url"],
        "description": "CRM",
        "which": "chosen",
        "events": ["raw.failed", "raw.skipped"],
        "mode": "live",
    }
    assert Endpoint.everywhere.count() == 0


# --- The secret ------------------------------------------------------------------------------------------------------


def test_the_secret_is_shown_once(owner, newsroom):
    page = owner.post(at(newsroom, "webhook_add"), FORM)["Location"]
    secret = Endpoint.everywhere.get().secret
    assert secret not in str(dict(owner.session))
    # Neither of these shows it, so neither uses it up.
    assert owner.head(page).status_code == 200
    wrong = page.partition("?")[0] + f"?sent={encode('dlv', uuid4())}"
    assert owner.get(wrong).status_code == 404
    first = owner.get(page)
    assert (first.status_code, first.context["secret"]) == (200, secret)
    assert secret in first.content.decode()
    again = owner.get(page)
    assert (again.status_code, again.context["secret"]) == (200, None)
    assert secret not in again.content.decode()


def test_no_page_shows_the_secret(owner, newsroom, endpoint):
    delivery = make_delivery(endpoint, status="delivered", wake_at=None)
    names = [
        "webhook",
        "webhook_edit",
        "webhook_secret",
        "webhook_rotate",
        "webhook_resume",
        "webhook_delete",
    ]
    shown = [owner.get(at(newsroom, name, whe=endpoint.pk)) for name in (*names, "webhook_receiver")]
    shown += [owner.get(at(newsroom, "webhooks"))]
    shown += [owner.get(at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk))]
    assert [(answer.status_code, endpoint.secret in answer.content.decode()) for answer in shown] == [
        (200, False)
    ] * len(shown)


def test_rotate_shows_the_new_secret_and_keeps_the_old_one(owner, newsroom, endpoint):
    before = timezone.now()
    answer = owner.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "3d", "once": "abc"})
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "webhook_secret", whe=endpoint.pk))
    after = reread(endpoint)
    assert (after.previous_secret, after.secret != endpoint.secret) == (endpoint.secret, True)
    assert timedelta(0) <= after.previous_secret_until - before - timedelta(days=3) < timedelta(minutes=1)
    # The second click of a double click makes no third secret.
    owner.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "3d", "once": "abc"})
    assert reread(endpoint).secret == after.secret
    assert owner.get(answer["Location"]).context["secret"] == after.secret
    assert audited() == [("endpoint.secret_rotated", "alice@example.test")]


def test_rotate_at_once_ends_the_old_one(owner, newsroom, endpoint):
    owner.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "0"})
    assert (reread(endpoint).previous_secret, reread(endpoint).previous_secret_until) == (None, None)


def test_rotate_takes_no_other_overlap(owner, newsroom, endpoint):
    answer = owner.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "30d"})
    assert (answer.status_code, list(answer.context["form"].errors)) == (200, ["overlap"])
    assert reread(endpoint).secret == endpoint.secret


# --- A fresh log-in --------------------------------------------------------------------------------------------------


@pytest.fixture
def logged_in(newsroom, alice):
    """Alice has logged in with her password, so long ago as the argument says."""
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()

    def log_in(seconds_ago):
        client = Client()
        client.post("/account/login/", {"login": alice.email, "password": PASSWORD})
        session = client.session
        session["account_authentication_methods"] = [
            {**record, "at": time.time() - seconds_ago}
            for record in session["account_authentication_methods"]
        ]
        session.save()
        return client

    return log_in


OLD = django_settings.ACCOUNT_REAUTHENTICATION_TIMEOUT + 5


def test_a_fresh_log_in_is_asked_for_nothing(logged_in, newsroom, endpoint):
    client = logged_in(OLD - 60)
    for name in ("webhook_secret", "webhook_rotate"):
        assert client.get(at(newsroom, name, whe=endpoint.pk)).status_code == 200
    assert client.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "1d"}).status_code == 302
    assert reread(endpoint).secret != endpoint.secret


def test_an_old_log_in_is_asked_for_the_password_and_goes_on_by_itself(logged_in, newsroom, endpoint):
    client = logged_in(OLD)
    for name in ("webhook_secret", "webhook_rotate"):
        page = at(newsroom, name, whe=endpoint.pk)
        answer = client.get(page)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/account/reauthenticate/?next=")
    assert client.get(at(newsroom, "webhook", whe=endpoint.pk)).status_code == 200
    asked = client.post(at(newsroom, "webhook_rotate", whe=endpoint.pk), {"overlap": "1d"})
    assert asked["Location"].startswith("/account/reauthenticate/?next=")
    assert reread(endpoint).secret == endpoint.secret
    done = client.post(asked["Location"], {"password": PASSWORD})
    assert (done.status_code, done["Location"]) == (302, at(newsroom, "webhook_secret", whe=endpoint.pk))
    assert reread(endpoint).secret != endpoint.secret


def test_an_old_log_in_loses_nothing_that_was_typed_to_add(logged_in, newsroom):
    client = logged_in(OLD)
    asked = client.post(at(newsroom, "webhook_add"), FORM)
    assert (asked.status_code, Endpoint.everywhere.count()) == (302, 0)
    client.post(asked["Location"], {"password": PASSWORD})
    assert Endpoint.everywhere.get().url == FORM["url"]


# --- Change ----------------------------------------------------------------------------------------------------------


def test_edit_begins_with_what_is_there(owner, newsroom):
    page = [
        (make_endpoint(newsroom, events=events, description=str(n)), events, which)
        for n, (events, which) in enumerate(
            [([], "usual"), (["*"], "all"), (["raw.failed", "source.failing"], "chosen")]
        )
    ]
    usual = ["raw.ingested", "generated.ready", "published.success", "published.failed"]
    for endpoint, events, which in page:
        form = owner.get(at(newsroom, "webhook_edit", whe=endpoint.pk)).context["form"]
        assert form.initial == {
            "url": endpoint.url,
            "description": endpoint.description,
            "rate": 20,
            "which": which,
            "events": events if which == "chosen" else usual,
        }


def test_edit_of_the_events_sends_nothing(owner, newsroom, endpoint):
    answer = owner.post(
        at(newsroom, "webhook_edit", whe=endpoint.pk),
        {"url": endpoint.url, "description": "Desk", "which": "chosen", "events": ["raw.failed"]},
    )
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "webhook_edit", whe=endpoint.pk))
    after = reread(endpoint)
    assert (after.url, after.description, after.events) == (endpoint.url, "Desk", ["raw.failed"])
    assert Delivery.everywhere.count() == 0
    assert audited() == [("endpoint.changed", "alice@example.test")]


def test_edit_of_the_address_tests_the_new_one(owner, newsroom):
    endpoint = make_endpoint(newsroom, status="degraded", failures=7, failing_since=timezone.now())
    answer = owner.post(
        at(newsroom, "webhook_edit", whe=endpoint.pk), {"url": "http://127.0.0.1:9/new", "which": "usual"}
    )
    delivery = Delivery.everywhere.get()
    assert answer["Location"] == at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)
    after = reread(endpoint)
    assert (after.url, after.status, after.failures, after.failing_since) == (
        "http://127.0.0.1:9/new",
        "active",
        0,
        None,
    )
    assert delivery.event.type == "webhook.test"


@pytest.mark.parametrize(("status", "is_on"), [("disabled", True), ("active", False)])
def test_edit_of_the_address_switches_nothing_on(owner, newsroom, status, is_on):
    endpoint = make_endpoint(newsroom, status=status, is_on=is_on)
    owner.post(
        at(newsroom, "webhook_edit", whe=endpoint.pk), {"url": "http://127.0.0.1:9/new", "which": "usual"}
    )
    after = reread(endpoint)
    assert (after.url, after.status, after.is_on) == ("http://127.0.0.1:9/new", status, is_on)
    assert Delivery.everywhere.count() == 0


def test_edit_refuses_a_closed_address(owner, newsroom, endpoint):
    answer = owner.post(
        at(newsroom, "webhook_edit", whe=endpoint.pk), {"url": "http://192.168.1.1/", "which": "usual"}
    )
    assert (answer.status_code, list(answer.context["form"].errors)) == (200, ["url"])
    assert reread(endpoint).url == endpoint.url


# --- Pause, switch on, test, delete ----------------------------------------------------------------------------------


def test_pause_can_be_undone_at_once(owner, newsroom, endpoint):
    answer = owner.post(at(newsroom, "webhook_pause", whe=endpoint.pk))
    assert answer["Location"] == at(newsroom, "webhook", whe=endpoint.pk)
    assert reread(endpoint).is_on is False
    shown = owner.get(answer["Location"]).content.decode()
    assert f'<form method="post" action="{at(newsroom, "webhook_resume", whe=endpoint.pk)}">' in shown
    owner.post(at(newsroom, "webhook_resume", whe=endpoint.pk))
    assert reread(endpoint).is_on is True
    assert [action for action, _ in audited()] == ["endpoint.switched_off", "endpoint.switched_on"]


@pytest.mark.parametrize(("choice", "is_woken"), [("send", True), ("leave", False)])
def test_switching_on_asks_about_what_is_held(owner, newsroom, choice, is_woken):
    endpoint = make_endpoint(newsroom, is_on=False)
    held = [make_delivery(endpoint, status="held", wake_at=None) for _ in range(2)]
    other = make_delivery(make_endpoint(newsroom, is_on=False), status="held", wake_at=None)
    page = owner.get(at(newsroom, "webhook_resume", whe=endpoint.pk))
    assert page.context["held"] == 2
    assert "2 held events" in page.content.decode()
    answer = owner.post(at(newsroom, "webhook_resume", whe=endpoint.pk), {"held": choice})
    assert reread(endpoint).is_on is True
    assert [reread(row).wake_at is not None for row in (*held, other)] == [is_woken, is_woken, False]
    assert said(answer) == ["Switched on. Sending 2 held events." if is_woken else "Switched on."]


def test_a_test_event_leads_to_its_delivery_and_a_second_click_sends_no_second(owner, newsroom, endpoint):
    page = at(newsroom, "webhook_test", whe=endpoint.pk)
    answer = owner.post(page, {"once": "abc"})
    delivery = Delivery.everywhere.get()
    assert answer["Location"] == at(newsroom, "webhook_delivery", whe=endpoint.pk, dlv=delivery.pk)
    owner.post(page, {"once": "abc"})
    assert Delivery.everywhere.count() == 1
    owner.post(page, {"once": "def"})
    assert Delivery.everywhere.count() == 2


def test_a_test_event_of_a_paused_endpoint_is_refused_in_words(owner, newsroom):
    endpoint = make_endpoint(newsroom, is_on=False)
    answer = owner.post(at(newsroom, "webhook_test", whe=endpoint.pk))
    assert (answer["Location"], said(answer)) == (
        at(newsroom, "webhook", whe=endpoint.pk),
        ["Switch the endpoint on first."],
    )
    assert Delivery.everywhere.count() == 0


def test_delete_asks_and_then_says_so(owner, newsroom, endpoint):
    make_delivery(endpoint)
    page = owner.get(at(newsroom, "webhook_delete", whe=endpoint.pk))
    assert (page.context["waiting"], reread(endpoint).deleted_at) == (1, None)
    answer = owner.post(at(newsroom, "webhook_delete", whe=endpoint.pk))
    assert (answer["Location"], said(answer)) == (
        at(newsroom, "webhooks"),
        ["CRM deleted."],
    )
    assert (reread(endpoint).secret, reread(endpoint).deleted_at is not None) == ("", True)
    assert owner.get(at(newsroom, "webhook", whe=endpoint.pk)).status_code == 404
    assert owner.post(at(newsroom, "webhook_delete", whe=endpoint.pk)).status_code == 404
    assert b"crm.example.com" not in owner.get(at(newsroom, "webhooks")).content


# --- Whose -----------------------------------------------------------------------------------------------------------

OF_ENDPOINT = [
    "webhook",
    "webhook_edit",
    "webhook_secret",
    "webhook_rotate",
    "webhook_pause",
    "webhook_resume",
    "webhook_test",
    "webhook_delete",
    "webhook_receiver",
]
OF_DELIVERY = ["webhook_delivery", "webhook_outcome", "webhook_resend"]


@pytest.mark.parametrize("method", ["get", "post"])
def test_another_workspace_s_ids_are_ids_of_nothing(owner, newsroom, charlie, method):
    elsewhere = workspaces.create("Elsewhere too", owner=charlie)
    theirs = make_endpoint(elsewhere, url="https://theirs.example.com/")
    own = make_endpoint(newsroom, is_on=False)
    delivery = make_delivery(theirs, status="failed", wake_at=None)
    form = {**FORM, "overlap": "1d"}
    answers = [
        getattr(owner, method)(at(newsroom, name, whe=theirs.pk), form).status_code for name in OF_ENDPOINT
    ]
    for whe in (theirs.pk, own.pk):
        answers += [
            getattr(owner, method)(at(newsroom, name, whe=whe, dlv=delivery.pk)).status_code
            for name in OF_DELIVERY
        ]
    answers.append(
        owner.get(
            at(newsroom, "webhook_secret", whe=own.pk) + f"?sent={encode('dlv', delivery.pk)}"
        ).status_code
    )
    assert set(answers) <= {404, 405}
    # What takes only the other method says so before it looks.
    assert answers.count(405) == {"get": 4, "post": 7}[method]
    before = (theirs.secret, theirs.url, theirs.is_on, theirs.deleted_at)
    after = reread(theirs)
    assert (after.secret, after.url, after.is_on, after.deleted_at) == before
    assert (reread(delivery).status, Delivery.everywhere.count()) == ("failed", 1)


def test_the_list_shows_only_this_workspace_s(owner, newsroom, charlie, endpoint):
    elsewhere = workspaces.create("Elsewhere too", owner=charlie)
    make_endpoint(elsewhere, url="https://theirs.example.com/")
    shown = owner.get(at(newsroom, "webhooks"))
    assert [row["endpoint"].pk for row in shown.context["rows"]] == [endpoint.pk]
    assert b"theirs.example.com" not in shown.content


def test_an_empty_list_says_what_to_do(owner, newsroom):
    shown = owner.get(at(newsroom, "webhooks")).content.decode()
    assert "No endpoints yet" in shown
    assert at(newsroom, "webhook_add") in shown


# --- Words -----------------------------------------------------------------------------------------------------------


def test_every_event_has_its_sentence():
    assert list(labels.EVENTS) == list(TYPES)
    documented = {
        cells[0].strip("`"): cells[2] for cells in rows_of(between(read_document("webhooks.md"), "events"))
    }
    different = [name for name, text in labels.EVENTS.items() if str(text) != documented[name]]
    # There it names the field.
    assert different == ["published.failed"]


@pytest.mark.parametrize(
    ("changes", "state", "sentence"),
    [
        ({}, "new", "No deliveries yet"),
        ({"last_success_at": timezone.now()}, "active", "No deliveries yet"),
        ({"is_on": False}, "paused", "Paused."),
        ({"failures": 3, "failing_since": timezone.now()}, "failing", "The last 3 attempts failed."),
        (
            {"failures": 6, "status": "degraded", "failing_since": timezone.now()},
            "failing",
            "one event at a time",
        ),
        (
            {"failures": 12, "status": "disabled", "failing_since": timezone.now()},
            "disabled",
            "Disabled after days of failures.",
        ),
    ],
)
def test_the_state_is_said_in_words(owner, newsroom, changes, state, sentence):
    endpoint = make_endpoint(newsroom, **changes)
    shown = owner.get(at(newsroom, "webhook", whe=endpoint.pk))
    assert shown.context["state"] == state
    assert sentence in " ".join(shown.content.decode().split())


def test_a_410_is_named_as_the_reason(owner, newsroom):
    endpoint = make_endpoint(newsroom, status="disabled", failures=1, failing_since=timezone.now())
    make_delivery(endpoint, status="held", wake_at=None, last_status=410)
    shown = owner.get(at(newsroom, "webhook", whe=endpoint.pk)).content.decode()
    assert "Disabled: it answered 410 Gone." in shown


def test_when_a_failing_endpoint_is_tried_next(owner, newsroom):
    endpoint = make_endpoint(newsroom, failures=1, failing_since=timezone.now())
    later = timezone.now() + timedelta(hours=2)
    soon = later - timedelta(hours=1)
    for wake_at in (later, soon):
        make_delivery(endpoint, attempt_count=1, wake_at=wake_at)
    assert owner.get(at(newsroom, "webhook", whe=endpoint.pk)).context["next_try"].at == soon


def test_a_try_that_is_due_is_not_told_by_a_moment_that_has_passed(owner, newsroom):
    endpoint = make_endpoint(newsroom, failures=1, failing_since=timezone.now())
    make_delivery(endpoint, attempt_count=1, wake_at=timezone.now() - timedelta(minutes=4))
    shown = owner.get(at(newsroom, "webhook", whe=endpoint.pk)).content.decode()
    assert "Retrying soon." in shown
    listed = owner.get(at(newsroom, "webhooks")).content.decode()
    assert ("Next attempt now" in listed, "Next attempt <time" in shown + listed) == (True, False)


def test_endpoints_of_one_host_are_told_apart(owner, newsroom):
    for path in ("orders", "news/"):
        make_endpoint(newsroom, url=f"https://hooks.example:8443/{path}?token=hidden")
    listed = owner.get(at(newsroom, "webhooks")).content.decode()
    assert "hooks.example:8443/orders" in listed
    assert "hooks.example:8443/news" in listed


def test_the_list_asks_as_much_for_one_as_for_many(owner, newsroom):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    owner.get(at(newsroom, "webhooks"))

    def asked():
        with CaptureQueriesContext(connection) as seen:
            owner.get(at(newsroom, "webhooks"))
        return len(seen)

    make_delivery(make_endpoint(newsroom, failures=1))
    one = asked()
    for _ in range(5):
        make_delivery(make_endpoint(newsroom, failures=1))
    assert asked() == one


def test_an_invented_endpoint_is_nothing(owner, newsroom):
    assert owner.get(at(newsroom, "webhook", whe=uuid4())).status_code == 404
    assert owner.get(f"{at(newsroom, 'webhooks')}/whe_nonsense").status_code == 404


def test_overlaps_are_within_the_limit():
    from webhooks.pages.forms import _OVERLAPS

    assert max(span for span, _ in _OVERLAPS.values()) == limits.TOKEN_OVERLAP_MOST
    assert _OVERLAPS["1d"][0] == limits.TOKEN_OVERLAP_DEFAULT
