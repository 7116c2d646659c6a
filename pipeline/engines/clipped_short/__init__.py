"""Makes a Clipped Short: one stretch of a long video, cut at its sentences, with title, captions and source."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import (
    Check,
    Claim,
    Draft,
    Engine,
    PersonaCard,
    claims_of,
    make_check,
    variant_schema,
)
from pipeline.engines.checks.allowed_contacts import check_suspicion
from pipeline.engines.checks.posts import check_words
from pipeline.engines.clipped_short.spans import (
    MAX_SECONDS,
    MIN_SECONDS,
    are_consecutive,
    choose_stretches,
    clean_title,
    end_of,
    find_stretches,
    is_on_edges,
    is_too_long,
    score_sentences,
    select_sentences,
    sentences_in,
    span_of,
    start_of,
)
from pipeline.engines.clipped_short.title import MAX_TITLE_CHARACTERS, verbatim_title
from pipeline.engines.shared.film_checks import MAX_TAGS, check_content, check_text_glyphs, clips_in, is_span
from pipeline.engines.shared.film_parts import caption_of, credit_of, tags_of
from pipeline.plugins import Refused
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.material import VideoSpan
from pipeline.render.video.storyboard import SIZE, Word
from pipeline.render.video.templates import clipped
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import counted, paragraph_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, SourceText
    from pipeline.render.picture_types import AvailableMedia
    from pipeline.render.video.material import Clip
    from pipeline.render.video.storyboard import Storyboard

_NUMBERED: Final = re.compile(r"s?(\d{1,6})")
_RULES: Final = f"""\
A Clipped Short is one stretch of a long talk, cut out of its video as it is. The facts are its sentences in the order in which they are said, each with its length in seconds.
- Choose one stretch of sentences that follow one another: `first` and `last` are the ids of its first and last sentence. Nothing is left out between them, and nothing is added.
- All its sentences together last 25 to 50 seconds, never less than {MIN_SECONDS:.0f} and never more than {MAX_SECONDS:.0f}. Add the seconds up.
- It is understood by somebody who knows nothing of the rest: it doesn't begin with "and", "he" or "that" of something said before, and it ends where the thought ends.
- Its first sentence makes people stay: a claim, a figure, a question that is answered.
- No greeting, no advertisement, no request to subscribe.
- Stretches of different variants have no sentence in common.
- The title: at most {MAX_TITLE_CHARACTERS} characters, better 30 to 50. It stands on the film for three seconds; best in words that are said in the stretch. It promises nothing that isn't said.
- The description: one or two sentences for the text under the film.
- At most {MAX_TAGS} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account. The claims are those of title and description.
"""


class ClippedShort(Engine):
    """Makes a film whose body is the words of the stretch; an edit of title, body or clip films it again."""

    kind = "clipped_short"
    name = "Clipped Short"
    bucket = "video"
    version = 1
    credits = 5
    made_from = ("video",)
    sizes = (SIZE,)
    draft_tokens = 3_000
    least_lines = 0
    takes_stretches = True

    def why_not(self, source: SourceText) -> str | None:
        """Return what the source lacks: a video, a transcript with times, its words in the text, or length."""
        material = source.material
        if material is None or not material.clips:
            return "A Clipped Short is cut from a video: upload it and name it in the media."
        if material.spoken is None:
            return material.why_no_words or (
                "A Clipped Short is cut by what is said: upload the video's transcript with times (SubRip, WebVTT or "
                "JSON) and name it in the media after the video."
            )
        sentences = sentences_in(source)
        if not sentences:
            return (
                "The item's text doesn't hold the words of its transcript: push it again with the transcript."
            )
        length = end_of(sentences[-1]) - start_of(sentences[0])
        if length < MIN_SECONDS:
            return f"A Clipped Short lasts {MIN_SECONDS:.0f} seconds at least; what is said in this video lasts {length:.0f}."
        return None

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """Return the brief with the video's sentences in place of the facts; of a long talk only the best ones."""
        sentences = score_sentences(sentences_in(source), brief.facts)
        if is_too_long(sentences):
            sentences = select_sentences(sentences, find_stretches(sentences, brief, PersonaCard(name="")))
        return replace(brief, facts=sentences, material=source.material)

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return the stretches with the highest score, best first, whatever the seed."""
        del seed
        clip = _clip_of(brief)
        stretches = find_stretches(brief.facts, brief, persona) if clip is not None else []
        chosen = choose_stretches(stretches, max(1, variants))
        if clip is None or not chosen:
            message = (
                f"No whole sentences of the video follow one another for {MIN_SECONDS:.0f} to {MAX_SECONDS:.0f} seconds without "
                "leading elsewhere."
            )
            raise Refused(message, code="nothing_to_say")
        return tuple(
            _draft(
                brief,
                clip,
                stretch.first,
                stretch.last,
                title=verbatim_title(brief, persona, brief.facts[stretch.first : stretch.last]),
                language=brief.language,
            )
            for stretch in chosen
        )

    def draft_schema(self) -> Mapping[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        return variant_schema(
            {
                "first": {"type": "string", "description": "The id of the first sentence, as s12."},
                "last": {"type": "string", "description": "The id of the last sentence."},
                "title": {"type": "string", "description": "What stands on the film at first."},
                "description": {"type": "string", "description": "The text under the film."},
                "tags": {**texts, "description": "One word each; an empty list for none."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft. Its body has the spoken words: a model chooses only the stretch, and writes the title.

        Raises `Refused` if there is no video, a sentence is unknown, the stretch has gaps or ends before it
        begins, or a claim cites an unknown fact.
        """
        clip = _clip_of(brief)
        if clip is None:
            raise Refused("There is no video to cut.", code="no_video")
        first, last = _index_of(answer["first"], brief), _index_of(answer["last"], brief) + 1
        if not are_consecutive(brief.facts, first, last):
            message = f"There is more between {answer['first']} and {answer['last']} than was shown."
            raise Refused(message, code="no_stretch")
        if last <= first:
            message = f"{answer['last']} is said before {answer['first']}."
            raise Refused(message, code="no_stretch")
        title = clean_title(answer["title"])
        draft = _draft(
            brief,
            clip,
            first,
            last,
            title=title,
            language=brief.language or persona.language,
            caption=caption_of(answer) or title,
            tags=tags_of(answer),
            angle=angle,
        )
        return replace(draft, claims=(*draft.claims, *claims_of(answer, brief)))

    def shares(self, one: Draft, other: Draft) -> bool:
        return any(
            own_span.name == other_span.name
            and own_span.start < other_span.end
            and other_span.start < own_span.end
            for own_span in self.spans(one)
            for other_span in self.spans(other)
        )

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check content, title and stretch, and run the checks of a plain text on title and body."""
        words = f"{draft.title}\n|\n{draft.body}"
        as_text = replace(draft, content={})
        word_checks = check_words(as_text, brief, source, persona, parts=(words,), max_tags=2, noun="film")
        return (
            check_content(
                draft, brief, source, persona, noun=self.name, holds="a caption, tags, a script and the clip"
            ),
            _check_title(draft),
            _check_span(draft, source),
            _check_script(draft, source),
            _check_times(source),
            *(check for check in word_checks if check.code != "instructions"),
            check_suspicion(brief),
            _check_glyphs(draft, source),
        )

    def drawn(self, draft: Draft) -> object:
        return draft.title, draft.body, draft.content.get("clips")

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        """Return the one span, or none if the content names no clip, several, or an invalid one."""
        clips = clips_in(draft)
        if len(clips) != 1 or not is_span(clips[0]):
            return ()
        [clip] = clips
        return (VideoSpan(clip["upload"], float(clip["start"]), float(clip["end"])),)

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """Return the storyboard, or `None` without material, when only span and title are checked.

        Raises `Refused` if the span is missing or has a wrong length, its video doesn't exist, or the captions
        don't match its words, `MissingGlyphs` if the fonts lack a character, and `TextDoesNotFit` if a text is
        too long.
        """
        if len(clips := clips_in(draft)) > 1:
            message = f"The content names {len(clips)} clips; a Clipped Short is one stretch of one video."
            raise Refused(message, code="no_span", field="content.clips")
        span = next(iter(self.spans(draft)), None)
        if span is None or not MIN_SECONDS - 1 <= span.end - span.start <= MAX_SECONDS + 1:
            message = f"The content names one clip with its start and end, {MIN_SECONDS:.0f} to {MAX_SECONDS:.0f} seconds apart."
            raise Refused(message, code="no_span", field="content.clips")
        if draft.title:
            clipped.fit_title(draft.title, draft.language)
        material = media.material
        if material is None:
            return None
        clip = next((candidate for candidate in material.clips if candidate.name == span.name), None)
        if clip is None:
            message = "The video that it was cut from no longer exists."
            raise Refused(message, code="no_footage")
        return clipped.plan(
            span,
            clip.shots,
            _caption_words(clip, span, draft.body),
            title=draft.title,
            credit=credit_of(material.credit, persona, draft.language),
            colours=clipped.ClipColours(persona.brand.get("primary"), persona.brand.get("accent")),
            language=draft.language,
            alt_text=f"{draft.title}. {draft.body}"[:1000],
        )


def _caption_words(clip: Clip, span: VideoSpan, body: str) -> tuple[Word, ...]:
    """Return the body's words with the times of the spoken ones. Raises `Refused` if there are more or fewer."""
    heard = clipped.words_within(clip.words, span)
    written = body.split()
    if len(written) != len(heard):
        message = (
            f"The captions follow what is said: the text has {counted(len(written), 'word')}, and the clip "
            f"{counted(len(heard), 'word')}. "
            "Correct words, but leave none out and add none."
        )
        raise Refused(message, code="other_words", field="body")
    return tuple(Word(text, word.start, word.end) for text, word in zip(written, heard, strict=True))


def _draft(
    brief: Brief,
    clip: Clip,
    first: int,
    last: int,
    *,
    title: str,
    language: str,
    caption: str = "",
    tags: Sequence[str] = (),
    angle: str = "",
) -> Draft:
    """Return the draft of the clip's stretch with the sentences `brief.facts[first:last]`."""
    sentences = brief.facts[first:last]
    span = span_of(clip.name, brief.facts, first, last)
    body = paragraph_of(sentence.quote for sentence in sentences)
    caption_lines = [caption or title, ascii_url(brief.url)]
    return Draft(
        title=title,
        body=body,
        body_format="text",
        content={
            "caption": "\n".join(line for line in caption_lines if line),
            "tags": list(tags),
            "script": body,
            "clips": [{"upload": span.name, "start": span.start, "end": span.end}],
        },
        claims=tuple(
            Claim(sentence.quote, sentence.quote, sentence.start, sentence.end) for sentence in sentences
        ),
        language=language,
        angle=angle,
    )


def _clip_of(brief: Brief) -> Clip | None:
    """Return the brief's video with a transcript, or `None` if there is none."""
    return brief.material.spoken if brief.material is not None else None


def _index_of(answered: str, brief: Brief) -> int:
    """Return the index of the fact with the answered sentence id. Raises `Refused` if no fact has that id."""
    match = _NUMBERED.fullmatch(answered.strip().lower())
    name = f"s{int(match[1])}" if match else ""
    for index, fact in enumerate(brief.facts):
        if fact.id == name:
            return index
    message = f"No sentence has the id {answered!r}."
    raise Refused(message, code="unknown_fact")


# --- Checks ----------------------------------------------------------------------------------------------------------


def _check_title(draft: Draft) -> Check:
    """Check that there is a title, that it is short, and that it fits on the film."""
    fault = None
    if not draft.title.strip():
        fault = "The film has no title."
    elif len(draft.title) > MAX_TITLE_CHARACTERS:
        fault = f"The title has {len(draft.title)} characters; the maximum is {MAX_TITLE_CHARACTERS}."
    else:
        try:
            clipped.fit_title(draft.title, draft.language)
        except Refused as refused:
            fault = refused.message
    return make_check(
        "title", f"The title has at most {MAX_TITLE_CHARACTERS} characters and fits on the film.", fault
    )


def _check_span(draft: Draft, source: SourceText) -> Check:
    """Check that there is one stretch of a possible length, from the start of a sentence to the end of one."""
    spans = ClippedShort().spans(draft)
    fault = None
    if len(spans) != 1:
        fault = "A Clipped Short is one stretch of one video."
    else:
        seconds = spans[0].end - spans[0].start
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            fault = f"The stretch lasts {seconds:.1f} seconds; {MIN_SECONDS:.0f} to {MAX_SECONDS:.0f} are possible."
        elif not is_on_edges(spans[0], sentences_in(source)):
            fault = "The stretch doesn't begin and end with a sentence."
    return make_check("span", "It is one stretch of whole sentences, 15 to 60 seconds long.", fault)


def _check_script(draft: Draft, source: SourceText) -> Check:
    """Warn if the body's words aren't those that the transcript has within the span."""
    clip = source.material.spoken if source.material is not None else None
    span = next(iter(ClippedShort().spans(draft)), None)
    heard = (
        [word.t for word in clipped.words_within(clip.words, span)]
        if clip is not None and span is not None
        else []
    )
    if draft.body.split() == heard:
        return Check("script", "passed", "The words are those that are said, one after the other.")
    return Check("script", "warning", "The words aren't exactly those of the transcript.")


def _check_times(source: SourceText) -> Check:
    """Warn if the transcript has times of lines only, by which those of its words are estimated."""
    clip = source.material.spoken if source.material is not None else None
    if clip is None or clip.is_word_timed:
        return Check("word_times", "passed", "The captions follow the times of the transcript's words.")
    message = (
        "The transcript has times of lines only: the captions' words are placed by their letters. Look at them, or send "
        "a transcript with a time for each word."
    )
    return Check("word_times", "warning", message)


def _check_glyphs(draft: Draft, source: SourceText) -> Check:
    credit = source.material.credit if source.material is not None else ""
    return check_text_glyphs(f"{typeset(f'{draft.title} {draft.body}', draft.language)} {credit}")


PLUGIN = ClippedShort()
