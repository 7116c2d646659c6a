"""The review queue by page: what it lists, one card, every decision with its undo, and what others did meanwhile."""

from __future__ import annotations

import random
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from config.core.ids import encode, uuid7
from pipeline.models import Asset, GeneratedItem, Publication, WorkspaceDefaults
from pipeline.pages.review import stories
from pipeline.pages.review.stories import ROWS
from pipeline.review import bulk_review
from pipeline.review import decisions as review
from pipeline.schedule import queues
from tests.pipeline.steps import (
    accepted,
    facts,
    make_items,
    make_stage,
    promise,
    push_raw,
    reread,
    run_generations,
    send,
    state,
)

SCRIPT = {"headers": {"X-Part": "1"}}


def made(newsroom, stage, title="Tram line approved", **changes):
    found = make_items(
        newsroom, title=title, url=f"https://news.example/{title.replace(' ', '-')}", **changes
    )
    GeneratedItem.everywhere.filter(pk__in=[one.pk for one in found]).update(
        outlets=[encode("out", stage.pk)]
    )
    return [reread(one) for one in found]


@pytest.fixture
def item(newsroom, stage):
    return made(newsroom, stage)[0]


@pytest.fixture
def pair(newsroom, stage):
    """Two variants of one group."""
    return made(newsroom, stage, variants=2)


def copies(item, count, **changes):
    """So many further stories like it, older than it is, each of an own group; without raw items."""
    rows = []
    for number in range(count):
        row = reread(item)
        row.pk = uuid7()
        row.variant_group, row.raw_item_id, row.title = uuid7(), None, f"Story {number}"
        for name, value in changes.items():
            setattr(row, name, value)
        rows.append(row)
    GeneratedItem.everywhere.bulk_create(rows)
    return rows


def at(item, name="review", **ids):
    return reverse(name, kwargs={"ws": item.workspace_id, **ids})


def token(*items):
    return ",".join(f"{encode('gen', one.pk)}:{one.version}" for one in items)


def decide(client, item, act, *, by_script=True, **given):
    given = {"items": token(item), "act": act, **given}
    return client.post(at(item, "review_decide"), given, **(SCRIPT if by_script else {}))


def undo(client, item, answer):
    note = answer.json()["undo"]
    assert note
    return client.post(at(item, "review_undo"), {"undo": note}, **SCRIPT)


def listed(client, item, **query):
    html = client.get(at(item), query).content.decode()
    return re.findall(r'<li data-lead="(gen_\w+)"', html)


def public(item):
    return encode("gen", item.pk)


# --- The list --------------------------------------------------------------------------------------------------------


def test_a_story_is_one_card_with_its_formats_and_variants(editor, newsroom, stage):
    WorkspaceDefaults.everywhere.filter(workspace=newsroom).update(engines=["Short Post", "Thread"])
    items = made(newsroom, stage, variants=2)
    other = made(
        newsroom, stage, "The harbour has new boats", body="The harbour has 12 new boats this year. " * 9
    )
    # The source has enough for one thread.
    assert len(items) == 3
    first, second = listed(editor, items[0])
    assert first in {public(one) for one in other}
    assert second == public(max((one for one in items if one.status == "ready"), key=lambda one: one.pk))
    shown = editor.get(at(items[0], "review_card", gen=items[0].pk)).content.decode()
    for one in items:
        assert f'data-open="{public(one)}"' in shown
    assert "Approve all 2<" in shown
    assert "warnings" not in shown
    thread = next(one for one in items if one.engine_output == "Thread")
    warning = [{"code": "names", "outcome": "warning", "message": "Who?"}]
    GeneratedItem.everywhere.filter(pk=thread.pk).update(checks=warning)
    post = next(one for one in items if one.engine_output == "Short Post")
    assert "1 other has warnings" in editor.get(at(post, "review_card", gen=post.pk)).content.decode()


def test_what_was_decided_on_is_listed_no_more(editor, item):
    assert listed(editor, item) == [public(item)]
    decide(editor, item, "approve")
    page = editor.get(at(item)).content.decode()
    assert ["You're all caught up" in page, public(item) in page] == [True, False]
    assert listed(editor, item, status="approved") == [public(item)]


def test_what_is_held_after_its_approval_is_held_back_and_not_to_review(editor, item):
    first = token(item)
    decide(editor, item, "approve")
    GeneratedItem.everywhere.filter(pk=item.pk).update(held="source_changed")
    assert (listed(editor, item), listed(editor, item, status="held")) == ([], [public(item)])
    (told,) = editor.get(at(item, "review_news"), {"shown": first}).json()["changed"]
    assert (told["state"], told["waits"]) == ("On hold", True)


def test_it_is_narrowed_by_everything_that_tells_items_apart(editor, newsroom, item, stage):
    blog, warned, elsewhere, sourced = copies(item, 4)
    other = make_stage(newsroom, name="Other")
    change = GeneratedItem.everywhere.filter
    change(pk=blog.pk).update(bucket="blog")
    change(pk=warned.pk).update(checks=[{"code": "names", "outcome": "warning", "message": "Who?"}])
    change(pk=elsewhere.pk).update(outlets=[encode("out", other.pk)], persona=None)
    change(pk=sourced.pk).update(source=None, held="source_changed")
    change(pk=item.pk).update(checks=[{"code": "length", "outcome": "failed", "message": "Too long."}])
    for query, found in {
        "bucket=blog": [blog],
        "check=warning": [warned],
        "check=failed": [item],
        "check=passed": [sourced, elsewhere, blog],
        f"outlet={encode('out', other.pk)}": [elsewhere],
        f"outlet={encode('out', stage.pk)}&bucket=blog": [blog],
        f"source={encode('src', item.source_id)}": [elsewhere, warned, blog, item],
        f"persona={encode('per', item.persona_id)}": [sourced, warned, blog, item],
        "status=held": [sourced],
        "status=scheduled": [],
        "status=nonsense": [sourced, elsewhere, warned, blog, item],
    }.items():
        html = editor.get(f"{at(item)}?{query}").content.decode()
        assert re.findall(r'<li data-lead="(gen_\w+)"', html) == [public(one) for one in found], query


def test_pages_follow_each_other_without_a_gap_while_stories_leave(editor, item):
    rows = copies(item, ROWS + 5)
    newest_first = [public(one) for one in reversed(rows)]
    first = editor.get(at(item)).content.decode()
    found = re.findall(r'<li data-lead="(gen_\w+)"', first)
    assert found == newest_first[:ROWS]
    older = re.search(r'data-older="(gen_\w+)"', first)[1]
    # Those that are decided on meanwhile don't push anybody over the edge of a page, as an offset would.
    decide(editor, rows[-1], "approve")
    decide(editor, rows[-2], "reject")
    rest = editor.get(at(item, "review_rows"), {"after": older}).content.decode()
    assert re.findall(r'<li data-lead="(gen_\w+)"', rest) == [*newest_first[ROWS:], public(item)]
    assert "data-older" not in rest


def test_a_story_of_many_items_stands_once_where_its_newest_is(editor, newsroom, item, monkeypatch):
    """Stories are met in any order, with more items than are read at once; some waited for nothing any more."""
    monkeypatch.setattr(stories, "ITEMS_AT_ONCE", 5)
    monkeypatch.setattr(stories, "ROWS", 3)
    raw_ids = [push_raw(newsroom, url=f"https://n.example/{number}").raw_item.pk for number in range(7)]
    chance = random.Random(6)
    rows = copies(item, 60)
    groups = [rows[number].pk for number in range(4)]
    for row in rows:
        row.raw_item_id = chance.choice([*raw_ids, None])
        row.variant_group = row.raw_item_id or chance.choice(groups)
        row.status = chance.choice(["ready", "ready", "published"])
    GeneratedItem.everywhere.bulk_update(rows, ["raw_item_id", "variant_group", "status"])
    waiting = sorted((row for row in [*rows, item] if row.status == "ready"), key=lambda row: row.pk)
    newest = {row.raw_item_id or row.variant_group: public(row) for row in waiting}
    expected = sorted(newest.values(), reverse=True)
    assert len(expected) > 9

    def read(name, **query):
        html = editor.get(at(item, name), query).content.decode()
        older = re.search(r'data-older="(gen_\w+)"', html)
        return re.findall(r'<li data-lead="(gen_\w+)"', html), older and older[1]

    found, older = read("review")
    while older:
        page, older = read("review_rows", after=older)
        found += page
    assert found == expected
    for place, lead in enumerate(expected):
        assert read("review", at=lead)[0] == expected[place : place + 3]


@pytest.mark.parametrize("name", ["review", "review_rows", "review_card", "review_news"])
def test_as_many_statements_however_much_waits(editor, item, name):
    ids = {"gen": item.pk} if name == "review_card" else {}
    given = {"shown": token(item), "first": public(item)} if name == "review_news" else {}

    def count():
        with CaptureQueriesContext(connection) as seen:
            assert editor.get(at(item, name, **ids), given).status_code == 200
        return len(seen)

    count()
    copies(item, 9)
    few = count()
    copies(item, 290)
    assert count() == few <= 32


def test_a_card_takes_as_many_statements_however_many_outlets_and_variants(editor, newsroom, item, stage):
    WorkspaceDefaults.everywhere.filter(workspace=newsroom).update(engines=["Short Post", "Thread"])

    def count(row):
        address = at(row, "review_card", gen=row.pk)
        with CaptureQueriesContext(connection) as seen:
            html = editor.get(address).content.decode()
        return len(seen), html.count("Preview on "), html.count("data-open=")

    count(item)
    alone = count(item)
    rows = made(newsroom, stage, "The harbour has new boats", variants=3)
    stages = [encode("out", make_stage(newsroom, name=f"Stage {number}").pk) for number in range(5)]
    GeneratedItem.everywhere.filter(pk=rows[0].pk).update(outlets=[encode("out", stage.pk), *stages])
    assert alone == (alone[0], 1, 0)
    assert count(rows[0]) == (alone[0], 6, 4)
    assert alone[0] <= 10


# --- The card --------------------------------------------------------------------------------------------------------


def test_a_card_shows_the_post_as_each_outlet_gets_it(editor, item, stage):
    html = editor.get(at(item, "review_card", gen=item.pk)).content.decode()
    assert re.search(r"\d+ / \d+ characters|\d+ +characters|\d+ / \d+", html)
    assert "Preview on Stage" in html
    assert "Sources" in html
    assert "claim-1" in html


def checks_in(html):
    """What is warned of and what has passed, as the card says it, and whether it stands before the words."""
    warned, passed = (
        set(re.findall(rf'<li class="{tone}">.*?<strong>([^<]+)</strong>', html, re.DOTALL))
        for tone in ("warn", "good")
    )
    return warned, passed, 0 < html.find('class="checks"') < html.find('class="outlets"')


def test_false_words_of_a_person_are_warned_of_before_anything_else(editor, item):
    def words(name):
        return {
            **editor.get(at(item, name, gen=item.pk)).context["form"].initial,
            "version": str(reread(item).version),
            "save": "",
        }

    card, page = (at(item, name, gen=item.pk) for name in ("review_card", "item_page"))
    warned, passed, _ = checks_in(editor.get(card).content.decode())
    vouching = {"Numbers", "Quotations", "Names", "Claims", "Statements", "Links", "Contacts"}
    assert (warned, vouching <= passed) == (set(), True)
    false = (
        "Mayor Donald Fakeman stole 99 million dollars. \u201cI did it and I am proud,\u201d he said. "
        "Call 0900 123456 or visit http://evil.example/pay now."
    )
    answer = editor.post(at(item, "item_edit", gen=item.pk), {**words("item_edit"), "part_0": false})
    assert (answer.status_code, reread(item).body) == (302, false)
    for address in (card, page):
        html = editor.get(address).content.decode()
        warned, passed, is_first = checks_in(html)
        assert warned >= vouching
        assert passed & vouching == set()
        assert "These numbers aren&#x27;t in the source: 99 million dollars" in html
        assert "The text was edited." in html
        assert "Without AI · edited" in html
        # No claim of the words before is shown as one of these.
        assert "claim-1" not in html
    assert is_first is False
    assert checks_in(editor.get(card).content.decode())[2] is True
    # Edited once more, on the card itself.
    answer = editor.post(
        at(item, "review_edit", gen=item.pk), {**words("review_edit"), "part_0": "It rolls."}
    )
    warned, passed, is_first = checks_in(editor.get(card).content.decode())
    assert (answer.status_code, "Statements" in warned, "Numbers" in passed, is_first) == (
        302,
        True,
        True,
        True,
    )


def test_formats_that_nobody_has_open_say_that_their_checks_warn(editor, item):
    assert "Has warnings" not in editor.get(at(item)).content.decode()
    beside = copies(item, 1, raw_item_id=item.raw_item_id)[0]
    warning = {"code": "names", "outcome": "warning", "message": "Vera Lind isn't named in the source."}
    GeneratedItem.everywhere.filter(pk=beside.pk).update(checks=[warning])
    story = editor.get(at(item)).context["card"]["story"]
    assert {one.id: one.warns for one in story.items} == {item.pk: False, beside.pk: True}
    # In the tab and in the list, where several are approved at once.
    assert editor.get(at(item)).content.decode().count('title="Has warnings"') == 2


def test_words_that_nobody_checked_are_called_so(editor, item):
    """As a release before this one leaves them."""
    assert item.checks
    GeneratedItem.everywhere.filter(pk=item.pk).update(body="False.", revision=2)
    for name in ("review_card", "item_page"):
        html = editor.get(at(item, name, gen=item.pk)).content.decode()
        assert checks_in(html)[:2] == ({"Not checked"}, set())
        assert "passed" not in html
    for outcome in ("passed", "warning", "failed"):
        assert listed(editor, item, check=outcome) == []


def test_a_viewer_sees_all_and_decides_nothing(vera, as_person, item):
    client = as_person(vera)
    html = client.get(at(item)).content.decode()
    assert [public(item) in html, "data-decide>" in html, 'name="items"' in html] == [True, False, False]
    assert decide(client, item, "approve").status_code == 403


# --- Decisions -------------------------------------------------------------------------------------------------------


def test_approving_can_be_undone_to_the_letter(editor, item, bob):
    before = GeneratedItem.everywhere.filter(pk=item.pk).values().get()
    answer = decide(editor, item, "approve")
    assert (answer.status_code, reread(item).approved_by) == (200, bob.email)
    assert undo(editor, item, answer).json()["items"] == [public(item)]
    after = GeneratedItem.everywhere.filter(pk=item.pk).values().get()
    changing = {"version", "updated_at"}
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }


def test_a_hold_that_was_let_go_comes_back_with_the_undo(editor, item):
    GeneratedItem.everywhere.filter(pk=item.pk).update(held="source_changed")
    answer = decide(editor, item, "approve")
    assert reread(item).held == ""
    undo(editor, item, answer)
    assert (reread(item).held, reread(item).approved_at) == ("source_changed", None)


def test_rejecting_takes_a_reason_of_one_tap_or_typed_words(editor, newsroom, stage, item):
    answer = decide(editor, item, "reject", said="Outdated")
    assert (reread(item).status, reread(item).rejection["message"]) == ("rejected", "Outdated")
    undo(editor, item, answer)
    assert (reread(item).status, reread(item).rejection) == ("ready", None)
    decide(editor, reread(item), "reject", reason="The mayor never said so.")
    assert reread(item).rejection["message"] == "The mayor never said so."


def test_approving_one_variant_sets_those_aside_that_were_shown(editor, pair):
    first, second = pair
    answer = decide(editor, first, "approve", items=f"{token(first)}|{token(second)}")
    assert (reread(first).approved_revision, reread(second).status) == (1, "rejected")
    undo(editor, first, answer)
    assert (reread(first).approved_at, reread(second).status) == (None, "ready")


def test_a_variant_that_nobody_saw_is_not_set_aside(editor, pair):
    first, second = pair
    decide(editor, first, "choose")
    assert reread(second).status == "ready"


def test_a_variant_that_changed_since_it_was_seen_is_not_set_aside(editor, pair):
    first, second = pair
    review.edit(second, {"title": "Better"}, by="vera", now=timezone.now())
    answer = decide(editor, first, "approve", items=f"{token(first)}|{token(second)}")
    assert answer.status_code == 412
    assert (reread(first).approved_at, reread(second).status) == (None, "ready")


def test_picking_a_variant_can_be_undone(editor, pair):
    first, second = pair
    answer = decide(editor, second, "choose", items=f"{token(second)}|{token(first)}")
    assert [reread(one).status for one in pair] == ["rejected", "ready"]
    undo(editor, second, answer)
    assert [reread(one).status for one in pair] == ["ready", "ready"]


def test_publishing_now_waits_ten_seconds_for_an_undo(editor, pair, stage):
    first, second = pair
    before = timezone.now()
    answer = decide(editor, first, "publish", when="now")
    row = Publication.everywhere.get()
    assert (row.outlet_id, row.status) == (stage.pk, "scheduled")
    assert timedelta(seconds=9) < row.due_at - before < timedelta(seconds=20)
    assert reread(second).status == "rejected"
    undo(editor, first, answer)
    assert (reread(row).status, reread(first).status, reread(second).status) == (
        "cancelled",
        "ready",
        "ready",
    )
    assert reread(first).approved_at is None


def test_a_time_is_one_on_the_workspaces_clocks(editor, item):
    day = f"{timezone.now() + timedelta(days=3):%Y-%m-%d}"
    answer = decide(editor, item, "publish", when="at", local_time=f"{day}T09:30")
    row = Publication.everywhere.get()
    assert (answer.status_code, row.local_time, row.zone) == (200, f"{day}T09:30:00", "Europe/Berlin")
    undo(editor, item, answer)
    assert reread(item).status == "ready"


def test_a_time_that_was_given_anew_goes_back_to_the_former_one(editor, item, stage):
    then = timezone.now() + timedelta(days=5)
    row = promise(item, stage, publish_at=then)
    scheduled = reread(item)
    day = f"{timezone.now() + timedelta(days=3):%Y-%m-%d}"
    answer = decide(editor, scheduled, "publish", when="at", local_time=f"{day}T09:30")
    assert reread(row).due_at != then
    undo(editor, item, answer)
    assert abs(reread(row).due_at - then) < timedelta(seconds=1)
    assert reread(item).status == "scheduled"


PROMISED = (
    "status", "due_at", "local_time", "zone", "on_gap", "on_overlap", "queue_id", "late_policy",
    "max_lateness_minutes", "overrides", "waits_for", "attempt_count", "next_attempt_at", "error",
    "overdue_told_at", "requested_by",
)  # fmt: skip


def test_what_a_paused_queue_held_back_is_held_back_again_after_the_undo(editor, newsroom, item, stage):
    slots = [{"weekday": day, "time": "10:00"} for day in range(7)]
    given = {"name": "Mornings", "timezone": "Europe/Berlin", "slots": slots, "outlets": [stage.pk]}
    queue = queues.create(newsroom, given, by="a")
    asked = {"is_queued": True, "late_policy": "hold", "max_lateness_minutes": 300}
    row = promise(item, stage, **asked, overrides={encode("out", stage.pk): {"title": "Here alone"}})
    overdue = timezone.now() - timedelta(hours=2)
    told = overdue + timedelta(minutes=30)
    Publication.everywhere.filter(pk=row.pk).update(due_at=overdue, wake_at=overdue, overdue_told_at=told)
    queues.change(queue, {"is_paused": True}, by="a")
    row = send(row)
    before = state(row, *PROMISED)
    assert (row.status, row.queue_id, accepted(newsroom)) == ("scheduled", queue.pk, [])
    answer = decide(editor, reread(item), "publish", when="now")
    assert (reread(row).queue_id, reread(row).due_at > overdue) == (None, True)
    assert undo(editor, item, answer).status_code == 200
    assert state(row, *PROMISED) == before
    assert (send(row).status, accepted(newsroom)) == ("scheduled", [])


def test_a_clocks_time_is_one_on_that_clock_again_after_the_undo(editor, item, stage):
    day = timezone.now() + timedelta(days=5)
    decide(editor, item, "publish", when="at", local_time=f"{day:%Y-%m-%d}T09:30")
    row = Publication.everywhere.get()
    before = state(row, *PROMISED)
    assert (row.local_time, row.zone) == (f"{day:%Y-%m-%d}T09:30:00", "Europe/Berlin")
    undo(editor, item, decide(editor, reread(item), "publish", when="now"))
    assert state(row, *PROMISED) == before


def test_what_had_failed_has_failed_again_after_the_undo(editor, newsroom, item):
    refusing = make_stage(newsroom, "reject", name="Refusing")
    row = send(promise(item, refusing))
    GeneratedItem.everywhere.filter(pk=item.pk).update(outlets=[encode("out", refusing.pk)])
    before = state(row, *PROMISED)
    seen = facts(newsroom)
    assert (row.status, reread(item).status, seen[-1]) == ("failed", "publish_failed", "published.failed")
    answer = decide(editor, reread(item), "publish", when="now")
    assert (reread(row).status, reread(item).status) == ("scheduled", "scheduled")
    assert undo(editor, item, answer).status_code == 200
    assert state(row, *PROMISED) == before
    assert (reread(item).status, reread(row).wake_at) == ("publish_failed", None)
    assert facts(newsroom) == seen


def test_a_promise_that_is_being_kept_is_not_taken_back(editor, item, stage):
    row = promise(item, stage, publish_at=timezone.now() + timedelta(days=5))
    answer = decide(editor, reread(item), "publish", when="now")
    Publication.everywhere.filter(pk=row.pk).update(status="publishing")
    told = undo(editor, item, answer)
    assert (told.status_code, reread(row).status) == (409, "publishing")
    assert "already being sent" in told.json()["error"]


def test_the_next_free_slot_is_taken(editor, newsroom, item, stage):
    slots = [{"weekday": day, "time": "10:00"} for day in range(7)]
    queue = queues.create(
        newsroom, {"name": "Mornings", "timezone": "UTC", "slots": slots, "outlets": [stage.pk]}, by="a"
    )
    answer = decide(editor, item, "publish", when="next")
    assert answer.status_code == 200, answer.json()
    assert Publication.everywhere.get().queue_id == queue.pk


def test_another_variant_goes_again_with_the_undo(editor, item):
    answer = decide(editor, item, "another", once="showing")
    variant = GeneratedItem.everywhere.exclude(pk=item.pk).get()
    assert answer.json()["decided"] == [public(variant)]
    assert decide(editor, item, "another", once="showing").status_code == 400
    undo(editor, item, answer)
    assert reread(variant).deleted_at is not None


@pytest.mark.parametrize("change", [{"title": "By Vera"}, {"outlets": []}])
def test_another_variant_that_somebody_wrote_in_stays(editor, item, change):
    answer = decide(editor, item, "another")
    variant = GeneratedItem.everywhere.exclude(pk=item.pk).get()
    run_generations(item.raw_item)
    review.edit(reread(variant), change, by="vera@example.test", now=timezone.now())
    told = undo(editor, item, answer)
    assert (told.status_code, reread(variant).deleted_at) == (409, None)
    assert "It was edited in the meantime" in told.json()["error"]


def test_several_are_decided_on_each_by_itself(editor, item):
    rows = [item, *copies(item, 3)]
    review.edit(rows[2], {"title": "Another"}, by="vera", now=timezone.now())
    answer = decide(editor, item, "approve", items=[token(one) for one in rows])
    told = answer.json()
    assert told["failed"] == [public(rows[2])]
    assert "3 items approved." in told["toast"]
    assert [reread(one).approved_at is not None for one in rows] == [True, True, False, True]
    undo(editor, item, answer)
    assert [reread(one).approved_at for one in rows] == [None] * 4


@pytest.mark.parametrize("when", ["now", "next", "at"])
def test_several_are_published_each_by_itself_and_come_back(editor, newsroom, item, stage, when):
    slots = [{"weekday": day, "time": "10:00"} for day in range(7)]
    given = {"name": "Mornings", "timezone": "Europe/Berlin", "slots": slots, "outlets": [stage.pk]}
    queues.create(newsroom, given, by="a")
    rows = [item, *copies(item, 4)]
    # The third was changed since it was looked at, the fourth has nowhere to go.
    review.edit(rows[2], {"title": "Another"}, by="vera@example.test", now=timezone.now())
    GeneratedItem.everywhere.filter(pk=rows[3].pk).update(outlets=[])
    time = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT14:30") if when == "at" else ""
    before = timezone.now()
    answer = decide(editor, item, "publish", when=when, local_time=time, items=[token(one) for one in rows])
    told = answer.json()
    assert told["decided"] == [public(one) for one in (rows[0], rows[1], rows[4])]
    assert told["failed"] == [public(one) for one in (rows[2], rows[3])]
    assert "“Another” (Short Post): Edited by someone else." in told["error"]
    assert f"“{rows[3].title}” (Short Post): None of the item's outlets takes text items" in told["error"]
    assert rows[1].title not in told["error"]
    moments = list(Publication.everywhere.order_by("due_at").values_list("due_at", flat=True))
    assert len(moments) == 3
    if when == "now":
        assert {9 <= (one - before).total_seconds() <= 60 for one in moments} == {True}
        assert "Publishing 3 items in 10 s." in told["toast"]
    elif when == "next":
        assert len(set(moments)) == 3
        assert "3 items scheduled for the next free slots." in told["toast"]
    else:
        assert len(set(moments)) == 1
        assert "3 items scheduled." in told["toast"]
    assert undo(editor, item, answer).status_code == 200
    assert {reread(one).status for one in rows} == {"ready"}
    assert set(Publication.everywhere.values_list("status", flat=True)) == {"cancelled"}


def test_a_reason_that_many_share_names_a_few_of_them(editor, newsroom, item):
    newsroom.requires_approval = True
    newsroom.save()
    rows = [item, *copies(item, 5)]
    told = decide(editor, item, "publish", when="now", items=[token(one) for one in rows]).json()
    assert told["error"].startswith(
        f"“{item.title}” (Short Post), “Story 0” (Short Post), “Story 1” (Short Post) and 3 more: "
        "The workspace asks for an approval first"
    )
    alone = decide(editor, item, "publish", when="now").json()
    assert alone["error"].startswith("The workspace asks for an approval first")


def test_the_buttons_for_several_are_those_for_one_and_enter_decides_nothing(editor, item):
    html = editor.get(at(item)).content.decode()
    bulk = re.search(r'<form[^>]*id="bulk".*?</form>', html, re.DOTALL)[0]
    pressed = re.findall(r'<button[^>]*type="submit"[^>]*>', bulk)
    assert "disabled" in pressed[0]
    assert [re.search(r'name="(\w+)" value="(\w+)"', one).groups() for one in pressed[1:]] == [
        ("act", "approve"),
        ("act", "reject"),
        ("when", "next"),
        ("when", "now"),
        ("when", "at"),
    ]
    # What a button says comes after what the form says by itself.
    assert bulk.index('<input type="hidden" name="act" value="publish">') < bulk.index('value="approve"')
    answer = decide(editor, item, ["publish", "approve"])
    assert "Approved." in answer.json()["toast"]


def test_what_is_too_much_for_one_decision_is_told_to_wait_still(editor, item):
    rows = [item, *copies(item, bulk_review.AT_ONCE + 4)]
    answer = decide(editor, item, "approve", items=[token(one) for one in rows])
    told = answer.json()
    first, rest = rows[: bulk_review.AT_ONCE], rows[bulk_review.AT_ONCE :]
    assert (told["decided"], told["failed"]) == (
        [public(one) for one in first],
        [public(one) for one in rest],
    )
    assert "At most 100 items are decided on at once" in told["error"]
    assert {reread(one).approved_at for one in rest} == {None}


def test_the_whole_story_is_rejected_where_that_is_ticked(editor, item):
    other = copies(item, 1)[0]
    decide(editor, item, "reject", also=token(other))
    assert reread(other).status == "ready"
    review.restore(item, now=timezone.now())
    decide(editor, reread(item), "reject", also=token(other), whole="1")
    assert {reread(item).status, reread(other).status} == {"rejected"}


# --- Others ----------------------------------------------------------------------------------------------------------


def test_who_comes_second_is_told_who_was_first(editor, item):
    review.reject(item, reason="No.", by="vera@example.test", now=timezone.now())
    answer = decide(editor, item, "approve")
    assert answer.status_code == 412
    assert answer.json()["error"].startswith("vera@example.test rejected it.")
    assert reread(item).status == "rejected"


def test_an_undo_takes_nothing_back_that_another_decided_since(editor, item):
    answer = decide(editor, item, "approve")
    review.reject(reread(item), reason="No.", by="vera@example.test", now=timezone.now())
    told = undo(editor, item, answer)
    assert (told.status_code, reread(item).status) == (409, "rejected")
    assert "vera@example.test rejected it." in told.json()["error"]


def test_an_undo_is_of_this_workspace_alone_and_cant_be_made_up(editor, as_person, charlie, item):
    note = decide(editor, item, "approve").json()["undo"]
    stranger = as_person(charlie)
    theirs = charlie.memberships.get().workspace_id
    answer = stranger.post(reverse("review_undo", kwargs={"ws": theirs}), {"undo": note}, **SCRIPT)
    assert (answer.status_code, reread(item).approved_revision) == (409, 1)
    assert editor.post(at(item, "review_undo"), {"undo": f"{note}x"}, **SCRIPT).status_code == 409
    assert reread(item).approved_revision == 1


def test_the_news_tell_what_changed_and_what_came_in(editor, item):
    asked = {"shown": token(item), "first": public(item)}
    quiet = editor.get(at(item, "review_news"), asked).json()
    assert (quiet["changed"], quiet["newer"], quiet["count"]) == ([], "0", "1")
    review.approve(item, by="vera", now=timezone.now())
    copies(item, 2, approved_at=None)
    news = editor.get(at(item, "review_news"), asked).json()
    assert [(one["id"], one["waits"]) for one in news["changed"]] == [(public(item), False)]
    assert (news["newer"], news["count"]) == ("2", "2")


# --- Editing ---------------------------------------------------------------------------------------------------------


def form_of(client, item):
    html = client.get(at(item, "review_edit", gen=item.pk), **SCRIPT).content.decode()
    fields = dict(re.findall(r'name="(version|began|title|place_\w+)"[^>]*? value="([^"]*)"', html))
    fields |= dict(re.findall(r'<textarea name="(\w+)"[^>]*>\n?(.*?)</textarea>', html, re.DOTALL))
    return {name: value.replace("&quot;", '"').replace("&#x27;", "'") for name, value in fields.items()}


def save(client, item, **changes):
    return client.post(at(item, "review_edit", gen=item.pk), {**form_of(client, item), **changes}, **SCRIPT)


def test_words_are_edited_on_the_card_and_come_back_with_the_undo(editor, item):
    before = reread(item).content
    answer = save(editor, item, part_0="The tram comes in April.")
    assert (answer.status_code, reread(item).content["parts"]) == (200, ["The tram comes in April."])
    assert undo(editor, item, answer).status_code == 200
    assert (reread(item).content, reread(item).revision) == (before, 3)


def test_an_approval_comes_back_with_the_words_that_it_was_of(editor, item, stage):
    then = timezone.now() + timedelta(days=1)
    row = promise(item, stage, publish_at=then)
    approved = state(item, "approved_by", "approved_at", "held")
    answer = save(editor, reread(item), part_0="The tram comes in April.")
    assert (reread(item).held, reread(item).approved_revision) == ("approval_stale", 1)
    assert undo(editor, item, answer).status_code == 200
    assert state(item, "approved_by", "approved_at", "held") == approved
    assert (reread(item).revision, reread(item).approved_revision, reread(row).revision) == (3, 3, 3)
    Publication.everywhere.filter(pk=row.pk).update(due_at=timezone.now())
    assert send(row).status == "published"


def test_words_that_nobody_had_approved_are_held_after_the_undo_as_before(editor, item, stage):
    promise(item, stage, publish_at=timezone.now() + timedelta(days=1))
    review.edit(reread(item), {"title": "By Vera"}, by="vera", now=timezone.now())
    answer = save(editor, reread(item), part_0="The tram comes in April.")
    undo(editor, item, answer)
    now = reread(item)
    assert (now.title, now.held, now.approved_revision, now.revision) == ("By Vera", "approval_stale", 1, 4)


def pictures(item, count=3):
    return [
        Asset.everywhere.create(
            workspace_id=item.workspace_id, item=item, role="picture", kind="image", name=f"{n}.jpg", position=n,
            path=f"x/{n}.jpg", mime_type="image/jpeg", bytes=1, sha256="0" * 64, width=10, height=10,
        )
        for n in range(count)
    ]  # fmt: skip


def test_alt_texts_and_the_order_of_pictures_are_edited_and_come_back(editor, item):
    first, second, third = pictures(item)
    names = {f"place_{one.pk.hex}": place for one, place in ((first, 3), (second, 1), (third, 2))}
    answer = save(editor, item, **{f"alt_{first.pk.hex}": "A tram"}, **names)
    assert answer.status_code == 200

    def order():
        return list(Asset.everywhere.filter(item=item).order_by("position").values_list("name", "alt_text"))

    assert order() == [("1.jpg", ""), ("2.jpg", ""), ("0.jpg", "A tram")]
    undo(editor, item, answer)
    assert order() == [("0.jpg", ""), ("1.jpg", ""), ("2.jpg", "")]


def test_who_was_overtaken_keeps_what_they_typed(editor, item):
    fields = form_of(editor, item)
    review.edit(item, {"title": "By Vera"}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "review_edit", gen=item.pk), {**fields, "part_0": "Mine."}, **SCRIPT)
    html = answer.content.decode()
    assert answer.status_code == 412
    assert ["Mine." in html, "By Vera" in html, "Overwrite" in html] == [True, True, True]
    assert f'name="version" value="{reread(item).version}"' in html


def test_words_that_cant_be_are_blamed_at_their_field(editor, item):
    answer = save(editor, item, part_0=" ")
    assert (answer.status_code, "errorlist" in answer.content.decode()) == (400, True)


# --- Without a script ------------------------------------------------------------------------------------------------


def test_plain_forms_lead_to_the_next_story_and_offer_the_undo(editor, item):
    older, newer = copies(item, 2)
    answer = decide(editor, newer, "approve", by_script=False, after=public(newer), query="bucket=text")
    assert answer.status_code == 302
    shown = editor.get(answer["Location"]).content.decode()
    assert f'data-card data-item="{public(older)}"' in shown
    fields = dict(re.findall(r'name="(undo|query)" value="([^"]*)"', shown))
    assert "bucket=text" in answer["Location"]
    back = editor.post(at(item, "review_undo"), fields)
    assert f"at={public(newer)}" in back["Location"]
    assert reread(newer).approved_at is None


def test_a_plain_form_that_was_refused_leads_back_to_the_item(editor, item):
    review.reject(item, reason="No.", by="vera@example.test", now=timezone.now())
    answer = decide(editor, item, "approve", by_script=False)
    shown = editor.get(answer["Location"]).content.decode()
    assert "vera@example.test rejected it." in shown
    assert f'data-card data-item="{public(item)}"' in shown


def test_editing_has_a_page_of_its_own(editor, item):
    html = editor.get(at(item, "review_edit", gen=item.pk)).content.decode()
    assert html.lstrip().lower().startswith("<!doctype")
    answer = editor.post(at(item, "review_edit", gen=item.pk), {**form_of(editor, item), "title": "New"})
    assert (answer.status_code, reread(item).title) == (302, "New")
