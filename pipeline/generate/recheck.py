"""The checks of an item's words made again, wherever a person has written them.

What the words rest on is found again: the raw item in the version that they were made of, what was read in it, the topic.
What can't be checked again is absent, never passed.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Check, Claim, Engine
from pipeline.engines.checks.grounded import fresh_sentences, unsaid_texts, words_of
from pipeline.engines.checks.persona_rules import check_persona
from pipeline.engines.checks.words_in_pictures import board_words, check_further, drawn_words
from pipeline.generate import brief as briefing
from pipeline.generate import multi_source
from pipeline.generate.acceptance import engine_named
from pipeline.generate.checkpoint import RunMaterial, brief_from, draft_of, text_of
from pipeline.generate.checks import place_of, run_checks, run_checks_with_visuals
from pipeline.generate.lifecycle import REWRITE
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.repetition import OwnWords
from pipeline.generate.topics.select import subject_of
from pipeline.grounding import place_in
from pipeline.media import drawn_pictures, source_media
from pipeline.models import BrandPick, Generation, GenerationInput, Revision
from pipeline.plugins import Refused
from pipeline.writers.base import Writer
from pipeline.writers.topic_and_story_briefs import SourcePart, brief_of, combine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.models import GeneratedItem
    from pipeline.render.video.storyboard import Storyboard

_NO_SOURCE: Final = Check(
    "support",
    "warning",
    "The words were changed, and there is no source to hold them against: read them once more yourself.",
)
_INNER_MARKS: Final = str.maketrans({"\u201c": "\u2018", "\u201d": "\u2019", '"': "'"})
_MOST_SHOWN: Final = 5
_LONGEST_SHOWN: Final = 160


def material_of(item: GeneratedItem, engine: Engine, persona: PersonaCard) -> RunMaterial:
    """What the item's words rest on, and what decides over other words on the same.

    Raises `Refused` where what they rest on was deleted.
    """
    brief, source = _basis_of(item, engine, persona)
    own_words = OwnWords.beside_item(item, is_verbatim=False) if item.raw_item_id is not None else None
    return RunMaterial(
        brief,
        source,
        lambda draft: run_checks_with_visuals(engine, draft, brief, source, persona, own_words=own_words),
    )


def recheck(item: GeneratedItem, *, board: Storyboard | None = None) -> list[dict[str, Any]]:
    """The checks of the words that the item holds now, as they are stored: what failed first, as warnings.

    A person has written these words and a person decides, so that nothing fails. With a `board`, the storyboard that is
    filmed, its words are read; else those that the engine would draw. What is said of files stays with them.
    """
    engine = engine_named(item.engine_output)
    persona = persona_card(item.persona_id, item.persona_version)
    of_files = [one for one in item.checks if one["code"] in drawn_pictures.OF_FILES]
    try:
        brief, source = _basis_of(item, engine, persona)
    except Refused:
        made = (_NO_SOURCE, *check_persona(draft_of(item), persona))
    else:
        made = _judged(item, engine, brief, source, persona, board=board)
    failed = [asdict(replace(one, outcome="warning")) for one in made if one.outcome == "failed"]
    warned = [asdict(one) for one in made if one.outcome == "warning"]
    return [*failed, *warned, *of_files, *(asdict(one) for one in made if one.outcome == "passed")]


def _judged(
    item: GeneratedItem,
    engine: Engine,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    board: Storyboard | None,
) -> tuple[Check, ...]:
    draft = draft_of(item)
    draft = replace(draft, claims=tuple(_standing_claims(item, draft, brief, source)))
    own_words = None
    if item.raw_item_id is not None:
        own_words = OwnWords.beside_item(item, is_verbatim=_is_offline(item))
    checks = run_checks(engine, draft, brief, source, persona, own_words=own_words)
    draft = engine.marked(draft, brief, persona)
    laid_out = drawn_words(engine, draft, source, persona)
    shown = laid_out if board is None else board_words(board, persona)
    checks = check_further(checks, draft, brief, source, persona, further=shown, where=place_of(engine))
    overrides = tuple(_override_words(item.overrides))
    checks = check_further(checks, draft, brief, source, persona, further=overrides, where="On an outlet")
    texts = (draft.title, *words_of(draft), *overrides)
    fresh = fresh_sentences(texts, _words_before(item, persona), draft)
    # What a person has written into the film alone.
    fresh += fresh_sentences(shown, (*texts, *laid_out), draft)
    return _with_unsaid(checks, unsaid_texts(fresh, draft, source))


def _with_unsaid(checks: Sequence[Check], sentences: Sequence[str]) -> tuple[Check, ...]:
    """With a warning that shows the sentences that a person wrote and the source doesn't say in these words.

    Claims are what a writer named places for. They vouch for their own sentences alone.
    """
    if not sentences:
        return tuple(checks)
    shown = " ".join(f"\u201c{_cut(one)}\u201d" for one in sentences[:_MOST_SHOWN])
    more = f" And {len(sentences) - _MOST_SHOWN} more." if len(sentences) > _MOST_SHOWN else ""
    told = f"The source doesn\u2019t say this in these words; read it against the source: {shown}{more}"
    others = tuple(
        one for one in checks if one.code != "support" and (one.code, one.outcome) != ("claims", "passed")
    )
    own = next((one for one in checks if one.code == "support" and one.outcome != "passed"), None)
    if own is not None:
        return (Check("support", own.outcome, f"{own.message} {told}"), *others)
    return (Check("support", "failed", told), *others)


def _words_before(item: GeneratedItem, persona: PersonaCard) -> list[str]:
    """What was judged when a writer wrote it, with the first revision and each rewrite, and what the persona may say."""
    own = [*persona.approved_lines, *(str(one.get("text") or "") for one in persona.required_structures)]
    former = Revision.everywhere.filter(item=item).exclude(number=item.revision).order_by("number")
    first = former.first()
    if first is None:
        return [item.title, *words_of(draft_of(item)), *_override_words(item.overrides), *own]
    runs = Generation.everywhere.filter(rewrites=item).done()
    rewritten = set(runs.values_list(f"answers__{REWRITE}__wrote", flat=True))
    by_writers = [first, *former.exclude(pk=first.pk).filter(number__in=rewritten)]
    for one in by_writers:
        words = {"title": one.title, "body": one.body, "body_format": one.body_format, "content": one.content}
        own += [one.title, *words_of(draft_of(item, **words)), *_override_words(one.overrides)]
    if item.revision in rewritten:
        own += [item.title, *words_of(draft_of(item))]
    return own


def _override_words(overrides: Mapping[str, Any]) -> Iterator[str]:
    """What single outlets get in place of the item's title and text."""
    for one in overrides.values():
        if isinstance(one, dict):
            yield from (one[name] for name in ("title", "body") if isinstance(one.get(name), str))


def _cut(sentence: str) -> str:
    # It is shown in quotation marks itself.
    words = " ".join(sentence.split()).translate(_INNER_MARKS)
    return words if len(words) <= _LONGEST_SHOWN else f"{words[: _LONGEST_SHOWN - 1].rstrip()}\u2026"


def _standing_claims(item: GeneratedItem, draft: Draft, brief: Brief, source: SourceText) -> Iterator[Claim]:
    """The claims whose words stand in the draft still, each at the place of its quote."""
    said = "\n".join((draft.title, *words_of(draft)))
    for kept in item.claims:
        one = multi_source.join_claim(kept, brief) if "raw_item" in kept else kept
        if one is None or place_in(said, one["text"]) is None:
            continue
        claim = Claim(**one)
        place = source.text.find(claim.quote)
        if claim.quote and place != -1 and source.text[claim.start : claim.end] != claim.quote:
            # A topic was written anew since, and still says it.
            claim = replace(claim, start=place, end=place + len(claim.quote))
        yield claim


# --- What the words rest on ------------------------------------------------------------------------------------------


def _basis_of(item: GeneratedItem, engine: Engine, persona: PersonaCard) -> tuple[Brief, SourceText]:
    """As they were when the words were written. Raises `Refused` where what they rest on was deleted."""
    if item.raw_item_id is not None:
        source = text_of(item.raw_item_id, item.raw_version)
        if item.raw_item is not None and "video" in engine.made_from:
            source = replace(source, material=source_media.material_of(item.raw_item))
        return engine.told(_brief_of(item, source, item.raw_item_id), source), source
    if item.raw_items:
        return combine(_parts_of(item))
    return _topic_of(item, persona)


def _is_offline(item: GeneratedItem) -> bool:
    return bool(item.generator.get("offline"))


def _brief_of(item: GeneratedItem, source: SourceText, raw_item_id: UUID) -> Brief:
    """What was read in the source: by the model, where one was asked and its answer is kept; else without one."""
    kept = briefing.read_kept_brief(plugins.get("writers", "claude", Writer), source, raw_item_id)
    # One that was made without a model may have been, because the model's reading couldn't be used.
    if kept is not None and (not _is_offline(item) or kept.get("without_model")):
        return brief_from(kept)
    return plugins.get("writers", "extractive", Writer).brief(source).brief


def _parts_of(item: GeneratedItem) -> list[SourcePart]:
    """The raw items that a digest tells, in order."""
    inputs = GenerationInput.everywhere.filter(generation=item.generation_id)
    versions = dict(inputs.values_list("raw_item_id", "raw_version"))
    parts: list[SourcePart] = []
    for key in map(UUID, item.raw_items):
        source = text_of(key, versions.get(key))
        parts.append(SourcePart(encode("raw", key), source, _brief_of(item, source, key)))
    return parts


def _topic_of(item: GeneratedItem, persona: PersonaCard) -> tuple[Brief, SourceText]:
    topic = item.topic
    if topic is None or topic.deleted_at is not None:
        message = "The topic that it speaks of was deleted."
        raise Refused(message, code="topic_deleted")
    picks = BrandPick.everywhere.filter(topic=topic, generation=item.generation_id)
    angle = picks.order_by("-id").values_list("angle", flat=True).first()
    return brief_of(subject_of(topic, angle or ""), persona)
