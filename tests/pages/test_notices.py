"""Each person's choices of what they are told."""

from __future__ import annotations

import pytest
from django.core import mail
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import notices
from accounts.models import AuditEntry, NoticeChoice, NoticeMessage
from config.core import task_runner

SLACK = "https://hooks.slack.com/services/T0/B0/abcdef"
TOKEN = "123456789:AAEabcdefghijklmnopqrstuvw"
CHOSEN = {
    "post_failed": "daily",
    "post_handed_over": "now",
    "reviews_waiting": "off",
    "item_flagged": "daily",
    "source_failing": "off",
    "recurrence_stopped": "daily",
    "few_topics": "now",
    "outlet_reconnect": "now",
    "webhook": "now",
    "quota": "now",
    "monthly": "off",
}


@pytest.fixture
def address(newsroom):
    return reverse("notices", kwargs={"ws": newsroom.pk})


@pytest.fixture
def bobs(bob, as_person):
    return as_person(bob)


def kept(user):
    row = NoticeChoice.everywhere.get(user=user)
    return row.kinds, row.by_mail, row.slack_url, row.telegram_token, row.telegram_chat


def test_the_form_begins_with_the_role_s_defaults(bobs, alice, address, as_person):
    owner = as_person(alice).get(address).context["form"].initial
    editor = bobs.get(address).context["form"].initial
    assert (owner["post_failed"], owner["reviews_waiting"]) == ("now", "daily")
    assert (editor["post_failed"], editor["reviews_waiting"]) == ("off", "daily")
    assert NoticeChoice.everywhere.count() == 0


def test_choices_are_kept_for_this_person_here(bobs, bob, alice, newsroom, address, as_person):
    given = {
        **CHOSEN,
        "by_mail": "on",
        "by_slack": "on",
        "slack_secret": SLACK,
        "by_telegram": "on",
        "telegram_secret": TOKEN,
        "telegram_chat": "-1001",
    }
    answer = bobs.post(address, given)
    assert (answer.status_code, answer["Location"]) == (302, address)
    assert kept(bob) == (CHOSEN, True, SLACK, TOKEN, "-1001")
    assert as_person(alice).get(address).context["form"].initial["post_failed"] == "now"
    entry = AuditEntry.everywhere.get(action="notices.chosen")
    assert (entry.workspace_id, entry.actor) == (newsroom.pk, "bob@example.test")
    assert entry.details == {"kinds": CHOSEN, "channels": ["mail", "slack", "telegram"]}
    # What was saved is shown nowhere again.
    text = bobs.get(address).content.decode()
    assert "abcdef" not in text
    assert TOKEN not in text


def test_an_empty_secret_keeps_the_saved_one_and_an_unticked_channel_forgets_it(bobs, bob, address):
    bobs.post(address, {**CHOSEN, "by_slack": "on", "slack_secret": SLACK})
    bobs.post(address, {**CHOSEN, "by_slack": "on", "slack_secret": ""})
    assert kept(bob)[1:3] == (False, SLACK)
    bobs.post(address, {**CHOSEN, "by_mail": "on"})
    assert kept(bob)[1:3] == (True, None)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"by_slack": "on"}, "slack_secret"),
        ({"by_slack": "on", "slack_secret": "hooks.slack.com/x"}, "slack_secret"),
        ({"by_telegram": "on", "telegram_chat": "1"}, "telegram_secret"),
        ({"by_telegram": "on", "telegram_secret": "12:x", "telegram_chat": "1"}, "telegram_secret"),
        ({"by_telegram": "on", "telegram_secret": TOKEN}, "telegram_chat"),
        ({"by_telegram": "on", "telegram_secret": TOKEN, "telegram_chat": "my chat"}, "telegram_chat"),
        ({"reviews_waiting": "now"}, "reviews_waiting"),
        ({"quota": "sometimes"}, "quota"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(bobs, address, given, field):
    answer = bobs.post(address, {**CHOSEN, **given})
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == [field]
    assert NoticeChoice.everywhere.count() == 0


def test_a_test_goes_to_who_asked_once(bobs, newsroom, alice, address):
    button = reverse("notices_test", kwargs={"ws": newsroom.pk})
    for _ in range(2):
        answer = bobs.post(button, {"once": "click"}, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["Test sent by Mail."]
    task_runner.work_all_due("mail.spread_notice", "mail.send_notice")
    assert [message.to for message in mail.outbox] == [["bob@example.test"]]
    text = bobs.get(address).content.decode()
    assert text.count("Test notification from Newsroom") == 1


def test_without_a_channel_the_test_says_what_to_do(bobs, newsroom, address):
    bobs.post(address, CHOSEN)
    answer = bobs.post(reverse("notices_test", kwargs={"ws": newsroom.pk}), follow=True)
    assert [str(message) for message in answer.context["messages"]][-1:] == [
        "Choose and save a channel first."
    ]
    assert NoticeMessage.everywhere.count() == 0


def test_what_was_typed_outlives_the_session_but_for_secrets(left_alone, bob, address):
    client = left_alone(bob)
    given = {**CHOSEN, "quota": "off", "by_slack": "on", "slack_secret": SLACK, "telegram_chat": "-5"}
    assert client.post(address, given)["Location"].startswith("/account/login/")
    assert "slack.com" not in str(dict(client.session))
    client.force_login(bob)
    initial = client.get(address).context["form"].initial
    assert (initial["quota"], initial["by_slack"], initial["telegram_chat"]) == ("off", True, "-5")


def test_the_list_costs_the_same_for_one_and_for_many(bobs, bob, alice, newsroom, address):
    bobs.post(address, {**CHOSEN, "post_failed": "now", "by_mail": "on"})
    counts = []
    for number in range(3):
        with transaction.atomic():
            notices.record(
                "post_failed", workspace_id=newsroom.pk, key=str(number), title=f"Post {number}", text="x"
            )
        task_runner.work_all_due("mail.spread_notice", "mail.send_notice")
        with CaptureQueriesContext(connection) as seen:
            text = bobs.get(address).content.decode()
        assert f"Post {number}" in text
        counts.append(len(seen))
    # Bob's own alone, though Alice was told too.
    assert text.count("Post 1") == 1
    assert len(set(counts[1:])) == 1
