"""Lists choices for the forms of several pages: engine outputs with prices, outlets, personas and sources.

The functions return pairs of value and label, as Django's choice fields take them.
"""

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
    from collections.abc import Iterable

    from accounts.models import Workspace
    from pipeline.engines.base import Engine

Choices = list[tuple[str, str]]


def engine_choices(*, made_from: str = "") -> Choices:
    """Return pairs of an engine output's name and its label, which has the bucket and the price in credits.

    With `made_from`, only engines that take it are returned. Engines that only a series can use are left out, because
    no single item can choose them, and so are engines that can't run on this instance.
    """
    return [(engine.name, _engine_label(engine)) for engine in _choosable_engines(made_from)]


def short_engine_choices(*, made_from: str = "") -> Choices:
    """Return the same pairs with labels of name and price alone."""
    return [
        (engine.name, _two_lines(engine.name, credits_label(engine.credits)))
        for engine in _choosable_engines(made_from)
    ]


def unavailable_choices(names: Iterable[str]) -> Choices:
    """Return pairs of these engine outputs' names and labels that say that they aren't available."""
    return [(name, _two_lines(name, _("Not available"))) for name in names]


def _choosable_engines(made_from: str) -> list[Engine]:
    return [
        engine
        for engine in availability.engines()
        if engine.made_from != ("series",) and (not made_from or made_from in engine.made_from)
    ]


def outlet_choices(workspace: Workspace) -> Choices:
    """Return the workspace's outlets as pairs of public id and label, the oldest first.

    The label has the platform, or "Test channel" for a simulated outlet.
    """
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).order_by("id")
    return [(encode("out", outlet.pk), outlet_label(outlet)) for outlet in rows]


def outlet_label(outlet: Outlet) -> str:
    """Return name and platform of an outlet as a label, or its name alone if that says the platform."""
    platform = plugins.get("platforms", outlet.platform, Platform)
    platform_label = str(_("Test channel") if outlet.is_simulated else platform.label)
    is_named_so = outlet.name.casefold() == platform_label.casefold()
    return outlet.name if is_named_so else _two_lines(outlet.name, platform_label)


def persona_choices(workspace: Workspace) -> Choices:
    """Return the workspace's personas as pairs of public id and name, the oldest first."""
    rows = Persona.objects.of(workspace).filter(deleted_at=None).order_by("id").values_list("id", "name")
    return [(encode("per", key), name) for key, name in rows]


def credits_label(count: int) -> str:
    """Return the count with its unit, such as "1 credit" or "3 credits"."""
    return ngettext("%d credit", "%d credits", count) % count


def _engine_label(engine: Engine) -> str:
    """Return name, format, bucket and price of an engine output as a label."""
    details = f"{Bucket(engine.bucket).label} · {credits_label(engine.credits)}"
    format_label = labels.FORMATS.get(engine.kind)
    return _two_lines(engine.name, f"{format_label} · {details}" if format_label else details)


def _two_lines(name: str, details: str) -> str:
    """Return the name as HTML, with the details small below it."""
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', name, details)


def source_choices(workspace: Workspace, max_sources: int) -> Choices:
    """Return the first `max_sources` of the workspace's sources as pairs of public id and name, sorted by name.

    The source of what is pushed or pasted at Create is among them.
    """
    rows = Source.objects.of(workspace).filter(test=False, deleted_at=None).order_by("name", "id")
    return [
        (encode("src", key), labels.source_name_of(name, is_push=is_push))
        for key, name, is_push in rows.values_list("id", "name", "is_push")[:max_sources]
    ]
