"""POST /v1/uploads: a file is judged by its bytes, kept for some days, and for as long as something uses it."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import count
from pathlib import Path
from struct import pack

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from PIL import Image

from config.core import limits as core_limits
from config.core.ids import decode
from pipeline import limits
from pipeline.media import uploads
from pipeline.media.source_media import material_of
from pipeline.models import RawItem, Upload, UploadUse
from pipeline.plugins import TryLater
from pipeline.render.probe import probe
from pipeline.render.video import film_process
from tests.contracts.conftest import never_existed, problem, refusal
from tests.render.media_files import audio, video

pytestmark = pytest.mark.usefixtures("own_media")

_names = count(1)


def picture(form="PNG", size=(64, 48), **more):
    data = BytesIO()
    Image.new("RGB", size, "#1e4fa3").save(data, form, **more)
    return data.getvalue()


def png_that_says(width, height):
    """A few bytes that would unpack to that many pixels."""

    def chunk(kind, data):
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


MP4 = video(seconds=0.3)
MP3 = audio("mp3", "libmp3lame", seconds=0.3)
TAKEN = [
    (picture("JPEG"), "image", "image/jpeg"),
    (picture("PNG"), "image", "image/png"),
    (picture("WEBP"), "image", "image/webp"),
    (picture("GIF"), "image", "image/gif"),
    (audio("wav", "pcm_s16le", seconds=0.3), "audio", "audio/wav"),
    (MP3, "audio", "audio/mpeg"),
    (MP3[MP3.index(b"\xff\xfb") :], "audio", "audio/mpeg"),
    (audio("flac", "flac", seconds=0.3), "audio", "audio/flac"),
    (audio("ogg", "libopus", seconds=0.3), "audio", "audio/ogg"),
    (audio("ipod", "aac", seconds=0.3), "audio", "audio/mp4"),
    # The first bytes of a film, and nothing but sound in it.
    (audio("mp4", "aac", seconds=0.3), "audio", "audio/mp4"),
    (MP4, "video", "video/mp4"),
    (video("mov", seconds=0.3), "video", "video/quicktime"),
    (video("webm", seconds=0.3, codec="libvpx", sound="libopus"), "video", "video/webm"),
    ("Die Fähre legt früher ab, um sieben.\nSie ist pünktlich.".encode(), "text", "text/plain"),
    ("\ufeffWith a mark of its order".encode(), "text", "text/plain"),
    (b"# The ferry\n\nIt leaves **earlier**.", "text", "text/markdown"),
    (b"<!doctype html><title>Ferry</title><p>It leaves.", "text", "text/html"),
    (b"  <p>It leaves earlier.</p>", "text", "text/html"),
    (b"pier,time,boat\n4,07:00,Anna\n5,07:20,Berta\n", "text", "text/csv"),
    (b"pier;time\n4;07:00\n5;07:20\n", "text", "text/csv"),
]
REFUSED = [
    (b"%PDF-1.7\n", "The file is a PDF; open it"),
    (b"PK\x03\x04rest", "The file is an archive or an office document"),
    (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "The file is XML or SVG"),
    (b"<?xml version='1.0'?><a/>", "The file is XML or SVG"),
    (b"MZ\x90\x00", "The file is a program"),
    (b"\x00\x01\x02\x03", "The file is of an unknown kind"),
    ("Fähre".encode("latin-1"), "The file is no text in UTF-8"),
    ("Fähre".encode("utf-16"), "The file is no text in UTF-8"),
    (b"\x00\x00\x00\x18ftypheic\x00\x00" + b"\0" * 40, "The file is a picture in HEIC or AVIF"),
]


def hand_over(api, data, name="x.bin", *, field="file", key=None, **more):
    headers = {"Authorization": f"Bearer {api.secret}"}
    if key:
        headers["Idempotency-Key"] = key
    form = {field: SimpleUploadedFile(name, data), **more}
    return Client(raise_request_exception=False).post("/v1/uploads", form, headers=headers)


def handed_over(api, data=None, name="ferry.png"):
    answer = hand_over(api, picture() if data is None else data, name)
    assert answer.status_code == 201, answer.content
    return answer.json()


def row_of(shown):
    return Upload.everywhere.get(pk=decode("upl", shown["id"]))


def files(root):
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(("data", "kind", "mime_type"), TAKEN, ids=[one[2] for one in TAKEN])
def test_kind_is_seen_from_the_bytes(alice, own_media, data, kind, mime_type):
    # The name and the type that the sender says are both wrong.
    shown = handed_over(alice.api, data, "program.exe")
    assert (shown["kind"], shown["type"], shown["bytes"]) == (kind, mime_type, len(data))
    assert shown["name"] == "program.exe"
    size = (64, 48) if kind in {"image", "video"} else (None, None)
    assert (shown["width"], shown["height"]) == size
    assert (shown["url"] is None) is (kind == "text")
    row = row_of(shown)
    assert (own_media / row.path).read_bytes() == data
    assert Path(row.path).suffix != ".exe"


@pytest.mark.parametrize(("data", "begins"), REFUSED, ids=[one[1][12:30] for one in REFUSED])
def test_other_kinds_are_refused_in_words(alice, own_media, data, begins):
    answer = hand_over(alice.api, data, "picture.png")
    assert refusal(answer) == (415, "unsupported_media_type", [("file", "unsupported_file")])
    assert answer.json()["detail"][0]["message"].startswith(begins)
    assert files(own_media) == []


def test_whole_answer(alice, settings):
    before = datetime.now(UTC)
    data = picture()
    shown = handed_over(alice.api, data, "C:\\pictures\\fer\u202ery.png")
    row = row_of(shown)
    expires = datetime.fromisoformat(shown.pop("expires_at"))
    assert (
        before + limits.UPLOADS_KEPT
        <= expires + timedelta(seconds=1)
        <= datetime.now(UTC) + limits.UPLOADS_KEPT + timedelta(seconds=1)
    )
    shown.pop("created_at")
    assert shown == {
        "id": shown["id"],
        "kind": "image",
        "type": "image/png",
        "name": "ferry.png",
        "url": f"{settings.PUBLIC_URL}/media/{row.secret}/image",
        "bytes": len(data),
        "sha256": row.sha256,
        "width": 64,
        "height": 48,
        "test": False,
    }  # fmt: skip


def test_bomb_and_damage_are_refused(alice, own_media):
    bomb = hand_over(alice.api, png_that_says(30_000, 30_000))
    assert refusal(bomb) == (400, "invalid_request", [("file", "too_many_pixels")])
    torn = hand_over(alice.api, picture()[:60])
    assert refusal(torn) == (400, "invalid_request", [("file", "damaged")])
    assert refusal(hand_over(alice.api, b"")) == (400, "invalid_request", [("file", "empty_file")])
    assert files(own_media) == []


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2" + bytes(100), "damaged"),
        (b"OggS#EXTM3U\nhttp://127.0.0.1/a.ts\n", "damaged"),
        (video(seconds=0.3, size=(4112, 16)), "too_many_pixels"),
        (audio("webm", "libopus", seconds=0.3), "other_kind"),
    ],
)
def test_sound_and_video_are_looked_into(alice, own_media, data, code):
    answer = hand_over(alice.api, data, "film.mp4")
    assert refusal(answer) == (400, "invalid_request", [("file", code)])
    assert answer.json()["detail"][0]["message"].endswith(".")
    assert (files(own_media), Upload.everywhere.count()) == ([], 0)


def test_video_is_looked_into_once_and_outside_the_transaction(alice, monkeypatch):
    # Beside the transaction of the test itself.
    depth = len(connection.savepoint_ids)
    seen = []

    def looked(file):
        seen.append(len(connection.savepoint_ids) - depth)
        return probe(file)

    monkeypatch.setattr(uploads.file_types, "probe", looked)
    assert hand_over(alice.api, video(seconds=0.3), key="film").status_code == 201
    assert seen == [0]


def test_a_busy_machine_asks_for_patience(alice, monkeypatch, own_media):
    def busy(file):
        raise TryLater("No process could be started to look at the file.", code="machine_busy")

    monkeypatch.setattr(uploads.file_types, "probe", busy)
    answer = hand_over(alice.api, MP3)
    assert refusal(answer) == (503, "unavailable", [("file", "busy")])
    assert files(own_media) == []


def test_only_so_many_files_are_looked_into_at_once(alice, settings, tmp_path, own_media):
    settings.DATA_DIR = tmp_path
    with film_process.claim_slot(tmp_path / "probes", 1), film_process.claim_slot(tmp_path / "probes", 2):
        answer = hand_over(alice.api, MP3)
        assert refusal(answer) == (503, "unavailable", [("file", "busy")])
        assert answer["Retry-After"] == "5"
        assert files(own_media) == []
        # What needs no process goes on.
        assert hand_over(alice.api, picture()).status_code == 201
    assert hand_over(alice.api, MP3).status_code == 201


def test_a_replay_is_not_looked_into_again(alice, monkeypatch):
    seen = []
    monkeypatch.setattr(uploads.file_types, "probe", lambda file: seen.append(1) or probe(file))
    answers = [hand_over(alice.api, MP3, "a.mp3", key="sound") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert seen == [1]


def test_each_kind_has_its_size(alice, monkeypatch, own_media):
    monkeypatch.setitem(uploads.file_types.SIZE_LIMITS, "text", ("A text file", 1024 * 1024))
    answer = hand_over(alice.api, b"words " * 200_000)
    assert (answer.status_code, answer.json()) == (
        413,
        problem(
            "payload_too_large",
            ("file", "file_too_large", "A text file may have 1 MiB at most; this one has 1.1."),
        ),
    )
    assert files(own_media) == []


def test_body_that_is_announced_as_too_large_is_not_read(alice):
    headers = {"Authorization": f"Bearer {alice.api.secret}"}
    answer = Client(raise_request_exception=False).generic(
        "POST", "/v1/uploads", b"", content_type="multipart/form-data; boundary=x", headers=headers,
        CONTENT_LENGTH=str(limits.UPLOAD_BODY_BYTES + 1),
    )  # fmt: skip
    assert refusal(answer) == (413, "payload_too_large", [(None, "payload_too_large")])


def test_anything_but_a_form_with_one_file_is_refused(alice):
    api = alice.api
    answer = api.post("/uploads", {"file": "x"})
    message = "Send the file as multipart/form-data, in the field file."
    assert (answer.status_code, answer.json()) == (
        415,
        problem("unsupported_media_type", (None, "unsupported_media_type", message)),
    )
    assert refusal(api.post("/uploads")) == (400, "invalid_request", [("file", "required")])
    other = hand_over(api, b"words", field="flie")
    assert refusal(other) == (400, "invalid_request", [("flie", "unknown_field")])
    assert "Did you mean file?" in other.json()["detail"][0]["message"]
    more = hand_over(api, b"words", title="x")
    assert refusal(more) == (400, "invalid_request", [("title", "unknown_field")])
    both = Client().post(
        "/v1/uploads",
        {"file": [SimpleUploadedFile("a", b"a"), SimpleUploadedFile("b", b"b")]},
        headers={"Authorization": f"Bearer {api.secret}"},
    )
    assert refusal(both) == (400, "invalid_request", [("file", "one_file")])
    torn = api.call("POST", "/uploads", data=b"no form at all", kind="multipart/form-data")
    assert refusal(torn) == (400, "invalid_request", [(None, "malformed_form")])
    assert Upload.everywhere.count() == 0


def test_text_beside_the_file_has_its_limit(alice):
    answer = hand_over(alice.api, b"words", title="x" * (core_limits.RAW_BODY_BYTES + 1))
    assert refusal(answer) == (413, "payload_too_large", [(None, "payload_too_large")])


def test_one_key_makes_one_upload(alice, own_media):
    data = picture()
    first = hand_over(alice.api, data, "a.png", key="one")
    again = hand_over(alice.api, data, "a.png", key="one")
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again["Idempotency-Replayed"] == "true"
    other = hand_over(alice.api, picture("GIF"), "a.png", key="one")
    assert refusal(other)[:2] == (422, "idempotency_key_reused")
    assert (Upload.everywhere.count(), len(files(own_media))) == (1, 1)


def test_a_hoard_is_refused(alice, monkeypatch):
    monkeypatch.setattr(limits, "UPLOADS_UNUSED_BYTES", 1000)
    first = handed_over(alice.api, b"w" * 600)
    answer = hand_over(alice.api, b"w" * 600)
    assert refusal(answer) == (409, "conflict", [("file", "too_many_unused")])
    alice.push(media=[{"upload": first["id"]}])
    assert hand_over(alice.api, b"w" * 600).status_code == 201


# --- In raw items ----------------------------------------------------------------------------------------------------


def test_a_push_names_it_and_keeps_it(alice):
    shown = handed_over(alice.api)
    raw = alice.push(media=[{"upload": shown["id"], "type": "text/html"}, {"url": "https://a.example/b.png"}])
    # Its type is what was seen, whatever is said.
    assert raw["media"] == [
        {"upload": shown["id"], "type": "image/png"},
        {"url": "https://a.example/b.png"},
    ]
    row = row_of(shown)
    assert row.expires_at is None
    uploads.delete_expired(datetime.now(UTC) + timedelta(days=100))
    assert row_of(shown).pk == row.pk


def test_whose_a_medium_is_stays_with_it_and_reaches_the_film(alice):
    shown = handed_over(alice.api)
    given = {"upload": shown["id"], "author": "Ada Green", "licence": "CC BY 4.0"}
    raw = alice.push(media=[given])
    assert raw["media"] == [{**given, "type": "image/png"}]
    (still,) = material_of(RawItem.everywhere.get(pk=decode("raw", raw["id"]))).stills
    assert (still.author, still.licence) == ("Ada Green", "CC BY 4.0")
    answer = alice.api.post("/raw", alice.content(media=[{**given, "author": "x" * 201}]))
    assert refusal(answer) == (400, "invalid_request", [("media[0].author", "max_length")])


def test_media_is_an_address_or_an_upload(alice):
    shown = handed_over(alice.api)
    for wrong in ({"type": "image/png"}, {"upload": shown["id"], "url": "https://a.example/b"}):
        answer = alice.api.post("/raw", alice.content(media=[wrong]))
        assert refusal(answer) == (400, "invalid_request", [("media[0]", "one_of")])


@pytest.mark.parametrize("path", ["/raw", "/estimate"])
def test_unknown_uploads_are_refused(alice, charlie, path):
    theirs = handed_over(charlie.api)["id"]
    of_test = handed_over(alice.client(is_test=True))["id"]
    for key in (theirs, of_test, never_existed("upl")):
        answer = alice.api.post(path, alice.content(media=[{"url": "https://a.example/b"}, {"upload": key}]))
        assert refusal(answer) == (400, "invalid_request", [("media[1].upload", "unknown_upload")])
    assert RawItem.everywhere.count() == 0
    assert UploadUse.everywhere.count() == 0


def test_what_two_items_use_outlives_the_first(alice, own_media):
    shown = handed_over(alice.api)
    first, second = (alice.push(media=[{"upload": shown["id"]}]) for _ in range(2))
    later = datetime.now(UTC) + timedelta(minutes=1)
    alice.api.delete(f"/raw/{first['id']}")
    assert (uploads.delete_expired(later), len(files(own_media))) == (0, 1)
    alice.api.delete(f"/raw/{second['id']}")
    assert (uploads.delete_expired(later), files(own_media)) == (1, [])
    assert Upload.everywhere.count() == 0
    assert list(own_media.iterdir()) == []


def test_what_nothing_uses_is_forgotten(alice, own_media):
    handed_over(alice.api)
    now = datetime.now(UTC)
    assert uploads.delete_expired(now + limits.UPLOADS_KEPT - timedelta(minutes=1)) == 0
    assert (uploads.delete_expired(now + limits.UPLOADS_KEPT + timedelta(minutes=1)), files(own_media)) == (
        1,
        [],
    )


def test_pushing_what_was_forgotten_meanwhile_leaves_nothing(alice, monkeypatch):
    shown = handed_over(alice.api)
    add_mime_types = uploads.add_mime_types

    def forgotten_after(*given, **more):
        found = add_mime_types(*given, **more)
        uploads.delete_expired(datetime.now(UTC) + timedelta(days=8))
        return found

    monkeypatch.setattr(uploads, "add_mime_types", forgotten_after)
    answer = alice.api.post("/raw", alice.content(media=[{"upload": shown["id"]}]))
    assert refusal(answer) == (400, "invalid_request", [("media", "unknown_upload")])
    assert RawItem.everywhere.count() == 0


# --- Its address -----------------------------------------------------------------------------------------------------


def test_pictures_are_served_and_text_never(alice):
    data = picture()
    shown = handed_over(alice.api, data)
    path = shown["url"].split("/media/")[1]
    answer = Client().get(f"/media/{path}")
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, data, "image/png")
    assert answer["X-Content-Type-Options"] == "nosniff"
    page = row_of(handed_over(alice.api, b"<html><script>alert(1)</script>"))
    for name in ("text", "image", page.path.split("/")[1]):
        assert Client().get(f"/media/{page.secret}/{name}").status_code == 404
