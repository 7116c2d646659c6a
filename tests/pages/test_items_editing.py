"""An item edited by page: what changed is written, what was typed is never lost, and former words can come back."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from config.core.errors import Invalid
from config.core.ids import encode
from pipeline.models import Asset, GeneratedItem, Revision
from pipeline.pages.items.differences import differences
from pipeline.review import decisions
from pipeline.text import article_metadata
from tests.pages.answers import said
from tests.pages.test_items_acts import undone
from tests.pipeline.steps import make_stage, reread


def at(item, name):
    return reverse(name, kwargs={"ws": item.workspace_id, "gen": item.pk})


def become(item, **values):
    GeneratedItem.everywhere.filter(pk=item.pk).update(**values)
    return GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)


def form_of(client, item):
    """The form as a browser would send it back."""
    answer = client.get(at(item, "item_edit"))
    assert answer.status_code == 200
    form = answer.context["form"]
    values = {name: form[name].value() or "" for name in form.fields}
    return {**values, "version": str(answer.context["item"].version), "save": ""}


def save(client, item, **changes):
    return client.post(at(item, "item_edit"), {**form_of(client, item), **changes})


def test_edited_words_are_still_read_against_the_source(editor, item):
    save(editor, item, part_0="A whale was seen in the harbour.")

    html = editor.get(at(item, "item_page")).content.decode()
    assert "Sources" in html
    assert "After your edit, no claim matches the text. Compare it with the source." in html
    assert 'class="source-text"' in html


def test_words_are_edited_and_the_edit_is_undone(editor, item, bob):
    before = item.body
    answer = save(editor, item, part_0="The tram is coming.\r\nIn April.", title="Tram")
    row = reread(item)
    assert (row.title, row.body, row.content) == (
        "Tram",
        "The tram is coming.\nIn April.",
        {"parts": ["The tram is coming.\nIn April."]},
    )
    assert Revision.everywhere.get(item=item, number=2).made_by == bob.email
    undone(editor, answer)
    row = reread(item)
    assert (row.title, row.body, row.revision) == (item.title, before, 3)


def test_what_nobody_changed_writes_nothing(editor, item):
    answer = save(editor, item)
    assert (said(answer), reread(item).version) == (["No changes."], item.version)


def test_posts_of_a_thread_are_edited_added_and_left_out(editor, item):
    parts = ["One.", "Two.", "Three."]
    item = become(item, content={"parts": parts}, body="\n\n".join(parts))
    assert [name for name in form_of(editor, item) if name.startswith("part_")] == [
        f"part_{n}" for n in range(4)
    ]
    save(editor, item, part_1="", part_3="Four.")
    row = reread(item)
    assert (row.content["parts"], row.body) == (["One.", "Three.", "Four."], "One.\n\nThree.\n\nFour.")


def test_typed_fields_are_edited_and_the_others_stay(editor, item):
    content = {
        "slug": "tram",
        "meta_description": "A line.",
        "tags": ["rail"],
        "canonical_url": "https://n.example/",
    }
    item = become(item, bucket="blog", body="# Tram", body_format="markdown", content=content)
    save(editor, item, content_tags="rail, city ,", content_slug="new-tram")
    row = reread(item)
    assert row.content == {**content, "tags": ["rail", "city"], "slug": "new-tram"}
    assert (row.body, row.revision) == ("# Tram", 2)


def test_an_article_is_edited_and_what_follows_from_it_is_made_anew(editor, item):
    body = "# Tram\n\nIt rolls."
    own = {"slug": "tram", "meta_description": "A line.", "tags": ["rail"], "form": "article"}
    content = article_metadata.with_article_data(
        own, title="Tram", body=body, body_format="markdown", language="en", author="Ann"
    )
    item = become(
        item, bucket="blog", title="Tram", body=body, body_format="markdown", content=content, language="en"
    )
    names = [name for name in form_of(editor, item) if name.startswith("content_")]
    assert names == [
        "content_slug",
        "content_meta_description",
        "content_tags",
        "content_canonical_url",
    ]
    longer = f"{body}\n\n{'It rolls on. ' * 300}"
    assert save(editor, item, body=longer, content_tags="rail, city").status_code == 302
    row = reread(item)
    assert (row.body, row.content["tags"], row.content["form"]) == (longer, ["rail", "city"], "article")
    assert (content["reading_minutes"], row.content["reading_minutes"]) == (1, 4)
    assert row.content["json_ld"]["author"]["name"] == "Ann"


@pytest.mark.parametrize(
    "values",
    [
        {"content": {"parts": ["One. ", "\nTwo."]}, "body": "One. \n\n\nTwo."},
        {"content": {"parts": ["Of two\r\nlines.\n"]}, "body": "Of two\r\nlines.\n"},
        {"content": {}, "body": "Without parts. "},
        {"bucket": "blog", "body": "  Words.\n", "content": {"slug": "a ", "tags": ["a, b", " c"]}},
        {"bucket": "image", "body": "Words\n", "content": {"slides": [{"title": "One ", "text": "\n\nTwo\n"}]}},
    ],
)  # fmt: skip
def test_white_space_that_nobody_touched_is_no_edit(editor, item, values):
    row = become(item, title=" Tram ", **values)
    answer = save(editor, item)
    assert (answer.status_code, said(answer)) == (302, ["No changes."])
    assert (reread(item).version, reread(item).body) == (row.version, values["body"])


@pytest.mark.parametrize(("bucket", "name"), [("video", "script"), ("image", "caption")])
def test_what_follows_the_body_is_written_there_alone(editor, item, bucket, name):
    item = become(item, bucket=bucket, body="Old.", content={name: "Old."})
    assert f"content_{name}" not in form_of(editor, item)
    save(editor, item, body="New.")
    assert (reread(item).body, reread(item).content) == ("New.", {name: "New."})


def test_words_of_slides_are_edited(editor, item):
    slides = [
        {"kind": "hook", "heading": "One", "text": "First.", "size": 3},
        {"heading": "Two", "text": "Second.", "size": 4},
    ]
    item = become(item, bucket="image", content={"caption": "Look.", "slides": slides})
    assert [name for name in form_of(editor, item) if name.startswith("content_slides_0")] == [
        "content_slides_0_heading",
        "content_slides_0_text",
    ]
    save(editor, item, content_slides_1_text="Another.")
    assert reread(item).content == {
        "caption": "Look.",
        "slides": [slides[0], {**slides[1], "text": "Another."}],
    }


def test_a_letters_body_leads_its_sections(editor, item):
    content = {"subject": "Week", "preheader": "Three things", "sections": []}
    item = become(item, bucket="newsletter", body="## Trams", body_format="markdown", content=content)
    assert [name for name in form_of(editor, item) if "sections" in name] == []
    save(editor, item, content_subject="This week")
    assert (reread(item).content["subject"], reread(item).body) == ("This week", "## Trams")
    version = reread(item).version
    save(editor, item, body="## Boats\n\nThey leave at six.")
    row = reread(item)
    assert (row.body, row.version) == ("## Boats\n\nThey leave at six.", version + 1)
    assert "They leave at six." in str(row.content["sections"])
    save(editor, item)
    assert reread(item).version == row.version


def test_alt_texts_are_edited_without_a_new_revision(editor, item):
    asset = Asset.everywhere.create(
        workspace_id=item.workspace_id, item=item, role="picture", kind="image", name="a.jpg", path="a.jpg",
        mime_type="image/jpeg", bytes=1, sha256="0" * 64, alt_text="Old",
    )  # fmt: skip
    answer = save(editor, item, **{f"alt_{asset.pk.hex}": "A tram on a bridge"})
    assert (reread(asset).alt_text, reread(item).revision, said(answer)) == (
        "A tram on a bridge",
        1,
        ["Saved."],
    )


def test_frames_of_a_storyboard_ask_for_no_alt_text(editor, item):
    given = {"item": item, "kind": "image", "mime_type": "image/jpeg", "bytes": 1, "sha256": "0" * 64}
    frame, thumbnail = (
        Asset.everywhere.create(
            workspace_id=item.workspace_id, role=role, name=f"{role}.jpg", path=role, **given
        )
        for role in ("frame", "thumbnail")
    )
    names = form_of(editor, item)
    assert [f"alt_{one.pk.hex}" in names for one in (frame, thumbnail)] == [False, True]


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ("content.slides[1].text", "content_slides_1_text"),
        ("content.slides[1]", "content_slides_1_heading"),
        ("content.slides", "content_slides_0_heading"),
        ("content.caption", "content_caption"),
        ("body", "body"),
        ("status", None),
    ],
)
def test_what_the_stage_refuses_is_said_at_its_field(editor, item, monkeypatch, named, field):
    def refuse(*_given, **_more):
        raise Invalid.one(field=named, code="undrawable", message="It can't be drawn.")

    slides = [{"heading": "One", "text": "First."}, {"heading": "Two", "text": "Second."}]
    item = become(item, bucket="image", content={"caption": "Look.", "slides": slides})
    monkeypatch.setattr(decisions, "edit", refuse)
    answer = save(editor, item, content_caption="Other.")
    assert answer.context["form"].errors == {field or "__all__": ["It can't be drawn."]}


def test_who_was_overtaken_keeps_what_they_typed(editor, item):
    form = form_of(editor, item)
    decisions.edit(item, {"title": "Of Vera"}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "item_edit"), {**form, "title": "Of Bob"})
    page = answer.content.decode()
    assert (answer.status_code, reread(item).title) == (200, "Of Vera")
    assert answer.context["overtaken"] == "Edited by someone else."
    assert ['value="Of Bob"' in page, "Of Vera" in page] == [True, True]
    now = reread(item).version
    assert f'name="version" value="{now}"' in page
    editor.post(at(item, "item_edit"), {**form, "title": "Of Bob", "version": now})
    assert reread(item).title == "Of Bob"


def test_a_long_title_is_shown_whole_and_an_edit_leaves_no_empty_column(editor, item):
    title = "A tram line " * 16 + "to the harbour"
    decisions.edit(item, {"title": title, "body": "Of Bob."}, by="bob", now=timezone.now())
    page = editor.get(at(item, "item_page")).content.decode()
    assert f'<h1 class="anywhere">{title}</h1>' in page
    assert ["claim-list" in page, "mapped" in page] == [False, False]


def test_who_was_faster_than_themselves_is_told_so(editor, item, bob):
    form = form_of(editor, item)
    decisions.edit(item, {"title": "In window one"}, by=bob.email, now=timezone.now())
    page = editor.post(at(item, "item_edit"), {**form, "title": "In window two"}).content.decode()
    assert ["You edited it in another window." in page, "someone else" in page] == [True, False]
    assert ["Yours" in page, "The newest" in page, "<del>" in page] == [True, True, False]


@pytest.mark.parametrize(
    ("mine", "theirs", "found"),
    [
        ("The tram rolls.", "The tram rolls.", [("", "The tram rolls.")]),
        ("The red tram rolls", "The tram rolls", [("", "The"), ("mine", " red"), ("", " tram rolls")]),
        ("", "New.", [("theirs", "New.")]),
        ("One\n\nTwo", "One\n\nTwo more", [("", "One\n\nTwo"), ("theirs", " more")]),
    ],
)
def test_words_that_two_versions_dont_share_are_told_apart(mine, theirs, found):
    pieces = differences(mine, theirs)
    assert [(one.side, one.text) for one in pieces] == found
    assert "".join(one.text for one in pieces if one.side != "theirs") == mine
    assert "".join(one.text for one in pieces if one.side != "mine") == theirs


def test_long_texts_that_differ_in_one_place_are_shown_around_it():
    long = "\n".join(f"Line {number} of the text." for number in range(5_000))
    pieces = differences(long, long.replace("Line 2500 ", "Verse 2500 "))
    assert [one.side for one in pieces] == ["", "mine", "theirs", ""]
    assert [one.text for one in pieces[1:3]] == ["Line 2500 of the text.\n", "Verse 2500 of the text.\n"]
    assert max(len(one.text) for one in pieces) < 330


def test_saving_over_another_takes_back_nothing_that_was_never_touched(editor, item):
    content = {"slug": "old", "meta_description": "Old.", "tags": ["a"]}
    item = become(item, bucket="blog", title="Old", body="Old.", body_format="markdown", content=content)
    form = form_of(editor, item)
    newer = {**content, "slug": "of-vera", "tags": ["b"]}
    decisions.edit(item, {"title": "Of Vera", "content": newer}, by="vera", now=timezone.now())
    mine = {"body": "Of Bob.", "content_slug": "of-bob"}
    answer = editor.post(at(item, "item_edit"), {**form, **mine})
    shown = answer.context["form"]
    assert [label for label, _pieces in shown.conflicts] == ["Text (Markdown)", "Address"]
    assert all(one in answer.content.decode() for one in ("<mark>of-bob</mark>", "<mark>of-vera</mark>"))
    again = {name: shown[name].value() or "" for name in shown.fields}
    assert (again["title"], again["content_tags"], again["body"]) == ("Of Vera", "b", "Of Bob.")
    assert editor.post(at(item, "item_edit"), {**again, "save": ""}).status_code == 302
    row = reread(item)
    assert (row.title, row.body, row.content) == ("Of Vera", "Of Bob.", {**newer, "slug": "of-bob"})


def test_a_post_that_another_left_out_is_still_there_to_be_saved(editor, item):
    parts = ["One.", "Two.", "Three.", "Four."]
    item = become(item, content={"parts": parts}, body="\n\n".join(parts))
    form = form_of(editor, item)
    decisions.edit(item, {"content": {"parts": ["One."]}}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "item_edit"), {**form, "part_3": "Of Bob."})
    shown = answer.context["form"]
    assert [field.value() for field in shown.text_fields] == ["One.", "", "", "Of Bob."]


@pytest.mark.parametrize("began", ["", "[]", "{", "[" * 100_000])
def test_a_form_that_doesnt_say_how_it_began_keeps_all_that_it_has(editor, item, began):
    form = form_of(editor, item)
    decisions.edit(item, {"title": "Of Vera"}, by="vera", now=timezone.now())
    answer = editor.post(at(item, "item_edit"), {**form, "part_0": "Of Bob.", "began": began})
    assert answer.context["form"]["title"].value() == item.title


def test_a_form_without_its_version_saves_nothing(editor, item):
    answer = save(editor, item, title="Other", version="")
    assert (answer.status_code, reread(item).title) == (200, item.title)
    assert answer.context["form"].non_field_errors() == ["Reload the page and try again."]


def test_what_cant_be_edited_says_so_and_keeps_what_was_typed(editor, item):
    form = form_of(editor, item)
    become(item, status="published")
    answer = editor.post(at(item, "item_edit"), {**form, "title": "Other"})
    assert answer.status_code == 200
    assert answer.context["form"].non_field_errors() == [
        "It is published; it can be edited while it is partially_published, publish_failed, ready or scheduled."
    ]
    assert ['value="Other"' in answer.content.decode(), reread(item).title] == [True, item.title]


def test_an_empty_post_is_refused_at_its_field(editor, item):
    answer = save(editor, item, part_0=" ")
    assert answer.context["form"].errors == {"part_0": ["This field is required."]}


def test_what_is_typed_is_counted_and_not_stored(editor, item, newsroom):
    stage = make_stage(newsroom)
    become(item, outlets=[encode("out", stage.pk)])
    form = {**form_of(editor, item), "part_0": "Twelve signs"}
    answer = editor.post(at(item, "item_edit"), form, headers={"HX-Request": "true", "HX-Target": "counts"})
    (fit,) = answer.context["fits"]
    assert (fit.count, fit.outlet, reread(item).body) == (12, stage, item.body)
    assert "<form" not in answer.content.decode()


@pytest.mark.parametrize("is_counting", [True, False])
def test_what_was_typed_outlives_the_session(client, left_alone, item, bob, is_counting):
    client.force_login(bob)
    form = {**form_of(client, item), "part_0": "Typed on the train."}
    client = left_alone(bob)
    parts = {"HX-Request": "true", "HX-Target": "counts"} if is_counting else {}
    client.post(at(item, "item_edit"), form, headers=parts)
    decisions.edit(item, {"title": "Of Vera"}, by="vera", now=timezone.now())
    kept = client.session["typed"]
    client.force_login(bob)
    session = client.session
    session["typed"] = kept
    session.save()
    again = client.get(at(item, "item_edit")).context["form"]
    # With the version that was looked at: what came meanwhile isn't overwritten unseen.
    assert (again["part_0"].value(), again["version"].value()) == ("Typed on the train.", str(item.version))


def test_without_a_script_the_button_counts(editor, item, newsroom):
    become(item, outlets=[encode("out", make_stage(newsroom).pk)])
    form = {name: value for name, value in form_of(editor, item).items() if name != "save"}
    answer = editor.post(at(item, "item_edit"), {**form, "part_0": "Twelve signs", "count": ""})
    assert [fit.count for fit in answer.context["fits"]] == [12]
    assert ("Twelve signs" in answer.content.decode(), reread(item).body) == (True, item.body)


def test_a_revision_that_there_is_not_is_none(editor, item):
    for number in ("9", "x", "", "1" * 5000, "²", "-1"):
        assert editor.post(at(item, "item_back"), {"number": number}).status_code == 404
