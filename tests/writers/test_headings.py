"""Headings are found in plain text, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from pipeline.engines.base import SourceText
from pipeline.text.article_metadata import find_headings
from pipeline.text.html_text import html_to_text
from pipeline.text.plain_text import markdown_to_text
from pipeline.writers.extractive import PLUGIN

PARAGRAPH = "The council voted for the tram on Tuesday, and the works begin in spring near the harbour."


def headings(text: str, title: str = "") -> list[str]:
    return [text[start:end] for start, end in find_headings(text, title=title)]


@pytest.mark.parametrize(
    "text",
    [
        f"{PARAGRAPH}\n\nWhat it costs\n\n{PARAGRAPH}",
        f"What it costs\n\n{PARAGRAPH}",
        f"## What it costs\n\n{PARAGRAPH}",
        markdown_to_text(f"# Title\n\n## What it costs\n\n{PARAGRAPH}").replace("Title\n\n", ""),
        html_to_text(f"<p>{PARAGRAPH}</p><h2>What it costs</h2><p>{PARAGRAPH}</p>"),
    ],
)
def test_line_by_itself_over_a_paragraph_is_a_heading(text: str) -> None:
    assert headings(text) == ["What it costs"]


@pytest.mark.parametrize(
    "line",
    [
        "It passed.",
        "the rest of a line",
        "- an entry",
        "1. An entry",
        "10:42 Somebody speaks",
        "Roses are red:",
        "1986",
        "A heading of so many words that nobody would ever have set it over anything at all",
        "Two lines\nthat belong together",
        "By Jo O'Hara | 3 min read | 12 comments",
        "By Nora Lindqvist · 14 March 2027 · 4 min read",
        "By Jo O'Hara",
        "\u202eWhat it costs",
    ],
)
def test_other_lines_are_none(line: str) -> None:
    assert headings(f"{PARAGRAPH}\n\n{line}\n\n{PARAGRAPH}") == []


def test_lines_of_a_poem_and_the_last_line_are_none() -> None:
    assert headings("Roses are red\n\nViolets are blue\n\nSugar is sweet") == []
    assert headings(f"{PARAGRAPH}\n\nWhat it costs") == []


@pytest.mark.parametrize(
    "below",
    [
        "\n\nThe search field keeps its words.",
        "\n\n- The search field keeps its words.",
        "\n- The search field keeps its words.\n- Printing works.",
    ],
    ids=["short sentence", "list", "right over a list"],
)
def test_where_there_are_headings_others_may_stand_over_less(below: str) -> None:
    assert headings(f"What's new\n\n{PARAGRAPH}\n\nWhat's fixed{below}") == ["What's new", "What's fixed"]
    assert headings(f"What's fixed{below}") == []


def test_title_is_no_heading_of_its_own_text() -> None:
    assert headings(f"What  it costs\n\n{PARAGRAPH}", title="What it costs") == []


def test_writer_without_ai_finds_headings_and_counts_characters() -> None:
    text = f"{PARAGRAPH}\n\nWhat it costs\n\n{PARAGRAPH}"
    brief = PLUGIN.brief(SourceText("T", text)).brief

    assert [(one.id, one.kind, text[one.start : one.end]) for one in brief.headings] == [
        ("h1", "heading", "What it costs")
    ]
    assert brief.characters == len(text)
