"""What the forms of several pages choose from: engine outputs with their prices, outlets, personas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from config.core.ids import encode
from pipeline import labels, plugins
from pipeline.models import Bucket, Outlet, Persona, Source
from pipeline.platforms.base import Platform
from pipeline.switches import availability

if TYPE_CHECKING:
    from accounts.models import Workspace
    from pipeline.engines.base import Engine

Choices = list[tuple[str, str]]


def engines(*, made_from: str = "") -> Choices:
    """By the name of the engine output, with its bucket and price; those alone that can be made from `made_from`.

    What only a series makes is no choice for a single item, and what can't be run here is none at all.
    """
    known = [one for one in availability.engines() if one.made_from != ("series",)]
    return [(one.name, _engine(one)) for one in known if not made_from or made_from in one.made_from]


def outlets(workspace: Workspace) -> Choices:
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).order_by("id")
    return [(encode("out", one.pk), _outlet(one)) for one in rows]


def personas(workspace: Workspace) -> Choices:
    rows = Persona.objects.of(workspace).filter(deleted_at=None).order_by("id").values_list("id", "name")
    return [(encode("per", key), name) for key, name in rows]


def credits_label(count: int) -> str:
    return ngettext("%d credit", "%d credits", count) % count


def _engine(engine: Engine) -> str:
    about = f"{Bucket(engine.bucket).label} · {credits_label(engine.credits)}"
    line = labels.FORMATS.get(engine.kind)
    return _two_lines(engine.name, f"{line} · {about}" if line else about)


def _outlet(outlet: Outlet) -> str:
    platform = plugins.get("platforms", outlet.platform, Platform)
    about = _("Test channel") if outlet.is_simulated else str(platform.label)
    return _two_lines(outlet.name, about)


def _two_lines(name: str, about: str) -> str:
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', name, about)


def sources(workspace: Workspace, most: int) -> list[tuple[str, str]]:
    """Its sources by name, that of what is pushed and given at Create among them."""
    rows = Source.objects.of(workspace).filter(test=False, deleted_at=None).order_by("name", "id")
    return [
        (encode("src", key), labels.source_name_of(name, is_push=is_push))
        for key, name, is_push in rows.values_list("id", "name", "is_push")[:most]
    ]
