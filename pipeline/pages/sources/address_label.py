"""Says in words what a source reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.pages.sources import lane_cadence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import Source


def place_of(source: Source) -> str:
    """Return the address or name that the source reads, empty where it has none; a brand lane's cadence."""
    config: Mapping[str, Any] = source.config
    if source.type == "brand":
        return lane_cadence.describe(config)
    for name in ("url", "sitemap", "handle", "channel", "playlist", "username", "hashtag"):
        if config.get(name):
            return str(config[name])
    links = config.get("links") or ()
    return str(links[0]) if links else ""
