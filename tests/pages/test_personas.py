"""Personas and their topics as people manage them: five sections, looks, versions with a way back, the pool."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from PIL import Image

from accounts import workspaces
from accounts.models import Workspace
from config.core import task_runner
from config.core.ids import encode
from pipeline.media import files
from pipeline.models import Asset, GeneratedItem, Persona, Topic, Upload, UploadUse, WorkspaceDefaults
from pipeline.personas import crud as stage
from tests.pipeline.steps import NOON, push_raw

pytestmark = pytest.mark.usefixtures("own_media")


@pytest.fixture
def ada(newsroom):
    return stage.create(newsroom, {"name": "Ada"}, by="alice@example.test", now=NOON)


def at(row, name, **more):
    return reverse(name, kwargs={"ws": row.workspace_id, "per": row.pk, **more})


def picture(size=(300, 200), colour="#c2410c", **more):
    data = BytesIO()
    Image.new("RGB", size, colour).save(data, "JPEG", **more)
    return SimpleUploadedFile("me.jpg", data.getvalue())


def form_of(row, **changes):
    row.refresh_from_db()
    given = {"name": row.name, "handle": row.handle, "language": row.language, "version": row.version}
    names = ("links", "who_you_are", "voice", "banned_words", "starts_with", "ends_with", "max_words")
    more = ("max_hashtags", "max_emoji", "other", "reference_posts", "approved_lines")
    return {**given, **dict.fromkeys((*names, *more), ""), **changes}


def undo_of(answer):
    """The address and the fields of the undo that a page offers."""
    found = re.search(
        r'class="toast.*?<form method="post" action="([^"]+)">(.*?)</form>',
        answer.content.decode(),
        re.DOTALL,
    )
    fields = dict(re.findall(r'name="(number|version)" value="([^"]*)"', found[2]))
    return found[1], fields


def test_list_names_the_default(editor, newsroom, ada):
    answer = editor.get(reverse("personas", kwargs={"ws": newsroom.pk}))
    assert [row.name for row in answer.context["rows"]].count("Ada") == 1
    default = WorkspaceDefaults.everywhere.get(workspace=newsroom).persona_id
    assert answer.context["default"] == default
    assert answer.content.decode().count(">Default</span>") == 1


def test_a_new_one_is_made_once(editor, newsroom):
    address = reverse("persona_create", kwargs={"ws": newsroom.pk})
    form = {"name": "Night desk", "language": "en-GB", "once": "x"}
    first = editor.post(address, form)
    made = Persona.everywhere.get(workspace=newsroom, name="Night desk")
    assert (first["Location"], made.language) == (at(made, "persona"), "en-GB")
    editor.post(address, form)
    assert Persona.everywhere.filter(workspace=newsroom, name="Night desk").count() == 1
    wrong = editor.post(address, {"name": "X", "language": "e n"})
    assert list(wrong.context["form"].errors) == ["language"]


def test_five_sections_are_kept_as_a_version(editor, ada):
    answer = editor.post(
        at(ada, "persona"),
        form_of(
            ada,
            handle="@ada",
            who_you_are="Ada writes about ferries.",
            voice="Calm.",
            banned_words="synergy\r\n\r\nleverage\r\nsynergy",
            ends_with_question="on",
            starts_with="News:",
            max_emoji="0",
            other="Speak of people by name.",
            reference_posts="First post\nwith two lines\n---\nSecond",
            approved_lines="Ferries run daily.",
            links="https://harbour.example/",
        ),
    )
    assert answer.status_code == 302
    ada.refresh_from_db()
    assert (ada.version, ada.handle, ada.banned_words) == (2, "@ada", ["synergy", "leverage"])
    assert ada.required_structures == [
        {"kind": "ends_with_question"},
        {"kind": "starts_with", "text": "News:"},
        {"kind": "max_emoji", "most": 0},
        {"kind": "other", "text": "Speak of people by name."},
    ]
    assert ada.reference_posts == ["First post\nwith two lines", "Second"]
    # The editor begins with what was kept: saving it again changes nothing.
    form = editor.get(at(ada, "persona")).context["form"]
    again = {name: value for name, value in form.initial.items() if value is not None and value is not False}
    editor.post(at(ada, "persona"), {**form_of(ada), **again})
    ada.refresh_from_db()
    assert ada.version == 2


def test_saving_offers_a_way_back(editor, ada):
    editor.post(at(ada, "persona"), form_of(ada, voice="Loud."))
    address, fields = undo_of(editor.get(at(ada, "persona")))
    assert (address, fields) == (at(ada, "persona_back"), {"number": "1", "version": "2"})
    editor.post(address, fields)
    ada.refresh_from_db()
    assert (ada.voice, ada.version) == ("", 3)
    rows = editor.get(at(ada, "persona_versions")).context["rows"]
    assert [(row["version"].number, row["changed"]) for row in rows] == [(3, "voice"), (2, "voice"), (1, "")]
    assert [row["version"].made_by for row in rows] == [
        "bob@example.test",
        "bob@example.test",
        "alice@example.test",
    ]


def test_two_editors_do_not_overwrite_each_other(editor, ada):
    stale = form_of(ada, voice="Mine")
    editor.post(at(ada, "persona"), form_of(ada, voice="First"))
    answer = editor.post(at(ada, "persona"), stale, follow=True)
    assert "Changed since you opened it." in answer.content.decode()
    ada.refresh_from_db()
    assert (ada.voice, ada.version) == ("First", 2)


def test_faults_stand_at_their_fields(editor, ada):
    form = form_of(ada, links="not an address", handle="two words", max_words="-1")
    errors = editor.post(at(ada, "persona"), form).context["form"].errors
    assert set(errors) == {"max_words"}
    errors = editor.post(at(ada, "persona"), {**form, "max_words": ""}).context["form"].errors
    assert set(errors) == {"links", "handle"}
    ada.refresh_from_db()
    assert ada.version == 1


# --- Looks -----------------------------------------------------------------------------------------------------------


def look_of(row, **changes):
    row.refresh_from_db()
    return {"primary": "#112233", "accent": "#445566", "version": row.version, "save": "", **changes}


def test_colours_are_kept_where_wanted(editor, ada):
    editor.post(at(ada, "persona_look"), look_of(ada, own_colours="on"))
    ada.refresh_from_db()
    assert ada.brand == {"primary": "#112233", "accent": "#445566"}
    editor.post(at(ada, "persona_look"), look_of(ada))
    ada.refresh_from_db()
    assert (ada.brand, ada.version) == ({}, 3)


def test_pace_and_pitch_of_the_voice_are_kept_and_let_go(editor, ada):
    editor.post(at(ada, "persona_look"), look_of(ada, voice_rate="180", voice_pitch="0"))
    ada.refresh_from_db()
    assert ada.brand == {"voice_rate": "180", "voice_pitch": "0"}
    page = editor.get(at(ada, "persona_look")).content.decode()
    assert 'value="180"' in page
    refused = editor.post(at(ada, "persona_look"), look_of(ada, voice_rate="20"))
    assert "greater than or equal to 80" in refused.content.decode()
    editor.post(at(ada, "persona_look"), look_of(ada))
    ada.refresh_from_db()
    assert ada.brand == {}


def test_a_portrait_is_square_clean_and_drawn(editor, ada, newsroom):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    editor.post(at(ada, "persona_look"), look_of(ada, portrait=picture(exif=exif)))
    ada.refresh_from_db()
    kept = Upload.everywhere.get()
    assert ada.brand == {"portrait": encode("upl", kept.pk)}
    assert (kept.mime_type, kept.width, kept.height, kept.expires_at) == ("image/png", 800, 800, None)
    assert UploadUse.everywhere.get().persona_id == ada.pk
    data = files.path_of(kept.path).read_bytes()
    assert b"taken at home" not in data
    with Image.open(BytesIO(data)) as opened:
        assert dict(opened.getexif()) == {}
    page = editor.get(at(ada, "persona_look")).content.decode()
    address = re.search(r'<img class="portrait" src="([^"]+)"', page)[1]
    assert editor.get(address).content == data
    # A picture that is made now shows it: without a portrait the same words look otherwise.
    assert drawn_by(newsroom, ada) != drawn_by(
        newsroom, stage.create(newsroom, {"name": "Ada"}, by="x", now=NOON)
    )


def drawn_by(workspace, persona):
    raw = push_raw(
        workspace, engines=["Persona Tweet"], persona_id=persona.pk, external_id=persona.pk.hex
    ).raw_item
    task_runner.work_all_due("generate.run_item")
    item = GeneratedItem.everywhere.get(raw_item=raw)
    # That another item says the same is told of the second one; it is no fault of its picture.
    warned = [one["code"] for one in item.checks if one["outcome"] == "warning"]
    assert (item.status, [code for code in warned if code != "repetition"]) == ("ready", [])
    return sorted(Asset.everywhere.filter(item=item).values_list("sha256", flat=True))


def test_taking_the_portrait_off_keeps_it_for_the_way_back(editor, ada):
    editor.post(at(ada, "persona_look"), look_of(ada, portrait=picture()))
    editor.post(at(ada, "persona_look"), look_of(ada, without_portrait="on"))
    ada.refresh_from_db()
    assert (ada.brand, ada.version, Upload.everywhere.filter(expires_at=None).count()) == ({}, 3, 1)


@pytest.mark.parametrize(
    ("data", "begins"),
    [
        (b"Just words.", "A portrait is a picture"),
        (b"%PDF-1.7", "The file is a PDF"),
        (b"\x89PNG\r\n\x1a\nrest", "The picture is damaged"),
    ],
)
def test_what_is_no_portrait_is_refused(editor, ada, data, begins):
    form = look_of(ada, portrait=SimpleUploadedFile("me.png", data))
    answer = editor.post(at(ada, "persona_look"), form)
    assert answer.context["form"].errors["portrait"][0].startswith(begins)
    assert Upload.everywhere.count() == 0


def test_trying_writes_and_draws_and_stores_nothing(editor, ada):
    words = "The harbour of Norden bought seven new cranes on Monday. Each lifts forty tonnes, twice as much as the old ones."
    answer = editor.post(at(ada, "persona_look"), {"try": "", "words": words})
    samples = {one["tried"].engine: one for one in answer.context["samples"]}
    assert samples["Persona Tweet"]["picture"].startswith("data:image/png;base64,")
    assert samples["Short Post"]["tried"].words.split(".")[0] in words
    assert (GeneratedItem.everywhere.count(), Asset.everywhere.count()) == (0, 0)
    short = editor.post(at(ada, "persona_look"), {"try": "", "words": "No."})
    assert all(one["tried"].faults for one in short.context["samples"])


# --- Deleting --------------------------------------------------------------------------------------------------------


def test_deleting_can_be_taken_back(editor, ada, newsroom):
    answer = editor.post(at(ada, "persona_delete"), follow=True)
    assert "Ada" not in [row.name for row in answer.context["rows"]]
    assert editor.get(at(ada, "persona")).status_code == 404
    address, _ = undo_of(answer)
    editor.post(address)
    assert editor.get(at(ada, "persona")).status_code == 200


def test_the_default_is_not_deleted(editor, newsroom):
    default = WorkspaceDefaults.everywhere.get(workspace=newsroom).persona
    answer = editor.post(at(default, "persona_delete"), follow=True)
    assert "choose another one in the content defaults first" in answer.content.decode()
    default.refresh_from_db()
    assert default.deleted_at is None


# --- Topics ----------------------------------------------------------------------------------------------------------


def topic_of(**changes):
    given = {"title": "Winter timetable", "notes": "Boats stop at ten.", "weight": "2", "cooldown_days": "7"}
    return {
        **given,
        "angles": "For tourists\nFor commuters",
        "evidence": "https://a.example/x\nBoats stop.",
        **changes,
    }


def test_a_topic_is_added_once_and_changed(editor, ada):
    assert "No topics yet" in editor.get(at(ada, "topics")).content.decode()
    form = topic_of(once="x", season_from="12-01", season_to="02-28", max_per_month="3")
    editor.post(at(ada, "topic_add"), form)
    editor.post(at(ada, "topic_add"), form)
    row = Topic.everywhere.get()
    assert (row.title, row.persona_id, row.weight, row.cooldown_days, row.max_per_month) == (
        "Winter timetable", ada.pk, 2, 7, 3,
    )  # fmt: skip
    assert (row.angles, row.season_from, row.season_to) == (
        ["For tourists", "For commuters"],
        "12-01",
        "02-28",
    )
    assert row.evidence == [{"url": "https://a.example/x", "text": ""}, {"url": "", "text": "Boats stop."}]
    initial = editor.get(at(ada, "topic", top=row.pk)).context["form"].initial
    editor.post(
        at(ada, "topic", top=row.pk),
        {**initial, "title": "Summer timetable", "everybody": "on", "season_from": "", "season_to": ""},
    )
    row.refresh_from_db()
    assert (row.title, row.persona_id, row.season_from, row.version) == ("Summer timetable", None, "", 2)
    assert row.evidence[0] == {"url": "https://a.example/x", "text": ""}


EVIDENCE = [
    {"url": "https://rye.example/study", "text": "Rye keeps\nfor 9 days."},
    {"url": "", "text": "https://rye.example says so."},
    {"url": "", "text": "Our own log."},
]


@pytest.mark.parametrize(
    ("added", "evidence"),
    [
        ("", EVIDENCE),
        (
            "\r\nhttps://b.example/y It is so.",
            [*EVIDENCE, {"url": "https://b.example/y", "text": "It is so."}],
        ),
    ],
)
def test_saving_a_topic_keeps_its_evidence(editor, ada, added, evidence):
    row = Topic.everywhere.create(workspace=ada.workspace, persona=ada, title="Rye", evidence=EVIDENCE)
    initial = editor.get(at(ada, "topic", top=row.pk)).context["form"].initial
    given = {name: value for name, value in initial.items() if value not in (None, False)}
    editor.post(
        at(ada, "topic", top=row.pk), {**given, "title": "Why rye", "evidence": initial["evidence"] + added}
    )
    row.refresh_from_db()
    assert (row.title, row.evidence) == ("Why rye", evidence)


def test_a_topic_that_another_changed_meanwhile_is_not_overwritten(editor, ada):
    row = Topic.everywhere.create(workspace=ada.workspace, persona=ada, title="Rye", version=2)
    editor.post(at(ada, "topic", top=row.pk), topic_of(version="1"))
    row.refresh_from_db()
    assert (row.title, row.version) == ("Rye", 2)
    editor.post(at(ada, "topic", top=row.pk), topic_of(version="2"))
    row.refresh_from_db()
    assert (row.title, row.version) == ("Winter timetable", 3)


def test_the_season_is_that_of_the_place(editor, ada, monkeypatch):
    Topic.everywhere.create(
        workspace=ada.workspace, persona=ada, title="Snow", season_from="12-01", season_to="02-28"
    )
    moment = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)
    monkeypatch.setattr("pipeline.pages.topics.views.utc_now", lambda: moment)
    for zone, said in (("UTC", "Out of season"), ("Europe/Berlin", "Active")):
        Workspace.everywhere.filter(pk=ada.workspace_id).update(timezone=zone)
        (row,) = editor.get(at(ada, "topics")).context["rows"]
        assert row["state"].label == said


def test_faults_of_a_topic_are_told(editor, ada):
    form = topic_of(season_from="13-01", season_to="02-28", weight="0", title="")
    errors = editor.post(at(ada, "topic_add"), form).context["form"].errors
    assert set(errors) == {"title", "weight"}
    errors = (
        editor.post(at(ada, "topic_add"), topic_of(season_from="13-01", season_to="02-28"))
        .context["form"]
        .errors
    )
    assert set(errors) == {"season_from"}
    assert Topic.everywhere.count() == 0


def test_a_topic_is_paused_used_deleted_and_restored(editor, ada):
    editor.post(at(ada, "topic_add"), topic_of())
    row = Topic.everywhere.get()
    editor.post(at(ada, "topic_pause", top=row.pk), {"active": "no"})
    assert [one["state"].label for one in editor.get(at(ada, "topics")).context["rows"]] == ["Paused"]
    editor.post(at(ada, "topic_pause", top=row.pk), {"active": "yes"})
    row.refresh_from_db()
    assert row.is_active is True
    answer = editor.post(at(ada, "topic_delete", top=row.pk), follow=True)
    assert answer.context["rows"] == []
    address, _ = undo_of(answer)
    editor.post(address)
    assert len(editor.get(at(ada, "topics")).context["rows"]) == 1


def test_nothing_of_another_workspace_is_there(editor, newsroom, charlie, ada):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    strange = WorkspaceDefaults.everywhere.get(workspace=theirs).persona
    for name in ("persona", "persona_look", "persona_versions", "topics", "topic_add"):
        address = reverse(name, kwargs={"ws": newsroom.pk, "per": strange.pk})
        assert editor.get(address).status_code == 404, name
    topic = Topic.everywhere.create(workspace=theirs, title="Theirs")
    assert editor.get(at(ada, "topic", top=topic.pk)).status_code == 404
    assert "Theirs" not in editor.get(at(ada, "topics")).content.decode()
