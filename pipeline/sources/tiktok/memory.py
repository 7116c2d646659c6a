"""What a TikTok source remembers from poll to poll of each link or video."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RECORDS: Final = 200
"""More than a source may name, and more than an account's page shows."""


@dataclass
class TikTokRecord:
    """`fate` is `given`, `left_out` or `withdrawn`; moments are seconds since 1970, `next` is when to look again."""

    video_id: str = ""
    address: str = ""
    fingerprint: str = ""
    fate: str = ""
    published: int = 0
    next: int = 0
    missing: int = 0


@dataclass
class TikTokMemory:
    """`records` are by link, or by the video's id where an account is listed.

    `floor` is when the oldest video of an account's first list was published, 0 where the list was whole; `told` is
    how many notes the last poll brought.
    """

    place: str
    begun: int = 0
    floor: int = 0
    paused_until: int = 0
    told: int = 0
    records: dict[str, TikTokRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any], *, place: str) -> TikTokMemory:
        memory = cls(place)
        kept = state.get("records")
        if state.get("place") != place or not isinstance(kept, dict):
            return memory
        memory.begun, memory.floor = _count(state.get("begun")), _count(state.get("floor"))
        memory.paused_until, memory.told = _count(state.get("paused_until")), _count(state.get("told"))
        for key, one in kept.items():
            if isinstance(one, dict):
                texts = [one.get(name) for name in ("video_id", "address", "fingerprint", "fate")]
                video_id, address, fingerprint, fate = (
                    text if isinstance(text, str) else "" for text in texts
                )
                memory.records[key] = TikTokRecord(
                    video_id,
                    address,
                    fingerprint,
                    fate,
                    published=_count(one.get("published")),
                    next=_count(one.get("next")),
                    missing=_count(one.get("missing")),
                )
        return memory

    def as_state(self) -> dict[str, Any]:
        newest = list(self.records.items())[-MAX_RECORDS:]
        return {
            "place": self.place,
            "begun": self.begun,
            "floor": self.floor,
            "paused_until": self.paused_until,
            "told": self.told,
            "records": {key: dict(vars(record)) for key, record in newest},
        }


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
