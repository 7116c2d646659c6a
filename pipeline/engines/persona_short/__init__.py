"""Makes a Persona Short: a persona tells a story in 20 to 45 seconds, in a hook, passages and a call to action."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.persona_rules import first_person_in, is_author
from pipeline.engines.shared.film_checks import (
    MAX_TAGS,
    MAX_TITLE_CHARACTERS,
    SHORT_POST_CHECKS,
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
    MAX_SENTENCE_CHARACTERS,
    STORY_WORDS,
    call_fault,
    choose_sentences,
    hook_of,
    split_into_passages,
    tellable_words,
    telling_of,
    usable_sentences,
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
    from pipeline.render.picture_types import AvailableMedia
    from pipeline.render.video.storyboard import Storyboard

GOOD_SECONDS: Final = (20.0, 45.0)
"""The shortest and the longest film that passes without a warning."""
_MIN_WORDS: Final = 45
"""The words of a source that take 15 seconds with a hook and an end card."""
HOW_TO_TELL: Final = f"""\
- The hook: at most 7 words and 44 characters, spoken in {HOOK_SECONDS} seconds. It says what happened or why it matters; no greeting, no question that the story doesn't answer.
- Two or three passages, each of one to three short sentences, at most {SLOTS["passage"].characters - 40} characters; the first sentence of the first one goes on from the hook. Write as people speak: short clauses, plain verbs, no brackets, no lists.
- Write numbers as digits with what they count right behind them, as “412 calls”: each stands large on the screen while it is said.
- The call to action: one sentence of at most {CALL_WORDS - 1} words that asks the viewer for something: an opinion, a choice, to read on.
- All that is spoken together: {STORY_WORDS[0] + MARGIN_WORDS} to {STORY_WORDS[1] - MARGIN_WORDS} words.
- “I” and “we” only where the persona has written the source; it tells what others did otherwise.
- The description: one or two sentences for the text under the film.
- At most {MAX_TAGS} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account, use no emoji and no markup.
- The end card names the source; it is added.
"""
_RULES: Final = (
    "A Persona Short is a film of 25 to 40 seconds in which the persona tells one story; every word is spoken, and shown "
    f"as a caption.\n{HOW_TO_TELL}"
)


class PersonaShort(Engine):
    """Makes a film whose body is told line by line: hook, passages, call to action, end card.

    An edit of the body is filmed again. The line before the end card is the call to action if it has at most
    eleven words and takes at most four seconds; it is spoken over that card.
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
        if words >= _MIN_WORDS:
            return None
        return (
            f"A Persona Short needs {_MIN_WORDS} words in sentences of at most {MAX_SENTENCE_CHARACTERS} characters that stand "
            f"alone; this item has {words}."
        )

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return drafts of different sentences, the best in the first, in the source's order, whatever the seed."""
        del seed
        usable = usable_sentences(brief, persona)
        hook = hook_of(brief, persona, usable)
        usable = [sentence for sentence in usable if sentence.words != hook]
        drafts = []
        for number in range(variants):
            # A further variant is made only if a whole good story is left to tell.
            chosen = choose_sentences(usable, min_words=STORY_WORDS[0] if number else _MIN_WORDS)
            if hook is None or not chosen:
                break
            usable = [sentence for sentence in usable if sentence not in chosen]
            drafts.append(
                _draft(brief, persona, hook, sorted(chosen, key=lambda sentence: sentence.fact.start))
            )
        if not drafts:
            message = (
                "Neither the source's title nor a sentence of it is short enough to begin a Persona Short with."
                if hook is None
                else f"Besides its first line, a Persona Short needs {_MIN_WORDS} words in sentences that "
                "are short enough to be told and stand alone; the source has "
                f"{sum(count_words(sentence.words) for sentence in usable)}."
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
        """Build the draft.

        The end card and the source's address are added here, because a model neither sees nor writes them. A
        call to action that is too long is noted in `refusals`. Raises `Refused` if a claim cites an unknown fact.
        """
        language = persona.language or brief.language
        call = collapse(answer["call"].replace("\n", " "))
        fault = call_fault(call) if call else None
        telling_parts = Telling(
            hook=collapse(answer["hook"].replace("\n", " ")),
            passages=tuple(
                line for passage in answer["passages"] if (line := collapse(passage.replace("\n", " ")))
            ),
            call=call,
            end=end_of(brief, persona, language),
        )
        draft = _build_draft(
            telling_parts, brief, caption=caption_of(answer), tags=tags_of(answer), language=language
        )
        refusals = {"call": fault} if fault is not None else {}
        return dataclasses.replace(draft, claims=claims_of(answer, brief), angle=angle, refusals=refusals)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Run a Short Post's checks of the words, and check that they can be told and filmed."""
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        post_checks = self._post.check(as_post, brief, source, persona)
        return (
            check_content(draft, brief, source, persona, noun=self.name),
            *(check for check in post_checks if check.code in SHORT_POST_CHECKS),
            _check_script(draft),
            _check_call(draft),
            _check_length(draft),
            _check_person(draft, brief, source, persona),
            check_film_links(draft.body),
            check_glyphs(draft, persona),
            _check_fits(draft, persona),
        )

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
        """Return the script, or `None` if the body is no story, for which `film` raises the reason."""
        try:
            story = telling_of(draft)
        except Refused:
            return None
        return story.script(
            # A story in an unknown language is told in the persona's.
            draft.language or persona.language,
            rate=int(persona.brand.get("voice_rate") or narration.RATE),
            pitch=int(persona.brand.get("voice_pitch") or narration.PITCH),
        )

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard:
        """Return the storyboard.

        Raises `Refused` if the body can't be told or the film has a wrong length, `MissingGlyphs` if the fonts
        lack a character, and `TextDoesNotFit` if a text is too long.
        """
        return telling.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            language=draft.language,
            heard=media.narration,
            alt_text=alt_text_of(draft),
        )


def _draft(brief: Brief, persona: PersonaCard, hook: str, chosen: Sequence[FactSentence]) -> Draft:
    """Return the draft of a story in the source's words: hook, passages, call and end card."""
    fixed = known_words(brief.language)
    story = Telling(
        hook=hook,
        passages=split_into_passages(chosen),
        # There is a call only if there is something to read, and only in the film's language.
        call=fixed.read_on if fixed is not None and brief.url else "",
        end=end_of(brief, persona, brief.language),
    )
    draft = _build_draft(
        story,
        brief,
        caption=compose_caption(hook, "\n".join(story.passages), persona),
        tags=[],
        language=brief.language,
    )
    return dataclasses.replace(draft, claims=tuple(sentence.claim for sentence in chosen))


def _build_draft(story: Telling, brief: Brief, *, caption: str, tags: list[str], language: str) -> Draft:
    body = "\n".join(line for line in (story.hook, *story.passages, story.call, story.end) if line)
    url = ascii_url(brief.url)
    return Draft(
        title=story.hook[:MAX_TITLE_CHARACTERS],
        body=body,
        body_format="text",
        content={"caption": f"{caption}\n{url}" if url else caption, "tags": tags, "script": body},
        claims=(),
        language=language,
    )


def _check_script(draft: Draft) -> Check:
    fault = None
    try:
        fault = telling.length_fault(telling_of(draft))
    except Refused as refused:
        fault = refused.message
    return make_check("script", "Hook, passages and call to action have the length that they take.", fault)


def _check_call(draft: Draft) -> Check:
    """Check the call that a model wrote, by `refusals`: in the body a longer line is a passage."""
    return make_check(
        "call", "The call to action is short enough to be told from a passage.", draft.refusals.get("call")
    )


def _check_length(draft: Draft) -> Check:
    """Check the estimated seconds, which may fail, and whether words and seconds are good, else with a warning.

    A body that can't be told passes, as other checks report it; the spoken length is measured on filming.
    """
    try:
        script = telling_of(draft).script(draft.language)
    except Refused:
        return Check("length", "passed", "How long it is can't be said yet.")
    seconds = narration.seconds_of(script)
    words = sum(count_words(passage) for passage in script.passages)
    summary = f"The script has {counted(words, 'word')} and takes about {counted(round(seconds), 'second')}"
    if not FILM_SECONDS[0] - 3 <= seconds <= FILM_SECONDS[1] - 8:
        return Check(
            "length", "failed", f"{summary}; a film takes {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f}."
        )
    if not (STORY_WORDS[0] <= words <= STORY_WORDS[1] and GOOD_SECONDS[0] <= seconds + 2 <= GOOD_SECONDS[1]):
        best_length = f"{STORY_WORDS[0]} to {STORY_WORDS[1]} words in {GOOD_SECONDS[0]:.0f} to {GOOD_SECONDS[1]:.0f} seconds"
        return Check("length", "warning", f"{summary}; {best_length} are best.")
    return Check("length", "passed", f"{summary}.")


def _check_person(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    """Check that hook and passages aren't in the first person, unless the persona wrote the source."""
    try:
        story = telling_of(draft)
    except Refused:
        words = draft.body
    else:
        words = "\n".join((story.hook, *story.passages))
    first_person = first_person_in(words, draft.language)
    fault = None
    if first_person and not is_author(persona, brief, source):
        fault = f"“{first_person}” would be the persona's own, and it didn't write the source."
    return make_check("first_person", "The text doesn't say “I” or “we” of what others did.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return check_fits(
        lambda: telling.plan(
            telling_of(draft), cast_of(persona, has_portrait=False), language=draft.language
        ),
        # Other checks report the number of lines and the film's length.
        reported_codes=frozenset({"wrong_count", "wrong_length"}),
    )


PLUGIN = PersonaShort()
