"""A persona's brand kit: its two colours and its portrait, which is made square and freed of all that it says beside."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core.errors import Invalid
from config.core.ids import encode
from pipeline.media import uploads
from pipeline.personas import crud
from pipeline.render.portrait import UnusablePicture, square_png

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.models import Persona

SIDE: Final = 800
"""Pixels of a portrait's side as it is kept: more than any picture draws it with."""
_BEHIND: Final = "#ffffff"


@dataclass(frozen=True)
class Looks:
    """What a person chose. Without colours they go with the name; `portrait` is a picture in any form that is taken."""

    primary: str = ""
    accent: str = ""
    portrait: uploads.Given | None = None
    without_portrait: bool = False
    voice_rate: int | None = None
    voice_pitch: int | None = None
    """How films speak; None for the usual."""


def change(
    persona: Persona, looks: Looks, *, workspace: Workspace, by: str, now: datetime, expected_version: int
) -> Persona:
    """Write the brand kit as the persona's next version.

    The portrait is kept as a picture of its own: square, upright, without where and when it was taken. Earlier
    portraits stay for the versions that name them. Raises what `uploads.keep` and `personas.change` raise.
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
        kept = uploads.keep(workspace, _square(looks.portrait), test=False, actor=by, now=now)
        kit["portrait"] = encode("upl", kept.pk)
    with transaction.atomic():
        row = crud.change(persona, {"brand": kit}, by=by, now=now, expected_version=expected_version)
        if kept is not None:
            uploads.use(workspace.pk, [kept.pk], persona=row, now=now)
    return row


def _said(number: int | None) -> str:
    """As the kit keeps it; empty takes it out."""
    return "" if number is None else str(number)


def _square(given: uploads.Given) -> uploads.Given:
    if uploads.kind_of(given) != "image":
        message = "A portrait is a picture: JPEG, PNG or WebP."
        raise Invalid.one("portrait", "not_a_picture", message)
    given.file.seek(0)
    try:
        data = square_png(given.file.read(), SIDE, behind=_BEHIND)
    except UnusablePicture as unusable:
        raise Invalid.one("portrait", unusable.code, unusable.message) from unusable
    return uploads.Given(BytesIO(data), len(data), given.name)
