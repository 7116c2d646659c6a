"""Defines the template tags of the pages: icons, badges, times, and the token of a displayed form."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from django import template
from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from accounts import mail_sending
from accounts.access import tokens
from accounts.pages import kept_forms

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

register = template.Library()
_SVG = "{http://www.w3.org/2000/svg}"


@cache
def _shapes(name: str) -> SafeString:
    """Return the shapes inside one of our own files in `static/icons`, as SVG without namespaces."""
    # Files of the project itself, so they hold no malicious XML.
    tree = ET.parse(settings.BASE_DIR / "static" / "icons" / f"{name}.svg")  # noqa: S314
    shapes = []
    for shape in tree.getroot():
        attributes = " ".join(f'{key}="{value}"' for key, value in shape.attrib.items())
        shapes.append(f"<{shape.tag.removeprefix(_SVG)} {attributes}/>")
    return mark_safe("".join(shapes))  # noqa: S308  from our own files


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Return an icon for decoration only, because text stands next to it or in the label of its button."""
    return format_html(
        '<svg class="icon {}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
        'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{}</svg>',
        extra,
        _shapes(name),
    )


@register.simple_tag
def sample(row: object) -> SafeString:
    """Return the badge of sample data, or an empty text for other rows."""
    is_sample = row.get("is_sample") if isinstance(row, dict) else getattr(row, "is_sample", False)
    if not is_sample:
        return mark_safe("")
    return format_html('<span class="badge" title="{}">{}</span>', _("Sample data"), _("Sample"))


@register.simple_tag
def form_token() -> SafeString:
    """Return the hidden field by which a repeated submission of a form is detected."""
    return format_html('<input type="hidden" name="once" value="{}">', kept_forms.once())


@register.filter
def get_item(table: Mapping[str, object], key: str) -> object:
    """Return the value under a key that is only known at run time."""
    return table.get(key)


@register.filter
def actor_name(actor: str | None) -> str:
    """Return a person's address or an API key's name, or an empty text for no actor."""
    return tokens.actor_name(actor) if actor else ""


@register.filter
def local_time(moment: datetime | None, zone: str = "UTC") -> SafeString:
    """Return a moment in the workspace's time zone for people, and in ISO form for machines; a dash for `None`."""
    return _time(moment, zone, "%b %Y, %H:%M")


@register.filter
def local_time_exact(moment: datetime | None, zone: str = "UTC") -> SafeString:
    """Return a moment as `local_time` does, with seconds and without a year, for a recent event."""
    return _time(moment, zone, "%b, %H:%M:%S")


def _time(moment: datetime | None, zone: str, date_format: str) -> SafeString:
    if moment is None:
        return mark_safe("—")
    from zoneinfo import ZoneInfo  # noqa: PLC0415  its data is read on first use

    local = moment.astimezone(ZoneInfo(zone))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S} {zone}",
        f"{local.day} {local:{date_format}}",
    )


@register.simple_tag
def code_minutes() -> int:
    """Return for how many minutes a mailed code works, which is the same for each kind of code (settings.py)."""
    return settings.ACCOUNT_LOGIN_BY_CODE_TIMEOUT // 60


@register.simple_tag
def sends_mail() -> bool:
    """Return whether mail is delivered, rather than written to files or the console."""
    return mail_sending.is_delivered()


@register.simple_tag
def mails_folder() -> str:
    """Return the folder that mails are written to, or an empty text if they are sent or printed."""
    return settings.EMAIL_FILE_PATH or ""
