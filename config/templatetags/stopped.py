"""What is stopped, for the banner on every page of the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template

from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from pipeline.models import Switch

register = template.Library()


@register.simple_tag
def standing_switches() -> list[Switch]:
    return kill_switch.standing()
