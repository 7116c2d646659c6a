"""Clipped Short: one stretch of a long video, cut at its sentences, upright, with a title, captions and its source."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Claim, Draft, Engine, PersonaCard, claims_of, judge, variant_schema
from pipeline.engines.checks.allowed_contacts import check_suspicion
from pipeline.engines.checks.posts import check_words
from pipeline.engines.clipped_short.spans import (
    LEAST,
    MOST,
    are_consecutive,
    choose_stretches,
    clean_title,
    facts_of_spans,
    find_stretches,
    is_on_edges,
    is_too_long,
    sentences_in,
    span_of,
    weigh_sentences,
)
from pipeline.engines.clipped_short.title import TITLE_MOST, verbatim_title
from pipeline.engines.shared.film_checks import TAGS_MOST, check_content, clips_in, is_span, judge_glyphs
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

    from pipeline.engines.base import Brief, Fact, SourceText
    from pipeline.render.picture_plan import AvailableMedia
    from pipeline.render.video.material import Clip
    from pipeline.render.video.storyboard import Storyboard

_NUMBERED: Final = re.compile(r"s?(\d{1,6})")
_RULES: Final = f"""\
A Clipped Short is one stretch of a long talk, cut out of its video as it is. The facts are its sentences in the order in which they are said, each with its length in seconds.
- Choose one stretch of sentences that follow one another: `first` and `last` are the ids of its first and last sentence. Nothing is left out between them, and nothing is added.
- All its sentences together last 25 to 50 seconds, never less than {LEAST:.0f} and never more than {MOST:.0f}. Add the seconds up.
- It is understood by somebody who knows nothing of the rest: it doesn't begin with "and", "he" or "that" of something said before, and it ends where the thought ends.
- Its first sentence makes people stay: a claim, a figure, a question that is answered.
- No greeting, no advertisement, no request to subscribe.
- Stretches of different variants have no sentence in common.
- The title: at most {TITLE_MOST} characters, better 30 to 50. It stands on the film for three seconds; best in words that are said in the stretch. It promises nothing that isn't said.
- The description: one or two sentences for the text under the film.
- At most {TAGS_MOST} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account. The claims are those of title and description.
"""


class ClippedShort(Engine):
    """The words of the stretch are the body; an edit of the title, or a word that was misheard, films it again."""

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
        material = source.material
        if material is None or not material.clips:
            return "A Clipped Short is cut from a video: upload it and name it in the media."
        if material.spoken is None:
            return material.why_no_words or (
                "A Clipped Short is cut by what is said: upload the video's transcript with times (SubRip, WebVTT or "
                "JSON) and name it in the media after the video."
            )
        said = sentences_in(source)
        if not said:
            return (
                "The item's text doesn't hold the words of its transcript: push it again with the transcript."
            )
        length = _end_of(said[-1]) - _start_of(said[0])
        if length < LEAST:
            return f"A Clipped Short lasts {LEAST:.0f} seconds at least; what is said in this video lasts {length:.0f}."
        return None

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """What is said, sentence by sentence, in place of the facts."""
        said = weigh_sentences(sentences_in(source), brief.facts)
        if is_too_long(said):
            said = facts_of_spans(said, find_stretches(said, brief, PersonaCard(name="")))
        return replace(brief, facts=said, material=source.material)

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """The stretches with the highest score, best first, whatever the seed."""
        del seed
        clip = _clip_of(brief)
        found = find_stretches(brief.facts, brief, persona) if clip is not None else []
        taken = choose_stretches(found, max(1, variants))
        if clip is None or not taken:
            message = (
                f"No whole sentences of the video follow one another for {LEAST:.0f} to {MOST:.0f} seconds without "
                "leading elsewhere."
            )
            raise Refused(message, code="nothing_to_say")
        return tuple(
            _draft(
                brief,
                clip,
                one.first,
                one.last,
                title=verbatim_title(brief, persona, brief.facts[one.first : one.last]),
                language=brief.language,
            )
            for one in taken
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
        """The words are those that are said: of the model are only which, and what stands above them."""
        clip = _clip_of(brief)
        if clip is None:
            raise Refused("There is no video to cut.", code="no_video")
        first, last = _place(answer["first"], brief), _place(answer["last"], brief) + 1
        if not are_consecutive(brief.facts, first, last):
            message = f"There is more between {answer['first']} and {answer['last']} than was shown."
            raise Refused(message, code="no_stretch")
        if last <= first:
            message = f"{answer['last']} is said before {answer['first']}."
            raise Refused(message, code="no_stretch")
        title = clean_title(answer["title"])
        made = _draft(
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
        return replace(made, claims=(*made.claims, *claims_of(answer, brief)))

    def shares(self, one: Draft, other: Draft) -> bool:
        return any(
            this.name == that.name and this.start < that.end and that.start < this.end
            for this in self.spans(one)
            for that in self.spans(other)
        )

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        words = f"{draft.title}\n|\n{draft.body}"
        as_text = replace(draft, content={})
        judged_words = check_words(as_text, brief, source, persona, parts=(words,), most_tags=2, what="film")
        return (
            check_content(
                draft,
                brief,
                source,
                persona,
                what=self.name,
                holds="a caption, tags, a script and the clip",
            ),
            _check_title(draft, persona),
            _check_span(draft, source),
            _check_script(draft, source),
            _check_times(source),
            *(check for check in judged_words if check.code != "instructions"),
            check_suspicion(brief),
            _check_glyphs(draft, source),
        )

    def drawn(self, draft: Draft) -> object:
        return draft.title, draft.body, draft.content.get("clips")

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        """One; none where the content names none that could be, or several."""
        clips = clips_in(draft)
        if len(clips) != 1 or not is_span(clips[0]):
            return ()
        [one] = clips
        return (VideoSpan(one["upload"], float(one["start"]), float(one["end"])),)

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """Without material only the words are judged. Raises `Refused`, `MissingGlyphs`, `TextDoesNotFit`."""
        if len(clips := clips_in(draft)) > 1:
            message = f"The content names {len(clips)} clips; a Clipped Short is one stretch of one video."
            raise Refused(message, code="no_span", field="content.clips")
        span = next(iter(self.spans(draft)), None)
        if span is None or not LEAST - 1 <= span.end - span.start <= MOST + 1:
            message = (
                f"The content names one clip with its start and end, {LEAST:.0f} to {MOST:.0f} seconds apart."
            )
            raise Refused(message, code="no_span", field="content.clips")
        if draft.title:
            clipped.fit_title(draft.title, draft.language)
        material = media.material
        clip = next((one for one in material.clips if one.name == span.name), None) if material else None
        if material is None or clip is None:
            if material is not None:
                message = "The video that it was cut from isn't there any more."
                raise Refused(message, code="no_footage")
            return None
        return clipped.plan(
            span,
            clip.shots,
            _worded(clip, span, draft.body),
            title=draft.title,
            credit=credit_of(material.credit, persona, draft.language),
            colours=clipped.ClipColours(persona.brand.get("primary"), persona.brand.get("accent")),
            language=draft.language,
            alt_text=f"{draft.title}. {draft.body}"[:1000],
        )


def _worded(clip: Clip, span: VideoSpan, body: str) -> tuple[Word, ...]:
    """The captions' words: those of the text, at the times of those that were heard."""
    heard = clipped.words_within(clip.words, span)
    said = body.split()
    if len(said) != len(heard):
        message = (
            f"The captions follow what is said: the text has {counted(len(said), 'word')}, and the clip "
            f"{counted(len(heard), 'word')}. "
            "Correct words, but leave none out and add none."
        )
        raise Refused(message, code="other_words", field="body")
    return tuple(Word(text, word.start, word.end) for text, word in zip(said, heard, strict=True))


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
    said = brief.facts[first:last]
    span = span_of(clip.name, brief.facts, first, last)
    body = paragraph_of(one.quote for one in said)
    under = [caption or title, ascii_url(brief.url)]
    return Draft(
        title=title,
        body=body,
        body_format="text",
        content={
            "caption": "\n".join(line for line in under if line),
            "tags": list(tags),
            "script": body,
            "clips": [{"upload": span.name, "start": span.start, "end": span.end}],
        },
        claims=tuple(Claim(one.quote, one.quote, one.start, one.end) for one in said),
        language=language,
        angle=angle,
    )


def _clip_of(brief: Brief) -> Clip | None:
    return brief.material.spoken if brief.material is not None else None


def _place(answered: str, brief: Brief) -> int:
    """Where the sentence of that id stands among the facts. Raises `Refused`."""
    found = _NUMBERED.fullmatch(answered.strip().lower())
    name = f"s{int(found[1])}" if found else ""
    for place, fact in enumerate(brief.facts):
        if fact.id == name:
            return place
    message = f"No sentence has the id {answered!r}."
    raise Refused(message, code="unknown_fact")


def _start_of(one: Fact) -> float:
    return one.seconds[0] if one.seconds else 0.0


def _end_of(one: Fact) -> float:
    return one.seconds[1] if one.seconds else 0.0


# --- Checks ----------------------------------------------------------------------------------------------------------


def _check_title(draft: Draft, persona: PersonaCard) -> Check:
    del persona
    fault = None
    if not draft.title.strip():
        fault = "The film has no title."
    elif len(draft.title) > TITLE_MOST:
        fault = f"The title has {len(draft.title)} characters; {TITLE_MOST} are the most."
    else:
        try:
            clipped.fit_title(draft.title, draft.language)
        except Refused as refused:
            fault = refused.message
    return judge("title", f"The title has at most {TITLE_MOST} characters and fits on the film.", fault)


def _check_span(draft: Draft, source: SourceText) -> Check:
    spans = ClippedShort().spans(draft)
    fault = None
    if len(spans) != 1:
        fault = "A Clipped Short is one stretch of one video."
    else:
        seconds = spans[0].end - spans[0].start
        if not LEAST <= seconds <= MOST:
            fault = f"The stretch lasts {seconds:.1f} seconds; {LEAST:.0f} to {MOST:.0f} are possible."
        elif not is_on_edges(spans[0], sentences_in(source)):
            fault = "The stretch doesn't begin and end with a sentence."
    return judge("span", "It is one stretch of whole sentences, 15 to 60 seconds long.", fault)


def _check_script(draft: Draft, source: SourceText) -> Check:
    clip = source.material.spoken if source.material is not None else None
    span = next(iter(ClippedShort().spans(draft)), None)
    said = (
        [word.t for word in clipped.words_within(clip.words, span)]
        if clip is not None and span is not None
        else []
    )
    if draft.body.split() == said:
        return Check("script", "passed", "The words are those that are said, one after the other.")
    return Check("script", "warning", "The words aren't exactly those of the transcript.")


def _check_times(source: SourceText) -> Check:
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
    return judge_glyphs(f"{typeset(f'{draft.title} {draft.body}', draft.language)} {credit}")


PLUGIN = ClippedShort()
