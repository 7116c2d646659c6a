"""Stores a persona's brand kit (two colours, a portrait, a voice), and makes samples of items drawn with it."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core.errors import Invalid
from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Engine, SourceText
from pipeline.generate.checks import run_checks
from pipeline.generate.persona_cards import persona_card
from pipeline.media import draw_pictures, uploads
from pipeline.personas import crud
from pipeline.plugins import Refused
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_types import AvailableMedia
from pipeline.render.untrusted_images import UnusablePicture, square_png
from pipeline.text.plain_text import seen_text
from pipeline.writers.base import Writer
from pipeline.writers.extractive import draft_without_model

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.engines.base import Draft, PersonaCard
    from pipeline.models import Persona

SIDE: Final = 800
"""The side of a stored portrait, in pixels, which is more than any picture needs."""
_BACKGROUND: Final = "#ffffff"
"""The colour behind transparent parts of a portrait."""


@dataclass(frozen=True)
class BrandChoices:
    """The brand settings that a person chose.

    Empty colours follow from the persona's name; `portrait` is a picture in any accepted format.
    """

    primary: str = ""
    accent: str = ""
    portrait: uploads.ReceivedFile | None = None
    without_portrait: bool = False
    voice_rate: int | None = None
    voice_pitch: int | None = None
    """The pitch of the voice in films, as `voice_rate` is its rate, or `None` for the default."""


def change_brand(
    persona: Persona,
    choices: BrandChoices,
    *,
    workspace: Workspace,
    by: str,
    now: datetime,
    expected_version: int,
) -> Persona:
    """Write the brand kit as the persona's next version.

    The portrait is stored as a new picture: square, upright, without the place and time of the photo. Earlier
    portraits stay for the versions that name them. Raises `Invalid` if the portrait is no usable picture,
    `Conflict` if the workspace has too many unused uploads, and the errors of `crud.change`.
    """
    kit = {
        **persona.brand,
        "primary": choices.primary,
        "accent": choices.accent,
        "voice_rate": _kit_value(choices.voice_rate),
        "voice_pitch": _kit_value(choices.voice_pitch),
    }
    if choices.without_portrait:
        kit.pop("portrait", None)
    stored_portrait = None
    if choices.portrait is not None:
        stored_portrait = uploads.store_upload(
            workspace, _to_square_png(choices.portrait), test=False, actor=by, now=now
        )
        kit["portrait"] = encode("upl", stored_portrait.pk)
    with transaction.atomic():
        row = crud.change(persona, {"brand": kit}, by=by, now=now, expected_version=expected_version)
        if stored_portrait is not None:
            uploads.mark_used(workspace.pk, [stored_portrait.pk], persona=row, now=now)
    return row


def _kit_value(number: int | None) -> str:
    """Return the number as the kit stores it, or an empty string for `None`, which removes it."""
    return "" if number is None else str(number)


def _to_square_png(upload: uploads.ReceivedFile) -> uploads.ReceivedFile:
    if uploads.sniff_kind(upload) != "image":
        message = "A portrait is a picture: JPEG, PNG or WebP."
        raise Invalid.one("portrait", "not_a_picture", message)
    upload.file.seek(0)
    try:
        data = square_png(upload.file.read(), SIDE, background=_BACKGROUND)
    except UnusablePicture as unusable:
        raise Invalid.one("portrait", unusable.code, unusable.message) from unusable
    return uploads.ReceivedFile(BytesIO(data), len(data), upload.name)


@dataclass(frozen=True)
class EngineSample:
    """One engine's sample: the text, the PNG if it draws one, and its faults and warnings as sentences."""

    engine: str
    words: str = ""
    picture: bytes | None = None
    faults: tuple[str, ...] = ()


def make_samples(persona: Persona, text: str) -> list[EngineSample]:
    """Return a sample of every engine that makes items of text alone."""
    card = persona_card(persona.pk, persona.version)
    source = SourceText(
        title="",
        text=seen_text(text, "text"),
        url="",
        author="",
        language=persona.language,
        published_at=None,
    )
    portrait, warnings = draw_pictures.portrait_of(persona.workspace_id, card)
    return [
        _make_sample(engine, source, card, portrait, tuple(check.message for check in warnings))
        for engine in plugins.every("engines", Engine)
        if "text" in engine.made_from
    ]


def _make_sample(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> EngineSample:
    reason = engine.why_not(source) or engine.unshown(source)
    if reason is not None:
        return EngineSample(engine.name, faults=(reason,))
    try:
        return _write_sample(engine, source, card, portrait, warnings)
    except Refused as refused:
        return EngineSample(engine.name, faults=(refused.message,))


def _write_sample(
    engine: Engine, source: SourceText, card: PersonaCard, portrait: bytes | None, warnings: tuple[str, ...]
) -> EngineSample:
    """Write a sample without a model, check it, and draw it. Raises `Refused` if it can't be drawn."""
    brief = plugins.get("writers", "extractive", Writer).brief(source).brief
    drafts = draft_without_model(engine, brief, card, variants=1, seed=source.text[:100])
    if not drafts:
        fault = "No sentence of these words keeps all rules of the persona."
        return EngineSample(engine.name, faults=(fault,))
    draft = drafts[0]
    faults = tuple(
        check.message for check in run_checks(engine, draft, brief, source, card) if check.outcome == "failed"
    )
    if faults or not engine.sizes:
        return EngineSample(engine.name, draft.body, faults=faults)
    try:
        return EngineSample(engine.name, draft.body, _draw_sample(engine, draft, card, portrait), warnings)
    except UnusablePicture as unusable:
        picture = _draw_sample(engine, draft, card, None)
        return EngineSample(engine.name, draft.body, picture, (unusable.message,))


def _draw_sample(engine: Engine, draft: Draft, card: PersonaCard, portrait: bytes | None) -> bytes | None:
    """Return the PNG in the last of the engine's sizes, the squarest, or `None` if it draws nothing."""
    media = AvailableMedia(has_portrait=portrait is not None, size=engine.sizes[-1])
    layout = engine.plan(draft, card, media)
    return render_layout(layout, portrait=portrait)[0].bytes if layout is not None else None
