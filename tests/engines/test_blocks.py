"""What is no sentence in a source: rows of tables, items of lists, code and captions; and where an ellipsis stands."""

from __future__ import annotations

import re

import pytest

from pipeline import plugins
from pipeline.engines.base import Engine, PersonaCard, SourceText
from pipeline.engines.shared.source_sentences import polish_sentence
from pipeline.generate.checks import run_checks
from pipeline.plugins import Refused
from pipeline.text.plain_text import read_body, seen_text
from pipeline.text.prose.sentences import sentence_continues, statements_in
from pipeline.writers.extractive import Extractive
from tests.engines.test_added import OTHER, TEXT

FIRST, REST = TEXT.split("\n\n", 1)
PERSONA = PersonaCard("Harbour Desk")
ENGINES = [one for one in plugins.every("engines", Engine) if "text" in one.made_from]
# Each shape with what of it may not be said by itself, in no form.
SHAPES = {
    "table": (
        "markdown",
        (
            "| Who travels | Single | Day |\n|---|---|---|\n| Adults from eighteen years | 2.40 € | 7 € |\n"
            "| Children of six years and more | 1.20 € | 3 € |"
        ),
        ("Adults from eighteen", "Children of six", "Who travels"),
    ),
    "table in HTML": (
        "html",
        (
            "<table><caption>All prices of the new ferry line</caption><tr><th>Who travels</th><th>Day</th></tr>"
            "<tr><td>Adults from eighteen years of age</td><td>7 €</td></tr>"
            "<tr><td>Children of six years and more</td><td>3 €</td></tr></table>"
        ),
        ("Adults from eighteen", "Children of six", "All prices of"),
    ),
    "list": (
        "markdown",
        "- two litres of lamp oil for the night\n- a saw with a spare blade of steel\n- A rope of thirty metres at least",
        ("litres of lamp oil", "spare blade", "rope of thirty"),
    ),
    "list in HTML": (
        "html",
        "<ol><li>two litres of lamp oil for the night</li><li><p>a saw with a spare blade of steel</p></li></ol>",
        ("litres of lamp oil", "spare blade"),
    ),
    "list in text": (
        "text",
        "* two litres of lamp oil for the night\n* a saw with a spare blade of steel\n2) a rope of thirty metres at least",
        ("litres of lamp oil", "spare blade", "rope of thirty"),
    ),
    "code": (
        "markdown",
        "```python\nfor boat in harbour.boats_of_the_line: print(boat.name, boat.seats, 140)\nreturn the sum of all 77 seats\n```",
        ("boats_of_the_line", "sum of all"),
    ),
    "code in HTML": (
        "html",
        "<pre><code>ferry start --boats 4 --quay north --every 20\nferry stop the boats of the line</code></pre>",
        ("--boats", "stop the boats"),
    ),
    "caption": (
        "html",
        "<figure><img src='x.png'><figcaption>The mayor opens the new quay in the rain. Photo: Ann Reed</figcaption></figure>",
        ("in the rain", "Ann Reed"),
    ),
}


def body_with(shape):
    body_format, block, _ = SHAPES[shape]
    parts = [FIRST, block, REST, OTHER]
    if body_format == "html":
        parts = [part if part is block else f"<p>{part}</p>" for part in parts]
    return "\n\n".join(parts), body_format


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_no_sentence_is_said_by_no_engine(shape):
    source = SourceText("The new ferry line", seen_text(*body_with(shape)), language="en")
    brief = Extractive().brief(source).brief
    made = 0
    for engine in ENGINES:
        if engine.why_not(source) is not None:
            continue
        try:
            drafts = engine.offline(brief, PERSONA, variants=2, seed="1")
        except Refused:
            continue
        for draft in drafts:
            made += 1
            words = f"{draft.title} {draft.body} {draft.content}"
            assert [one for one in SHAPES[shape][2] if one.lower() in words.lower()] == [], engine.name
            faults = [
                one for one in run_checks(engine, draft, brief, source, PERSONA) if one.outcome == "failed"
            ]
            assert faults == [], engine.name
    assert made >= 4


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sentences_around_stay_whole(shape):
    text = seen_text(*body_with(shape))
    said = {" ".join(text[start:end].split()) for start, end in statements_in(text)}
    plain = seen_text(TEXT, "markdown")
    wanted = {" ".join(plain[start:end].split()) for start, end in statements_in(plain)}

    assert wanted <= said
    assert all(one not in sentence for one in SHAPES[shape][2] for sentence in said)


def test_items_that_are_sentences_are_said():
    text = seen_text("Decided on Monday:\n\n- The council builds the bridge.\n- Trams over it\n", "markdown")

    assert [text[start:end] for start, end in statements_in(text)][1:] == ["The council builds the bridge."]


def test_a_table_that_lays_a_page_out_is_no_table():
    html = f"<table><tr><td><h1>News</h1></td></tr><tr><td><img></td><td><p>{FIRST}</p></td></tr></table>"

    assert seen_text(html, "html") == f"News\n\n{' '.join(FIRST.split())}"


def test_markup_in_markdown_is_markup_and_the_rest_is_words():
    md = "A list<int> holds <b>bold</b> words, and `<i>` is code.<br>Use the <title> tag; 1 < 2 > 0. <Ann> said so."

    assert read_body(md, "markdown") == (
        "A list<int> holds bold words, and <i> is code.\nUse the <title> tag; 1 < 2 > 0. <Ann> said so.",
        "",
    )


def test_an_indented_letter_is_prose_and_indented_code_is_code():
    letter = (
        "    We write to you from the island, where the ferry comes no more in winter.\n    It is cold here."
    )
    code = "    a = 1\n    b = a + 1"

    assert seen_text(f"Dear all\n\n{letter}", "markdown").endswith("in winter. It is cold here.")
    assert seen_text(f"Dear all\n\n{code}", "markdown").endswith("`a = 1`\n`b = a + 1`")


@pytest.mark.parametrize(
    ("before", "quote", "after", "words"),
    [
        ("", "two litres of lamp oil", "", "Two litres of lamp oil"),
        ("", "two litres of lamp oil", "\n\nNext.", "Two litres of lamp oil"),
        ("", "two litres of lamp oil", "\nA saw.", "Two litres of lamp oil"),
        ("we know that ", "the oven ran cold and", " nobody saw it", "The oven ran cold…"),
        ("we know that ", "the oven ran cold", "\nand nobody saw it", "The oven ran cold…"),
        ("", "the oven ran cold.", " Nobody saw it.", "The oven ran cold."),
    ],
)
def test_an_ellipsis_stands_only_where_words_were_left_out(before, quote, after, words):
    text = f"{before}{quote}{after}"

    assert polish_sentence(quote, is_cut=sentence_continues(text, len(before) + len(quote))) == words


def test_the_brief_tells_where_a_sentence_was_cut():
    stream = " ".join(["the oven ran cold and nobody of us knew why so we looked at every screw of it"] * 12)
    facts = Extractive().brief(SourceText("Ovens", f"{stream}\n\n{FIRST}")).brief.facts

    assert {fact.is_cut for fact in facts} == {True, False}
    assert all(
        re.search(r"[.!?]$", fact.quote) or fact.end == len(stream) for fact in facts if not fact.is_cut
    )
