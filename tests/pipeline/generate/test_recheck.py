"""Checks belong to the words: made again wherever a person writes them, and read only with the words that they are of."""

from __future__ import annotations

import pytest

from accounts.ledger import credits
from accounts.models import AuditEntry
from config.core.ids import encode
from pipeline import generate, publish
from pipeline.generate import run as generation_run
from pipeline.generate.autopilot import PREFIX
from pipeline.media import draw_pictures
from pipeline.models import GeneratedItem, RawBody, Revision
from pipeline.render.video import storyboard_edits
from pipeline.review import bulk_review, decisions, regenerate, storyboards, undo
from pipeline.schedule import series
from tests.pipeline import steps
from tests.pipeline.generate.test_generate_with_model import found, written
from tests.pipeline.generate.test_videos import filmed, folders
from tests.pipeline.personas import lanes
from tests.pipeline.schedule.series.test_series import _ids_of_another_clock, begin, make_digest, take_in
from tests.pipeline.steps import NOON, claimed, items_of, make_items, push_raw, reread, run_generations

__all__ = ["_ids_of_another_clock", "filmed", "folders"]

TEXT = """\
The harbour of Lindholm gets a new ferry line in spring. The council voted for it on Tuesday evening after two hours of
debate. Four boats will cross the bay every twenty minutes from six in the morning until midnight.

"We waited for this line for eleven years," said Ruth Okafor, who runs the fish market at the northern quay. The city pays
12 million crowns for the boats, and the region pays for the two new piers. Each boat carries 140 passengers and 40
bicycles, and it needs six minutes at the quay to charge its batteries.

Fishermen had asked for quieter engines since the old boats frightened the herring. Engineers of the university measured
the noise under water last summer and found that electric boats are hardly heard at a distance of 200 metres. The council
wants to publish those measurements in June.

Tickets will cost as much as a bus ride, and whoever owns a monthly pass pays nothing more. Schools get free rides on
weekday mornings. The first boat leaves the northern quay on 3 May, and the mayor wants to be on board with the children
of the harbour school. Critics say that the piers come too late for this summer's visitors.
"""
FALSE = (
    "Mayor Donald Fakeman stole 99 million dollars and sold 4711 children. \u201cI did it and I am proud,\u201d he said. "
    "Call 0900 123456 or visit http://evil.example/pay now."
)
VOUCHING = {"numbers", "quotations", "names", "support", "claims", "contacts", "link_origin"}
"""What stood as passed beside words that it had never seen."""
POSTS = ("Short Post", "Thread", "LinkedIn Post", "Newsletter Issue", "Blog Article")
PICTURES = ("Persona Tweet", "Quote Graphic", "Carousel")
FILMS = ("Template Short", "Persona Short")
SPOKEN = pytest.param("Persona Short", marks=pytest.mark.slow)


@pytest.fixture
def make(workspace, filmed, folders, monkeypatch):
    # What is laid out is looked at here; its files are looked at in test_pictures.py.
    monkeypatch.setattr(draw_pictures, "render_layout", lambda *_, **__: [])

    def made(engine, **changes):
        credits.adjust(workspace, 100, "for the tests", "operator", now=NOON)
        given = {"title": "The harbour gets a new ferry", "body": TEXT, "url": "https://news24.example/x"}
        item = make_items(workspace, **{**given, "engines": [engine], **changes})[0]
        assert (item.status, item.error) == ("ready", None)
        return item

    return made


def by_code(checks):
    return {one["code"]: (one["outcome"], one["message"]) for one in checks}


def of_words(item):
    """The checks without those of files and of the autopilot."""
    return {
        code: told
        for code, told in by_code(item.present_checks).items()
        if code not in draw_pictures.FILE_CHECKS and not code.startswith(PREFIX)
    }


def made_again(item):
    """As they come out when the words that are stored are judged once more."""
    row = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    there = storyboards.stored_storyboard(row)
    checks = generate.recheck(row, board=there.board if there is not None else None)
    return {code: told for code, told in by_code(checks).items() if code not in draw_pictures.FILE_CHECKS}


def drawn(item):
    """The item with its pictures or its film made again, where that is under way."""
    row = reread(item)
    if row.status == "generating":
        generation_run.run_generation(claimed(row.generation))
        row = reread(row)
    assert (row.status, row.error) == ("ready", None)
    return row


def edit(item, **changes):
    return drawn(decisions.edit(reread(item), changes, by="vera", now=NOON))


def board_with(item, words):
    """Its storyboard with other words on the second text that is shown."""
    board = storyboards.stored_storyboard(item).board
    return storyboard_edits.replace_text(board, storyboard_edits.editable_texts(board)[1], words)


# --- The routes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [*POSTS, *PICTURES, *FILMS])
def test_what_nobody_changed_is_judged_as_it_was(make, engine):
    item = make(engine)
    assert (item.checks_revision, item.revision) == (1, 1)
    assert of_words(item) == made_again(item)
    assert {outcome for outcome, _ in of_words(item).values()} == {"passed"}


def by_edit(item):
    return edit(item, title="The ferry cost 99 million crowns")


def by_review(item):
    row = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    changes = {"title": "Vote was 41 to 2"}
    return bulk_review.edit(row, changes, None, by="vera", now=NOON, expected_version=row.version).item


def by_undo(item):
    row = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    done = bulk_review.edit(
        row, {"title": "Vote was 41 to 2"}, None, by="vera", now=NOON, expected_version=row.version
    )
    return undo.undo(done.item, done.former, by="vera", now=NOON)


def by_going_back(item):
    first = Revision.everywhere.get(item=edit(item, title="Vote was 41 to 2"), number=1)
    return edit(item, title=first.title)


def by_override(item):
    key = next(iter(item.outlets))
    return edit(item, overrides={key: {"body": "It cost 4711 crowns."}})


@pytest.mark.parametrize("route", [by_edit, by_review, by_undo, by_going_back, by_override])
@pytest.mark.parametrize(
    "engine", ["Short Post", "Blog Article", "Newsletter Issue", "Carousel", "Template Short", SPOKEN]
)
def test_after_every_route_the_checks_are_those_of_the_words(make, engine, route):
    item = drawn(route(make(engine)))
    assert (item.checks_revision, item.revision) == (item.revision, item.revision)
    assert item.revision > 1
    assert of_words(item) == made_again(item)
    warned = {code for code, (outcome, _) in of_words(item).items() if outcome == "warning"}
    assert bool(warned) == (route not in {by_undo, by_going_back})


@pytest.mark.parametrize("engine", FILMS)
def test_after_a_storyboard_the_checks_are_those_of_what_is_filmed(make, engine):
    item = make(engine)
    words = "The city pays 99 million crowns."
    row = storyboards.edit(item, board_with(item, words), by="vera", now=NOON)
    assert of_words(row)["numbers"][0] == "warning"
    row = drawn(row)
    assert (row.checks_revision, of_words(row)) == (2, made_again(row))
    # Another word of the item changes nothing of the film that shows it.
    row = edit(row, content={**row.content, "caption": "The ferry comes in spring."})
    assert (row.revision, of_words(row)["numbers"][0]) == (3, "warning")
    assert of_words(row) == made_again(row)


def test_a_caption_of_the_film_is_held_against_the_source(make):
    item = make("Persona Short")
    board = storyboards.stored_storyboard(item).board
    place = next(number for number, card in enumerate(board.captions) if len(card.words) > 2)
    row = storyboards.edit(
        item, storyboard_edits.replace_caption(board, place, "They stole 4711 boats."), by="vera", now=NOON
    )
    assert "4711" in of_words(row)["numbers"][1]
    assert "They stole 4711 boats" in of_words(row)["support"][1]


def test_what_was_made_again_by_the_service_is_judged_by_its_run(make, workspace):
    item = make("Short Post")
    decisions.edit(item, {"title": "Vote was 41 to 2"}, by="vera", now=NOON)
    variant = regenerate.regenerate(reread(item), workspace=workspace, now=NOON)
    generation_run.run_generation(claimed(variant.generation))
    variant = reread(variant)
    if variant.status == "ready":
        assert (variant.checks_revision, of_words(variant)) == (1, made_again(variant))
    else:
        assert (variant.checks_revision, variant.revision) in {(None, 0), (0, 0)}


# --- A false sentence ------------------------------------------------------------------------------------------------


def false_words_of(item):
    """Changes that put the false words wherever this kind of item shows words."""
    lines = item.body.splitlines()
    if item.engine_output in FILMS:
        return {
            "title": "Mayor Fakeman",
            "body": "\n".join([lines[0], "Fakeman stole 4711 boats.", *lines[2:]]),
        }
    if item.engine_output == "Carousel":
        slides = [dict(one) for one in item.content["slides"]]
        slides[1]["text"] = "Fakeman stole 4711 boats."
        return {"content": {**item.content, "slides": slides}}
    if item.engine_output == "Quote Graphic":
        return {"body": "\u201cI stole 4711 boats and I am proud.\u201d\n\u2013 Ruth Okafor"}
    if item.engine_output in {"Newsletter Issue", "Blog Article"}:
        return {"body": f"{item.body}\n\nMayor Fakeman stole 4711 boats."}
    if item.engine_output == "Persona Tweet":
        return {"body": "Mayor Fakeman stole 4711 boats."}
    return {"body": FALSE}


@pytest.mark.parametrize("engine", [*POSTS, *PICTURES, "Template Short", SPOKEN])
def test_a_false_sentence_stands_nowhere_under_passed(make, engine):
    item = make(engine)
    row = edit(item, **false_words_of(item))
    checks = of_words(row)
    assert (row.revision, row.checks_revision) == (2, 2)
    assert checks["numbers"][0] == checks["support"][0] == "warning"
    assert "4711" in checks["numbers"][1]
    assert "4711" in checks["support"][1]
    assert checks.get("claims", ("warning",))[0] == "warning"
    # What was found comes first.
    outcomes = [one["outcome"] for one in row.checks]
    assert outcomes == sorted(outcomes, key=["warning", "passed"].index)
    assert "failed" not in outcomes
    # The words of before, and nothing is left of it.
    first = Revision.everywhere.get(item=row, number=1)
    back = edit(
        row,
        title=first.title,
        content=first.content,
        **({} if "parts" in first.content else {"body": first.body}),
    )
    assert of_words(back) == of_words(item)


def test_the_post_of_the_finding_is_warned_of_in_all_that_vouched_for_it(make):
    checks = of_words(edit(make("Short Post"), body=FALSE))
    assert {code for code in VOUCHING & set(checks) if checks[code][0] == "passed"} == set()
    assert "99 million dollars" in checks["numbers"][1]
    assert "evil.example" in checks["link_origin"][1]


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        ("Schools get free rides on weekday mornings.", True),
        ("schools get free rides on weekday mornings", True),
        ("Schools get free rides on weekday evenings.", False),
        ("Electric boats are heard at a distance of 200 metres.", False),
        ("The mayor is a thief.", False),
        ("#ferry @harbour https://news24.example/x", True),
    ],
)
def test_a_sentence_of_a_person_is_vouched_for_only_where_the_source_says_it(make, words, is_said):
    item = make("Short Post")
    body = f"{item.body.splitlines()[0]}\n{words}"
    told = of_words(edit(item, body=body)).get("support", ("", ""))
    assert (told[0] == "passed") == is_said
    assert (words in told[1]) == (not is_said)


def test_what_the_engine_put_there_is_recognised_in_an_edited_text(make):
    item = make("Template Short")
    row = edit(item, title="Four boats will cross the bay")
    assert "Source: news24.example" in row.body
    assert of_words(row)["numbers"][0] == "passed"


# --- What can't be judged --------------------------------------------------------------------------------------------


def test_without_its_source_only_the_persona_s_rules_are_checked(make, workspace):
    item = make("Short Post")
    persona = item.persona
    persona.banned_words = ["thief"]
    lanes.make_persona(workspace, banned_words=["thief"])
    GeneratedItem.everywhere.filter(pk=item.pk).update(persona_version=reread(persona).version)
    RawBody.everywhere.filter(raw_item=item.raw_item).delete()
    row = edit(item, body=FALSE)
    assert {code: told[0] for code, told in of_words(row).items()} == {
        "support": "warning",
        "banned_words": "passed",
    }
    assert "no source" in of_words(row)["support"][1]


def test_killed_between_words_and_checks_leaves_neither(make, monkeypatch):
    """A process that dies there commits nothing: the words of before stand with theirs."""
    item = make("Short Post")

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    for place in (
        "generate.recheck",
        "update_locked",
        "Revision.everywhere.create",
        "publish.renew_scheduled",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"pipeline.review.rerender.{place}", die)
            with pytest.raises(Killed):
                decisions.edit(reread(item), {"body": FALSE}, by="vera", now=NOON)
    row = reread(item)
    assert (row.body, row.revision, row.checks_revision, row.checks) == (item.body, 1, 1, item.checks)


def test_checks_of_other_words_are_read_by_nobody(make, workspace):
    """As a release before this one leaves them: the revision rose, and the checks are those of the words before."""
    item = make("Short Post")
    GeneratedItem.everywhere.filter(pk=item.pk).update(body=FALSE, revision=2)
    row = reread(item)
    assert (row.checks != [], row.present_checks, row.is_checked) == (True, [], False)


def test_a_film_that_breaks_when_it_is_made_again_keeps_the_checks_of_its_words(make, monkeypatch):
    item = make("Template Short")
    lines = item.body.splitlines()
    row = decisions.edit(
        item, {"body": "\n".join([lines[0], "It cost 4711 crowns.", *lines[2:]])}, by="vera", now=NOON
    )
    checks = of_words(row)
    with monkeypatch.context() as patch:
        patch.setattr(
            "pipeline.generate.rendering.make_film.make_film",
            lambda *_, **__: {
                "files": [],
                "checks": [],
                "error": {"code": "bad_film", "message": "It broke."},
            },
        )
        generation_run.run_generation(claimed(row.generation))
    row = reread(row)
    assert (row.status, of_words(row)) == ("failed", checks)
    again = regenerate.retry(row, workspace=row.workspace, now=NOON)
    assert of_words(drawn(again)) == checks


# --- Other ways to be made -------------------------------------------------------------------------------------------


def test_a_digest_is_held_against_all_that_it_tells(workspace):
    credits.adjust(workspace, 1000, "for the tests", "operator", now=NOON)
    take_in(workspace, 4)
    item = make_digest(series.make_now(begin(workspace), by="alice"))
    assert (item.status, of_words(item)) == ("ready", made_again(item))
    edited = edit(item, body=f"{item.body}\n\nMayor Fakeman stole 4711 boats.")
    assert of_words(edited) == made_again(edited)
    assert "4711" in of_words(edited)["numbers"][1]
    assert "stole" in of_words(edited)["support"][1]


def test_words_of_a_topic_are_held_against_topic_and_persona(workspace):
    lanes.make_persona(workspace, approved_lines=list(lanes.LINES))
    lanes.make_topics(workspace, 3, notes="Rye bread keeps for nine days.")
    source = lanes.add_lane(workspace)
    lanes.work_slot(source)
    item = next(one for one in lanes.write_all(source) if one.status == "ready")
    assert of_words(item) == made_again(item)
    edited = edit(item, body="Rye bread keeps for 4711 days.")
    assert of_words(edited) == made_again(edited)
    assert "4711" in of_words(edited)["numbers"][1]


def test_words_of_a_model_are_held_against_what_it_found(workspace, model_server, anthropic_sdk):
    model_server.script = [found(), written()]
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    item = items_of(raw)[0]
    assert item.generator["offline"] is False
    assert of_words(item) == made_again(item)
    words = item.body.splitlines()[0]
    edited = edit(item, body=f"{words} The mayor is a thief.")
    assert of_words(edited) == made_again(edited)
    assert "The mayor is a thief." in of_words(edited)["support"][1]
    # The model's sentence was judged when it was written.
    assert words not in of_words(edited)["support"][1]


# --- What people overrule --------------------------------------------------------------------------------------------


def overruled(workspace):
    rows = AuditEntry.objects.of(workspace).filter(action="checks.overruled").order_by("id")
    return [(one.actor, one.subject, one.details) for one in rows]


def test_whoever_approves_over_a_warning_stands_in_the_audit_log(make, workspace):
    item = make("Short Post")
    decisions.approve(item, by="vera", now=NOON)
    assert overruled(workspace) == []
    row = edit(item, body=FALSE)
    decisions.approve(row, by="vera", now=NOON)
    warned = [one["code"] for one in row.checks if one["outcome"] == "warning"]
    entry = ("vera", encode("gen", item.pk), {"revision": 2, "checks": warned})
    assert overruled(workspace) == [entry]
    # Its publication overrules nothing more.
    publish.request(reread(row), steps.to(steps.make_stage(workspace)), by="bob", now=NOON)
    assert overruled(workspace) == [entry]


def test_whoever_publishes_over_a_warning_stands_there_too(make, workspace):
    row = edit(make("Short Post"), body="Mayor Fakeman stole 4711 boats.")
    publish.request(row, steps.to(steps.make_stage(workspace)), by="bob", now=NOON)
    ((actor, _, details),) = overruled(workspace)
    assert (actor, details["revision"]) == ("bob", 2)
    assert {"numbers", "support"} <= set(details["checks"])
