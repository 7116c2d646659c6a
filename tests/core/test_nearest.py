"""A hint names what is meant, or lists what there is; it never guesses far."""

from __future__ import annotations

import pytest

from config.core.api.nearest import find_nearest, hint

RAW = ["author", "body", "body_format", "engines", "external_id", "language", "media", "metadata", "persona"]
RAW += ["published_at", "source", "title", "url", "variants"]
LIST = ["bucket", "created_after", "created_before", "cursor", "from", "limit", "order", "status", "to"]


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("content", RAW, "body"),
        ("text", RAW, "body"),
        ("html", RAW, "body"),
        ("link", RAW, "url"),
        ("headline", RAW, "title"),
        ("titel", RAW, "title"),
        ("bodyFormat", RAW, "body_format"),
        ("publishedAt", RAW, "published_at"),
        ("imageUrl", RAW, "media"),
        ("engine", RAW, "engines"),
        ("id", RAW, "external_id"),
        ("url", ["channel", "handle", "playlist"], "channel"),
        ("channel_id", ["channel", "handle", "playlist", "batch_hours"], "channel"),
        ("from", ["created_after", "created_before"], "created_after"),
        ("to", ["created_after", "created_before"], "created_before"),
        ("since", LIST, "from"),
        ("per_page", LIST, "limit"),
        ("stauts", LIST, "status"),
        ("short post", ["Short Post", "Thread"], "Short Post"),
        ("short_post", ["Short Post", "Thread"], "Short Post"),
        ("SHORTPOST", ["Short Post", "Thread"], "Short Post"),
        ("Shrot Post", ["Short Post", "Thread"], "Short Post"),
    ],
)
def test_what_is_meant_is_named(name, known, meant):
    assert find_nearest(name, known) == meant


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("url", ["batch_hours", "topics", "cadence", "mapping"]),
        ("colour", RAW),
        ("text", ["test", "next_at"]),
        ("x" * 10_000, RAW),
        ("", RAW),
        ("Haiku", ["Short Post", "Thread"]),
    ],
)
def test_nothing_is_guessed_from_afar(name, known):
    assert hint(name, known) == f"Known are: {', '.join(known)}."
