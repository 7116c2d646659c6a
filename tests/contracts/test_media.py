"""GET /media/<secret>/<name>: the files of generated items."""

from __future__ import annotations

import hashlib
import os
from wsgiref.util import FileWrapper

import pytest

from pipeline.models import Asset
from pipeline.pages.serve_media import FileRange
from tests.contracts.conftest import NOT_FOUND, Api

pytestmark = pytest.mark.usefixtures("own_media")


@pytest.fixture
def shown(alice):
    """The first file of a card, as the API shows it."""
    made = alice.ready(engines=["Persona Tweet"])
    return alice.api.read(f"/generated/{made['id']}")["assets"][0]


@pytest.fixture
def path(shown):
    return shown["url"].removeprefix("http://127.0.0.1:8000")


def get(path, method="get", **headers):
    return getattr(Api(None).client, method)(
        path, headers={name.replace("_", "-"): said for name, said in headers.items()}
    )


def test_file_is_what_the_item_says(shown, path):
    answer = get(path)
    data = answer.content
    tag = hashlib.sha256(data).hexdigest()
    assert (answer.status_code, len(data), data[:3]) == (200, shown["bytes"], b"\xff\xd8\xff")
    told = {name: answer[name] for name in answer.headers if name not in {"X-Request-Id", "Vary"}}
    assert told == {
        "Content-Type": "image/jpeg",
        "Content-Length": str(shown["bytes"]),
        "Content-Disposition": "inline",
        "X-Content-Type-Options": "nosniff",
        "Accept-Ranges": "bytes",
        "ETag": f'"{tag}"',
        "Cache-Control": "public, max-age=31536000, immutable",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    assert not answer.cookies


def test_head_tells_the_same_without_the_file(path):
    whole, head = get(path), get(path, "head")
    assert (head.status_code, head.content) == (200, b"")
    names = ("Content-Type", "Content-Length", "ETag", "Cache-Control", "Accept-Ranges")
    assert [head[name] for name in names] == [whole[name] for name in names]


def test_known_file_is_not_sent_again(path):
    tag = get(path)["ETag"]
    for said in (tag, f'"x", W/{tag}', "*"):
        answer = get(path, if_none_match=said)
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    assert get(path, if_none_match='"another"').status_code == 200


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=10-19", slice(10, 20)),
        ("bytes=100-", slice(100, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=0-", slice(0, None)),
        ("bytes=5-99999999", slice(5, None)),
        ("bytes=-99999999", slice(0, None)),
    ],
)
def test_range_is_answered_with_that_part(path, asked, span):
    data = get(path).content
    answer = get(path, range=asked)
    start, end, _ = span.indices(len(data))
    assert (answer.status_code, answer.content) == (206, data[span])
    assert answer["Content-Range"] == f"bytes {start}-{end - 1}/{len(data)}"
    assert answer["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=9-3", "bytes=0-1,4-5", "lines=1-2", "bytes=-", "bytes=a-b", ""])
def test_what_is_no_range_is_answered_with_the_whole(path, shown, asked):
    answer = get(path, range=asked)
    assert (answer.status_code, len(answer.content), "Content-Range" in answer) == (
        200,
        shown["bytes"],
        False,
    )


def test_range_of_an_older_file_is_answered_with_the_whole(path, shown):
    tag = get(path)["ETag"]
    assert get(path, range="bytes=0-3", if_range=tag).status_code == 206
    assert len(get(path, range="bytes=0-3", if_range='"older"').content) == shown["bytes"]


@pytest.mark.parametrize("asked", ["bytes=99999999-", "bytes=-0"])
def test_range_outside_is_refused_with_the_size(path, shown, asked):
    answer = get(path, range=asked)
    size = shown["bytes"]
    assert (answer.status_code, answer["Content-Range"], answer.json()) == (
        416,
        f"bytes */{size}",
        {
            "error": "invalid_request",
            "detail": [
                {
                    "field": "Range",
                    "code": "range_not_satisfiable",
                    "message": f"The file has {size} bytes; the range lies outside.",
                }
            ],
        },
    )


def test_revoked_file_is_gone(alice, path, shown):
    other = alice.api.read(f"/generated/{alice.ready(engines=['Persona Tweet'])['id']}")["assets"][0]
    Asset.everywhere.filter(secret=path.split("/")[2]).update(revoked_at="2026-01-01T00:00:00Z")
    answer = get(path)
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert get(other["url"].removeprefix("http://127.0.0.1:8000")).status_code == 200


def test_addresses_that_were_never_given_out_are_not_found(path, own_media):
    (own_media / "secret.txt").write_text("secret")
    _, _, secret, name = path.split("/")
    for wrong in (
        f"/media/{'A' * 22}/{name}",
        f"/media/{secret}/another.jpg",
        f"/media/{secret}/../secret.txt",
        f"/media/{secret}/%2e%2e%2fsecret.txt",
        f"/media/{secret}",
        "/media/secret.txt",
        "/media/",
    ):
        answer = get(wrong)
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND), wrong


def test_file_that_is_missing_from_the_folder_is_not_found(path, own_media):
    for one in own_media.rglob("*.jpg"):
        one.unlink()
    assert (get(path).status_code, get(path).json()) == (404, NOT_FOUND)


def test_other_methods_are_refused(path):
    answer = get(path, "post")
    assert (answer.status_code, answer["Allow"], answer.json()["error"]) == (
        405,
        "GET, HEAD",
        "method_not_allowed",
    )


def test_a_large_file_is_sent_in_pieces_and_closed(path, own_media):
    asset = Asset.everywhere.get(secret=path.split("/")[2])
    data = bytes(range(256)) * 4096
    (own_media / asset.path).write_bytes(data)
    Asset.everywhere.filter(pk=asset.pk).update(bytes=len(data))
    answer = get(path, range="bytes=1000-600999")
    assert (answer.status_code, answer["Content-Length"]) == (206, "600000")
    pieces = list(answer)
    assert [len(one) for one in pieces] == [262_144, 262_144, 75_712]
    assert b"".join(pieces) == data[1000:601_000]


def test_what_is_not_read_to_its_end_is_closed_too(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"x" * 1_000_000)
    span = FileRange(file, 0, 1_000_000)
    assert len(next(iter(span))) == 262_144
    span.close()
    with pytest.raises(ValueError, match="closed"):
        list(span)


def test_a_server_that_sends_files_by_itself_sends_the_part_and_closes_it(path, own_media):
    asset = Asset.everywhere.get(secret=path.split("/")[2])
    (own_media / asset.path).write_bytes(bytes(range(256)) * 4096)
    Asset.everywhere.filter(pk=asset.pk).update(bytes=256 * 4096)
    answer = get(path, range="bytes=1000-600999")
    span = answer.file_to_stream
    # As Django's `WSGIHandler` hands it to the server.
    span.close = answer.close
    sent = FileWrapper(span, answer.block_size)
    assert os.lseek(span.fileno(), 0, os.SEEK_CUR) == 1000
    assert b"".join(sent) == (bytes(range(256)) * 4096)[1000:601_000]
    sent.close()
    assert span.file.closed
