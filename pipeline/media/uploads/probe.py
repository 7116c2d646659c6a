"""Sound and video that are handed over, looked into before they are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from django.conf import settings

from config.core import limits
from config.core.errors import AppError, Detail, Invalid
from pipeline.media.uploads.file_types import SUFFIXES
from pipeline.plugins import Refused, TryLater
from pipeline.render.probe import probe
from pipeline.render.video import job as jobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.media.uploads.file_types import Sniffed
    from pipeline.render.probe import Probed

LOOKED_INTO: Final = frozenset({"audio", "video"})
# By the first bytes a container may hold either; what is in it decides.
_REALLY: Final[Mapping[tuple[str, str], str]] = {
    ("video/mp4", "audio"): "audio/mp4",
    ("video/quicktime", "audio"): "audio/mp4",
    ("audio/mp4", "video"): "video/mp4",
}


class Busy(AppError):
    """The machine has no room to look at the file now."""

    code = "unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(Detail("file", "busy", message))


def look_into(file: BinaryIO, found: Sniffed) -> Sniffed:
    """With what it really holds, its length, and a video's size. Raises `Invalid` with one sentence, and `Busy`."""
    try:
        # Not waited for: whoever sends the file holds one of a few threads that everybody's requests need.
        with jobs.slot(Path(settings.DATA_DIR) / "probes", limits.MEDIA_PROBES_AT_ONCE):
            probed = probe(file)
    except jobs.Busy as busy:
        message = "Other files are being looked at; send it again in some seconds."
        raise Busy(message) from busy
    except Refused as refused:
        raise Invalid.one("file", refused.code, refused.message) from refused
    except TryLater as later:
        raise Busy(later.message) from later
    return replace(
        found,
        **_really(found, probed),
        width=probed.width,
        height=probed.height,
        seconds=round(probed.seconds, 3),
    )


def _really(found: Sniffed, probed: Probed) -> dict[str, str]:
    if probed.kind == found.kind:
        return {}
    mime_type = _REALLY.get((found.mime_type, probed.kind), "")
    if mime_type not in SUFFIXES:
        message = (
            f"The file is called {found.kind} by its first bytes and holds {probed.kind}; save it again."
        )
        raise Invalid.one("file", "other_kind", message)
    return {"kind": probed.kind, "mime_type": mime_type}
