"""Makes a Composite Short: a story told over the source's own videos and pictures, 20 to 60 seconds long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import ANGLES, Check, Draft, Engine, make_check
from pipeline.engines.composite_short.footage import (
    MIN_VISUALS,
    choose_clips,
    count_visuals,
    fault_in,
    find_moments,
    spans_in,
)
from pipeline.engines.persona_short import HOW_TO_TELL, PersonaShort
from pipeline.engines.shared.film_checks import check_content, check_fits, check_text_glyphs, clips_in
from pipeline.engines.shared.film_parts import alt_text_of, cast_of, credit_of
from pipeline.engines.shared.story_lines import (
    MAX_SENTENCE_CHARACTERS,
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
    from pipeline.render.picture_types import AvailableMedia
    from pipeline.render.video.material import Clip, FilmMaterial, Shot, StillImage, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

_MIN_WORDS: Final = 60
"""The words of a source that take 20 seconds with an end card."""
_MIN_SECONDS: Final = 22.0
_MAX_SECONDS: Final = 54.0
"""The estimated length of a film; a voice may be some seconds quicker or slower."""
_MAX_TALL_RATIO: Final = 0.85
"""A picture no wider than this share of its height fills an upright frame."""
_RULES: Final = (
    "A Composite Short is a film of 25 to 45 seconds in which the persona tells one story over the source's own videos "
    "and pictures, another one every few seconds; every word is spoken, and shown as a caption.\n"
    f"{HOW_TO_TELL}"
    "- What is seen is chosen by a program, from what you cite: where a fact was said in a video, that moment of it is "
    "shown while you tell it. So tell in the order of the facts, and don't describe pictures.\n"
)


class CompositeShort(Engine):
    """Makes a film whose body is told as a Persona Short's; `content.clips` names what it shows, in order.

    An edit of the body or of the clips is filmed again.
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
        self._story = PersonaShort()

    def why_not(self, source: SourceText) -> str | None:
        """Return what the source lacks: enough videos and pictures, or enough words that can be told."""
        material = source.material
        visual_count = count_visuals(material) if material is not None else 0
        if visual_count < MIN_VISUALS:
            return (
                f"A Composite Short shows {MIN_VISUALS} parts of videos of five seconds, or pictures of 400 pixels, at least; "
                f"this item has {visual_count}. Upload them and name them in the media."
            )
        words = tellable_words(source.text, source.language)
        if words >= _MIN_WORDS:
            return None
        return (
            f"A Composite Short needs {_MIN_WORDS} words in sentences of at most {MAX_SENTENCE_CHARACTERS} characters that stand "
            f"alone; this item has {words}."
        )

    def told(self, brief: Brief, source: SourceText) -> Brief:
        """Return the brief with the source's material, and the offset of the spoken video's words in the text."""
        material = source.material
        if material is None or material.spoken is None:
            return replace(brief, material=material)
        return replace(
            brief, material=replace(material, words_at=source.text.rfind(text_of(material.spoken.words)))
        )

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return the drafts of a Persona Short that are long enough, with clips.

        Raises `Refused` if there are no such drafts, or no material.
        """
        drafts = self._story.offline(brief, persona, variants=variants, seed=seed)
        long_enough = [
            _add_clips(draft, brief, persona, index)
            for index, draft in enumerate(drafts)
            if _estimate_seconds(draft, persona) >= _MIN_SECONDS
        ]
        if not long_enough:
            message = f"The source holds too few sentences that stand alone for a story of {FILM_SECONDS[0]:.0f} seconds."
            raise Refused(message, code="nothing_to_say")
        return tuple(long_enough)

    def draft_schema(self) -> Mapping[str, Any] | None:
        return self._story.draft_schema()

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft. The clips are chosen here, since a model sees no pictures.

        Raises `Refused` if there is no material, or a claim cites an unknown fact.
        """
        # Variants have different angles, so each shows other parts.
        rotation = ANGLES.index(angle) if angle in ANGLES else 0
        return _add_clips(self._story.draft_from(answer, brief, persona, angle), brief, persona, rotation)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Run a Persona Short's checks of the words, four of them replaced, and check the clips and their credits."""
        own_checks = {
            "content": check_content(
                draft, brief, source, persona, noun=self.name, holds="a caption, tags, a script and the clips"
            ),
            "length": _check_length(draft, persona),
            "glyphs": _check_glyphs(draft, source, persona),
            "fits": _check_fits(draft, persona),
        }
        story_checks = self._story.check(draft, brief, source, persona)
        fault = fault_in(clips_in(draft), source.material)
        return (
            *(own_checks.get(check.code, check) for check in story_checks),
            make_check("footage", "Everything that is shown is the item's own, and shown once.", fault),
            _check_credits(draft, source),
        )

    def drawn(self, draft: Draft) -> object:
        return draft.body, draft.content.get("clips")

    def spans(self, draft: Draft) -> tuple[VideoSpan, ...]:
        return spans_in(clips_in(draft))

    def script(self, draft: Draft, persona: PersonaCard) -> NarrationScript | None:
        return self._story.script(draft, persona)

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard | None:
        """Return the storyboard, or `None` without material, when only texts and clips are checked.

        Raises `Refused` if the clips can't be shown, the body can't be told, or the film has a wrong length,
        `MissingGlyphs` if the fonts lack a character, and `TextDoesNotFit` if a text is too long.
        """
        clips = clips_in(draft)
        fault = fault_in(clips, media.material)
        if fault is not None:
            raise Refused(fault, code="no_footage", field="content.clips")
        board = composite.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            list(_visual_sources(draft, media.material, persona)),
            language=draft.language,
            heard=media.narration,
            alt_text=alt_text_of(draft),
        )
        return board if media.material is not None else None


def _add_clips(draft: Draft, brief: Brief, persona: PersonaCard, rotation: int) -> Draft:
    """Return the draft with pictures and parts of videos that go with its words.

    Words that can't be told get none. Each variant has its own `rotation`, so that not all show the same.
    Raises `Refused` if there is no material.
    """
    material = brief.material
    if material is None:
        raise Refused("There is no video and no picture to show.", code="no_footage")
    try:
        telling = telling_of(draft)
        outline = composite.outline(telling, cast_of(persona, has_portrait=False), draft.language)
    except Refused:
        return replace(draft, content={**draft.content, "clips": []})
    moments = find_moments(outline, telling.script(draft.language), draft.claims, material)
    # A voice may be slower, so there is one clip more.
    clips = choose_clips(material, [*moments, None], rotation)
    return replace(draft, content={**draft.content, "clips": clips})


def _estimate_seconds(draft: Draft, persona: PersonaCard) -> float:
    """Return about how long the film is, in seconds. Raises `Refused` if the body can't be told."""
    return composite.outline(telling_of(draft), cast_of(persona, has_portrait=False), draft.language).end


def _visual_sources(
    draft: Draft, material: FilmMaterial | None, persona: PersonaCard
) -> Iterator[VisualSource]:
    """Yield the clips of the content as visual sources; their credits are those of the media, not of the content."""
    clips = {clip.name: clip for clip in material.clips} if material is not None else {}
    stills = {still.name: still for still in material.stills} if material is not None else {}
    credit = material.credit if material is not None else ""
    for clip_data in clips_in(draft):
        name = clip_data["upload"]
        clip, still = clips.get(name), stills.get(name)
        asset = clip or still
        owner_credit = credit_of((asset.author if asset else "") or credit, persona, draft.language)
        licence = asset.licence if asset else ""
        yield VisualSource(
            name,
            float(clip_data.get("start", 0.0)),
            float(clip_data.get("end", 0.0)),
            credit=f"{owner_credit} · {licence}" if licence else owner_credit,
            shots=_shots_within(clip_data, clip.shots) if clip else (),
            is_tall=still is not None and 0 < still.width <= _MAX_TALL_RATIO * still.height,
        )


def _shots_within(clip_data: Mapping[str, Any], shots: Sequence[Shot]) -> tuple[Shot, ...]:
    return tuple(shot for shot in shots if shot.start < clip_data["end"] and clip_data["start"] < shot.end)


# --- Checks ----------------------------------------------------------------------------------------------------------


def _check_length(draft: Draft, persona: PersonaCard) -> Check:
    """Check the estimated length: the film's seconds fail, and too many words are a warning.

    A body that can't be told passes, as other checks report it; the spoken length is measured on filming.
    """
    try:
        seconds = _estimate_seconds(draft, persona)
        script = telling_of(draft).script(draft.language)
    except Refused:
        return Check("length", "passed", "How long it is can't be said yet.")
    words = sum(len(passage.split()) for passage in script.passages)
    summary = f"The script has {counted(words, 'word')}, and the film takes about {counted(round(seconds), 'second')}"
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        return Check(
            "length", "failed", f"{summary}; {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f} are possible."
        )
    if words > STORY_WORDS[1]:
        return Check("length", "warning", f"{summary}; up to {STORY_WORDS[1]} words are best.")
    return Check("length", "passed", f"{summary}.")


def _check_glyphs(draft: Draft, source: SourceText, persona: PersonaCard) -> Check:
    material = source.material
    credits = " ".join(visual.credit for visual in _valid_visual_sources(draft, material, persona))
    words = f"{draft.body} {persona.name} {persona.handle} {credits}"
    return check_text_glyphs(typeset(words, draft.language))


def _check_credits(draft: Draft, source: SourceText) -> Check:
    """Warn of each clip and picture that has no author, unless the whole material has a credit."""
    material = source.material
    uncredited = []
    if material is not None and not material.credit:
        assets: tuple[Clip | StillImage, ...] = (*material.clips, *material.stills)
        credited = {asset.name for asset in assets if asset.author}
        used_uploads = [
            clip_data.get("upload") for clip_data in clips_in(draft) if isinstance(clip_data, dict)
        ]
        uncredited = [name for name in dict.fromkeys(used_uploads) if name not in credited]
    if not uncredited:
        return Check("credits", "passed", "The film names the author of each clip and picture.")
    message = (
        f"These have no author: {', '.join(map(str, uncredited[:3]))}. Name the author in the media, or "
        "make sure that you may show them."
    )
    return Check("credits", "warning", message)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return check_fits(
        lambda: composite.plan(
            telling_of(draft),
            cast_of(persona, has_portrait=False),
            _valid_visual_sources(draft, None, persona),
            language=draft.language,
        ),
        # Other checks report the number of lines and the film's length.
        reported_codes=frozenset({"wrong_count", "wrong_length"}),
    )


def _valid_visual_sources(
    draft: Draft, material: FilmMaterial | None, persona: PersonaCard
) -> list[VisualSource]:
    """Return the visual sources, or none if the clips can't be shown, which another check reports."""
    return [] if fault_in(clips_in(draft), None) else list(_visual_sources(draft, material, persona))


PLUGIN = CompositeShort()
