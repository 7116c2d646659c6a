"""Defines the template tags of the operators' pages: needs, switches, money, scopes, and links to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.urls import reverse

from accounts.access import tokens
from config.core.ids import encode
from config.core.money import as_usd
from config.operations import needs_attention
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from accounts.models import User
    from pipeline.models import Switch

register = template.Library()
register.filter("usd", as_usd)


@register.simple_tag
def what_needs(user: User) -> list[needs_attention.Need]:
    """Return the lines about what needs the operator's attention that this person may see."""
    return needs_attention.visible_needs(user)


@register.simple_tag
def standing_switches() -> list[Switch]:
    """Return the switches that stop something now."""
    return kill_switch.standing()


@register.filter
def admin_page(row: Any) -> str:
    """Return the address of the row's page in the admin."""
    options = row._meta
    return reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[row.pk])


@register.filter
def scopes_told(scopes: list[str]) -> str:
    """Return the name of the preset with exactly these scopes, or else the scopes with commas between them."""
    preset = next(
        (name for name, preset_scopes in tokens.PRESETS.items() if set(preset_scopes) == set(scopes)), None
    )
    return preset or ", ".join(scopes)


@register.filter
def public_id(row: Any, prefix: str) -> str:
    return encode(prefix, row.pk)
