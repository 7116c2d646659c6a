"""Items in a browser: found in the list, looked at, decided on, edited and published; their claims led to the source."""

from __future__ import annotations

import base64
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pytest
from django.utils import timezone
from PIL import Image, ImageDraw

from config.core.ids import encode
from pipeline.models import Asset, GeneratedItem, Publication
from pipeline.review import decisions
from tests.browser.people import follow, go_to, log_in, look_over
from tests.pipeline.steps import TEXT, make_items, make_stage, promise, send

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("posts"),
]
MODEL = {
    "provider": "anthropic", "model": "claude-sonnet-4-5", "offline": False, "prompt_version": "7",
    "input_tokens": 5120, "output_tokens": 318, "cost_usd": "0.004200", "credits": 1,
}  # fmt: skip
ARTICLE = "\n\n".join(
    [
        "The council **approved the new tram line** on Monday. The first rails are laid in April.",
        "## What is built",
        "Construction of the northern depot begins in April and will employ about 340 people:",
        "- a depot for 28 trams\n- a workshop with two pits\n- a stop at the harbour",
        "> Passengers can travel free of charge during the first two weeks of regular service.",
        "## What it costs",
        "Critics warned that rents have risen. The [plan](https://news.example/plan) answers with three measures.",
        "| Year | Riders |\n| --- | --- |\n| 2028 | 12,000 |\n| 2029 | 19,500 |",
        *(f"Paragraph {n} says more of the same line, its stops and its people. " * 4 for n in range(12)),
    ]
)

WEBM = base64.b64decode(
    "GkXfo59ChoEBQveBAULygQRC84EIQoKEd2VibUKHgQJChYECGFOAZwEAAAAAAAI4EU2bdLpNu4tTq4QVSalmU6yBoU27i1OrhBZU"
    "rmtTrIHYTbuMU6uEElTDZ1OsggEbTbuMU6uEHFO7a1OsggIi7AEAAAAAAABZAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAVSalmsirXsYMPQkBNgI1M"
    "YXZmNjIuMTIuMTAyV0GNTGF2ZjYyLjEyLjEwMkSJiECPQAAAAAAAFlSua76uAQAAAAAAADXXgQFzxYg2vjtEoh9YQpyBACK1nIN1"
    "bmSIgQCGhVZfVlA4g4EBI+ODhAvrwgDghrCBQLqBQBJUw2fYc3OgY8CAZ8iaRaOHRU5DT0RFUkSHjUxhdmY2Mi4xMi4xMDJzc7Jj"
    "wItjxYg2vjtEoh9YQmfIoUWjiERVUkFUSU9ORIeTMDA6MDA6MDEuMDAwMDAwMDAwAB9DtnVApOeBAKO/gQAAgJADAJ0BKkAAQAAA"
    "RwiFhYiFhIgCAgJ1qgP4AgboQVwx0hMAVVgA/v5z5f/q0PlofLQ/c+/+Uq8Fjc3wo5aBAMgA0QEAARAQABgAGFgv9AAIjoAAo5aB"
    "AZAA0QEAARAQABgAGFgv9AAIjoAAo5aBAlgA0QEAARAQABgAGFgv9AAIjoAAo5aBAyAA0QEAARAQABgAGFgv9AAIjoAAHFO7a5G7"
    "j7OBALeK94EB8YIBePCBAw=="
)
"""A second of one colour."""


def made(workspace, title="Tram line approved", **changes):
    return make_items(
        workspace, title=title, url=f"https://news.example/{title.replace(' ', '-')}", **changes
    )[0]


def change(item, **values):
    GeneratedItem.everywhere.filter(pk=item.pk).update(**values)


def keep_file(item, name, data, **values):
    """A file of the item, where the pages serve it from."""
    from django.conf import settings

    path = f"{item.pk.hex}/{name}"
    place = Path(settings.MEDIA_ROOT) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    given = {
        "workspace_id": item.workspace_id, "role": "picture", "kind": "image", "path": path,
        "mime_type": "image/jpeg", "bytes": len(data), "sha256": "0" * 64,
    }  # fmt: skip
    return Asset.everywhere.create(item=item, name=name, **{**given, **values})


def keep_picture(item, name, words, size=(1080, 1350), colour="#28406b", **values):
    canvas = Image.new("RGB", size, colour)
    pen = ImageDraw.Draw(canvas)
    pen.rectangle((60, 60, size[0] - 60, size[1] - 60), outline="#ffffff", width=6)
    pen.text((120, size[1] // 2 - 60), words, fill="#ffffff", font_size=72)
    data = BytesIO()
    canvas.save(data, "JPEG")
    given = {"width": size[0], "height": size[1], "alt_text": f"White on blue: {words}", **values}
    return keep_file(item, name, data.getvalue(), **given)


def open_item(page, newsroom, item, to="", *, is_in=True):
    address = f"/w/{encode('ws', newsroom.pk)}/items/{encode('gen', item.pk)}{to}"
    if is_in:
        page.goto(address)
    else:
        log_in(page, newsroom.alice, address)


@pytest.mark.parametrize("phone", [False, True])
def test_from_the_list_to_the_sentence_of_the_source(open_window, newsroom, stage, phone):
    item = made(newsroom)
    change(item, outlets=[encode("out", stage.pk)])
    others = [
        made(
            newsroom,
            f"The harbour has {n} new boats",
            body=f"The council bought {n} new boats on Monday. " * 8,
        )
        for n in range(3)
    ]
    keep_picture(others[0], "boats.jpg", "Boats")
    change(others[0], bucket="image", engine_output="Quote Graphic")
    change(
        others[1],
        # A word that is wider than a phone.
        title="Verkehrsinfrastrukturmodernisierungsgenehmigungsverfahrensordnung",
        status="failed",
        error={"code": "x", "message": "The model said nothing.", "stage": "draft"},
    )
    change(others[2], held="source_changed")
    page = open_window(phone=phone)
    log_in(page, newsroom.alice)
    go_to(page, "Content")
    look_over(page, "items")
    if phone:
        page.locator("summary", has_text="Search and filter").click()
    page.get_by_label("Status").select_option("to_review")
    with page.expect_navigation():
        page.get_by_role("button", name="Show", exact=True).click()
    assert page.get_by_role("table").get_by_role("link").count() == 2
    follow(page, page.get_by_role("table").get_by_role("link", name="Tram line approved"))
    page.get_by_role("heading", name="Preview").wait_for()
    look_over(page, "item-text")
    quote = item.claims[0]["quote"]
    page.locator("a.said").click()
    page.locator("mark.shown").wait_for()
    assert page.locator("mark.shown").inner_text() == quote
    assert page.locator("a.claim[aria-current=true]").count() == 1
    look_over(page, "item-claim")


def test_without_scripts_a_claim_leads_to_its_sentence(open_window, newsroom):
    item = made(newsroom)
    page = open_window(scripts=False)
    open_item(page, newsroom, item, is_in=False)
    page.locator("a.claim").click()
    assert page.url.endswith("#quote-1")
    shown = page.locator("#quote-1 + mark")
    assert shown.inner_text() == item.claims[0]["quote"]
    plain = page.evaluate("getComputedStyle(document.querySelector('mark')).fontWeight")
    assert plain == "550"


def test_each_kind_of_item_can_be_read_by_everybody(open_window, newsroom, stage):
    item = made(newsroom)
    page = open_window()
    open_item(page, newsroom, item, is_in=False)

    def look(name, **values):
        change(item, **values)
        page.reload()
        page.get_by_role("heading", name="History").wait_for()
        look_over(page, name)

    parts = [
        "The new tram line is approved, after six hours of debate. What it means for those who live along it:",
        "Construction of the northern depot begins in April and will employ about 340 people.",
        "Critics warned that rents along the route have already risen faster than anywhere else in the region. 3/3 https://news.example/tram",
    ]
    quotes = [
        "Construction of the northern depot begins in April and will employ about 340 people.",
        "Critics warned that rents along the route have already risen faster than anywhere else in the region.",
    ]
    claims = [
        {"text": parts[n + 1][:80], "quote": one, "start": TEXT.index(one), "end": TEXT.index(one) + len(one)}
        for n, one in enumerate(quotes)
    ]
    look(
        "item-thread",
        content={"parts": parts},
        body="\n\n".join(parts),
        engine_output="Thread",
        claims=claims,
        generator=MODEL,
    )
    look(
        "item-blog",
        bucket="blog",
        engine_output="Blog Article",
        body=ARTICLE,
        body_format="markdown",
        content={
            "slug": "tram-line-approved",
            "meta_description": "A new line, a depot and free rides.",
            "tags": ["rail", "city"],
        },
    )
    letter = {
        "subject": "Trams, boats and rents",
        "preheader": "Three things from the harbour this week",
        "sections": [],
    }
    look("item-letter", bucket="newsletter", engine_output="Newsletter Issue", content=letter)
    for number, words in enumerate(("Approved", "Six hours", "340 people")):
        keep_picture(item, f"slide-{number}.jpg", words, position=number)
    look(
        "item-carousel",
        bucket="image",
        engine_output="Carousel",
        content={"caption": parts[0]},
        body=parts[0],
    )


def test_a_video_has_its_player_captions_and_scenes(open_window, newsroom):
    item = made(newsroom)
    keep_picture(item, "thumbnail.jpg", "Tram", size=(1080, 1920), role="thumbnail")
    keep_file(
        item,
        "short.webm",
        WEBM,
        role="video",
        kind="video",
        mime_type="video/webm",
        width=64,
        height=64,
        alt_text="A tram crosses a bridge",
    )
    captions = b"WEBVTT\n\n00:00.000 --> 00:01.000\nThe tram is approved.\n"
    keep_file(item, "captions.en.vtt", captions, role="captions", kind="text", mime_type="text/vtt")
    for number in range(6):
        keep_picture(
            item, f"frame-{number}.jpg", f"Scene {number + 1}", size=(270, 480), role="frame", position=number
        )
    change(
        item,
        bucket="video",
        engine_output="Template Short",
        content={"caption": "The tram is approved.", "tags": ["rail"], "script": TEXT},
    )
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    page.wait_for_function("() => document.querySelector('video').readyState > 0")
    page.wait_for_function("() => document.querySelector('video').textTracks[0].cues?.length === 1")
    look_over(page, "item-video")


def test_what_went_wrong_and_what_waits_is_said(open_window, newsroom, stage):
    item = made(newsroom)
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    error = {"code": "checks_failed", "message": "These numbers aren't in the source: 41.", "stage": "write"}
    checks = [
        {"code": "numbers", "outcome": "failed", "message": "These numbers aren't in the source: 41."},
        {"code": "names", "outcome": "warning", "message": "Vera Lind isn't named in the source."},
        *item.checks,
    ]
    change(item, status="failed", error=error, checks=checks, revision=0, claims=[], body="", content={})
    page.reload()
    look_over(page, "item-failed")
    change(item, status="queued", error=None, checks=[])
    page.reload()
    page.get_by_text("Queued. Updates automatically.").wait_for()
    look_over(page, "item-queued")
    second = made(newsroom, "The ferry leaves earlier", body="The ferry leaves at six from Monday on. " * 6)
    promise(second, stage, publish_at=timezone.now() + timedelta(hours=30))
    change(second, held="source_changed")
    open_item(page, newsroom, second)
    look_over(page, "item-held")
    third = made(newsroom, "Rents rise along the route", body="Rents along the route rise by a tenth. " * 6)
    broken = make_stage(newsroom, "reject", name="Strict stage")
    send(promise(third, stage, broken))
    send(Publication.everywhere.get(item=third, outlet=broken))
    Publication.everywhere.filter(item=third, outlet=stage).update(
        url="https://social.example/1", metrics={"views": 1200, "likes": 31}
    )
    open_item(page, newsroom, third)
    look_over(page, "item-published-in-part")


@pytest.mark.parametrize("phone", [False, True])
def test_words_are_edited_and_counted_while_they_are_typed(open_window, newsroom, stage, phone):
    item = made(newsroom)
    change(item, outlets=[encode("out", stage.pk)])
    keep_picture(item, "card.jpg", "Tram", alt_text="")
    page = open_window(phone=phone)
    open_item(page, newsroom, item, is_in=False)
    follow(page, page.get_by_role("link", name="Edit"))
    page.get_by_role("textbox", name="Text", exact=True).fill("Fourteen signs")
    page.get_by_text("14 / 5000").wait_for()
    page.get_by_label("Alt text of card.jpg").fill("A tram on a bridge")
    look_over(page, "item-edit")
    # Somebody else is faster.
    decisions.edit(item, {"title": "Of Vera"}, by="vera@example.test", now=timezone.now())
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Edited by someone else.").wait_for()
    assert page.get_by_role("textbox", name="Text", exact=True).input_value() == "Fourteen signs"
    look_over(page, "item-overtaken")
    page.get_by_role("button", name="Overwrite").click()
    page.get_by_text("Saved.").wait_for()
    assert GeneratedItem.everywhere.get(pk=item.pk).body == "Fourteen signs"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Revision 2 restored.").wait_for()
    assert GeneratedItem.everywhere.get(pk=item.pk).body == item.body
    look_over(page, "item-history")


@pytest.mark.parametrize("phone", [False, True])
def test_an_item_is_decided_on_and_published(open_window, newsroom, stage, phone):
    item = made(newsroom)
    strict = make_stage(newsroom, name="Weekend letters of the harbour and its islands")
    change(item, outlets=[encode("out", one.pk) for one in (stage, strict)])
    page = open_window(phone=phone)
    open_item(page, newsroom, item, is_in=False)
    page.get_by_role("link", name="Reject").click()
    page.get_by_label("Why").fill("We had this last week.")
    look_over(page, "item-reject")
    page.get_by_role("button", name="Reject").click()
    page.get_by_text("Rejected by alice@example.test.").wait_for()
    look_over(page, "item-rejected")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Restored.").wait_for()
    page.get_by_role("button", name="Approve").click()
    page.get_by_text("Approved.", exact=True).wait_for()
    follow(page, page.get_by_role("link", name="Publish", exact=True))
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("Can be published").first.wait_for()
    look_over(page, "item-publish-checked")
    page.get_by_label("Pick a time").check()
    page.get_by_label("Time", exact=True).fill("2020-01-01T10:00")
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_text("This time is in the past.").wait_for()
    local = timezone.now() + timedelta(days=2)
    page.get_by_label("Time", exact=True).fill(f"{local:%Y-%m-%dT%H:%M}")
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_text("Scheduled for Harbour stage").wait_for()
    look_over(page, "item-scheduled")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone.", exact=True).wait_for()
    assert set(Publication.everywhere.values_list("status", flat=True)) == {"cancelled"}


def test_a_variant_is_made_watched_and_chosen(open_window, newsroom, work_until):
    item = made(newsroom)
    page = open_window()
    open_item(page, newsroom, item, is_in=False)
    page.get_by_role("link", name="Create variant").click()
    page.get_by_role("button", name="Create").click()
    page.get_by_text("Creating a variant.").wait_for()
    work_until(lambda: not GeneratedItem.everywhere.filter(status__in=["queued", "generating"]).exists())
    # It opens anew by itself.
    page.get_by_role("heading", name="Preview").wait_for()
    page.get_by_role("heading", name="Variants").wait_for()
    look_over(page, "item-variants")
    page.get_by_role("button", name="Choose variant 2").click()
    page.get_by_text("Variant chosen; 1 other archived.").wait_for()
    assert GeneratedItem.everywhere.get(pk=item.pk).status == "rejected"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("1 variant restored.").wait_for()
    assert GeneratedItem.everywhere.get(pk=item.pk).status == "ready"
