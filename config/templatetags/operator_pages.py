"""What the operator's pages show besides Django's own: what needs them, money, and links to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.urls import reverse

from accounts.access import tokens
from config.core.ids import encode
from config.core.money import as_usd
from config.operations import needs_attention

if TYPE_CHECKING:
    from accounts.models import User

register = template.Library()
register.filter("usd", as_usd)


@register.simple_tag
def what_needs(user: User) -> list[needs_attention.Need]:
    return needs_attention.visible_needs(user)


@register.filter
def admin_page(row: Any) -> str:
    options = row._meta
    return reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[row.pk])


@register.filter
def scopes_told(scopes: list[str]) -> str:
    """The name of the preset that they are, where they are one."""
    preset = next((name for name, of_it in tokens.PRESETS.items() if set(of_it) == set(scopes)), None)
    return preset or ", ".join(scopes)


@register.filter
def public_id(row: Any, prefix: str) -> str:
    return encode(prefix, row.pk)
