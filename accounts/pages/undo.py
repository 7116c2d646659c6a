"""A message with an undo: what was done, and a small form that takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.template.loader import render_to_string

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest


def offer(request: HttpRequest, said: str, address: str, fields: Mapping[str, str] | None = None) -> None:
    """Say it, with a button that posts the fields to the address."""
    context = {"said": said, "address": address, "fields": dict(fields or {})}
    text = render_to_string("components/undo.html", context, request=request)
    messages.success(request, text, extra_tags="lasting")
