"""Blog Article: the excerpt that needs no model, the article of a model's plain words, what is stopped, its picture."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.engines.base import Brief, Check, Draft, PersonaCard, SourceText
from pipeline.engines.blog_article import PLUGIN
from pipeline.engines.blog_article.checks import check_length
from pipeline.engines.blog_article.draft import quotable_characters
from pipeline.engines.blog_article.hero_picture import MIN_SIZE, SIZE
from pipeline.engines.blog_article.markdown import list_entries, parse_article
from pipeline.plugins import Refused
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_types import AvailableMedia, DrawnText
from pipeline.text.body_html import to_html
from pipeline.text.plain_text import plain_text
from pipeline.text.prose.verbatim_edits import first_words
from pipeline.writers.extractive import PLUGIN as WRITER
from tests.engines.test_golden import GOLDEN, PERSONA, source_of
from tests.engines.test_thread import words

ESSAY = source_of("essay")
BRIEF = WRITER.brief(ESSAY).brief
RECORDED: dict[str, Any] = json.loads((GOLDEN / "essay" / "answers.json").read_text(encoding="utf-8"))
SHORT = (
    "The city library opens on Sundays from the first week of December, from ten in the morning to four. Forty new study "
    "places stand on the second floor, beside the music collection. The council voted 14 to 9 for the change, which "
    "costs 180,000 euros a year and pays for six posts. Students told us for years that the one day on which they have "
    "time is the one day on which we are closed, said Maria Keller, who leads the library. On Sundays loans and returns "
    "go through machines, while the help desk answers questions on the second floor only. The café stays closed until a "
    "tenant is found. A survey in spring had 2,300 answers, and four in five asked for longer hours."
)
"""A source of 120 words."""
ANSWER: dict[str, Any] = {**RECORDED["blog_article"], "claims": []}


def with_claims(answer: dict[str, Any]) -> dict[str, Any]:
    """Cites the first fact for every claim of the recorded answer."""
    claims = [{**claim, "fact": "f1"} for claim in RECORDED["blog_article"]["claims"]]
    return {**answer, "claims": claims}


def article(**changes: Any) -> Draft:
    return PLUGIN.draft_from(with_claims({**ANSWER, **changes}), BRIEF, PERSONA, "myth")


def check(draft: Draft, source: SourceText = ESSAY, brief: Brief = BRIEF) -> tuple[Check, ...]:
    return PLUGIN.check(draft, brief, source, PERSONA)


def failures(draft: Draft, source: SourceText = ESSAY, brief: Brief = BRIEF) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in check(draft, source, brief) if one.outcome == "failed"]


def excerpt(source: SourceText = ESSAY, variants: int = 1) -> tuple[Draft, ...]:
    return PLUGIN.offline(WRITER.brief(source).brief, PERSONA, variants=variants, seed="s")


# --- The excerpt -----------------------------------------------------------------------------------------------------


def test_excerpt_has_the_sources_headings_and_sentences_and_says_what_it_is() -> None:
    (draft,) = excerpt()
    lines = draft.body.split("\n\n")

    assert lines[0] == (
        "*An excerpt: these sentences are taken word for word from "
        "[Why our repair café stopped counting repairs](https://essay.example.org/2026/story).*"
    )
    assert lines[-1] == "[Read all of it on essay.example.org](https://essay.example.org/2026/story)"
    assert [line for line in lines if line.startswith("## ")] == [
        "## What the number did to us",
        "## When a number is worth keeping",
    ]
    assert [claim.text for claim in draft.claims] == list(list_entries(draft.body))
    assert all(claim.quote in ESSAY.text for claim in draft.claims)


def test_excerpt_sends_search_engines_to_the_source() -> None:
    (draft,) = excerpt()

    assert {name: draft.content[name] for name in ("canonical_url", "form", "slug", "tags")} == {
        "canonical_url": ESSAY.url,
        "form": "excerpt",
        "slug": "why-our-repair-cafe-stopped-counting-repairs",
        "tags": [],
    }
    assert draft.content["json_ld"]["mainEntityOfPage"] == ESSAY.url


@pytest.mark.parametrize("name", ["news", "essay", "transcript"])
def test_excerpts_quote_what_they_may_and_no_sentence_twice(name: str) -> None:
    source = source_of(name)
    drafts = excerpt(source, variants=3)

    said = [sentence for draft in drafts for sentence in list_entries(draft.body)]
    assert len(said) == len(set(said))
    for draft in drafts:
        headings = parse_article(draft.body, "en").headings
        assert sum(map(len, (*headings, *list_entries(draft.body)))) <= quotable_characters(len(source.text))


@pytest.mark.parametrize(("characters", "most"), [(300, 100), (900, 280), (2_800, 280), (5_000, 500)])
def test_excerpt_quotes_a_tenth_and_of_a_short_source_a_few_sentences(characters: int, most: int) -> None:
    assert quotable_characters(characters) == most


def test_short_source_makes_a_short_excerpt_that_keeps_every_rule() -> None:
    short = SourceText("The library opens on Sundays", SHORT, "https://library.example/sundays")
    (draft,) = excerpt(short)

    assert list_entries(draft.body) == (
        "The city library opens on Sundays from the first week of December, from ten in the morning to four.",
        "The council voted 14 to 9 for the change, which costs 180,000 euros a year and pays for six posts.",
    )
    assert failures(draft, short, WRITER.brief(short).brief) == []
    share = next(one for one in check(draft, short) if one.code == "quoted_share")
    assert share.message == "30 % of a short source is quoted."


def test_excerpt_takes_shorter_sentences_where_the_best_is_too_long() -> None:
    long = (
        "The council, "
        + "which met again until late in the night, " * 4
        + "voted 14 to 9 for the tram to Harrow. "
    )
    text = f"{long}{long.replace('voted', 'had voted')}The rails cost 18 million euros. Work on the rails begins in May."
    (draft,) = excerpt(SourceText("The council votes for the tram", text))

    assert list_entries(draft.body) == (
        "The rails cost 18 million euros.",
        "Work on the rails begins in May.",
    )


def test_source_of_which_two_sentences_are_too_much_is_refused_in_a_sentence() -> None:
    short = SourceText("Tram", "The council of Harrow voted for the tram on Tuesday evening. " * 3, "")
    with pytest.raises(Refused) as refused:
        excerpt(short)

    assert refused.value.code == "nothing_to_say"
    assert refused.value.message == (
        "An excerpt quotes 61 characters of this source at the most: too few for 2 sentences that make sense out "
        "of their context."
    )


def test_heading_that_leads_to_strangers_is_left_out() -> None:
    lured = dataclasses.replace(
        ESSAY, text=ESSAY.text.replace("What the number did to us", "Win at evil.com today")
    )
    (draft,) = excerpt(lured)

    assert "evil.com" not in draft.body
    assert failures(draft, lured, WRITER.brief(lured).brief) == []


def test_sentence_comes_under_no_other_heading_than_its_own() -> None:
    text = (
        "What's new\n\nThe app now opens documents of 200 pages in under two seconds on every phone that we support. You can "
        "sort your notes by the day on which you last read them, or by their length.\n\nWhat's fixed\n\n- Printing from the "
        "reading view no longer leaves out the last line.\n- The search field keeps its words when you turn the phone.\n\n"
        "Pricing\n\nThe yearly plan stays at $24 for three computers.\n\nThanks\n\nWe thank the 41 readers who wrote to us "
        "about the printing and sent us pages of their own for it, and the two who came by with theirs."
    )
    source = dataclasses.replace(ESSAY, title="Lantern 4.2", text=text)
    for draft in PLUGIN.offline(WRITER.brief(source).brief, PERSONA, variants=3, seed="s"):
        heading = ""
        for line in draft.body.splitlines():
            if line.startswith("## "):
                heading = line.removeprefix("## ")
            elif line.startswith("- "):
                part = text[: text.index(line.removeprefix("- "))]
                assert heading == max(("What's new", "What's fixed", "Pricing", "Thanks"), key=part.rfind)


def test_excerpt_of_a_hindi_source_is_labelled_in_hindi() -> None:
    text = (
        "रामपुर का सार्वजनिक पुस्तकालय दो साल की मरम्मत के बाद सोमवार को फिर खुल गया। नगर पालिका ने इस पर 48 लाख रुपये खर्च किए। "
        "महिला समूह ने पुस्तकालय के लिए 3,000 किताबें इकट्ठा की हैं। सदस्यता शुल्क साल भर के लिए 50 रुपये है।"
    )
    (draft,) = excerpt(SourceText("रामपुर का पुस्तकालय", text * 2, "", language="hi"))

    assert draft.body.startswith("*अंश: ये वाक्य शब्दशः “रामपुर का पुस्तकालय” से लिए गए हैं।*")


def test_excerpt_speaks_the_language_of_its_source() -> None:
    german = dataclasses.replace(ESSAY, language="de-CH", url="")
    (draft,) = excerpt(german)

    assert draft.body.startswith("*Ein Auszug: Diese Sätze stehen wörtlich in „Why our repair café")
    assert "](" not in draft.body
    assert draft.content["canonical_url"] == ""


def test_sentence_that_somebody_put_into_the_excerpt_is_stopped() -> None:
    (draft,) = excerpt()
    changed = dataclasses.replace(draft, body=draft.body.replace("In our second year", "In our first year"))

    sentence = next(one for one in list_entries(changed.body) if one.startswith("In our first year"))
    assert failures(changed) == [
        (
            "points",
            (
                "1 sentence isn't the source's, though the line at the top of the article says that all are taken word "
                f"for word from it: “{first_words(sentence, 80)}” Remove it, or write the source's own words."
            ),
        )
    ]


def test_sentence_of_ones_own_counts_as_none_that_is_quoted() -> None:
    short = SourceText("The library opens on Sundays", SHORT, "https://library.example/sundays")
    (draft,) = excerpt(short)
    first, second = list_entries(draft.body)
    own = "I shall be there with my whole family, our neighbours, their cat, and every book that we borrowed since May."
    other = "The café stays closed until a tenant is found."
    changed = dataclasses.replace(
        draft, body=draft.body.replace(first, own).replace(second, other), claims=draft.claims[1:]
    )

    assert [code for code, _ in failures(changed, short)] == ["points"]
    assert failures(changed, short)[0][1].startswith("1 sentence isn't the source's")
    assert "tenant" not in failures(changed, short)[0][1]
    share = next(one for one in check(changed, short) if one.code == "quoted_share")
    assert share.message.startswith("At most a tenth")


def test_sentence_that_was_cut_at_its_beginning_is_stopped() -> None:
    (draft,) = excerpt()
    whole = draft.claims[0]
    cut = dataclasses.replace(whole, text=f"Far {whole.text}", quote=f"So far {whole.text}")
    body = draft.body.replace(f"- {whole.text}", f"- {cut.text}")
    changed = dataclasses.replace(draft, body=body, claims=(cut, *draft.claims[1:]))

    assert any(
        code == "points" and message.startswith("1 sentence isn't the source's")
        for code, message in failures(changed)
    )


def test_heading_that_isnt_the_sources_is_stopped() -> None:
    (draft,) = excerpt()
    changed = dataclasses.replace(
        draft, body=draft.body.replace("When a number is worth", "A fine price worth")
    )

    assert failures(changed) == [
        ("headings", "These headings aren't the source's: A fine price worth keeping.")
    ]


def test_excerpt_of_more_than_its_share_is_stopped() -> None:
    (draft,) = excerpt()
    taken = (*parse_article(draft.body, "en").headings, *list_entries(draft.body))
    shorter = dataclasses.replace(ESSAY, text="\n\n".join([*taken, "Repairs. " * 200]))

    assert dict(failures(draft, shorter))["quoted_share"] == (
        "20 % of the source is quoted; the maximum is 12 %."
    )


def test_why_not_counts_words() -> None:
    assert PLUGIN.why_not(SourceText("T", "word " * 99)) == (
        "This item has 99 words; a Blog Article needs 100 or more."
    )
    assert PLUGIN.why_not(SourceText("T", "word")) == (
        "This item has 1 word; a Blog Article needs 100 or more."
    )
    assert PLUGIN.why_not(SourceText("T", "word " * 100)) is None
    assert PLUGIN.why_not(SourceText("T", "字" * 500)) is None


# --- The article -----------------------------------------------------------------------------------------------------


def test_article_has_all_that_belongs_to_one() -> None:
    draft = article()

    assert failures(draft) == []
    assert [one.code for one in check(draft) if one.outcome == "warning"] == []
    assert draft.body_format == "markdown"
    assert {name: draft.content[name] for name in ("slug", "canonical_url", "form", "reading_minutes")} == {
        "slug": "what-a-repair-cafe-learned-when-it-stopped-counting",
        "canonical_url": "",
        "form": "article",
        "reading_minutes": 4,
    }
    taken = parse_article(draft.body, "en")
    assert (len(taken.headings), taken.points, taken.has_sources) == (5, tuple(ANSWER["points"]), True)
    assert draft.body.endswith(
        "\n\n## Sources\n\n- [Why our repair café stopped counting repairs](https://essay.example.org/2026/story)"
    )


def test_every_section_leads_to_the_source_once() -> None:
    sections = article().body.split("\n## ")

    assert [section.count(f"]({ESSAY.url})") for section in sections] == [1] * 7
    assert f"before lunch ([essay.example.org]({ESSAY.url}))." in sections[0]
    assert f"[learned to look along the queue for toasters]({ESSAY.url}), without" in sections[2]


def test_articles_html_is_what_its_words_say() -> None:
    html = to_html(article().body, "markdown")

    assert html.count("<h2>") == 6
    assert html.count("<li>") == 4
    assert plain_text(html, "html") == plain_text(article().body, "markdown")


MARKUP = (
    "# No heading",
    "1. No list",
    "- list\nNo list",
    "*no* _emphasis_ **here** ~~there~~",
    "[no](https://evil.example) link",
    "![no](x) picture",
    "<script>no()</script> &amp; &#60;b>",
    "`no code` \\* | a | b |",
    "===",
    "> no quotation",
    "snake_case_word stays",
)


@pytest.mark.parametrize("written", MARKUP)
def test_models_words_never_become_markup(written: str) -> None:
    draft = article(introduction=written, sections=[{"heading": written, "text": f"A {written}"}])

    html = to_html(draft.body, "markdown")
    shown = plain_text(html, "html")
    flat = " ".join(written.split())
    assert flat in " ".join(shown.split())
    assert f"A {flat}" in " ".join(shown.split())
    assert 'evil.example"' not in html
    assert html.count("<h2") == 2


@settings(deadline=None, max_examples=15)
@given(words)
@example("__0__")
@example("a_b __c d__ e__f")
def test_whatever_a_model_writes_is_shown_as_it_wrote_it(text: str) -> None:
    plain = " ".join(plain_text(text, "text").split())
    html = to_html(article(introduction="", points=[f"x {plain}"], sections=[]).body, "markdown")

    shown = [" ".join(line.split()) for line in plain_text(html, "html").splitlines()]
    assert f"x {plain}".strip() in shown


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"title": "A " * 31}, "title_length", "The title has 61 characters; search engines show 60."),
        ({"title": "!?"}, "slug", "The title has no letters of which a slug could be made."),
        (
            {"meta_description": "Too short to be shown."},
            "meta_description",
            "The meta description has 22 characters; 120 to 155 are shown.",
        ),
        ({"points": ANSWER["points"][:2]}, "points", "It is summed up in 2 points; 3 are read."),
        (
            {"sections": [*ANSWER["sections"][:4], ANSWER["sections"][0]]},
            "headings",
            "Two headings are the same.",
        ),
        ({"tags": ["a", "b", "c", "d", "e", "f"]}, "tags", "The article has 6 tags; the maximum is 5."),
        ({"tags": ["blockchain"]}, "tags", "These tags say what no fact says: #blockchain."),
        ({"introduction": "It mended 777 things."}, "numbers", "These numbers aren't in the source: 777."),
        ({"meta_description": f"{'All of it, told again. ' * 5} With 777 things."}, "numbers", "These numbers aren't in the source: 777."),
        (
            {"introduction": "She said: “I never asked you what it costs.”"},
            "quotations",
            ("These quotations aren't in the source word for word: I never asked you what it costs.. "
            "Nearest in the source: I asked around later and found that everyone had noticed everyone else doing it."),
        ),
        (
            {"introduction": "More on evil.com for all."},
            "link_origin",
            "These links are neither the source's nor the persona's: evil.com.",
        ),
        ({"introduction": "Ask @mallory about it."}, "mentions", "The persona doesn't name these accounts: @mallory."),
    ],
)  # fmt: skip
def test_broken_rule_is_named(changes: dict[str, Any], code: str, message: str) -> None:
    assert (code, message) in failures(article(**changes))
    assert {one for one, _ in failures(article(**changes))} <= {code, "sources", "title_length"} | {
        "length" if "sections" in changes else code
    }


def test_headings_are_counted() -> None:
    two = article(sections=ANSWER["sections"][:2])

    assert ("headings", "The article has 2 headings; 3 to 6 guide its readers.") in failures(two)


def test_length_is_measured_by_what_it_rests_on() -> None:
    short = dataclasses.replace(article(), body=article(sections=ANSWER["sections"][:3]).body)
    by_source = {
        len(source.text.split()): next(one for one in check(short, source) if one.code == "length")
        for source in (ESSAY, dataclasses.replace(ESSAY, text=ESSAY.text[: len(ESSAY.text) // 2]))
    }
    whole, half = by_source.values()

    assert (whole.outcome, whole.message) == ("failed", "The article has 632 words; 700 to 1400 make one.")
    assert half.outcome == "warning"
    long = article(introduction="\n\n".join([ANSWER["introduction"]] * 9))
    assert [one.outcome for one in check(long) if one.code == "length"] == ["warning"]
    endless = article(introduction="\n\n".join([ANSWER["introduction"]] * 30))
    assert [code for code, _ in failures(endless)] == ["length"]


@pytest.mark.parametrize(("words", "outcome"), [(119, "failed"), (120, "warning")])
def test_article_on_a_short_source_has_as_many_words_as_that(words: int, outcome: str) -> None:
    short = SourceText("Sundays", "word " * 120)
    taken = dataclasses.replace(parse_article(article().body, "en"), words="word " * words)

    assert check_length(article(), taken, short, BRIEF).outcome == outcome


def test_quotation_of_more_than_a_tenth_is_stopped() -> None:
    paragraphs = [f"“{one}”" for one in ESSAY.text.split("\n\n")[2:4] if '"' not in one]
    quoting = article(introduction="\n\n".join(paragraphs))

    assert [code for code, _ in failures(quoting)] == ["quoted_share"]


def test_no_link_stands_within_a_quotation() -> None:
    quote = "A count of repairs is easy to keep and easy to like. It goes up. It fits on a poster"
    claims = [{"text": "easy to like", "fact": "f1"}, {"text": "goes up", "fact": "f1"}]
    answer = {**ANSWER, "introduction": f"The author: “{quote}.” That is all.", "claims": claims}
    draft = PLUGIN.draft_from(answer, BRIEF, PERSONA, "myth")

    assert f"“{quote}.” ([essay.example.org]({ESSAY.url})) That is all." in draft.body


def test_topic_without_a_source_needs_no_sources() -> None:
    lane = dataclasses.replace(BRIEF, url="")
    draft = PLUGIN.draft_from(with_claims(ANSWER), lane, PERSONA, "myth")

    assert "## Sources" not in draft.body
    assert "](" not in draft.body
    assert "isBasedOn" not in draft.content["json_ld"]
    assert failures(draft, dataclasses.replace(ESSAY, url=""), lane) == []


# --- The picture -----------------------------------------------------------------------------------------------------


def test_picture_shows_the_title_and_says_it_to_who_can_not_see_it() -> None:
    layout = PLUGIN.plan(article(), PERSONA, AvailableMedia(size=SIZE))
    assert layout is not None
    (picture,) = layout.pictures
    texts = [item for item in picture.items if isinstance(item, DrawnText)]

    assert (picture.role, picture.width, picture.height) == ("hero", 1200, 630)
    assert picture.alt_text == "What a repair café learned when it stopped counting – Quay Letters"
    assert " ".join(line.text for line in texts[0].block.lines) == ANSWER["title"]
    assert texts[0].block.size >= MIN_SIZE
    assert all(item.x >= 96 and item.x + item.block.width <= 1200 - 96 + 1 for item in (texts[0], texts[-1]))
    assert texts[0].y + texts[0].block.height <= texts[-1].y


@pytest.mark.parametrize(
    ("title", "persona"),
    [
        ("W" * 60, PERSONA),
        ("قرر المجلس بناء خط الترام", PersonaCard("ليلى حداد", "layla", "ar")),
        ("Tram", PersonaCard("")),
        (
            "Tram",
            PersonaCard("Studio Okafor & Partners International Communications and Sons " * 2, "studio"),
        ),
        ("Grey on grey", PersonaCard("K", brand={"primary": "#777777", "accent": "#777777"})),
    ],
    ids=["wide", "arabic", "nameless", "long-name", "grey"],
)
def test_every_title_fits_into_the_picture(title: str, persona: PersonaCard) -> None:
    layout = PLUGIN.plan(dataclasses.replace(article(), title=title), persona, AvailableMedia(size=SIZE))

    assert layout is not None
    (file,) = render_layout(layout)
    assert (file.width, file.height, file.mime_type) == (1200, 630, "image/jpeg")
    for item in layout.pictures[0].items:
        if isinstance(item, DrawnText):
            assert item.y + item.block.height <= 630 - 60


def test_article_whose_title_no_font_has_goes_without_a_picture() -> None:
    chinese = dataclasses.replace(article(), title="東京の電車")

    assert PLUGIN.plan(chinese, PERSONA, AvailableMedia(size=SIZE)) is None
    (told,) = [one for one in check(chinese) if one.code == "hero"]
    assert told.outcome == "warning"
    assert told.message.startswith("The article has no picture: The fonts for pictures have no glyphs for 東")


def test_other_size_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="1200, 630"):
        PLUGIN.plan(article(), PERSONA, AvailableMedia())


def test_picture_is_drawn_again_for_another_title_alone() -> None:
    draft = article()

    assert PLUGIN.drawn(draft) == PLUGIN.drawn(dataclasses.replace(draft, body="Other."))
    assert PLUGIN.drawn(draft) != PLUGIN.drawn(dataclasses.replace(draft, title="Other"))


@settings(deadline=None, max_examples=15)
@given(
    words,
    st.text(max_size=60),
    st.sampled_from(["", ESSAY.url, "https://example.com/ä ö?q=日#.", "nonsense"]),
)
@example("", "0/0", "")
@example("", "00\r00000", "")
@example("", "00000\x1f\u0378\u0e5c\u0e5c", "")
def test_whatever_the_source_holds_excerpts_pass_every_check(text: str, title: str, url: str) -> None:
    source = SourceText(title, f"{text}\n\n{ESSAY.text}\n\n{text[::-1]}", url)
    brief = WRITER.brief(source).brief
    drafts = PLUGIN.offline(brief, PERSONA, variants=2, seed="s")

    broken = [one for draft in drafts for one in check(draft, source, brief) if one.outcome == "failed"]
    assert broken == []
