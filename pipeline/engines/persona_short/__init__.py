"""Persona Short: a persona tells a story in 20 to 45 seconds: a hook, up to three passages, a call to action."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, judged, variant_schema
from pipeline.engines.checks.persona_rules import first_person_in, is_author
from pipeline.engines.shared import fixed_words
from pipeline.engines.shared.fixed_words import (
    FROM_SHORT_POST,
    TITLE_MOST,
    alt_text_of,
    cast_of,
    check_content,
    check_film_links,
    check_glyphs,
    end_of,
    known_words,
    title_from,
)
from pipeline.engines.shared.verbatim import Sentence, polished, standing_alone
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.audio.narration import Script
from pipeline.render.typography.clusters import missing
from pipeline.render.typography.typeset import typeset
from pipeline.render.video.storyboard import SIZE
from pipeline.render.video.templates import story
from pipeline.render.video.templates.story import (
    CALL_SECONDS,
    CALL_WORDS,
    HOOK_SECONDS,
    PASSAGES_MOST,
    SECONDS,
    SLOTS,
    Telling,
)
from pipeline.text.links import ascii_url, find_links
from pipeline.text.sentence_edits import (
    collapse,
    count_words,
    drawn_length,
    is_clean,
    is_self_contained,
    paragraph_of,
)
from pipeline.text.sentences import goes_on, statements_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.engines.base import Brief, PersonaCard, SourceText
    from pipeline.render.plan import Media
    from pipeline.render.video.storyboard import Storyboard

WORDS: Final = (70, 110)
"""In which a story is told well: 20 to 45 seconds."""
GOOD_SECONDS: Final = (20.0, 45.0)
_LEAST_WORDS: Final = 45
"""What takes 15 seconds, with a hook and an end card."""
SENTENCE_MOST: Final = 220
_FIRST_LEAST: Final = 12
_LINES: Final = (3, PASSAGES_MOST + 3)
_WORD: Final = re.compile(r"\w+(?:['’]\w+)*")
HOW_TO_TELL: Final = f"""\
- The hook: at most 7 words and 44 characters, spoken in {HOOK_SECONDS} seconds. It says what happened or why it matters; no greeting, no question that the story doesn't answer.
- Two or three passages, each of one to three short sentences, at most {SLOTS["passage"].characters - 40} characters; the first sentence of the first one goes on from the hook. Write as people speak: short clauses, plain verbs, no brackets, no lists.
- Write numbers as digits with what they count right behind them, as “412 calls”: each stands large on the screen while it is said.
- The call to action: one sentence of at most {CALL_WORDS - 1} words that asks the viewer for something: an opinion, a choice, to read on.
- All that is spoken together: {WORDS[0] + 5} to {WORDS[1] - 5} words.
- “I” and “we” only where the persona has written the source; it tells what others did otherwise.
- The description: one or two sentences for the text under the film.
- At most {fixed_words.TAGS_MOST} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account, use no emoji and no markup.
- The end card names the source; it is added.
"""
_RULES: Final = (
    "A Persona Short is a film of 25 to 40 seconds in which the persona tells one story; every word is spoken, and shown "
    f"as a caption.\n{HOW_TO_TELL}"
)


class PersonaShort(Engine):
    """The body is what is told, line by line: hook, passages, call to action, end card. An edit of it is filmed again.

    A last line before the end card of at most eleven words is the call to action, and is spoken over that card.
    """

    kind = "persona_short"
    name = "Persona Short"
    bucket = "video"
    version = 1
    credits = 6
    made_from = ("text", "topic")
    draft_tokens = 4_000
    sizes = (SIZE,)
    least_lines: ClassVar[int] = 3

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        words = tellable_words(source.text)
        if words >= _LEAST_WORDS:
            return None
        return (
            f"A Persona Short needs {_LEAST_WORDS} words in sentences of at most {SENTENCE_MOST} characters that stand "
            f"alone; this item has {words}."
        )

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Each variant tells sentences of its own, the best first, in the order of the source, whatever the seed."""
        del seed
        usable = _usable(brief, persona)
        title = _hook(brief, persona, usable)
        usable = [one for one in usable if one.words != title]
        drafts = []
        for number in range(variants):
            # Another variant is worth making where as much is left to tell.
            chosen = _chosen(usable, least=WORDS[0] if number else _LEAST_WORDS)
            if title is None or not chosen:
                break
            usable = [one for one in usable if one not in chosen]
            drafts.append(_draft(brief, persona, title, sorted(chosen, key=lambda one: one.fact.start)))
        if not drafts:
            message = (
                "Neither the source's title nor a sentence of it is short enough to begin a Persona Short with."
                if title is None
                else f"Beside its first line, a Persona Short needs {_LEAST_WORDS} words in sentences that are short enough "
                f"to be told and stand alone; the source has {sum(count_words(one.words) for one in usable)}."
            )
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def draft_schema(self) -> Mapping[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        return variant_schema(
            {
                "hook": {"type": "string", "description": "The first words, spoken and shown."},
                "passages": {**texts, "description": "Two or three, in order, as they are spoken."},
                "call": {"type": "string", "description": "The call to action."},
                "description": {"type": "string", "description": "The text under the film."},
                "tags": {**texts, "description": "One word each; an empty list for none."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """The end card and the source's address are added here: a model neither sees nor writes them."""
        language = persona.language or brief.language
        call = collapse(answer["call"].replace("\n", " "))
        fault = _fault_of_call(call) if call else None
        told = Telling(
            hook=collapse(answer["hook"].replace("\n", " ")),
            passages=tuple(line for one in answer["passages"] if (line := collapse(one.replace("\n", " ")))),
            call=call,
            end=end_of(brief, persona, language),
        )
        made = _as_draft(
            told,
            brief,
            caption=fixed_words.caption_of(answer),
            tags=fixed_words.tags_of(answer),
            language=language,
        )
        refusals = {"call": fault} if fault is not None else {}
        return dataclasses.replace(made, claims=claims_of(answer, brief), angle=angle, refusals=refusals)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Short Post's rules for the words, and whether they can be told and filmed."""
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        judged_as_post = self._post.check(as_post, brief, source, persona)
        return (
            check_content(draft, brief, source, persona, what=self.name),
            *(check for check in judged_as_post if check.code in FROM_SHORT_POST),
            _check_script(draft),
            _check_call(draft),
            _check_length(draft),
            _check_person(draft, brief, source, persona),
            check_film_links(draft.body),
            check_glyphs(draft, persona),
            _check_fits(draft, persona),
        )

    def script(self, draft: Draft, persona: PersonaCard) -> Script | None:
        """None for a body that isn't a story: `film` says what is wrong with it."""
        try:
            told = telling_of(draft)
        except Refused:
            return None
        return told.script(
            # What is told in a language that nobody named is told in the persona's.
            draft.language or persona.language,
            rate=int(persona.brand.get("voice_rate") or narration.RATE),
            pitch=int(persona.brand.get("voice_pitch") or narration.PITCH),
        )

    def film(self, draft: Draft, persona: PersonaCard, media: Media) -> Storyboard:
        """Raises `MissingGlyphs`, `DoesNotFit`, or `Refused` for a body that can't be told."""
        return story.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            language=draft.language,
            heard=media.narration,
            alt_text=alt_text_of(draft),
        )


def telling_of(draft: Draft) -> Telling:
    """The parts of a body, one a line. Raises `Refused` where there are too few or too many."""
    lines = [line for one in draft.body.splitlines() if (line := one.strip())]
    told = lines[1:-1]
    call = told.pop() if len(told) > 1 and _is_call(told[-1]) else ""
    if len(lines) < _LINES[0] or len(told) > PASSAGES_MOST:
        message = (
            f"A line each: the hook, one to {PASSAGES_MOST} passages, a call to action of at most {CALL_WORDS} words "
            f"where there is one, the end card. There are {len(lines)} lines, {len(told)} of them passages."
        )
        raise Refused(message, code="wrong_count")
    return Telling(lines[0], tuple(told), call, lines[-1])


def _is_call(line: str) -> bool:
    return _fault_of_call(line) is None


def _fault_of_call(line: str) -> str | None:
    """Why a line can't be told from a passage; None for one that is short enough for a call to action."""
    words = len(line.split())
    if words > CALL_WORDS:
        return f"The call to action has {words} words; {CALL_WORDS} are the most."
    said = narration.silent(Script((line,), "")).words
    if not said:
        return "The call to action has no word that can be said."
    if said[-1].end > CALL_SECONDS:
        seconds = math.ceil(10 * said[-1].end) / 10
        return f"The call to action takes {seconds:.1f} seconds to say; {CALL_SECONDS:g} are the most."
    return None


def tellable_words(text: str) -> int:
    """In sentences that are short enough to be told and stand alone."""
    return sum(
        count_words(sentence)
        for start, end in statements_in(text)
        if _is_tellable(sentence := polished(text[start:end], is_cut=goes_on(text, end)))
    )


def _is_tellable(sentence: str) -> bool:
    return (
        len(sentence) <= SENTENCE_MOST
        and _WORD.search(sentence) is not None
        and is_clean(sentence)
        and not find_links(sentence)
        and is_self_contained(sentence)
    )


def _usable(brief: Brief, persona: PersonaCard) -> list[Sentence]:
    """What can be told, best first; what says “I” is told of the persona's own alone."""
    return [
        one
        for one in standing_alone(brief, persona, SENTENCE_MOST, count=len)
        if not missing(typeset(one.words, brief.language))
        and (brief.lane is not None or not first_person_in(one.words, brief.language))
    ]


def _hook(brief: Brief, persona: PersonaCard, usable: Sequence[Sentence]) -> str | None:
    """The source's title, or else a short sentence; one that says “I” is the author's."""
    said = [one.words for one in usable]
    most = SLOTS["hook"].characters
    title = title_from(brief, persona, said, most=most)
    if title is not None and brief.lane is None and first_person_in(title, brief.language):
        return next((one for one in said if drawn_length(one) <= most), None)
    return title


def _chosen(usable: Sequence[Sentence], *, least: int) -> list[Sentence]:
    """The best that together are as long as a story is told; none where even all are too short."""
    chosen: list[Sentence] = []
    count = 0
    for one in usable:
        words = count_words(one.words)
        if count + words <= WORDS[1] - CALL_WORDS:
            chosen.append(one)
            count += words
        if count >= WORDS[0] + 5:
            break
    return chosen if count >= least else []


def _passages(chosen: Sequence[Sentence]) -> tuple[str, ...]:
    """The sentences in at most three runs, of which the longest is as short as can be."""
    words = [count_words(one.words) for one in chosen]

    def unevenness(edges: tuple[int, ...]) -> tuple[bool, list[int]]:
        runs = [sum(words[start:end]) for start, end in _runs(edges, len(words))]
        # The hook may stand over the beginning of the first one.
        return runs[0] < _FIRST_LEAST, sorted(runs, reverse=True)

    count = min(PASSAGES_MOST, len(chosen))
    best = min(combinations(range(1, len(chosen)), count - 1), key=unevenness)
    return tuple(
        paragraph_of(one.words for one in chosen[start:end]) for start, end in _runs(best, len(chosen))
    )


def _runs(edges: tuple[int, ...], length: int) -> Iterator[tuple[int, int]]:
    return pairwise((0, *edges, length))


def _draft(brief: Brief, persona: PersonaCard, title: str, chosen: Sequence[Sentence]) -> Draft:
    fixed = known_words(brief.language)
    told = Telling(
        hook=title,
        passages=_passages(chosen),
        # Only where there is something to read, and in the language of the film.
        call=fixed.read_on if fixed is not None and brief.url else "",
        end=end_of(brief, persona, brief.language),
    )
    made = _as_draft(
        told,
        brief,
        caption=fixed_words.captioned(title, "\n".join(told.passages), persona),
        tags=[],
        language=brief.language,
    )
    return dataclasses.replace(made, claims=tuple(one.claim for one in chosen))


def _as_draft(told: Telling, brief: Brief, *, caption: str, tags: list[str], language: str) -> Draft:
    body = "\n".join(line for line in (told.hook, *told.passages, told.call, told.end) if line)
    url = ascii_url(brief.url)
    return Draft(
        title=told.hook[:TITLE_MOST],
        body=body,
        body_format="text",
        content={"caption": f"{caption}\n{url}" if url else caption, "tags": tags, "script": body},
        claims=(),
        language=language,
    )


def _check_script(draft: Draft) -> Check:
    fault = None
    try:
        fault = story.too_long(telling_of(draft))
    except Refused as refused:
        fault = refused.message
    return judged("script", "Hook, passages and call to action have the length that they take.", fault)


def _check_call(draft: Draft) -> Check:
    """Of what a model wrote as one; in a body that a person wrote a longer line is a passage."""
    return judged(
        "call", "The call to action is short enough to be told from a passage.", draft.refusals.get("call")
    )


def _check_length(draft: Draft) -> Check:
    """About how long it takes to say; what was spoken is measured when it is filmed."""
    try:
        script = telling_of(draft).script(draft.language)
    except Refused:
        return Check("length", "passed", "How long it is can't be said yet.")
    seconds = narration.seconds_of(script)
    words = sum(count_words(one) for one in script.passages)
    said = f"The script has {words} words and takes about {seconds:.0f} seconds"
    if not SECONDS[0] - 3 <= seconds <= SECONDS[1] - 8:
        return Check("length", "failed", f"{said}; a film takes {SECONDS[0]:.0f} to {SECONDS[1]:.0f}.")
    if not (WORDS[0] <= words <= WORDS[1] and GOOD_SECONDS[0] <= seconds + 2 <= GOOD_SECONDS[1]):
        best = f"{WORDS[0]} to {WORDS[1]} words in {GOOD_SECONDS[0]:.0f} to {GOOD_SECONDS[1]:.0f} seconds"
        return Check("length", "warning", f"{said}; {best} are best.")
    return Check("length", "passed", f"{said}.")


def _check_person(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    """What the story says; who asks the viewer for something is the persona."""
    try:
        told = telling_of(draft)
    except Refused:
        words = draft.body
    else:
        words = "\n".join((told.hook, *told.passages))
    found = first_person_in(words, draft.language)
    fault = None
    if found and not is_author(persona, brief, source):
        fault = f"“{found}” would be the persona's own, and it didn't write the source."
    return judged("first_person", "Nobody says “I” or “we” of what others did.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return fixed_words.check_fits(
        lambda: story.plan(telling_of(draft), cast_of(persona, has_portrait=False), language=draft.language),
        # How many lines there are, and how long it is.
        told_elsewhere=frozenset({"wrong_count", "wrong_length"}),
    )


PLUGIN = PersonaShort()
