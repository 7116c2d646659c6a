"""The pages that send again what an endpoint missed."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest
from django.utils import timezone

from config.core import task_runner, work_queue
from tests.webhooks.factories import make_delivery, make_endpoint
from webhooks import recovery
from webhooks.models import Delivery, Recovery
from webhooks.pages.forms import ResendForm

pytestmark = pytest.mark.django_db


@pytest.fixture
def endpoint(newsroom):
    return make_endpoint(newsroom)


def at(newsroom, name, endpoint):
    from django.urls import reverse

    return reverse(name, kwargs={"ws": newsroom.pk, "whe": endpoint.pk})


def fail(endpoint, count):
    rows = [make_delivery(endpoint, wake_at=None, attempt_count=10) for _ in range(count)]
    Delivery.everywhere.filter(pk__in=[row.pk for row in rows]).update(status="failed")


def typed(moment, zone="Europe/Berlin"):
    from zoneinfo import ZoneInfo

    return moment.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M")


def test_it_begins_with_the_time_since_which_it_failed_on_the_workspace_s_clocks(owner, newsroom, endpoint):
    since = timezone.now() - timedelta(hours=7)
    endpoint.failing_since = since
    endpoint.save()
    shown = owner.get(at(newsroom, "webhook_recover", endpoint))
    assert typed(since - timedelta(minutes=1)) in shown.content.decode()


def test_it_starts_and_the_page_says_how_far_it_is(owner, newsroom, endpoint):
    fail(endpoint, 3)
    since = timezone.now() - timedelta(hours=2)
    form = {"since": typed(since), "what": "missed"}
    answer = owner.post(at(newsroom, "webhook_recover", endpoint), form)
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "webhook", endpoint))
    made = Recovery.everywhere.get()
    assert made.since == since.replace(second=0, microsecond=0)
    assert (made.asked_by, made.is_everything) == ("alice@example.test", False)
    page = at(newsroom, "webhook", endpoint)
    assert "Finding missed events." in owner.get(page).content.decode()
    Recovery.everywhere.update(total=3)
    part = owner.get(page, headers={"HX-Target": "recovery"}).content.decode()
    assert "Resending: 0 of 3 queued" in part
    assert 'hx-trigger="every 1s"' in part
    assert "<html" not in part
    task_runner.work_all_due("webhooks.recover_deliveries")
    part = owner.get(page, headers={"HX-Target": "recovery"}).content.decode()
    assert "3 events were resent." in part
    assert "hx-trigger" not in part


def test_a_second_click_starts_no_second(owner, newsroom, endpoint):
    page = at(newsroom, "webhook_recover", endpoint)
    form = {"since": typed(timezone.now() - timedelta(hours=2)), "what": "all", "once": "same"}
    owner.post(page, form)
    second = owner.post(page, form)
    assert second.status_code in {200, 302}
    assert Recovery.everywhere.count() == 1


@pytest.mark.parametrize(
    ("since", "sentence"),
    [
        ("", "This field is required"),
        ("yesterday", "Enter a date and time, such as"),
        ("2999-01-01T00:00", "Choose a time that is past."),
    ],
)
def test_a_wrong_time_is_said_at_the_field(owner, newsroom, endpoint, since, sentence):
    answer = owner.post(at(newsroom, "webhook_recover", endpoint), {"since": since, "what": "missed"})
    assert sentence in answer.context["form"].errors["since"][0]
    assert Recovery.everywhere.count() == 0


def test_a_time_before_all_time_is_no_fault(owner, newsroom, endpoint):
    answer = owner.post(
        at(newsroom, "webhook_recover", endpoint), {"since": "0001-01-01T00:00", "what": "all"}
    )
    assert answer.status_code == 302
    assert Recovery.everywhere.get().since > timezone.now() - timedelta(days=31)


def test_another_one_under_way_is_said_and_can_be_stopped(owner, newsroom, endpoint):
    recovery.start(endpoint, timezone.now() - timedelta(days=1), actor="bob")
    page = at(newsroom, "webhook_recover", endpoint)
    assert "Stop resending" in owner.get(page).content.decode()
    answer = owner.post(page, {"since": typed(timezone.now() - timedelta(hours=1)), "what": "missed"})
    assert "Another recovery is in progress" in " ".join(answer.context["form"].non_field_errors())
    stopped = owner.post(at(newsroom, "webhook_recover_stop", endpoint), follow=True).content.decode()
    assert "Stopped. Queued events are still sent." in stopped
    assert "Resending stopped." in stopped
    assert Recovery.everywhere.get().status == "stopped"
    # Nothing runs any more: nothing happens.
    assert owner.post(at(newsroom, "webhook_recover_stop", endpoint)).status_code == 302


def test_one_that_ended_long_ago_is_no_news(owner, newsroom, endpoint):
    recovery.start(endpoint, timezone.now() - timedelta(days=1), actor="bob")
    task_runner.work_all_due("webhooks.recover_deliveries")
    page = at(newsroom, "webhook", endpoint)
    assert "No missed events." in owner.get(page).content.decode()
    Recovery.everywhere.update(ended_at=work_queue.database_now() - timedelta(hours=2))
    assert "No missed events." not in owner.get(page).content.decode()


def test_a_closed_endpoint_offers_none(owner, newsroom):
    paused = make_endpoint(newsroom, is_on=False)
    assert (
        at(newsroom, "webhook_recover", paused)
        not in owner.get(at(newsroom, "webhook", paused)).content.decode()
    )


@pytest.mark.parametrize(
    ("last_success", "begins"),
    [(timedelta(days=3), timedelta(days=3)), (timedelta(minutes=5), timedelta(days=1))],
)
def test_switched_on_again_it_begins_with_the_last_success(owner, newsroom, endpoint, last_success, begins):
    now = timezone.now()
    endpoint.failing_since, endpoint.last_success_at = None, now - last_success
    endpoint.save()
    form = owner.get(at(newsroom, "webhook_recover", endpoint)).context["form"]
    shown = form["since"].value().strftime("%Y-%m-%dT%H:%M")
    assert typed(now - begins) <= shown <= typed(now - begins + timedelta(minutes=1))


@pytest.mark.parametrize("zone", ["Z", "+00:00", "-05:00", " +0200"])
def test_a_time_with_a_zone_of_its_own_is_refused(owner, newsroom, endpoint, zone):
    answer = owner.post(
        at(newsroom, "webhook_recover", endpoint), {"since": f"2026-03-28T14:30:00{zone}", "what": "missed"}
    )
    assert "Enter a date and time, such as" in answer.context["form"].errors["since"][0]
    assert Recovery.everywhere.count() == 0


@pytest.mark.parametrize(
    ("shown", "moment"),
    [
        ("2026-03-29T02:30", "2026-03-29T00:30:00+00:00"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00+00:00"),
        ("2026-07-01T02:30", "2026-07-01T00:30:00+00:00"),
    ],
)
def test_what_the_clocks_show_twice_or_never_is_the_earlier(shown, moment):
    form = ResendForm({"since": shown, "what": "missed"}, zone="Europe/Berlin")
    assert form.is_valid()
    assert form.moment().astimezone(UTC).isoformat() == moment
