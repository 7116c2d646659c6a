"""Chooses the format of an answer by `Accept`, and refuses what no view has (406)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rest_framework.negotiation import BaseContentNegotiation

from config.core.errors import AppError, Detail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.parsers import BaseParser
    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request


# The quality 0 of a media range: "not this one" (RFC 9110, section 12.4.2).
_EXCLUDED: Final = re.compile(r"(?:^|;)\s*q=0(?:\.0*)?\s*(?:$|;)")


class JsonOnly(BaseContentNegotiation):
    """Chooses a view's format: JSON, unless `Accept` names another one that it has.

    `refuse_unless_acceptable` refuses what `Accept` rules out, once the token is checked.
    """

    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser | None:  # type: ignore[override]
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        for parser in parsers:
            if parser.media_type == content_type:
                return parser
        return None

    def select_renderer(  # type: ignore[override]
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        del format_suffix
        named, _ = _media_ranges(request)
        for renderer in renderers[1:]:
            if renderer.media_type in named:
                return renderer, renderer.media_type
        return renderers[0], renderers[0].media_type


class NotAcceptable(AppError):
    """Raised for an `Accept` that names no media type of the view (406)."""

    code = "not_acceptable"


def _media_ranges(request: Request) -> tuple[set[str], set[str]]:
    """Return the media ranges that `Accept` names, and those that it excludes."""
    named: set[str] = set()
    excluded: set[str] = set()
    for media_range in request.META.get("HTTP_ACCEPT", "").lower().split(","):
        name, _, parameters = media_range.partition(";")
        # Without a slash it is no media type, and asks for nothing.
        if "/" in name:
            (excluded if _EXCLUDED.search(parameters) else named).add(name.strip())
    return named, excluded


def refuse_unless_acceptable(request: Request) -> None:
    """Raise `NotAcceptable` if `Accept` excludes the media type of the answer, or names only others."""
    named, excluded = _media_ranges(request)
    media_type = request.accepted_media_type
    is_named = not named.isdisjoint({"*/*", f"{media_type.partition('/')[0]}/*", media_type})
    if media_type in excluded or ((named or excluded) and not is_named):
        raise NotAcceptable(Detail(None, "not_acceptable", f"This address answers {media_type}."))
