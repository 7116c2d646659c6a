"""What the pages call the kinds of things that engines make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.functional import _StrPromise

TOLD: Final[Mapping[str, _StrPromise]] = {
    "video": _("Video"),
    "image": _("Image"),
    "text": _("Text"),
    "blog": _("Article"),
    "newsletter": _("Newsletter"),
}
