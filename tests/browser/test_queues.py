"""Publishing times in a browser: a queue is made, changed, paused and deleted; all publishing is held and let go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from pipeline.models import GeneratedItem, Publication, PublishHold, PublishQueue
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import make_items, promise

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]


def items(workspace, *titles):
    return [
        make_items(
            workspace,
            title=title,
            body=f"The council heard of {title} on Monday evening. " * 6,
            url=f"https://n.example/{number}",
        )[0]
        for number, title in enumerate(titles)
    ]


@pytest.mark.parametrize("phone", [False, True])
def test_a_queue_from_its_first_slot_to_its_end(open_window, newsroom, stage, phone):
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Posting times")
    look_over(page, "queues-fresh")
    follow(page, page.get_by_role("main").get_by_role("link", name="Add a queue"))
    look_over(page, "queue-add")
    page.get_by_label("Name").fill("Evenings on the coast")
    page.get_by_label("Time zone").select_option("Asia/Kathmandu")
    page.get_by_label("Monday").fill("noon")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("Enter times such as 09:00, 17:30.").wait_for()
    look_over(page, "queue-refused")
    page.get_by_label("Monday").fill("18:45")
    for day in ("Tuesday", "Wednesday", "Thursday", "Friday"):
        page.get_by_label(day).fill("18:45")
    page.get_by_label("Saturday").fill("9:00, 21:30")
    page.get_by_label("Skip that day").check()
    page.get_by_label("Harbour stage").check()
    page.get_by_role("button", name="Preview slots").click()
    page.get_by_text("Times in Asia/Kathmandu").wait_for()
    assert not PublishQueue.everywhere.filter(is_default=False).exists()
    page.get_by_role("button", name="Add").click()
    page.get_by_text("Evenings on the coast saved.").wait_for()
    made = PublishQueue.everywhere.get(is_default=False)
    assert (made.on_gap, made.timezone, len(made.slots)) == ("skip", "Asia/Kathmandu", 7)
    look_over(page, "queues")
    promise(items(newsroom, "The ferry leaves earlier")[0], stage, is_queued=True)
    follow(page, page.get_by_role("main").get_by_role("link", name="Evenings on the coast"))
    page.get_by_text("1 post", exact=True).wait_for()
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("Evenings on the coast paused.").wait_for()
    look_over(page, "queues-paused")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Evenings on the coast resumed.").wait_for()
    follow(page, page.get_by_role("main").get_by_role("link", name="Evenings on the coast"))
    look_over(page, "queue")
    page.get_by_role("link", name="Delete").click()
    page.get_by_text("1 scheduled post keeps its time.").wait_for()
    look_over(page, "queue-delete")
    page.get_by_role("button", name="Delete").click()
    page.get_by_text("Evenings on the coast deleted.").wait_for()
    assert PublishQueue.everywhere.get().is_default is True
    assert Publication.everywhere.get().status == "scheduled"


def test_all_publishing_is_held_and_let_go(open_window, newsroom, stage):
    now = timezone.now()
    late, soon, changed = items(
        newsroom,
        "The ferry leaves earlier",
        "The tram line between the harbour and the northern depot opens on Sunday, with two weeks of free rides",
        "Rents rise along the route",
    )
    for item, hours in ((late, 1), (soon, 30), (changed, 2)):
        promise(item, stage, publish_at=now + timedelta(hours=hours))
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Posting times")
    follow(page, page.get_by_role("link", name="Pause publishing"))
    page.get_by_text("On time, or now if overdue").first.wait_for()
    look_over(page, "queues-hold")
    page.get_by_label("Why").fill("A storm warning: nothing that sounds cheerful.")
    page.get_by_role("button", name="Pause publishing").click()
    page.get_by_text("Publishing paused. Posts already being sent will finish.").wait_for()
    Publication.everywhere.filter(item=late).update(due_at=now - timedelta(hours=1))
    GeneratedItem.everywhere.filter(pk=changed.pk).update(held="source_changed")
    page.reload()
    look_over(page, "queues-held")
    go_to(page, "Outlets")
    follow(page, page.get_by_role("link", name="View", exact=True))
    follow(page, page.get_by_role("link", name="Resume publishing"))
    for words in ("Publishes now", "At its time", "Stays unpublished"):
        page.get_by_role("table").get_by_text(words, exact=True).wait_for()
    look_over(page, "queues-release")
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Publishing resumed.").wait_for()
    assert not PublishHold.everywhere.exists()
    look_over(page, "queues-released")


def test_a_workspace_without_a_queue_begins_without_a_script(open_window, newsroom):
    PublishQueue.everywhere.all().delete()
    page = open_window(scripts=False)
    log_in(page, newsroom.alice)
    go_to(page, "Calendar", "Posting times")
    page.get_by_role("button", name="Use weekdays 9, 12, 17").click()
    page.wait_for_url(lambda url: "/queues/que_" in url)
    page.get_by_label("Saturday").fill("10:00")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(lambda url: url.endswith("/queues/"))
    made = PublishQueue.everywhere.get()
    assert (made.is_default, len(made.slots)) == (True, 16)
