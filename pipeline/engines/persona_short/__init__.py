"""Persona Short: a persona tells a story in 20 to 45 seconds: a hook, up to three passages, a call to action."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, judge, variant_schema
from pipeline.engines.checks.persona_rules import first_person_in, is_author
from pipeline.engines.shared.film_checks import (
    FROM_SHORT_POST,
    TAGS_MOST,
    TITLE_MOST,
    check_content,
    check_film_links,
    check_fits,
    check_glyphs,
)
from pipeline.engines.shared.film_parts import (
    alt_text_of,
    caption_of,
    cast_of,
    compose_caption,
    end_of,
    tags_of,
)
from pipeline.engines.shared.fixed_words import known_words
from pipeline.engines.shared.story_lines import (
    MARGIN_WORDS,
    SENTENCE_CHARACTERS_MOST,
    STORY_WORDS,
    chosen_sentences,
    hook_of,
    passages_of,
    tellable_words,
    telling_of,
    usable_sentences,
    why_not_a_call,
)
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.video.storyboard import SIZE
from pipeline.render.video.templates import telling
from pipeline.render.video.templates.telling import CALL_WORDS, FILM_SECONDS, HOOK_SECONDS, SLOTS, Telling
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import collapse, count_words, counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, PersonaCard, SourceText
    from pipeline.engines.shared.source_sentences import FactSentence
    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.picture_plan import AvailableMedia
    from pipeline.render.video.storyboard import Storyboard

GOOD_SECONDS: Final = (20.0, 45.0)
_LEAST_WORDS: Final = 45
"""What takes 15 seconds, with a hook and an end card."""
HOW_TO_TELL: Final = f"""\
- The hook: at most 7 words and 44 characters, spoken in {HOOK_SECONDS} seconds. It says what happened or why it matters; no greeting, no question that the story doesn't answer.
- Two or three passages, each of one to three short sentences, at most {SLOTS["passage"].characters - 40} characters; the first sentence of the first one goes on from the hook. Write as people speak: short clauses, plain verbs, no brackets, no lists.
- Write numbers as digits with what they count right behind them, as “412 calls”: each stands large on the screen while it is said.
- The call to action: one sentence of at most {CALL_WORDS - 1} words that asks the viewer for something: an opinion, a choice, to read on.
- All that is spoken together: {STORY_WORDS[0] + MARGIN_WORDS} to {STORY_WORDS[1] - MARGIN_WORDS} words.
- “I” and “we” only where the persona has written the source; it tells what others did otherwise.
- The description: one or two sentences for the text under the film.
- At most {TAGS_MOST} tags, each one word without "#"; none is better than a vague one.
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
        words = tellable_words(source.text, source.language)
        if words >= _LEAST_WORDS:
            return None
        return (
            f"A Persona Short needs {_LEAST_WORDS} words in sentences of at most {SENTENCE_CHARACTERS_MOST} characters that stand "
            f"alone; this item has {words}."
        )

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Each variant tells sentences of its own, the best first, in the order of the source, whatever the seed."""
        del seed
        usable = usable_sentences(brief, persona)
        title = hook_of(brief, persona, usable)
        usable = [one for one in usable if one.words != title]
        drafts = []
        for number in range(variants):
            # Another variant is worth making where as much is left to tell.
            chosen = chosen_sentences(usable, least=STORY_WORDS[0] if number else _LEAST_WORDS)
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
        fault = why_not_a_call(call) if call else None
        told = Telling(
            hook=collapse(answer["hook"].replace("\n", " ")),
            passages=tuple(line for one in answer["passages"] if (line := collapse(one.replace("\n", " ")))),
            call=call,
            end=end_of(brief, persona, language),
        )
        made = _as_draft(
            told,
            brief,
            caption=caption_of(answer),
            tags=tags_of(answer),
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

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
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

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard:
        """Raises `MissingGlyphs`, `TextDoesNotFit`, or `Refused` for a body that can't be told."""
        return telling.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            language=draft.language,
            heard=media.narration,
            alt_text=alt_text_of(draft),
        )


def _draft(brief: Brief, persona: PersonaCard, title: str, chosen: Sequence[FactSentence]) -> Draft:
    fixed = known_words(brief.language)
    told = Telling(
        hook=title,
        passages=passages_of(chosen),
        # Only where there is something to read, and in the language of the film.
        call=fixed.read_on if fixed is not None and brief.url else "",
        end=end_of(brief, persona, brief.language),
    )
    made = _as_draft(
        told,
        brief,
        caption=compose_caption(title, "\n".join(told.passages), persona),
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
        fault = telling.too_long(telling_of(draft))
    except Refused as refused:
        fault = refused.message
    return judge("script", "Hook, passages and call to action have the length that they take.", fault)


def _check_call(draft: Draft) -> Check:
    """Of what a model wrote as one; in a body that a person wrote a longer line is a passage."""
    return judge(
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
    said = f"The script has {counted(words, 'word')} and takes about {counted(round(seconds), 'second')}"
    if not FILM_SECONDS[0] - 3 <= seconds <= FILM_SECONDS[1] - 8:
        return Check(
            "length", "failed", f"{said}; a film takes {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f}."
        )
    if not (STORY_WORDS[0] <= words <= STORY_WORDS[1] and GOOD_SECONDS[0] <= seconds + 2 <= GOOD_SECONDS[1]):
        best = f"{STORY_WORDS[0]} to {STORY_WORDS[1]} words in {GOOD_SECONDS[0]:.0f} to {GOOD_SECONDS[1]:.0f} seconds"
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
    return judge("first_person", "Nobody says “I” or “we” of what others did.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return check_fits(
        lambda: telling.plan(
            telling_of(draft), cast_of(persona, has_portrait=False), language=draft.language
        ),
        # How many lines there are, and how long it is.
        told_elsewhere=frozenset({"wrong_count", "wrong_length"}),
    )


PLUGIN = PersonaShort()
