"""Draws the pictures of an item, laid out by its engine, and stores them as files and as rows that serve them.

A file is written before its row. A file that no row names is never served, so a killed task leaves nothing visible.
The path follows from the bytes, so drawing the same picture again finds the file there.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from config.core.database.prepared_queries import Prepared
from config.core.ids import decode
from pipeline import resources
from pipeline.engines.base import Check
from pipeline.media import files, source_media, uploads
from pipeline.models import Asset, Upload
from pipeline.plugins import Refused
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_types import AvailableMedia
from pipeline.render.untrusted_images import UnusablePicture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime
    from uuid import UUID

    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.models import GeneratedItem, RawItem
    from pipeline.render.rendered_asset import RenderedAsset

INITIALS_NOTE: Final = "Initials are drawn in its place."
COLOUR_NOTE: Final = "The persona's colour is the ground in its place."
MIN_PHOTO_SIDE: Final = 720
"""The least pixels of either side; a smaller photo would be blurred as the background of a picture."""
FILE_CHECKS: Final = frozenset({"portrait", "photo", "film", "voice", "sound"})
"""The checks of the drawn files, not of the text."""


@dataclass(frozen=True)
class _Inputs:
    """The inputs of the pictures apart from the text; each is `None` if it isn't there or can't be used."""

    shown_on: date | None
    portrait: bytes | None
    photo: bytes | None


def draw_pictures(
    item: GeneratedItem, engine: Engine, draft: Draft, persona: PersonaCard, *, shown_on: date | None
) -> dict[str, Any]:
    """Draw every size and store the files. Runs outside any transaction.

    Return `{"files", "checks", "error"}` as a generation stores it. If the text can't be drawn, `error` holds
    code and message, and the lists are empty. A portrait or photo that can't be used is left out with a check.
    """
    portrait, checks = portrait_of(item.workspace_id, persona)
    photo = _photo_of(item) if engine.shows_photo else None
    if engine.shows_photo and photo is None and (reason := _why_no_photo(item)):
        # No warning: many feeds give addresses of pictures, and the drawn pictures are fine.
        checks.append(Check("photo", "passed", f"{reason} {COLOUR_NOTE}"))
    inputs = _Inputs(shown_on, portrait, photo)
    while True:
        try:
            rendered = _render_sizes(engine, draft, persona, inputs)
            break
        except UnusablePicture as unusable:
            # The sizes are drawn again without the file; there are two files at most, so this ends.
            if unusable.field == "media":
                inputs = replace(inputs, photo=None)
                checks.append(Check("photo", "warning", f"{unusable.message} {COLOUR_NOTE}"))
            else:
                inputs = replace(inputs, portrait=None)
                checks.append(portrait_warning(unusable.message))
        except Refused as refused:
            error = {"code": refused.code, "message": refused.message}
            return {"files": [], "checks": [], "error": error}
    file_rows = [_store_file(item.pk, asset) for asset in rendered]
    return {"files": file_rows, "checks": [asdict(check) for check in checks], "error": None}


def refuse_undrawable(engine: Engine, draft: Draft, persona: PersonaCard, raw: RawItem | None = None) -> None:
    """Raise `Refused` for text that doesn't fit, or that no bundled font has. Draws nothing."""
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
    """Serve these files as the item's, in place of those before, in the caller's transaction."""
    Asset.everywhere.filter(item=item, revoked_at=None).update(revoked_at=now)
    edited_alt_texts = alt_texts or {}
    for position, file in enumerate(drawn["files"]):
        Asset.everywhere.create(
            workspace_id=item.workspace_id,
            item=item,
            position=position,
            kind=_kind_of(file["mime_type"]),
            created_at=now,
            **{**file, "alt_text": edited_alt_texts.get(file["name"], file["alt_text"])},
        )


def _kind_of(mime_type: str) -> str:
    family = mime_type.partition("/")[0]
    return family if family in {"image", "video", "audio"} else "document"


def files_of(item: GeneratedItem) -> list[dict[str, Any]]:
    """Return the rows of the files that are served as this item's, as `Asset.serialize` takes them."""
    return _FILES_QUERY.ask(item=item.pk)


_FILES_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda item: (
        Asset.everywhere.filter(item_id=item, revoked_at=None)
        .order_by("position", "id")
        .values(*resources.Asset.columns())
    )
)


def _render_sizes(engine: Engine, draft: Draft, persona: PersonaCard, inputs: _Inputs) -> list[RenderedAsset]:
    """Return the pictures in all sizes. Raises `Refused` or `UnusablePicture` if text or file can't be drawn."""
    rendered: list[RenderedAsset] = []
    for size in engine.sizes:
        media = AvailableMedia(
            has_portrait=inputs.portrait is not None,
            size=size,
            shown_on=inputs.shown_on,
            has_photo=inputs.photo is not None,
        )
        layout = engine.plan(draft, persona, media)
        if layout is not None:
            rendered += render_layout(layout, portrait=inputs.portrait, photo=inputs.photo)
    return rendered


def _photo_of(item: GeneratedItem) -> bytes | None:
    """Return the first uploaded picture of the raw item that is large enough, or `None`.

    It is `None` if there is no such picture, the raw item was deleted, or the file can't be read.
    """
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None:
        return None
    keys = uploads.upload_ids_in(raw.media)
    large_pictures = Upload.everywhere.filter(
        workspace_id=item.workspace_id,
        pk__in=keys,
        kind="image",
        width__gte=MIN_PHOTO_SIDE,
        height__gte=MIN_PHOTO_SIDE,
    )
    paths = dict(large_pictures.values_list("pk", "path"))
    stored_path = next((paths[key] for key in keys if key in paths), None)
    try:
        return files.path_of(stored_path).read_bytes() if stored_path else None
    except OSError:
        return None


def _why_no_photo(item: GeneratedItem) -> str:
    """Return why no picture of the raw item is shown, for people, or an empty string if it came with none."""
    media = item.raw_item.media if item.raw_item is not None else []
    if uploads.upload_ids_in(media):
        return f"None of the uploaded files is a picture of {MIN_PHOTO_SIDE} pixels or more each way that is still there."
    address = next((medium["url"] for medium in media if medium.get("url") and _is_picture(medium)), "")
    return f"The picture at {address} isn't shown: only uploaded ones are." if address else ""


def _is_picture(media: Mapping[str, str]) -> bool:
    if media.get("type"):
        return media["type"].startswith("image")
    # No `urlsplit`: what a feed calls an address may not be one.
    path = re.split(r"[?#]", media["url"], maxsplit=1)[0]
    return path.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif"))


def portrait_of(workspace_id: UUID, persona: PersonaCard) -> tuple[bytes | None, list[Check]]:
    """Return the bytes of the brand kit's portrait, or `None`, and a warning if the named one is gone."""
    portrait_id = str(persona.brand.get("portrait") or "")
    if not portrait_id:
        return None, []
    stored_path = _path_of_upload(workspace_id, portrait_id) or _path_of_asset(workspace_id, portrait_id)
    try:
        data = files.path_of(stored_path).read_bytes() if stored_path else None
    except OSError:
        data = None
    if data is None:
        return None, [portrait_warning("The persona's portrait is no longer there.")]
    return data, []


def _path_of_upload(workspace_id: UUID, upload_id: str) -> str | None:
    key = decode("upl", upload_id)
    rows = Upload.everywhere.filter(workspace_id=workspace_id, pk=key, kind="image") if key else None
    return rows.values_list("path", flat=True).first() if rows is not None else None


def _path_of_asset(workspace_id: UUID, asset_id: str) -> str | None:
    key = decode("ast", asset_id)
    rows = Asset.everywhere.filter(workspace_id=workspace_id, pk=key, revoked_at=None) if key else None
    return rows.values_list("path", flat=True).first() if rows is not None else None


def portrait_warning(message: str) -> Check:
    return Check("portrait", "warning", f"{message} {INITIALS_NOTE}")


def _store_file(item_id: UUID, rendered: RenderedAsset) -> dict[str, Any]:
    """Write the file, and return the columns of its row."""
    suffix = Path(rendered.name).suffix
    stored_path = f"{item_id.hex}/{rendered.sha256}{suffix}"
    files.write(stored_path, [rendered.bytes])
    return {
        "role": rendered.role,
        "name": rendered.name,
        "path": stored_path,
        "mime_type": rendered.mime_type,
        "bytes": len(rendered.bytes),
        "sha256": rendered.sha256,
        "width": rendered.width,
        "height": rendered.height,
        "alt_text": rendered.alt_text,
    }
