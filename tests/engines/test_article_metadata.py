"""What follows from an article's words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.text.article_metadata import (
    published_json_ld,
    reading_minutes,
    refresh_article_data,
    slug_of,
    with_article_data,
)
from pipeline.text.prose.verbatim_edits import count_words


@pytest.mark.parametrize(
    ("title", "language", "slug"),
    [
        ("Die Wärmewende in Köln-Süd", "de", "die-waermewende-in-koeln-sued"),
        ("Grüße", "de-AT", "gruesse"),
        ("Ærø får en ny færge", "da", "aeroe-faar-en-ny-faerge"),
        ("Ärligt om Åre", "sv", "arligt-om-are"),
    ],
)
def test_slug_writes_letters_out_as_its_language_does(title: str, language: str, slug: str) -> None:
    assert slug_of(title, language) == slug
    assert slug_of(slug) == slug


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Why our repair café stopped counting!", "why-our-repair-cafe-stopped-counting"),
        ("Straße & Łódź: what's next?", "strasse-lodz-whats-next"),
        ("  --  ", ""),
        ("東京 の電車", "東京-の電車"),
        ("One " * 30, "one-one-one-one-one-one-one-one-one-one-one-one-one-one-one"),
        ("word " * 11 + "unfitting", "word-word-word-word-word-word-word-word-word-word-word"),
        ("x" * 90, "x" * 60),
    ],
)
def test_slug_is_the_title_as_an_address_has_it(title: str, slug: str) -> None:
    assert slug_of(title) == slug
    assert slug_of(slug) == slug


@pytest.mark.parametrize(
    ("text", "words"), [("", 0), ("It's a well-known tram.", 4), ("東京の電車", 3), ("Das 東京 Haus", 3)]
)
def test_words_are_counted_in_every_script(text: str, words: int) -> None:
    assert count_words(text) == words


@pytest.mark.parametrize(("words", "minutes"), [(0, 1), (230, 1), (700, 3), (1400, 6)])
def test_reading_takes_a_minute_at_least(words: int, minutes: int) -> None:
    assert reading_minutes(words) == minutes


CONTENT = {
    "slug": "s",
    "meta_description": "About it.",
    "tags": ["a"],
    "canonical_url": "https://a.example/s",
    "form": "x",
}
WORDS = {"title": "T", "body": "## H\n\nTwo *words*.", "body_format": "markdown", "language": "en"}


def test_data_is_what_schema_org_has_for_an_article() -> None:
    made = with_article_data(
        CONTENT, **WORDS, author="Ann", author_url="https://ann.example", source_url="https://s.example"
    )

    assert made == {
        **CONTENT,
        "reading_minutes": 1,
        "json_ld": {
            "@context": "https://schema.org",
            "@type": "Article",
            "headline": "T",
            "description": "About it.",
            "inLanguage": "en",
            "author": {"@type": "Organization", "name": "Ann", "url": "https://ann.example"},
            "keywords": ["a"],
            "wordCount": 3,
            "timeRequired": "PT1M",
            "mainEntityOfPage": "https://a.example/s",
            "isBasedOn": "https://s.example",
        },
    }


def test_what_is_not_known_is_left_out() -> None:
    data = with_article_data({}, title="", body="One.", body_format="text", language="")["json_ld"]

    assert sorted(data) == ["@context", "@type", "timeRequired", "wordCount"]


def test_edit_keeps_who_wrote_it_and_drops_what_somebody_made_up() -> None:
    made = with_article_data(CONTENT, **WORDS, author="Ann", author_url="", source_url="https://s.example")
    wished = {**made, "form": "other", "reading_minutes": 99, "json_ld": {"headline": "Lies"}}

    changed = refresh_article_data(wished, made, **{**WORDS, "title": "New"})

    assert changed == {**made, "json_ld": {**made["json_ld"], "headline": "New"}}
    assert refresh_article_data({"slug": "z"}, {"slug": "s"}, **WORDS) == {"slug": "z"}


def test_place_of_publication_adds_picture_and_day() -> None:
    content = {"json_ld": {"@type": "Article", "headline": "Old"}}

    assert published_json_ld(
        content, title="New", image="https://m.example/h.jpg", published_at=datetime(2026, 11, 20, tzinfo=UTC)
    ) == {
        "@type": "Article",
        "headline": "New",
        "image": "https://m.example/h.jpg",
        "datePublished": "2026-11-20T00:00:00Z",
    }
    assert published_json_ld({"slug": "s"}, title="New") == {}
