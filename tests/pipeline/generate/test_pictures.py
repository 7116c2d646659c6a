"""Drawn items: their files and rows, what becomes of words that can't be drawn, and an edit that draws them again."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path

import pytest
from django.db import connection
from PIL import Image

from accounts.ledger import reports
from accounts.models import LedgerEntry
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline.engines.persona_tweet import PersonaTweet
from pipeline.generate import run as generation_run
from pipeline.ingest import erase_raw_item
from pipeline.media import draw_pictures, uploads
from pipeline.models import Asset, Event, GeneratedItem, Generation, Persona, PersonaVersion, Revision
from pipeline.render.typography.text_layout import TextDoesNotFit
from pipeline.review import decisions, regenerate
from pipeline.workspace import provision
from pipeline.writers.extractive import Extractive
from tests.pipeline.generate.test_videos import files_of
from tests.pipeline.steps import (
    NOON,
    claimed,
    items_of,
    make_items,
    make_stage,
    pass_points_of_generate,
    promise,
    push_raw,
    reread,
    run_generations,
    send,
)

pytestmark = pytest.mark.usefixtures("own_media")

CARD = ["Persona Tweet"]
NAMES = ["persona-tweet-1080x1350.jpg", "persona-tweet-1080x1080.jpg"]
# No bundled font has cuneiform.
CUNEIFORM = "\U00012000"


def make_card(workspace, **changes):
    return make_items(workspace, engines=CARD, **changes)[0]


def on_disk(own_media):
    return sorted(path.relative_to(own_media).as_posix() for path in own_media.rglob("*") if path.is_file())


def give_brand(workspace, **brand):
    persona = Persona.everywhere.get(workspace=workspace)
    Persona.everywhere.filter(pk=persona.pk).update(brand=brand)
    persona.brand = brand
    PersonaVersion.everywhere.filter(persona=persona).update(content=provision.persona_content(persona))


def run_all(item):
    generation_run.run_generation(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))
    return reread(item)


def test_card_has_both_sizes_with_the_words_as_alt_text(workspace, own_media):
    item = make_card(workspace)
    assert (item.status, item.bucket) == ("ready", "image")
    files = files_of(item)
    assert [(one.name, one.width, one.height, one.position, one.role, one.kind) for one in files] == [
        (NAMES[0], 1080, 1350, 0, "image", "image"),
        (NAMES[1], 1080, 1080, 1, "alternative", "image"),
    ]
    for one in files:
        data = (own_media / one.path).read_bytes()
        assert one.path == f"{item.pk.hex}/{hashlib.sha256(data).hexdigest()}.jpg"
        assert (one.sha256, one.bytes) == (hashlib.sha256(data).hexdigest(), len(data))
        assert one.alt_text == f"{item.body} – {workspace.name}"
        with Image.open(BytesIO(data)) as picture:
            assert (picture.format, picture.size) == ("JPEG", (one.width, one.height))
    assert on_disk(own_media) == sorted(one.path for one in files)
    assert {check["outcome"] for check in item.checks} == {"passed"}


def test_event_tells_of_the_files(workspace):
    item = make_card(workspace)
    told = bytes(Event.everywhere.get(type="generated.ready").body)
    assert [one.secret.encode() in told for one in files_of(item)] == [True, True]


def test_text_has_no_files(workspace, own_media):
    item = make_items(workspace)[0]
    assert (files_of(item), on_disk(own_media)) == ([], [])


def test_every_variant_has_its_own_files(workspace):
    items = make_items(workspace, engines=CARD, variants=2)
    assert [item.status for item in items] == ["ready", "ready"]
    assert len({one.path for item in items for one in files_of(item)}) == 4


def test_words_that_can_not_be_drawn_fail_the_item_with_the_sentence(workspace, monkeypatch, own_media):
    def refuse(self, draft, persona, media):
        raise TextDoesNotFit(100, 50, 40)

    monkeypatch.setattr(PersonaTweet, "plan", refuse)
    item = make_card(workspace)
    assert (item.status, item.error["message"]) == ("failed", TextDoesNotFit(100, 50, 40).message)
    assert (item.error["stage"], files_of(item), on_disk(own_media)) == ("write", [], [])


def test_characters_that_no_font_has_fail_the_item(workspace):
    Persona.everywhere.filter(workspace=workspace).update(name=CUNEIFORM)
    persona = Persona.everywhere.get(workspace=workspace)
    PersonaVersion.everywhere.filter(persona=persona).update(content=provision.persona_content(persona))
    item = make_card(workspace)
    assert (item.status, item.error["code"]) == ("failed", "checks_failed")
    assert "no glyphs" in item.error["message"]


# --- The portrait ----------------------------------------------------------------------------------------------------


@pytest.fixture
def portrait(workspace, own_media):
    """A file of the workspace's that its persona names as its portrait."""

    def give(data):
        # Of words that no card says.
        words = (
            "A painter in Harrow has shown forty portraits of her neighbours since the spring of last year."
        )
        owner = make_items(workspace, external_id="owner", url="", title="A portrait", body=words)[0]
        (own_media / "faces").mkdir(parents=True)
        (own_media / "faces" / "face.png").write_bytes(data)
        asset = Asset.everywhere.create(
            workspace=workspace, item=owner, role="portrait", kind="image", name="face.png",
            path="faces/face.png", mime_type="image/png", bytes=len(data), sha256="0" * 64,
        )  # fmt: skip
        give_brand(workspace, portrait=encode("ast", asset.pk))
        return asset

    return give


def red_square():
    out = BytesIO()
    Image.new("RGB", (200, 200), "#ff0000").save(out, "PNG")
    return out.getvalue()


def reds(own_media, item):
    with Image.open(own_media / files_of(item)[0].path) as picture:
        return sum(
            red > 230 and green < 40 and blue < 40
            for red, green, blue in picture.convert("RGB").get_flattened_data()
        )


def test_portrait_is_drawn(workspace, portrait, own_media):
    portrait(red_square())
    item = make_card(workspace)
    assert item.status == "ready"
    assert reds(own_media, item) > 5_000
    assert [check for check in item.checks if check["outcome"] != "passed"] == []


def test_unusable_portrait_is_drawn_as_initials_with_a_warning(workspace, portrait, own_media):
    portrait(b"not a picture")
    item = make_card(workspace)
    assert (item.status, len(files_of(item)), reds(own_media, item)) == ("ready", 2, 0)
    assert [check for check in item.checks if check["outcome"] != "passed"] == [
        {
            "code": "portrait",
            "outcome": "warning",
            "message": "The portrait is not a JPEG, PNG or WebP picture. Initials are drawn in its place.",
        }
    ]


def test_portrait_that_is_gone_is_drawn_as_initials_with_a_warning(workspace, portrait):
    asset = portrait(red_square())
    Asset.everywhere.filter(pk=asset.pk).update(revoked_at=NOON)
    item = make_card(workspace)
    assert (item.status, item.checks[-1]["code"], item.checks[-1]["outcome"]) == (
        "ready",
        "portrait",
        "warning",
    )


def test_portrait_of_another_workspace_is_not_shown(workspace, charlies, portrait, own_media):
    asset = portrait(red_square())
    Asset.everywhere.filter(pk=asset.pk).update(workspace=charlies)
    item = make_card(workspace)
    assert (item.checks[-1]["outcome"], reds(own_media, item)) == ("warning", 0)


# --- Kills and leases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["generate.drafted", "generate.rendered", "generate.written"])
def test_killed_hand_leaves_nothing_served_and_the_next_one_everything_once(
    workspace, own_media, monkeypatch, point
):
    raw = push_raw(workspace, engines=CARD).raw_item

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(Generation.everywhere.get()))
    assert Asset.everywhere.count() == 0
    monkeypatch.setattr(Extractive, "draft", None)
    run_generations(raw)
    item = items_of(raw)[0]
    assert (item.status, [one.name for one in files_of(item)]) == ("ready", NAMES)
    assert on_disk(own_media) == sorted(one.path for one in files_of(item))


def test_hand_that_is_killed_while_it_writes_leaves_no_whole_file(workspace, own_media, monkeypatch):
    push_raw(workspace, engines=CARD)

    def die(self, target):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(Generation.everywhere.get()))
    assert on_disk(own_media) == []


def test_hand_that_lost_its_lease_while_it_drew_adds_no_rows(workspace, monkeypatch):
    raw = push_raw(workspace, engines=CARD).raw_item
    draw = draw_pictures.draw_pictures

    def slow(*args, **options):
        claimed(Generation.everywhere.get())
        return draw(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(draw_pictures, "draw_pictures", slow)
        generation_run.run_generation(claimed(Generation.everywhere.get()))
    assert (items_of(raw)[0].status, Asset.everywhere.count()) == ("generating", 0)
    run_generations(raw)
    assert (items_of(raw)[0].status, Asset.everywhere.count()) == ("ready", 2)


# --- An edit ---------------------------------------------------------------------------------------------------------


def edit(item, **changes):
    return decisions.edit(item, changes, by="alice", now=NOON)


def test_edited_words_are_drawn_again(workspace, own_media):
    item = make_card(workspace)
    before = files_of(item)
    edited = edit(item, body="The tram comes. It is red.")
    assert (edited.status, edited.revision) == ("generating", 2)
    done = run_all(item)
    assert (done.status, done.body, done.revision, done.error) == (
        "ready",
        "The tram comes. It is red.",
        2,
        None,
    )
    after = files_of(item)
    assert [one.alt_text for one in after] == [f"The tram comes. It is red. – {workspace.name}"] * 2
    assert {one.secret for one in before} & {one.secret for one in after} == set()
    assert {one.pk for one in files_of(item, served=False)} == {one.pk for one in before}
    assert Generation.everywhere.get(pk=done.generation_id).status == "done"
    # Once per item: it was made when it was made.
    assert Event.everywhere.filter(type="generated.ready").count() == 1
    assert list(
        Revision.everywhere.filter(item=item).order_by("number").values_list("number", flat=True)
    ) == [1, 2]


def test_edited_words_are_drawn_at_once(workspace, woken, django_capture_on_commit_callbacks):
    item = make_card(workspace)
    # One wake for a transaction; that of the making hasn't been committed here.
    connection.run_on_commit.clear()
    with django_capture_on_commit_callbacks(execute=True):
        edit(item, body="The tram comes.")
    assert woken


def test_redrawing_asks_no_writer_and_spends_nothing(workspace, monkeypatch):
    item = make_card(workspace)
    entries = LedgerEntry.everywhere.count()
    edit(item, body="The tram comes.")
    monkeypatch.setattr(Extractive, "brief", None)
    monkeypatch.setattr(Extractive, "draft", None)
    assert run_all(item).status == "ready"
    assert (LedgerEntry.everywhere.count(), reports.check()) == (entries, [])


def test_other_words_are_not_drawn_and_the_files_stay(workspace):
    item = make_card(workspace)
    before = [one.secret for one in files_of(item)]
    edited = edit(item, title="Another", content={"caption": "Read this.", "slides": []})
    assert (edited.status, edited.revision) == ("ready", 2)
    assert [one.secret for one in files_of(item)] == before


def test_alt_text_given_with_the_words_is_that_of_the_new_file(workspace):
    item = make_card(workspace)
    first, second = files_of(item)
    edit(item, body="The tram comes.", alt_texts={second.pk: "Said by hand."})
    run_all(item)
    assert [one.alt_text for one in files_of(item)] == [
        f"The tram comes. – {workspace.name}",
        "Said by hand.",
    ]
    assert first.pk not in {one.pk for one in files_of(item)}


def test_words_that_can_not_be_drawn_are_refused_at_once(workspace):
    item = make_card(workspace)
    before = reread(item)
    for body, code in ((f"A {CUNEIFORM} sign", "missing_glyphs"), ("long words " * 200, "does_not_fit")):
        with pytest.raises(Invalid) as raised:
            edit(item, body=body)
        assert [(one.field, one.code) for one in raised.value.detail] == [("body", code)]
    now = reread(item)
    assert (now.status, now.version, now.body) == ("ready", before.version, before.body)


@pytest.mark.parametrize("status", ["scheduled", "publish_failed"])
def test_drawn_words_are_not_edited_while_they_are_promised(workspace, feed, status):
    item = make_card(workspace)
    publication = promise(item, make_stage(workspace, "reject") if status == "publish_failed" else feed)
    if status == "publish_failed":
        send(publication)
    with pytest.raises(Conflict) as raised:
        edit(reread(item), body="The tram comes.")
    assert [(one.field, one.code) for one in raised.value.detail] == [("body", "drawn_words")]
    assert edit(reread(item), title="Only the title").status == status
    assert (reread(item).body, Generation.everywhere.count()) == (item.body, 1)


@pytest.mark.parametrize("point", ["generate.rendered", "generate.written"])
def test_killed_redrawing_keeps_the_old_files_until_the_next_hand(workspace, monkeypatch, point):
    item = make_card(workspace)
    before = [one.secret for one in files_of(item)]
    edit(item, body="The tram comes.")

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            run_all(item)
    assert [one.secret for one in files_of(item)] == before
    assert run_all(item).status == "ready"
    assert (len(files_of(item)), len(files_of(item, served=False))) == (2, 2)


def test_item_that_is_erased_while_it_is_redrawn_stays_erased(workspace):
    item = make_card(workspace)
    edit(item, body="The tram comes.")
    decisions.erase(item, now=NOON)
    gone = run_all(item)
    assert (gone.body, files_of(item)) == ("", [])
    assert Generation.everywhere.get(pk=gone.generation_id).status == "done"
    assert GeneratedItem.everywhere.get(pk=item.pk).deleted_at is not None


def test_redraw_keeps_what_holds_the_item_meanwhile(workspace):
    item = make_card(workspace)
    decisions.edit(item, {"body": "Other words stand on the card."}, by="usr", now=NOON)
    assert reread(item).status == "generating"
    erase_raw_item.erase(item.raw_item, now=NOON)

    drawn = run_all(item)

    assert (drawn.status, drawn.held) == ("ready", "source_withdrawn")


def test_retry_of_a_redraw_that_broke_keeps_the_words_and_costs_nothing(workspace):
    item = make_card(workspace)
    entries = LedgerEntry.everywhere.filter(workspace=workspace).count()
    decisions.edit(item, {"body": "Other words stand on the card."}, by="usr", now=NOON)
    generation_run.give_up(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))
    failed = reread(item)
    assert failed.status == "failed"

    regenerate.retry(failed, workspace=workspace, now=NOON)
    drawn = run_all(item)

    assert (drawn.status, drawn.body, drawn.error) == ("ready", "Other words stand on the card.", None)
    assert LedgerEntry.everywhere.filter(workspace=workspace).count() == entries


@pytest.mark.parametrize("how", ["given_up", "undrawable"])
def test_retry_of_a_redraw_that_broke_keeps_the_alt_texts(workspace, monkeypatch, how):
    item = make_card(workspace)
    alt_texts = {files_of(item)[1].pk: "Said by hand."}
    decisions.edit(item, {"body": "The tram comes.", "alt_texts": alt_texts}, by="usr", now=NOON)
    if how == "given_up":
        generation_run.give_up(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))
    else:
        error = {"code": "odd", "message": "No.", "stage": "render"}
        with monkeypatch.context() as patch:
            patch.setattr(
                draw_pictures, "draw_pictures", lambda *_, **__: {"files": [], "checks": [], "error": error}
            )
            run_all(item)
    assert reread(item).status == "failed"
    regenerate.retry(reread(item), workspace=workspace, now=NOON)
    run_all(item)
    assert files_of(item)[1].alt_text == "Said by hand."
    assert Generation.everywhere.get(pk=reread(item).generation_id).answers == {}


def test_item_that_is_erased_as_its_drawing_is_retried_stays_erased(workspace, monkeypatch):
    item = make_card(workspace)
    edit(item, body="The tram comes.")
    generation_run.give_up(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))
    locked = regenerate.lock_with_workspace

    def late(item):
        monkeypatch.setattr(regenerate, "lock_with_workspace", locked)
        decisions.erase(item, now=NOON)
        return locked(item)

    monkeypatch.setattr(regenerate, "lock_with_workspace", late)
    with pytest.raises(Conflict) as refused:
        regenerate.retry(reread(item), workspace=workspace, now=NOON)
    assert [(one.field, one.code) for one in refused.value.detail] == [(None, "deleted")]


def test_what_a_broken_redraw_keeps_goes_with_the_item(workspace):
    item = make_card(workspace)
    alt_texts = {files_of(item)[1].pk: "Said by hand."}
    decisions.edit(item, {"body": "The tram comes.", "alt_texts": alt_texts}, by="usr", now=NOON)
    run = Generation.everywhere.get(pk=reread(item).generation_id)
    generation_run.give_up(claimed(run))
    assert reread(run).answers != {}
    decisions.erase(reread(item), now=NOON)
    assert reread(run).answers == {}


def test_what_a_redraw_keeps_goes_with_an_item_that_is_erased_before_it_breaks(workspace, monkeypatch):
    item = make_card(workspace)
    alt_texts = {files_of(item)[1].pk: "Said by hand."}
    decisions.edit(item, {"body": "The tram comes.", "alt_texts": alt_texts}, by="usr", now=NOON)
    run = Generation.everywhere.get(pk=reread(item).generation_id)

    def draw(*_, **__):
        decisions.erase(reread(item), now=NOON)
        error = {"code": "odd", "message": "No.", "stage": "render"}
        return {"files": [], "checks": [], "error": error}

    monkeypatch.setattr(draw_pictures, "draw_pictures", draw)
    run_all(item)
    assert (reread(run).status, reread(run).answers) == ("done", {})


def test_what_a_redraw_keeps_goes_with_an_item_that_is_erased_before_it_is_given_up(workspace):
    item = make_card(workspace)
    alt_texts = {files_of(item)[1].pk: "Said by hand."}
    decisions.edit(item, {"body": "The tram comes.", "alt_texts": alt_texts}, by="usr", now=NOON)
    run = Generation.everywhere.get(pk=reread(item).generation_id)
    decisions.erase(reread(item), now=NOON)
    generation_run.give_up(claimed(run))
    assert (reread(run).status, reread(run).answers) == ("failed", {})


def test_what_a_broken_redraw_keeps_goes_on_with_its_retry(workspace):
    item = make_card(workspace)
    alt_texts = {files_of(item)[1].pk: "Said by hand."}
    decisions.edit(item, {"body": "The tram comes.", "alt_texts": alt_texts}, by="usr", now=NOON)
    first = Generation.everywhere.get(pk=reread(item).generation_id)
    generation_run.give_up(claimed(first))
    regenerate.retry(reread(item), workspace=workspace, now=NOON)
    second = Generation.everywhere.get(pk=reread(item).generation_id)
    assert (reread(first).answers, second.answers["redraw"]["alt_texts"]) == ({}, {NAMES[1]: "Said by hand."})


# --- Several pictures ------------------------------------------------------------------------------------------------

ARTICLE = (
    "The council voted 14 to 9 on Tuesday for the tram line to the harbour. “We have waited long enough for this,” said "
    "Mayor Ellen Okafor. Retailers in Mill Street fear for their sales. Construction begins next spring with the gas pipes."
)


def make_slides(workspace):
    return make_items(workspace, engines=["Carousel"], body=ARTICLE)[0]


def slides_of(item, place, **words):
    return [{**one, **words} if index == place else one for index, one in enumerate(item.content["slides"])]


def test_carousel_has_a_file_for_each_slide_and_one_of_them_all(workspace, own_media):
    item = make_slides(workspace)
    files = files_of(item)
    slides = item.content["slides"]
    assert (item.status, item.bucket, len(slides)) == ("ready", "image", 7)
    assert [(one.name, one.role, one.kind, one.position) for one in files] == [
        *((f"carousel-{place + 1:02d}.jpg", "image", "image", place) for place in range(7)),
        ("carousel.pdf", "document", "document", 7),
    ]
    assert [one.alt_text for one in files[:2]] == [f"1/7: {slides[0]['title']}", f"2/7: {slides[1]['text']}"]
    document = (own_media / files[-1].path).read_bytes()
    assert [(own_media / one.path).read_bytes() in document for one in files[:-1]] == [True] * 7
    assert on_disk(own_media) == sorted(one.path for one in files)


def test_quotation_is_one_picture_in_two_sizes(workspace):
    item = make_items(workspace, engines=["Quote Graphic"], body=ARTICLE)[0]
    assert item.body == "“We have waited long enough for this”\n– Mayor Ellen Okafor"
    assert [(one.role, one.height) for one in files_of(item)] == [("image", 1350), ("alternative", 1080)]


def test_edited_slide_is_drawn_again_with_its_alt_text(workspace):
    item = make_slides(workspace)
    before = files_of(item)
    content = {**item.content, "slides": slides_of(item, 1, text="The tram comes.")}
    edited = edit(item, content=content, alt_texts={before[2].pk: "Said by hand."})
    assert (edited.status, edited.revision) == ("generating", 2)
    done = run_all(item)
    after = files_of(item)
    assert (done.status, done.content, len(after)) == ("ready", content, 8)
    assert [one.alt_text for one in after[1:3]] == ["2/7: The tram comes.", "Said by hand."]
    assert [one.sha256 for one in after[2:7]] == [one.sha256 for one in before[2:7]]
    assert {one.secret for one in before} & {one.secret for one in after} == set()


def test_words_beside_the_slides_are_not_drawn(workspace):
    item = make_slides(workspace)
    before = [one.secret for one in files_of(item)]
    edited = edit(item, body="Other words.", content={**item.content, "caption": "Read this."})
    assert (edited.status, [one.secret for one in files_of(item)]) == ("ready", before)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"text": f"A {CUNEIFORM} sign"}, "missing_glyphs"),
        ({"text": "tram " * 46}, "too_many_words"),
        ({"text": "W" * 2000}, "does_not_fit"),
        ({"kind": "poll"}, "invalid_slide"),
    ],
)
def test_slide_that_can_not_be_drawn_is_refused_at_its_place(workspace, words, code):
    item = make_slides(workspace)
    with pytest.raises(Invalid) as raised:
        edit(item, content={**item.content, "slides": slides_of(item, 2, **words)})
    assert [(one.field, one.code) for one in raised.value.detail] == [("content.slides[2]", code)]
    assert reread(item).status == "ready"


def test_too_few_slides_are_refused(workspace):
    item = make_slides(workspace)
    for slides in (item.content["slides"][:2], []):
        with pytest.raises(Invalid) as raised:
            edit(item, content={**item.content, "slides": slides})
        assert [(one.field, one.code) for one in raised.value.detail] == [("content.slides", "slide_count")]


def test_slides_are_not_edited_while_they_are_scheduled(workspace, feed):
    item = make_slides(workspace)
    promise(item, feed)
    with pytest.raises(Conflict) as raised:
        edit(reread(item), content={**item.content, "slides": slides_of(item, 1, text="Other.")})
    assert [(one.field, one.code) for one in raised.value.detail] == [("content", "drawn_words")]


def test_carousel_killed_between_its_files_is_drawn_again_only(workspace, own_media, monkeypatch):
    raw = push_raw(workspace, engines=["Carousel"], body=ARTICLE).raw_item
    write, written = draw_pictures.files.write, []

    def die(kept, chunks):
        if len(written) == 3:
            raise SystemExit
        written.append(kept)
        write(kept, chunks)

    with monkeypatch.context() as patch:
        patch.setattr(draw_pictures.files, "write", die)
        with pytest.raises(SystemExit):
            generation_run.run_generation(claimed(Generation.everywhere.get()))
    assert (Asset.everywhere.count(), on_disk(own_media)) == (0, sorted(written))
    monkeypatch.setattr(Extractive, "draft", None)
    run_generations(raw)
    item = items_of(raw)[0]
    assert (item.status, len(files_of(item))) == ("ready", 8)
    assert on_disk(own_media) == sorted(one.path for one in files_of(item))


def test_regenerated_carousel_has_files_of_its_own(workspace):
    item = make_items(workspace, engines=["Carousel"], body=f"{ARTICLE} {LONGER}")[0]
    variant = regenerate.regenerate(item, workspace=workspace, now=NOON)
    done = run_all(variant)
    assert (done.status, done.variant_index) == ("ready", 1)
    assert done.content["slides"] != item.content["slides"]
    assert {one.item_id for one in files_of(done)} == {done.pk}
    assert files_of(done)[-1].name == "carousel.pdf"


LONGER = (
    "Eight stops are planned along the old harbour road. A single ticket costs the same as on buses. The operator "
    "expects 38,000 passengers on every working day. The depot stands on the site of a former rope factory."
)


# --- The photo -------------------------------------------------------------------------------------------------------


def photo(colour="#00ff00", size=(900, 800), form="JPEG"):
    out = BytesIO()
    Image.new("RGB", size, colour).save(out, form)
    return out.getvalue()


def quote_with(workspace, *given):
    """A quotation of an item that was pushed with these files; each is the bytes, and what is kept instead."""
    media = []
    for data, kept in given:
        row = uploads.store_upload(
            workspace, uploads.ReceivedFile(BytesIO(data), len(data), "photo"), test=False, actor="alice"
        )
        if kept is None:
            draw_pictures.files.path_of(row.path).unlink()
        else:
            draw_pictures.files.path_of(row.path).write_bytes(kept)
        media.append({"upload": encode("upl", row.pk)})
    return make_items(workspace, engines=["Quote Graphic"], body=ARTICLE, media=media)[0]


def ground_of(own_media, item):
    with Image.open(own_media / files_of(item)[0].path) as picture:
        red, green, blue = picture.convert("RGB").getpixel((20, 20))
    return "photo" if green > red + 60 and green > blue + 60 else "colour"


def test_photo_of_the_raw_item_is_the_ground(workspace, own_media):
    item = quote_with(workspace, (data := photo(), data))
    assert (item.status, ground_of(own_media, item)) == ("ready", "photo")
    assert {check["outcome"] for check in item.checks} == {"passed"}


def test_photo_that_is_too_small_is_passed_by(workspace, own_media):
    small, large = photo("#ff0000", (719, 900)), photo()
    assert ground_of(own_media, quote_with(workspace, (small, small), (large, large))) == "photo"


@pytest.mark.parametrize("kept", [b"\xff\xd8\xff no picture", None], ids=["damaged", "gone"])
def test_photo_that_can_not_be_shown_is_left_out(workspace, own_media, kept):
    item = quote_with(workspace, (photo(), kept))
    warnings = [(one["code"], one["message"]) for one in item.checks if one["outcome"] != "passed"]
    assert (item.status, ground_of(own_media, item)) == ("ready", "colour")
    assert warnings == (
        []
        if kept is None
        else [
            (
                "photo",
                "The photo is not a JPEG, PNG or WebP picture. The persona's colour is the ground in its place.",
            )
        ]
    )


@pytest.mark.parametrize(
    ("media", "why"),
    [
        (
            {"url": "https://news.example/crane.jpg", "type": ""},
            "The picture at https://news.example/crane.jpg isn't shown: only uploaded ones are.",
        ),
        (
            {"url": "https://news.example/7", "type": "image/jpeg"},
            "The picture at https://news.example/7 isn't shown: only uploaded ones are.",
        ),
        ({"url": "https://news.example/talk.mp3", "type": "audio/mpeg"}, None),
        ({"url": "https://news.example/talk", "type": ""}, None),
        (
            {"url": "http://[::1/crane.jpg", "type": ""},
            "The picture at http://[::1/crane.jpg isn't shown: only uploaded ones are.",
        ),
    ],
)
def test_picture_by_its_address_is_left_out_and_the_item_says_so(workspace, own_media, media, why):
    item = make_items(workspace, engines=["Quote Graphic"], body=ARTICLE, media=[media])[0]
    notes = [(one["outcome"], one["message"]) for one in item.checks if one["code"] == "photo"]
    said = f"{why} The persona's colour is the ground in its place."
    assert (item.status, notes) == ("ready", [("passed", said)] if why else [])


def test_cards_and_slides_show_no_photo(workspace, own_media):
    data = photo()
    row = uploads.store_upload(
        workspace, uploads.ReceivedFile(BytesIO(data), len(data), "photo"), test=False, actor="alice"
    )
    item = make_items(workspace, engines=CARD, media=[{"upload": encode("upl", row.pk)}])[0]
    assert ground_of(own_media, item) == "colour"


def test_edited_quotation_keeps_its_photo(workspace, own_media):
    item = quote_with(workspace, (data := photo(), data))
    edit(item, body="“The tram comes.”\n– Ann")
    done = run_all(item)
    assert (done.status, ground_of(own_media, done)) == ("ready", "photo")
    assert files_of(done)[0].alt_text == "“The tram comes.” – Ann"
