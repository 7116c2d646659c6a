"""Checks that the operator's settings name plug-ins that there are, and addresses that can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from pipeline import plugins
from pipeline.platforms.base import Platform
from pipeline.platforms.settings import is_web_address
from pipeline.switches.availability import CAN_BE_DISABLED

if TYPE_CHECKING:
    from collections.abc import Sequence


@register()
def disabled_kinds_are_known(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    del app_configs
    known = {f"{family}/{kind}" for family in CAN_BE_DISABLED for kind in plugins.kinds(family)}
    return [
        Error(
            f"DISABLED_KINDS names {name!r}, which is no kind that can be taken out: it has no effect.",
            hint="Write the family and the kind, such as sources/tiktok; docs/settings.md lists them.",
            id="availability.E001",
        )
        for name in sorted(settings.DISABLED_KINDS - known)
    ]


@register()
def platforms_are_known(app_configs: Sequence[Any] | None, **_kwargs: Any) -> list[CheckMessage]:
    del app_configs
    known = sorted(one.kind for one in plugins.every("platforms", Platform))
    given = {
        "PLATFORM_ADDRESSES": settings.PLATFORM_ADDRESSES,
        "PLATFORM_VERSIONS": settings.PLATFORM_VERSIONS,
    }
    found: list[CheckMessage] = [
        Error(
            f"{setting} names {kind!r}, which is no platform: the setting has no effect.",
            hint=f"Use one of {', '.join(known)}.",
            id="platforms.E001",
        )
        for setting, pairs in given.items()
        for kind in pairs
        if kind not in known
    ]
    found += [
        Error(
            f"PLATFORM_ADDRESSES gives {kind} an address that is none.",
            hint=f"Set {kind}=https://… without a user and without a fragment, or leave it out.",
            id="platforms.E002",
        )
        for kind, address in settings.PLATFORM_ADDRESSES.items()
        if kind in known and not is_web_address(address)
    ]
    return found
