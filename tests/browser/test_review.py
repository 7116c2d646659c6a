"""The review queue in a browser: thirty stories by thumb and by keyboard, two people at once, and everything that fails."""

from __future__ import annotations

import sys
import time

import pytest
from django.utils import timezone

from accounts.models import Membership
from config.core.ids import encode, uuid7
from pipeline.models import GeneratedItem, Revision
from pipeline.review import decisions as review
from pipeline.schedule import queues
from tests.browser.conftest import PHONE
from tests.browser.people import log_in, look_over, person
from tests.browser.test_items import ARTICLE, MODEL, WEBM, keep_file, keep_picture
from tests.factories import MembershipFactory
from tests.pipeline.steps import make_items, reread

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.minutes(2),
    pytest.mark.usefixtures("posts"),
]
BUCKETS = ("text", "image", "video", "blog", "newsletter")
ACTS = ("approve", "reject", "edit", "pick", "schedule", "approve")
TAPS_MOST = 90
NAMES = {
    "text": "Short Post", "image": "Quote Graphic", "video": "Template Short", "blog": "Blog Article",
    "newsletter": "Newsletter Issue",
}  # fmt: skip


@pytest.fixture
def seed(newsroom, stage):
    """An item that was really made; the others differ in what is said of them alone."""
    return make_items(newsroom)[0]


def story(seed, stage, title, bucket="text", variants=1):
    """The items of a story of its own, in the order of their variants."""
    raw = reread(seed.raw_item)
    raw.pk, raw.dedup_key, raw.title = uuid7(), uuid7().hex, title
    raw.save(force_insert=True)
    group, made = uuid7(), []
    for index in range(variants):
        row = reread(seed)
        row.pk, row.raw_item, row.variant_group, row.variant_index = uuid7(), raw, group, index
        row.deleted_at = None
        row.bucket, row.engine_output, row.title = bucket, NAMES[bucket], f"{title}, variant {index + 1}"
        row.outlets, row.generator = [encode("out", stage.pk)], MODEL
        words = f"{title}: the council approved the new tram line on Monday. https://news.example/tram"
        row.body, row.content = words, {"parts": [words]}
        if bucket == "image":
            row.content = {"caption": words, "slides": []}
        elif bucket == "video":
            row.content = {"caption": words, "tags": ["tram"], "script": "The tram comes."}
        elif bucket in {"blog", "newsletter"}:
            row.body, row.body_format = ARTICLE, "markdown"
            row.content = (
                {"slug": "tram", "meta_description": "A tram.", "tags": []}
                if bucket == "blog"
                else {"subject": title, "preheader": "What is built, and when"}
            )
        row.save(force_insert=True)
        Revision.everywhere.create(
            workspace_id=row.workspace_id, item=row, number=row.revision, title=row.title, body=row.body,
            body_format=row.body_format, content=row.content, made_by="model",
        )  # fmt: skip
        if bucket == "image":
            keep_picture(row, "tram.jpg", title, role="picture")
        elif bucket == "video":
            keep_file(
                row,
                "tram.webm",
                WEBM,
                kind="video",
                role="video",
                mime_type="video/webm",
                width=64,
                height=64,
            )
        made.append(row)
    return made


def thirty(seed, stage):
    """Six stories of each of the five formats, with what is to be done with each; the queue shows the last one first."""
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    made = []
    for number, act in enumerate(ACTS):
        for bucket in BUCKETS:
            title = f"{bucket.title()} story {number}"
            made.append((act, bucket, story(seed, stage, title, bucket, variants=2 if act == "pick" else 1)))
    return made[::-1]


def open_queue(page, newsroom, user=None, query=""):
    log_in(page, user or newsroom.alice, f"/w/{encode('ws', newsroom.pk)}/review/{query}")
    page.locator("[data-card]").wait_for()
    page.evaluate("window.sameDocument = true")


def card_of(page, item):
    found = page.locator(f'[data-card][data-item="{encode("gen", item.pk)}"]')
    found.wait_for()
    return found


def until(page, condition, seconds=60):
    """What the page has sent is done when its row says so. Meanwhile the page's requests go on: a handler of `route` runs
    only while Playwright waits."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "It did not come about."
        page.wait_for_timeout(50)


def is_done(act, items):
    first = reread(items[-1] if act == "pick" else items[0])
    if act == "reject":
        return first.status == "rejected"
    if act == "schedule":
        return first.status == "scheduled"
    if act == "pick":
        return first.approved_at is not None and reread(items[0]).status == "rejected"
    if act == "edit":
        return first.approved_at is not None and first.revision == 2
    return first.approved_at is not None


def is_open_again(items):
    return all((row := reread(one)).status == "ready" and row.approved_at is None for one in items)


class Thumb:
    """Taps, counted."""

    def __init__(self, page):
        self.page, self.taps = page, 0

    def tap(self, target):
        self.taps += 1
        target.tap()

    def review(self, act, items):
        card = card_of(self.page, items[-1])
        if act == "reject":
            self.tap(card.locator("[data-panel=reject] summary"))
            self.tap(card.get_by_role("button", name="Outdated"))
        elif act == "schedule":
            self.tap(card.locator("[data-panel=schedule] summary"))
            self.tap(card.get_by_role("button", name="Next free slot"))
        elif act == "edit":
            self.tap(card.locator("[data-edit]"))
            form = self.page.locator("[data-edit-form]")
            form.get_by_label("Title").fill("A better title")
            self.tap(form.get_by_role("button", name="Save"))
            self.tap(card_of(self.page, items[0]).get_by_role("button", name="Approve", exact=True))
        elif act == "pick":
            self.tap(card.get_by_role("button", name="Approve only this"))
        else:
            self.tap(card.get_by_role("button", name="Approve", exact=True))

    def undo(self):
        self.tap(self.page.locator(".toasts").get_by_role("button", name="Undo"))


class Keys:
    """Keys, counted; what is written isn't."""

    def __init__(self, page):
        self.page, self.taps = page, 0

    def press(self, key):
        self.taps += 1
        self.page.keyboard.press(key)

    def review(self, act, items):
        card = card_of(self.page, items[-1])
        if act == "reject":
            self.press("r")
            self.press("2")
        elif act == "schedule":
            self.press("s")
            self.press("n")
        elif act == "edit":
            self.press("e")
            self.page.locator("[data-edit-form]").get_by_label("Title").fill("A better title")
            self.press("Control+Enter")
            card_of(self.page, items[0])
            self.press("a")
        else:
            card.wait_for()
            self.press("a")

    def undo(self):
        self.press("u")


@pytest.fixture
def queue(newsroom, stage):
    slots = [{"weekday": day, "time": f"{hour:02}:00"} for day in range(7) for hour in range(8, 20)]
    given = {"name": "Daily", "timezone": "Europe/Berlin", "slots": slots, "outlets": [stage.pk]}
    return queues.create(newsroom, given, by="alice@example.test")


@pytest.mark.parametrize("hand", [Thumb, Keys])
def test_thirty_stories_are_reviewed_without_a_page_load(
    chromium, site, complaints, newsroom, stage, queue, seed, hand
):
    context = chromium.new_context(
        base_url=site,
        viewport=PHONE if hand is Thumb else {"width": 1440, "height": 900},
        has_touch=hand is Thumb,
        is_mobile=hand is Thumb,
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints.listen_to(page)
    work = thirty(seed, stage)
    assert len(work) == 30
    open_queue(page, newsroom)
    loads = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    hands, undoing = hand(page), hand(page)
    for number, (act, _bucket, items) in enumerate(work):
        # The newest of its variants leads the card.
        hands.review(act, items)
        until(page, lambda act=act, items=items: is_done(act, items))
        if number % 3 == 0:
            page.locator(".toasts").get_by_role("button", name="Undo").wait_for()
            undoing.undo()
            until(page, lambda items=items: is_open_again(items))
            again = "approve" if act == "edit" else act
            card_of(page, items[-1])
            undoing.review(again, items)
            until(page, lambda act=again, items=items: is_done(act, items))
    page.get_by_role("heading", name="All done").wait_for()
    assert page.evaluate("window.sameDocument") is True
    assert [url for url in loads if "/review/" not in url] == []
    assert hands.taps <= TAPS_MOST
    decided = [is_done("approve" if act == "edit" else act, items) for act, _bucket, items in work]
    sys.stdout.write(
        f"\n30 stories: {hands.taps} {'taps at 390 px' if hand is Thumb else 'keys at 1440 px'}, no page load\n"
    )
    assert all(decided)
    context.close()
    assert complaints.left() == []


def test_undo_takes_back_the_newest_decision_whichever_was_answered_first(open_window, newsroom, stage, seed):
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    items = [story(seed, stage, f"Story {number}")[0] for number in range(4)][::-1]
    page = open_window()
    open_queue(page, newsroom)
    held = []

    def hold_first_answer(route):
        answer = route.fetch()
        if held:
            route.fulfill(response=answer)
        else:
            held.append((route, answer))

    page.route("**/review/decide*", hold_first_answer)
    for item in items[:2]:
        card_of(page, item)
        page.keyboard.press("a")
    card_of(page, items[2])
    page.locator(".toasts").get_by_role("button", name="Undo").wait_for()
    offered = page.locator(".toasts").get_by_role("button", name="Undo").element_handle()
    route, answer = held[0]
    with page.expect_response("**/review/decide*"):
        route.fulfill(response=answer)
    page.wait_for_timeout(200)
    assert offered.is_visible()
    # Asked for twice at once, it takes back both, the newest first.
    page.keyboard.press("u")
    until(page, lambda: is_open_again(items[1:2]))
    assert reread(items[0]).approved_at is not None
    card_of(page, items[1])
    page.keyboard.press("a")
    until(page, lambda: is_done("approve", items[1:2]))
    page.keyboard.press("u")
    page.keyboard.press("u")
    until(page, lambda: is_open_again(items[:2]))


def test_every_part_of_the_queue_can_be_read_by_everybody(open_window, newsroom, stage, seed):
    items = story(seed, stage, "The harbour has new boats", "image", variants=2)
    thread = story(seed, stage, "Tram line approved")[0]
    GeneratedItem.everywhere.filter(pk=thread.pk).update(
        raw_item=items[0].raw_item_id,
        checks=[
            {"code": "names", "outcome": "warning", "message": "“Hafen Nord” stands nowhere in the source."}
        ],
    )
    page = open_window()
    open_queue(page, newsroom)
    look_over(page, "review-text")
    page.keyboard.press("r")
    look_over(page, "review-reject")
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    look_over(page, "review-publish")
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    look_over(page, "review-more")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    page.locator("[data-edit-form]").wait_for()
    look_over(page, "review-edit")
    page.get_by_role("link", name="Cancel").click()
    page.locator("[data-card]").wait_for()
    page.keyboard.press("h")
    card_of(page, items[1])
    look_over(page, "review-image")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    look_over(page, "review-keys")


def test_several_are_published_at_a_time_and_what_was_refused_is_named(open_window, newsroom, stage, seed):
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    items = [story(seed, stage, f"Story {number}")[0] for number in range(4)][::-1]
    page = open_window()
    open_queue(page, newsroom)
    for item in items[:3]:
        card_of(page, item)
        page.keyboard.press("x")
        page.keyboard.press("j")
    bulk = page.locator("#bulk")
    reason = bulk.get_by_label("Reason (optional)")
    reason.fill("Not ours")
    reason.press("Enter")
    assert {reread(one).status for one in items} == {"ready"}
    review.edit(reread(items[1]), {"title": "Bob’s"}, by="bob@example.test", now=timezone.now())
    bulk.get_by_label("Schedule for").fill(f"{timezone.now().year + 1}-03-01T14:30")
    look_over(page, "review-several")
    bulk.get_by_role("button", name="Schedule").click()
    toast = page.locator(".toasts .toast")
    toast.get_by_text("2 items scheduled.").wait_for()
    told = toast.inner_text()
    assert "“Bob’s” (Short Post): Edited by someone else." in told
    assert [reread(one).status for one in items] == ["scheduled", "ready", "scheduled", "ready"]
    # The refused one stays chosen, with what was typed.
    assert bulk.get_attribute("data-count") == "1"
    assert reason.input_value() == "Not ours"
    page.locator(".toasts").get_by_role("button", name="Undo").click()
    until(page, lambda: {reread(one).status for one in items} == {"ready"})


# --- Failures --------------------------------------------------------------------------------------------------------


def alert_of(page):
    found = page.locator("[data-place] [data-alert]:not([hidden])")
    found.wait_for()
    return found.inner_text()


def reject_in_words(page, item, words):
    card = card_of(page, item)
    card.locator("[data-panel=reject] summary").click()
    card.get_by_label("Other reason").fill(words)
    card.get_by_role("button", name="Reject").click()


def typed(page):
    return page.locator("[data-place]").get_by_label("Other reason").input_value()


def test_what_fails_keeps_what_was_typed_and_says_what_to_do(open_window, complaints, newsroom, stage, seed):
    for part in ("ERR_INTERNET_DISCONNECTED", "412 (Precondition", "409 (Conflict)", "403 (Forbidden)"):
        complaints.expect(part)
    item = seed
    page = open_window()
    open_queue(page, newsroom)
    # The network is gone: the decision comes back with its words, and is done when it is there again.
    page.context.set_offline(True)
    reject_in_words(page, item, "The mayor never said so.")
    assert "You're offline." in alert_of(page)
    assert typed(page) == "The mayor never said so."
    page.context.set_offline(False)
    # Somebody was first: 412, with who it was, on the card as it is now.
    review.approve(reread(item), by="bob@example.test", now=timezone.now())
    page.get_by_role("button", name="Reject").click()
    assert "bob@example.test approved it." in alert_of(page)
    assert typed(page) == "The mayor never said so."
    assert reread(item).status == "ready"
    # 409: what was asked for can't be done in this state.
    page.locator("[data-panel=more] summary").click()
    hint = page.get_by_label("Regenerate: what should change?")
    hint.fill("Shorter, please")
    page.get_by_role("button", name="Create").click()
    assert "hint" in alert_of(page)
    assert hint.input_value() == "Shorter, please"
    # The session is gone: nothing is lost, and after a log-in elsewhere the same page goes on.
    page.context.clear_cookies(name="sessionid")
    page.locator("[data-panel=reject] summary").click()
    page.locator("[data-place]").get_by_label("Other reason").fill("Not like this.")
    page.get_by_role("button", name="Reject").click()
    page.get_by_text("You're logged out.").locator("visible=true").first.wait_for()
    assert typed(page) == "Not like this."
    assert reread(item).status == "ready"
    other = page.context.new_page()
    log_in(other, newsroom.alice)
    page.bring_to_front()
    page.get_by_role("button", name="Reject").click()
    until(page, lambda: reread(item).status == "rejected")
    assert reread(item).rejection["message"] == "Not like this."
    assert page.evaluate("window.sameDocument") is True


def test_an_edit_that_fails_keeps_every_word(open_window, complaints, newsroom, stage, seed):
    for part in ("ERR_INTERNET_DISCONNECTED", "412 (Precondition"):
        complaints.expect(part)
    page = open_window()
    open_queue(page, newsroom)
    page.keyboard.press("e")
    form = page.locator("[data-edit-form]")
    form.get_by_label("Title").fill("Mine")
    page.context.set_offline(True)
    form.get_by_role("button", name="Save").click()
    assert "You're offline." in alert_of(page)
    assert form.get_by_label("Title").input_value() == "Mine"
    page.context.set_offline(False)
    review.edit(reread(seed), {"title": "Bob’s"}, by="bob@example.test", now=timezone.now())
    form.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Overwrite").wait_for()
    assert form.get_by_label("Title").input_value() == "Mine"
    page.get_by_text("Bob’s").first.wait_for()
    page.get_by_role("button", name="Overwrite").click()
    card_of(page, seed)
    assert (reread(seed).title, reread(seed).revision) == ("Mine", 3)


def test_two_people_at_once_lose_no_decision(open_window, complaints, newsroom, stage, seed):
    complaints.expect("412 (Precondition")
    bob = person("bob@example.test", "Bob")
    MembershipFactory(workspace=newsroom, user=bob, role=Membership.Role.EDITOR)
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    items = [story(seed, stage, f"Story {number}")[0] for number in range(6)][::-1]
    alice_page, bob_page = open_window(), open_window()
    open_queue(alice_page, newsroom)
    open_queue(bob_page, newsroom, bob)
    # Both decide on the same stories, in turns: who comes second is told, and the first one's word stands.
    for number, item in enumerate(items):
        first, second = (alice_page, bob_page) if number % 2 else (bob_page, alice_page)
        first.evaluate(
            "(at) => { document.querySelector(`[data-open='${at}']`).click(); }", encode("gen", item.pk)
        )
        card_of(first, item)
        second.evaluate(
            "(at) => { document.querySelector(`[data-open='${at}']`).click(); }", encode("gen", item.pk)
        )
        card_of(second, item)
        first.keyboard.press("a")
        until(first, lambda item=item: reread(item).approved_at is not None)
        second.bring_to_front()
        second.keyboard.press("r")
        second.keyboard.press("1")
        second.get_by_text("approved it.").or_(second.get_by_text("Approved by")).first.wait_for()
        assert reread(item).status == "ready"
    by = [reread(item).approved_by for item in items]
    assert sorted(set(by)) == ["alice@example.test", "bob@example.test"]


def test_what_others_do_is_seen_without_a_reload(open_window, newsroom, stage, seed):
    first = story(seed, stage, "First")[0]
    page = open_window()
    open_queue(page, newsroom)
    card_of(page, first)
    review.approve(reread(first), by="bob@example.test", now=timezone.now())
    page.get_by_text("Approved by bob@example.test").wait_for()
    story(seed, stage, "Second")
    page.get_by_role("button", name="1 new").wait_for()
    assert page.locator("[data-waiting]").inner_text() == "2"


def test_everything_works_without_a_script(open_window, newsroom, stage, seed):
    older = story(seed, stage, "Older")[0]
    newer = story(seed, stage, "Newer")[0]
    page = open_window(phone=True, scripts=False)
    log_in(page, newsroom.alice, f"/w/{encode('ws', newsroom.pk)}/review/")
    card_of(page, newer)
    with page.expect_navigation():
        page.get_by_role("button", name="Approve", exact=True).first.click()
    card_of(page, older)
    assert reread(newer).approved_at is not None
    with page.expect_navigation():
        page.get_by_role("button", name="Undo").click()
    card_of(page, newer)
    assert reread(newer).approved_at is None
    page.locator("[data-panel=reject] summary").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Outdated").click()
    assert reread(newer).rejection["message"] == "Outdated"
    with page.expect_navigation():
        page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("Better")
    with page.expect_navigation():
        page.get_by_role("button", name="Save").click()
    card_of(page, older)
    assert reread(older).title == "Better"


def test_a_swipe_turns_to_the_next_format_and_then_the_next_story(chromium, site, newsroom, stage, seed):
    GeneratedItem.everywhere.filter(pk=seed.pk).update(deleted_at=seed.created_at)
    below = story(seed, stage, "Below")[0]
    one, two = story(seed, stage, "Above", variants=2)
    context = chromium.new_context(
        base_url=site, viewport=PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    page = context.new_page()
    open_queue(page, newsroom)
    card_of(page, two)
    talk = context.new_cdp_session(page)

    def swipe(start, end):
        for kind, at in (
            ("touchStart", start),
            ("touchMove", (start + end) / 2),
            ("touchMove", end),
            ("touchEnd", None),
        ):
            points = [] if at is None else [{"x": at, "y": 560}]
            talk.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    swipe(80, 300)
    card_of(page, one)
    swipe(300, 80)
    card_of(page, two)
    swipe(300, 80)
    card_of(page, below)
    context.close()
