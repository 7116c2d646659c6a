"""The pictures of an item: laid out by its engine, drawn, kept as files, and the rows by which they are served.

A file is written before its row: one that no row names is never served, so a killed hand leaves nothing to see. Its
path follows from its bytes, so drawing the same again finds it there.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from config.core.database.prepared_queries import Prepared
from config.core.ids import decode
from pipeline import payloads
from pipeline.engines.base import Check
from pipeline.media import files, source_media, uploads
from pipeline.models import Asset, Upload
from pipeline.plugins import Refused
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_plan import AvailableMedia
from pipeline.render.untrusted_images import UnusablePicture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from uuid import UUID

    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.models import GeneratedItem, RawItem
    from pipeline.render.rendered_asset import RenderedAsset

INITIALS_INSTEAD: Final = "Initials are drawn in its place."
COLOUR_INSTEAD: Final = "The persona's colour is the ground in its place."
LEAST_PHOTO: Final = 720
"""Pixels of the shorter side: a smaller one would be blurred as the ground of a picture."""
OF_FILES: Final = frozenset({"portrait", "photo", "film", "voice", "sound"})
"""Checks that are of the files that were drawn, and not of the words."""


@dataclass(frozen=True)
class _Given:
    shown_on: date | None
    portrait: bytes | None
    photo: bytes | None


def draw_pictures(
    item: GeneratedItem, engine: Engine, draft: Draft, persona: PersonaCard, *, shown_on: date | None
) -> dict[str, Any]:
    """Draw every size and keep the files; runs outside any transaction.

    Returns `{"files", "checks", "error"}` as a generation stores it; `error` where the words can't be drawn.
    """
    portrait, checks = portrait_of(item.workspace_id, persona)
    photo = _photo_of(item) if engine.shows_photo else None
    if engine.shows_photo and photo is None and (why := _why_no_photo(item)):
        # No warning: many feeds give addresses of pictures, and nothing is wrong with what is drawn.
        checks.append(Check("photo", "passed", f"{why} {COLOUR_INSTEAD}"))
    given = _Given(shown_on, portrait, photo)
    while True:
        try:
            rendered = _render(engine, draft, persona, given)
            break
        except UnusablePicture as unusable:
            # Without it the same is drawn; there are two, so this comes to an end.
            if unusable.field == "media":
                given = replace(given, photo=None)
                checks.append(Check("photo", "warning", f"{unusable.message} {COLOUR_INSTEAD}"))
            else:
                given = replace(given, portrait=None)
                checks.append(portrait_warning(unusable.message))
        except Refused as refused:
            error = {"code": refused.code, "message": refused.message}
            return {"files": [], "checks": [], "error": error}
    kept = [_keep(item.pk, one) for one in rendered]
    return {"files": kept, "checks": [asdict(check) for check in checks], "error": None}


def refuse_undrawable(engine: Engine, draft: Draft, persona: PersonaCard, raw: RawItem | None = None) -> None:
    """Raises `Refused` with a sentence for words that don't fit, or that no bundled font has."""
    if engine.bucket == "video":
        is_shown = raw is not None and raw.deleted_at is None and "video" in engine.made_from
        material = source_media.material_of(raw) if raw is not None and is_shown else None
        engine.film(draft, persona, AvailableMedia(size=engine.sizes[0], material=material))
        return
    for size in engine.sizes:
        engine.plan(draft, persona, AvailableMedia(size=size))


def replace_files(
    item: GeneratedItem,
    drawn: Mapping[str, Any],
    *,
    now: datetime,
    alt_texts: Mapping[str, str] | None = None,
) -> None:
    """Serve these files as the item's, and no longer those before them; inside the caller's transaction."""
    Asset.everywhere.filter(item=item, revoked_at=None).update(revoked_at=now)
    said = alt_texts or {}
    for position, file in enumerate(drawn["files"]):
        Asset.everywhere.create(
            workspace_id=item.workspace_id,
            item=item,
            position=position,
            kind=_kind_of(file["mime_type"]),
            created_at=now,
            **{**file, "alt_text": said.get(file["name"], file["alt_text"])},
        )


def _kind_of(mime_type: str) -> str:
    family = mime_type.partition("/")[0]
    return family if family in {"image", "video", "audio"} else "document"


def files_of(item: GeneratedItem) -> list[dict[str, Any]]:
    """The rows of the files that are served as this item's, as `payloads` takes them."""
    return _FILES.ask(item=item.pk)


_FILES: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda item: (
        Asset.everywhere.filter(item_id=item, revoked_at=None)
        .order_by("position", "id")
        .values(*payloads.ASSET_FIELDS)
    )
)


def _render(engine: Engine, draft: Draft, persona: PersonaCard, given: _Given) -> list[RenderedAsset]:
    rendered: list[RenderedAsset] = []
    for size in engine.sizes:
        media = AvailableMedia(
            has_portrait=given.portrait is not None,
            size=size,
            shown_on=given.shown_on,
            has_photo=given.photo is not None,
        )
        layout = engine.plan(draft, persona, media)
        if layout is not None:
            rendered += render_layout(layout, portrait=given.portrait, photo=given.photo)
    return rendered


def _photo_of(item: GeneratedItem) -> bytes | None:
    """The first picture that came with the raw item as a file and is large enough to be looked at."""
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None:
        return None
    keys = uploads.ids_in(raw.media)
    found = Upload.everywhere.filter(
        workspace_id=item.workspace_id,
        pk__in=keys,
        kind="image",
        width__gte=LEAST_PHOTO,
        height__gte=LEAST_PHOTO,
    )
    paths = dict(found.values_list("pk", "path"))
    kept = next((paths[key] for key in keys if key in paths), None)
    try:
        return files.path_of(kept).read_bytes() if kept else None
    except OSError:
        return None


def _why_no_photo(item: GeneratedItem) -> str:
    """A sentence where pictures came with the raw item and none of them can be shown; else empty."""
    media = item.raw_item.media if item.raw_item is not None else []
    if uploads.ids_in(media):
        return f"None of the uploaded files is a picture of {LEAST_PHOTO} pixels or more each way that is still there."
    address = next((one["url"] for one in media if one.get("url") and _is_picture(one)), "")
    return f"The picture at {address} isn't shown: only uploaded ones are." if address else ""


def _is_picture(media: Mapping[str, str]) -> bool:
    if media.get("type"):
        return media["type"].startswith("image")
    # No `urlsplit`: what a feed calls an address needs not be one.
    path = re.split(r"[?#]", media["url"], maxsplit=1)[0]
    return path.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif"))


def portrait_of(workspace_id: UUID, persona: PersonaCard) -> tuple[bytes | None, list[Check]]:
    """The bytes of the brand kit's portrait; a warning where it names one that isn't there any more."""
    named = str(persona.brand.get("portrait") or "")
    if not named:
        return None, []
    kept = _path_of_upload(workspace_id, named) or _path_of_asset(workspace_id, named)
    try:
        data = files.path_of(kept).read_bytes() if kept else None
    except OSError:
        data = None
    if data is None:
        return None, [portrait_warning("The persona's portrait is no longer there.")]
    return data, []


def _path_of_upload(workspace_id: UUID, named: str) -> str | None:
    key = decode("upl", named)
    rows = Upload.everywhere.filter(workspace_id=workspace_id, pk=key, kind="image") if key else None
    return rows.values_list("path", flat=True).first() if rows is not None else None


def _path_of_asset(workspace_id: UUID, named: str) -> str | None:
    key = decode("ast", named)
    rows = Asset.everywhere.filter(workspace_id=workspace_id, pk=key, revoked_at=None) if key else None
    return rows.values_list("path", flat=True).first() if rows is not None else None


def portrait_warning(message: str) -> Check:
    return Check("portrait", "warning", f"{message} {INITIALS_INSTEAD}")


def _keep(item_id: UUID, rendered: RenderedAsset) -> dict[str, Any]:
    """Write the file and return the columns of its row."""
    suffix = Path(rendered.name).suffix
    kept = f"{item_id.hex}/{rendered.sha256}{suffix}"
    files.write(kept, [rendered.bytes])
    return {
        "role": rendered.role,
        "name": rendered.name,
        "path": kept,
        "mime_type": rendered.mime_type,
        "bytes": len(rendered.bytes),
        "sha256": rendered.sha256,
        "width": rendered.width,
        "height": rendered.height,
        "alt_text": rendered.alt_text,
    }
