"""Limits of a bucket: exactly the limit passes, one more is named."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pipeline.platforms.payload_types import Adapted, Payload, PayloadAsset
from pipeline.platforms.rules import BucketRule, MediaRule, as_json, graphemes, problems_of, unshown_files

IMAGES = MediaRule(
    ("image/png", "image/jpeg"), 2, 1000, max_pixels=1200, max_side=60, ratio=(0.5, 2.0), alt_max=10
)
VIDEO = MediaRule(("video/mp4",), 1, 5000, min_seconds=1.0, max_seconds=60.0)
RULE = BucketRule(
    10, graphemes, "graphemes", text_max_bytes=40, title_max=5, parts_most=2, images=IMAGES, video=VIDEO
)
PICTURE = PayloadAsset(
    "https://m.example/a.png", "image/png", "image", "Alt.", 1000, "a.png", width=40, height=30
)
FILM = PayloadAsset("https://m.example/a.mp4", "video/mp4", "video", "", 5000, "a.mp4", duration=60.0)


def found(
    rule: BucketRule = RULE, *, parts: tuple[str, ...] = ("Hello.",), **changes: Any
) -> list[tuple[Any, str]]:
    payload = Payload(
        **{
            "item": "gen_1",
            "revision": 1,
            "bucket": "text",
            "title": "Title",
            "body": "\n\n".join(parts),
            "body_format": "text",
            **changes,
        }
    )
    return [(one.field, one.code) for one in problems_of(rule, Adapted(payload, parts))]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("x" * 10,), []),
        (("x" * 11,), [("body", "too_long")]),
        (("e\u0301" * 10,), []),
        # Ten graphemes of 25 bytes each are too many bytes.
        (("👨‍👩‍👧‍👦" * 2,), [("body", "too_long")]),
        (("one", "x" * 11), [("content.parts[1]", "too_long")]),
        (("one", "two"), []),
        (("one", "two", "three"), [("content.parts", "too_many_parts")]),
        (
            ("", " \n"),
            [("body", "empty"), ("content.parts[0]", "empty_part"), ("content.parts[1]", "empty_part")],
        ),
        (("one", "\u3000\n"), [("content.parts[1]", "empty_part")]),
        (("",), [("body", "empty")]),
    ],
)
def test_words(parts: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert found(parts=parts) == expected


def test_title() -> None:
    assert found(title="12345") == []
    assert found(title="123456") == [("title", "too_long")]
    needs = dataclasses.replace(RULE, needs_title=True)
    assert found(needs, title=" ") == [("title", "required")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"bytes": 1001}, "file_too_large"),
        ({"mime_type": "image/gif"}, "type_not_taken"),
        ({"width": 41, "height": 30}, "too_many_pixels"),
        ({"width": 61, "height": 10}, "too_large"),
        ({"width": 20, "height": 41}, "wrong_ratio"),
        ({"alt_text": "x" * 11}, "alt_text_too_long"),
    ],
)
def test_picture_beyond_a_limit(changes: dict[str, Any], code: str) -> None:
    assert found(assets=(PICTURE,)) == []
    assert ("assets[0]", code) in found(assets=(dataclasses.replace(PICTURE, **changes),))


@pytest.mark.parametrize(
    ("seconds", "codes"), [(60.0, []), (60.1, ["too_long"]), (1.0, []), (0.9, ["too_short"]), (None, [])]
)
def test_film_by_its_length(seconds: float | None, codes: list[str]) -> None:
    film = dataclasses.replace(FILM, duration=seconds)
    assert [code for _, code in found(assets=(film,))] == codes


def test_number_of_files() -> None:
    assert found(assets=(PICTURE, PICTURE)) == []
    assert found(assets=(PICTURE,) * 3) == [("assets", "too_many_files")]
    # What only announces a video is no picture of the post.
    thumbnail = dataclasses.replace(PICTURE, role="thumbnail")
    # And what says the same in another size is no further one.
    square = dataclasses.replace(PICTURE, role="alternative", width=30)
    assert found(assets=(PICTURE, PICTURE, thumbnail, square)) == []
    assert found(dataclasses.replace(RULE, needs="image"), assets=(square,)) == [("assets", "no_image")]


@pytest.mark.parametrize(
    ("images", "video", "names"),
    [
        (IMAGES, VIDEO, ["a.mp3", "a.pdf"]),
        (None, VIDEO, ["a.png", "a.mp3", "a.pdf"]),
        (IMAGES, None, ["a.mp4", "a.mp3", "a.pdf"]),
        (None, None, ["a.png", "a.mp4", "a.mp3", "a.pdf"]),
    ],
)
def test_files_that_are_not_shown(
    images: MediaRule | None, video: MediaRule | None, names: list[str]
) -> None:
    rule = dataclasses.replace(RULE, images=images, video=video)
    sound = PayloadAsset("https://m.example/a.mp3", "audio/mpeg", name="a.mp3")
    paper = PayloadAsset("https://m.example/a.pdf", "application/pdf", name="a.pdf")
    thumbnail = dataclasses.replace(PICTURE, role="thumbnail", name="t.png")

    assert [one.name for one in unshown_files(rule, (PICTURE, FILM, sound, paper, thumbnail))] == names


def test_what_a_post_is_none_without() -> None:
    assert found(dataclasses.replace(RULE, needs="image")) == [("assets", "no_image")]
    assert found(dataclasses.replace(RULE, needs="video"), assets=(PICTURE,)) == [("assets", "no_video")]


def test_shown_as_json() -> None:
    assert as_json(RULE) == {
        "text": {"max": 10, "unit": "graphemes"},
        "title": {"max": 5},
        "parts": 2,
        "images": {
            "max": 2,
            "mime_types": ["image/png", "image/jpeg"],
            "max_bytes": 1000,
            "max_seconds": None,
        },
        "video": {"max": 1, "mime_types": ["video/mp4"], "max_bytes": 5000, "max_seconds": 60.0},
    }
