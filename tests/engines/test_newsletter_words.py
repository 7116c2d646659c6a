"""The sections of a newsletter and its body say the same, whichever was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.core.errors import Invalid
from pipeline.text.content_schema import ItemWords, sync_changes
from pipeline.text.newsletter_sections import (
    NewsletterSection,
    as_content,
    body_of,
    escape_markdown,
    from_content,
    sections_of,
)
from pipeline.text.plain_text import markdown_to_text

PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60).map(
    lambda words: " ".join(words.split())
)
WORDS = PLAIN.filter(lambda words: bool(words.strip()))
LINKS = st.sampled_from(["", "https://a.example/x", "https://a.example/x_(y)", "https://a.example/?a=1&b=2"])
SECTIONS = st.builds(NewsletterSection, WORDS, WORDS.map(escape_markdown), LINKS)


@given(WORDS)
def test_escaped_words_are_shown_as_they_are(words: str) -> None:
    assert markdown_to_text(escape_markdown(words)) == words


@pytest.mark.parametrize(
    "words",
    ["1. April is a date", "# no heading", "- no list", "+ no list", "5 * 3 * 2", "a &amp; b", "x<b>y", "___", "===",
     "> no quotation", "[x](https://e.example)", "![x](y)", "~~gone~~", "`code`", "back\\slash", "12) twelve"],
)  # fmt: skip
def test_words_that_look_like_markdown_are_none(words: str) -> None:
    assert markdown_to_text(escape_markdown(words)) == words


@given(st.lists(SECTIONS, min_size=2, max_size=4))
def test_sections_are_read_back_from_their_body(sections: list[NewsletterSection]) -> None:
    assert sections_of("A title of its own, apart", body_of("A title of its own, apart", sections)) == tuple(
        sections
    )


@given(SECTIONS)
def test_story_of_the_title_is_read_back_without_a_heading_of_its_own(section: NewsletterSection) -> None:
    body = body_of(section.headline, [section])
    assert "## " not in body.replace("\\#\\# ", "")
    assert sections_of(section.headline, body) == (section,)


def test_words_before_the_first_heading_are_an_introduction() -> None:
    assert sections_of(
        "T", "Hello.\n\n## One\n\nWords.\n\n### Part\n\nMore.\n\n[On](https://a.example/)"
    ) == (
        NewsletterSection("", "Hello."),
        NewsletterSection("One", "Words.\n\n### Part\n\nMore.", "https://a.example/"),
    )


def test_what_is_no_text_in_the_content_is_left_out() -> None:
    content = {"sections": [{"headline": "One", "text": 1, "more": []}, "x"]}
    assert from_content(content) == (NewsletterSection("One", ""),)
    assert from_content({"sections": "x"}) == ()


@pytest.mark.parametrize(
    ("language", "label"), [("de-AT", "Weiterlesen"), ("", "Read more"), ("xx", "Read more")]
)
def test_the_way_on_is_in_the_language_of_the_words(language: str, label: str) -> None:
    body = body_of("T", [NewsletterSection("T", "x", "https://a.example/")], language=language)
    assert body == f"x\n\n[{label}](https://a.example/)"


# --- In step ---------------------------------------------------------------------------------------------------------

STORIES = (NewsletterSection("One", "Words."), NewsletterSection("Two", "More.", "https://a.example/"))
CONTENT = {"subject": "S", "preheader": "P", "sections": as_content(STORIES)}
SAID = ItemWords(body_of("T", STORIES), "markdown", "T", CONTENT, "en")


def test_changed_body_changes_the_sections() -> None:
    changes = sync_changes("newsletter", SAID, {"body": "## Other\n\nWords."})
    assert changes["content"] == {**CONTENT, "sections": as_content([NewsletterSection("Other", "Words.")])}


def test_changed_sections_change_the_body() -> None:
    given_content = {"subject": "New", "sections": [{"headline": "One", "text": "Better."}]}
    changes = sync_changes("newsletter", SAID, {"content": given_content})
    assert changes == {
        "body": "## One\n\nBetter.",
        # What it leaves out stays.
        "content": {
            "subject": "New",
            "preheader": "P",
            "sections": [{"headline": "One", "text": "Better.", "link": ""}],
        },
    }


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", "JavaScript:x", "//e.example", "x"]
)
def test_section_leads_to_no_script(link: str) -> None:
    said = ItemWords("## One\n\nWords.", "markdown", "T", {})
    content = {"sections": [{"headline": "One", "text": "Words.", "link": link}]}
    changed = sync_changes("newsletter", said, {"content": content})
    assert changed["content"]["sections"] == [{"headline": "One", "text": "Words.", "link": ""}]
    assert changed["body"] == "## One\n\nWords."
    (section,) = sections_of("T", f"## One\n\nWords.\n\n[On]({link})")
    assert (section.text, section.link) == (f"Words.\n\n[On]({link})", "")


@pytest.mark.parametrize("link", ["https://a.example/", "HTTP://a.example/", "mailto:ann@a.example"])
def test_section_leads_to_pages_and_people(link: str) -> None:
    assert sections_of("T", f"## One\n\nWords.\n\n[On]({link})") == (
        NewsletterSection("One", "Words.", link),
    )


def test_new_title_is_the_headline_of_the_one_story() -> None:
    one = (NewsletterSection("Old", "Words."),)
    said = ItemWords(body_of("Old", one), "markdown", "Old", {"sections": as_content(one)}, "en")
    assert sync_changes("newsletter", said, {"title": "New"})["content"] == {
        "sections": as_content([NewsletterSection("New", "Words.")])
    }


def test_both_may_be_given_where_they_say_the_same() -> None:
    changes = {"body": "## One\n\nBetter.", "content": {"sections": [{"headline": "One", "text": "Better."}]}}
    assert sync_changes("newsletter", SAID, changes)["body"] == "## One\n\nBetter."
    with pytest.raises(Invalid) as refused:
        sync_changes("newsletter", SAID, {**changes, "body": "## One\n\nWorse."})
    assert [(one.field, one.code) for one in refused.value.detail] == [
        ("content.sections", "differs_from_body")
    ]


def test_other_words_and_other_changes_are_left_alone() -> None:
    assert sync_changes("newsletter", ItemWords("<p>x</p>", "html"), {"body": "<p>y</p>"}) == {
        "body": "<p>y</p>"
    }
    assert sync_changes("newsletter", SAID, {"outlets": []}) == {"outlets": []}
    assert sync_changes("video", SAID, {"body": "x"}) == {"body": "x"}
