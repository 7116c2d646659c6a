"""Template tag for the banner on every page of the admin: what is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template

from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from pipeline.models import Switch

register = template.Library()


@register.simple_tag
def standing_switches() -> list[Switch]:
    """Return the switches that stop something now."""
    return kill_switch.standing()
