"""Checks that the operator's settings of platforms name platforms that there are, and addresses that can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from pipeline import plugins
from pipeline.platforms.base import Platform
from pipeline.platforms.settings import is_web_address

if TYPE_CHECKING:
    from collections.abc import Sequence


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
