"""Runs an item's checks again after a person has edited its words.

The basis of the words is read again: the raw item in the version that they were made of, its brief, the topic.
A check that can't be made again is absent, never passed.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Check, Claim, Engine
from pipeline.engines.checks.grounded import find_new_sentences, find_unsupported_texts, words_of
from pipeline.engines.checks.persona_rules import check_persona
from pipeline.engines.checks.words_in_pictures import board_words, check_further, drawn_words
from pipeline.generate import multi_source, shared_brief
from pipeline.generate.checks import run_checks, run_checks_with_visuals, visuals_phrase
from pipeline.generate.generation_plan import engine_named
from pipeline.generate.lifecycle import REWRITE
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.repetition import OwnWords
from pipeline.generate.run_state import RunMaterial, brief_from, draft_of, text_of
from pipeline.generate.topics.select import subject_of
from pipeline.grounding import find_in_draft
from pipeline.media import draw_pictures, source_media
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
    "The text was edited, and there is no source to check it against. Read it again.",
)
_INNER_MARKS: Final = str.maketrans({"\u201c": "\u2018", "\u201d": "\u2019", '"': "'"})
_MAX_SENTENCES_SHOWN: Final = 5
_MAX_SENTENCE_CHARACTERS: Final = 160


def material_of(item: GeneratedItem, engine: Engine, persona: PersonaCard) -> RunMaterial:
    """Return the brief and source of the item's words, with the checks for further drafts of them.

    Raises `Refused` if the raw item or the topic was deleted.
    """
    brief, source = _load_basis(item, engine, persona)
    own_words = OwnWords.for_item(item, is_verbatim=False) if item.raw_item_id is not None else None
    return RunMaterial(
        brief,
        source,
        lambda draft: run_checks_with_visuals(engine, draft, brief, source, persona, own_words=own_words),
    )


def recheck(item: GeneratedItem, *, board: Storyboard | None = None) -> list[dict[str, Any]]:
    """Return the checks of the item's current words as they are stored, failed ones first, as warnings.

    A person wrote these words and a person decides, so nothing fails. Of the words in a film those of `board`,
    the storyboard to film, are checked, else those that the engine would draw. Checks about files are kept. If
    the source was deleted, only the persona's rules are checked, and a warning says so.
    """
    engine = engine_named(item.engine_output)
    persona = persona_card(item.persona_id, item.persona_version)
    file_checks = [check for check in item.checks if check["code"] in draw_pictures.FILE_CHECKS]
    try:
        brief, source = _load_basis(item, engine, persona)
    except Refused:
        checks = (_NO_SOURCE, *check_persona(draft_of(item), persona))
    else:
        checks = _check_words(item, engine, brief, source, persona, board=board)
    failed = [asdict(replace(check, outcome="warning")) for check in checks if check.outcome == "failed"]
    warned = [asdict(check) for check in checks if check.outcome == "warning"]
    return [*failed, *warned, *file_checks, *(asdict(check) for check in checks if check.outcome == "passed")]


def _check_words(
    item: GeneratedItem,
    engine: Engine,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    board: Storyboard | None,
) -> tuple[Check, ...]:
    """Run all checks on the item's words, those in its picture or film, and those for single outlets."""
    draft = draft_of(item)
    draft = replace(draft, claims=tuple(_remaining_claims(item, draft, brief, source)))
    own_words = None
    if item.raw_item_id is not None:
        own_words = OwnWords.for_item(item, is_verbatim=_is_offline(item))
    checks = run_checks(engine, draft, brief, source, persona, own_words=own_words)
    draft = engine.marked(draft, brief, persona)
    drawn_texts = drawn_words(engine, draft, source, persona)
    visible_texts = drawn_texts if board is None else board_words(board, persona)
    checks = check_further(
        checks, draft, brief, source, persona, further=visible_texts, where=visuals_phrase(engine)
    )
    override_texts = tuple(_override_words(item.overrides))
    checks = check_further(
        checks, draft, brief, source, persona, further=override_texts, where="On an outlet"
    )
    texts = (draft.title, *words_of(draft), *override_texts)
    new_sentences = find_new_sentences(texts, _known_texts(item, persona), draft)
    # The storyboard may hold sentences that a person wrote into it alone.
    new_sentences += find_new_sentences(visible_texts, (*texts, *drawn_texts), draft)
    return _add_unsaid_warning(checks, find_unsupported_texts(new_sentences, draft, source))


def _add_unsaid_warning(checks: Sequence[Check], sentences: Sequence[str]) -> tuple[Check, ...]:
    """Add a failed check that quotes sentences that a person wrote and the source doesn't say in these words.

    The passed check of claims is dropped, because the passages that a writer cited vouch for the writer's own
    sentences alone. Without sentences the checks stay as they are.
    """
    if not sentences:
        return tuple(checks)
    quoted = " ".join(
        f"\u201c{_shorten_quote(sentence)}\u201d" for sentence in sentences[:_MAX_SENTENCES_SHOWN]
    )
    more = (
        f" And {len(sentences) - _MAX_SENTENCES_SHOWN} more." if len(sentences) > _MAX_SENTENCES_SHOWN else ""
    )
    warning = f"The source doesn\u2019t say this in these words; read it against the source: {quoted}{more}"
    others = tuple(
        check
        for check in checks
        if check.code != "support" and (check.code, check.outcome) != ("claims", "passed")
    )
    support_check = next(
        (check for check in checks if check.code == "support" and check.outcome != "passed"), None
    )
    if support_check is not None:
        return (Check("support", support_check.outcome, f"{support_check.message} {warning}"), *others)
    return (Check("support", "failed", warning), *others)


def _known_texts(item: GeneratedItem, persona: PersonaCard) -> list[str]:
    """Return the texts that were checked when a writer wrote them, and those that the persona may always use.

    A writer wrote the first revision and each rewrite. An item with one revision has only its current words.
    """
    persona_texts = [
        *persona.approved_lines,
        *(str(structure.get("text") or "") for structure in persona.required_structures),
    ]
    earlier = Revision.everywhere.filter(item=item).exclude(number=item.revision).order_by("number")
    first_revision = earlier.first()
    if first_revision is None:
        return [item.title, *words_of(draft_of(item)), *_override_words(item.overrides), *persona_texts]
    runs = Generation.everywhere.filter(rewrites=item).done()
    rewritten = set(runs.values_list(f"answers__{REWRITE}__wrote", flat=True))
    texts = persona_texts
    for revision in [
        first_revision,
        *earlier.exclude(pk=first_revision.pk).filter(number__in=rewritten),
    ]:
        draft = draft_of(
            item,
            title=revision.title,
            body=revision.body,
            body_format=revision.body_format,
            content=revision.content,
        )
        texts += [revision.title, *words_of(draft), *_override_words(revision.overrides)]
    if item.revision in rewritten:
        texts += [item.title, *words_of(draft_of(item))]
    return texts


def _override_words(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield the titles and texts that single outlets get in place of the item's own."""
    for override in overrides.values():
        if isinstance(override, dict):
            yield from (override[name] for name in ("title", "body") if isinstance(override.get(name), str))


def _shorten_quote(sentence: str) -> str:
    # It is quoted itself, so quotation marks inside become single ones.
    text = " ".join(sentence.split()).translate(_INNER_MARKS)
    return (
        text
        if len(text) <= _MAX_SENTENCE_CHARACTERS
        else f"{text[: _MAX_SENTENCE_CHARACTERS - 1].rstrip()}\u2026"
    )


def _remaining_claims(item: GeneratedItem, draft: Draft, brief: Brief, source: SourceText) -> Iterator[Claim]:
    """Yield the claims whose words still stand in the draft, each with the current offsets of its quote."""
    draft_text = "\n".join((draft.title, *words_of(draft)))
    for stored in item.claims:
        claim_fields = multi_source.join_claim(stored, brief) if "raw_item" in stored else stored
        if claim_fields is None or find_in_draft(draft_text, claim_fields["text"]) is None:
            continue
        claim = Claim(**claim_fields)
        start = source.text.find(claim.quote)
        if claim.quote and start != -1 and source.text[claim.start : claim.end] != claim.quote:
            # A topic was rewritten since, and still contains the quote elsewhere.
            claim = replace(claim, start=start, end=start + len(claim.quote))
        yield claim


# --- The basis of the words ------------------------------------------------------------------------------------------


def _load_basis(item: GeneratedItem, engine: Engine, persona: PersonaCard) -> tuple[Brief, SourceText]:
    """Return the brief and source of the item's words; a raw item's are of the version that they were made of.

    Raises `Refused` if the raw item or the topic was deleted.
    """
    if item.raw_item_id is not None:
        source = text_of(item.raw_item_id, item.raw_version)
        if item.raw_item is not None and "video" in engine.made_from:
            source = replace(source, material=source_media.material_of(item.raw_item))
        return engine.told(_brief_of(item, source, item.raw_item_id), source), source
    if item.raw_items:
        return combine(_load_parts(item))
    return _load_topic(item, persona)


def _is_offline(item: GeneratedItem) -> bool:
    return bool(item.generator.get("offline"))


def _brief_of(item: GeneratedItem, source: SourceText, raw_item_id: UUID) -> Brief:
    """Return the model's stored brief of the source if the words were made of one, else one without a model."""
    stored = shared_brief.read_kept_brief(plugins.get("writers", "claude", Writer), source, raw_item_id)
    # A draft without a model may still stem from a model's brief that couldn't be used: `without_model` says
    # so.
    if stored is not None and (not _is_offline(item) or stored.get("without_model")):
        return brief_from(stored)
    return plugins.get("writers", "extractive", Writer).brief(source).brief


def _load_parts(item: GeneratedItem) -> list[SourcePart]:
    """Return the raw items of a digest, in the order in which they are told."""
    inputs = GenerationInput.everywhere.filter(generation=item.generation_id)
    versions = dict(inputs.values_list("raw_item_id", "raw_version"))
    parts: list[SourcePart] = []
    for key in map(UUID, item.raw_items):
        source = text_of(key, versions.get(key))
        parts.append(SourcePart(encode("raw", key), source, _brief_of(item, source, key)))
    return parts


def _load_topic(item: GeneratedItem, persona: PersonaCard) -> tuple[Brief, SourceText]:
    topic = item.topic
    if topic is None or topic.deleted_at is not None:
        message = "Its topic was deleted."
        raise Refused(message, code="topic_deleted")
    picks = BrandPick.everywhere.filter(topic=topic, generation=item.generation_id)
    angle = picks.order_by("-id").values_list("angle", flat=True).first()
    return brief_of(subject_of(topic, angle or ""), persona)
