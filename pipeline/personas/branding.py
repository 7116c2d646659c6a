"""A persona's brand kit, its two colours and its portrait; and what it would make of some words."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core.errors import Invalid
from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Engine, SourceText
from pipeline.engines.shared.offline_drafts import draft_without_model
from pipeline.generate.checks import run_checks
from pipeline.generate.persona_cards import persona_card
from pipeline.media import drawn_pictures, uploads
from pipeline.personas import crud
from pipeline.plugins import Refused
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_plan import AvailableMedia
from pipeline.render.untrusted_images import UnusablePicture, square_png
from pipeline.text.plain_text import seen_text
from pipeline.writers.base import Writer

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.engines.base import Draft, PersonaCard
    from pipeline.models import Persona

SIDE: Final = 800
"""Pixels of a portrait's side as it is kept: more than any picture draws it with."""
_BEHIND: Final = "#ffffff"


@dataclass(frozen=True)
class BrandChoices:
    """What a person chose. Without colours they go with the name; `portrait` is a picture in any form that is taken."""

    primary: str = ""
    accent: str = ""
    portrait: uploads.ReceivedFile | None = None
    without_portrait: bool = False
    voice_rate: int | None = None
    voice_pitch: int | None = None
    """How films speak; None for the usual."""


def change_brand(
    persona: Persona,
    looks: BrandChoices,
    *,
    workspace: Workspace,
    by: str,
    now: datetime,
    expected_version: int,
) -> Persona:
    """Write the brand kit as the persona's next version.

    The portrait is kept as a picture of its own: square, upright, without where and when it was taken. Earlier
    portraits stay for the versions that name them. Raises what `uploads.store_upload` and `crud.change` raise.
    """
    kit = {
        **persona.brand,
        "primary": looks.primary,
        "accent": looks.accent,
        "voice_rate": _said(looks.voice_rate),
        "voice_pitch": _said(looks.voice_pitch),
    }
    if looks.without_portrait:
        kit.pop("portrait", None)
    kept = None
    if looks.portrait is not None:
        kept = uploads.store_upload(workspace, _square(looks.portrait), test=False, actor=by, now=now)
        kit["portrait"] = encode("upl", kept.pk)
    with transaction.atomic():
        row = crud.change(persona, {"brand": kit}, by=by, now=now, expected_version=expected_version)
        if kept is not None:
            uploads.mark_used(workspace.pk, [kept.pk], persona=row, now=now)
    return row


def _said(number: int | None) -> str:
    """As the kit keeps it; empty takes it out."""
    return "" if number is None else str(number)


def _square(given: uploads.ReceivedFile) -> uploads.ReceivedFile:
    if uploads.sniff_kind(given) != "image":
        message = "A portrait is a picture: JPEG, PNG or WebP."
        raise Invalid.one("portrait", "not_a_picture", message)
    given.file.seek(0)
    try:
        data = square_png(given.file.read(), SIDE, background=_BEHIND)
    except UnusablePicture as unusable:
        raise Invalid.one("portrait", unusable.code, unusable.message) from unusable
    return uploads.ReceivedFile(BytesIO(data), len(data), given.name)


@dataclass(frozen=True)
class EngineSample:
    """One engine's sample: the words, the PNG where it draws them, and what stands against it, in sentences."""

    engine: str
    words: str = ""
    picture: bytes | None = None
    faults: tuple[str, ...] = ()


def make_samples(persona: Persona, text: str) -> list[EngineSample]:
    """A sample of every engine that makes something of text alone."""
    card = persona_card(persona.pk, persona.version)
    source = SourceText(
        title="",
        text=seen_text(text, "text"),
        url="",
        author="",
        language=persona.language,
        published_at=None,
    )
    portrait, warnings = drawn_pictures.portrait_of(persona.workspace_id, card)
    return [
        _try(engine, source, card, portrait, tuple(check.message for check in warnings))
        for engine in plugins.every("engines", Engine)
        if "text" in engine.made_from
    ]


def _try(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> EngineSample:
    reason = engine.why_not(source) or engine.unshown(source)
    if reason is not None:
        return EngineSample(engine.name, faults=(reason,))
    try:
        return _write(engine, source, card, portrait, warnings)
    except Refused as refused:
        return EngineSample(engine.name, faults=(refused.message,))


def _write(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> EngineSample:
    brief = plugins.get("writers", "extractive", Writer).brief(source).brief
    drafts = draft_without_model(engine, brief, card, variants=1, seed=source.text[:100])
    if not drafts:
        return EngineSample(
            engine.name, faults=("No sentence of these words keeps all rules of the persona.",)
        )
    draft = drafts[0]
    faults = tuple(
        check.message for check in run_checks(engine, draft, brief, source, card) if check.outcome == "failed"
    )
    if faults or not engine.sizes:
        return EngineSample(engine.name, draft.body, faults=faults)
    try:
        return EngineSample(engine.name, draft.body, _draw(engine, draft, card, portrait), warnings)
    except UnusablePicture as unusable:
        return EngineSample(engine.name, draft.body, _draw(engine, draft, card, None), (unusable.message,))


def _draw(engine: Engine, draft: Draft, card: PersonaCard, portrait: bytes | None) -> bytes | None:
    """The last of the engine's sizes, which is the squarest."""
    layout = engine.plan(
        draft, card, AvailableMedia(has_portrait=portrait is not None, size=engine.sizes[-1])
    )
    return render_layout(layout, portrait=portrait)[0].bytes if layout is not None else None
