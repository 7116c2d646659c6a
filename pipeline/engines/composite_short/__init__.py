"""Composite Short: a story that is told over the source's own videos and pictures, 20 to 60 seconds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import ANGLES, Check, Draft, Engine, judge
from pipeline.engines.composite_short.footage import (
    LEAST,
    choose_clips,
    count_things,
    fault_in,
    find_moments,
    spans_in,
)
from pipeline.engines.persona_short import HOW_TO_TELL, PersonaShort
from pipeline.engines.shared.film_checks import check_content, check_fits, clips_in, judge_glyphs
from pipeline.engines.shared.film_parts import alt_text_of, cast_of, credit_of
from pipeline.engines.shared.story_lines import (
    SENTENCE_CHARACTERS_MOST,
    STORY_WORDS,
    tellable_words,
    telling_of,
)
from pipeline.plugins import Refused
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.storyboard import SIZE
from pipeline.render.video.templates import composite
from pipeline.render.video.templates.composite import FILM_SECONDS, VisualSource
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.engines.base import Brief, PersonaCard, SourceText
    from pipeline.render.audio.narration import NarrationScript
    from pipeline.render.picture_plan import AvailableMedia
    from pipeline.render.video.material import Clip, FilmMaterial, Shot, StillImage, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

_LEAST_WORDS: Final = 60
"""What takes 20 seconds, with an end card."""
_LEAST_SECONDS: Final = 22.0
_MOST_SECONDS: Final = 54.0
"""Read in silence; a voice may be some seconds quicker or slower."""
_TALL: Final = 0.85
"""A picture that is no wider than this share of its height fills an upright frame."""
_RULES: Final = (
    "A Composite Short is a film of 25 to 45 seconds in which the persona tells one story over the source's own videos "
    "and pictures, another one every few seconds; every word is spoken, and shown as a caption.\n"
    f"{HOW_TO_TELL}"
    "- What is seen is chosen by a program, from what you cite: where a fact was said in a video, that moment of it is "
    "shown while you tell it. So tell in the order of the facts, and don't describe pictures.\n"
)


class CompositeShort(Engine):
    """The body is told as a Persona Short's is; `content.clips` names what is shown meanwhile, in order.

    An edit of either is filmed again.
    """

    kind = "composite_short"
    name = "Composite Short"
    bucket = "video"
    version = 1
    credits = 7
    made_from = ("video", "image")
    draft_tokens = 4_000
    sizes = (SIZE,)
    least_lines = 0

    def __init__(self) -> None:
        self._told = PersonaShort()

    def why_not(self, source: SourceText) -> str | None:
        material = source.material
        things = count_things(material) if material is not None else 0
        if things < LEAST:
            return (
                f"A Composite Short shows {LEAST} parts of videos of five seconds, or pictures of 400 pixels, at least; "
                f"this item has {things}. Upload them and name them in the media."
            )
        words = tellable_words(source.text, source.language)
        if words >= _LEAST_WORDS:
            return None
        return (
            f"A Composite Short needs {_LEAST_WORDS} words in sentences of at most {SENTENCE_CHARACTERS_MOST} characters that stand "
            f"alone; this item has {words}."
        )

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """With what can be shown, and where in the text it is what is said in the video."""
        material = source.material
        if material is None or material.spoken is None:
            return replace(brief, material=material)
        return replace(
            brief, material=replace(material, words_at=source.text.rfind(text_of(material.spoken.words)))
        )

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Persona Short's words where they last long enough, with what is shown."""
        drafts = self._told.offline(brief, persona, variants=variants, seed=seed)
        long_enough = [
            _showing(draft, brief, persona, turn)
            for turn, draft in enumerate(drafts)
            if _seconds(draft, persona) >= _LEAST_SECONDS
        ]
        if not long_enough:
            message = f"The source holds too few sentences that stand alone for a story of {FILM_SECONDS[0]:.0f} seconds."
            raise Refused(message, code="nothing_to_say")
        return tuple(long_enough)

    def draft_schema(self) -> Mapping[str, Any] | None:
        return self._told.draft_schema()

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """What is shown is chosen here: a model sees no pictures."""
        turn = ANGLES.index(angle) if angle in ANGLES else 0
        return _showing(self._told.draft_from(answer, brief, persona, angle), brief, persona, turn)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Persona Short's rules for the words, and whether these pictures can be shown."""
        own = {
            "content": check_content(
                draft,
                brief,
                source,
                persona,
                what=self.name,
                holds="a caption, tags, a script and the clips",
            ),
            "length": _check_length(draft, persona),
            "glyphs": _check_glyphs(draft, source, persona),
            "fits": _check_fits(draft, persona),
        }
        told = self._told.check(draft, brief, source, persona)
        fault = fault_in(clips_in(draft), source.material)
        return (
            *(own.get(check.code, check) for check in told),
            judge("footage", "Everything that is shown is the item's own, and shown once.", fault),
            _check_credits(draft, source),
        )

    def drawn(self, draft: Draft) -> object:
        return draft.body, draft.content.get("clips")

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        return spans_in(clips_in(draft))

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
        return self._told.script(draft, persona)

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """Without material only the words are judged. Raises `Refused`, `MissingGlyphs`, `TextDoesNotFit`."""
        shown = clips_in(draft)
        fault = fault_in(shown, media.material)
        if fault is not None:
            raise Refused(fault, code="no_footage", field="content.clips")
        board = composite.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            list(_shown(draft, media.material, persona)),
            language=draft.language,
            heard=media.narration,
            alt_text=alt_text_of(draft),
        )
        return board if media.material is not None else None


def _showing(draft: Draft, brief: Brief, persona: PersonaCard, turn: int) -> Draft:
    """With the pictures and parts of videos that go with its words; words that can't be told have none.

    Each variant has a `turn` of its own, so that not all show the same.
    """
    material = brief.material
    if material is None:
        raise Refused("There is no video and no picture to show.", code="no_footage")
    try:
        told = telling_of(draft)
        outline = composite.outline(told, cast_of(persona, has_portrait=False), draft.language)
    except Refused:
        return replace(draft, content={**draft.content, "clips": []})
    wanted = find_moments(outline, told.script(draft.language), draft.claims, material)
    # A voice may be slower: one more lies ready.
    return replace(draft, content={**draft.content, "clips": choose_clips(material, [*wanted, None], turn)})


def _seconds(draft: Draft, persona: PersonaCard) -> float:
    """About how long the film is; raises `Refused` for what can't be told."""
    return composite.outline(telling_of(draft), cast_of(persona, has_portrait=False), draft.language).end


def _shown(draft: Draft, material: FilmMaterial | None, persona: PersonaCard) -> Iterator[VisualSource]:
    """What the content names; whose it is is said by the media, not by the content."""
    clips = {clip.name: clip for clip in material.clips} if material is not None else {}
    stills = {still.name: still for still in material.stills} if material is not None else {}
    credit = material.credit if material is not None else ""
    for one in clips_in(draft):
        name = one["upload"]
        clip, still = clips.get(name), stills.get(name)
        asset = clip or still
        whose = credit_of((asset.author if asset else "") or credit, persona, draft.language)
        licence = asset.licence if asset else ""
        yield VisualSource(
            name,
            float(one.get("start", 0.0)),
            float(one.get("end", 0.0)),
            credit=f"{whose} · {licence}" if licence else whose,
            shots=_shots(one, clip.shots) if clip else (),
            is_tall=still is not None and 0 < still.width <= _TALL * still.height,
        )


def _shots(one: Mapping[str, Any], shots: Sequence[Shot]) -> tuple[Shot, ...]:
    return tuple(shot for shot in shots if shot.start < one["end"] and one["start"] < shot.end)


# --- Checks ----------------------------------------------------------------------------------------------------------


def _check_length(draft: Draft, persona: PersonaCard) -> Check:
    """About how long it is; what was spoken is measured when it is filmed."""
    try:
        seconds = _seconds(draft, persona)
        script = telling_of(draft).script(draft.language)
    except Refused:
        return Check("length", "passed", "How long it is can't be said yet.")
    words = sum(len(passage.split()) for passage in script.passages)
    said = f"The script has {counted(words, 'word')}, and the film takes about {counted(round(seconds), 'second')}"
    if not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        return Check(
            "length", "failed", f"{said}; {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f} are possible."
        )
    if words > STORY_WORDS[1]:
        return Check("length", "warning", f"{said}; up to {STORY_WORDS[1]} words are best.")
    return Check("length", "passed", f"{said}.")


def _check_glyphs(draft: Draft, source: SourceText, persona: PersonaCard) -> Check:
    material = source.material
    credits = " ".join(one.credit for one in _shown_or_none(draft, material, persona))
    words = f"{draft.body} {persona.name} {persona.handle} {credits}"
    return judge_glyphs(typeset(words, draft.language))


def _check_credits(draft: Draft, source: SourceText) -> Check:
    """Who shows other people's pictures has to say whose they are."""
    material = source.material
    unnamed = []
    if material is not None and not material.credit:
        assets: tuple[Clip | StillImage, ...] = (*material.clips, *material.stills)
        named = {one.name for one in assets if one.author}
        used = [one.get("upload") for one in clips_in(draft) if isinstance(one, dict)]
        unnamed = [name for name in dict.fromkeys(used) if name not in named]
    if not unnamed:
        return Check("credits", "passed", "Whose each clip and picture is stands on the film.")
    message = (
        f"Nobody says whose these are: {', '.join(map(str, unnamed[:3]))}. Name the author in the media, or see that you may "
        "show them."
    )
    return Check("credits", "warning", message)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return check_fits(
        lambda: composite.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=False),
            _shown_or_none(draft, None, persona),
            language=draft.language,
        ),
        # How many lines there are, and how long it is.
        told_elsewhere=frozenset({"wrong_count", "wrong_length"}),
    )


def _shown_or_none(draft: Draft, material: FilmMaterial | None, persona: PersonaCard) -> list[VisualSource]:
    """Nothing where the content names what can't be shown, which is told elsewhere."""
    return [] if fault_in(clips_in(draft), None) else list(_shown(draft, material, persona))


PLUGIN = CompositeShort()
