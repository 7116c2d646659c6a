"""Stores the poll state of a TikTok source: a record of each link or video."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RECORDS: Final = 200
"""More than a source may name, and more than an account's page shows."""
NEVER: Final = 0
"""`next` of a record that isn't checked again."""


@dataclass
class TikTokRecord:
    """A link or video.

    `fate` is `given`, `left_out`, `withdrawn`, `double` (another link leads to the same video), or empty for a
    new record. Times are seconds since 1970; `next` is when to check again, or `NEVER`. `missing` is the
    number of checks in a row without the video.
    """

    video_id: str = ""
    address: str = ""
    fingerprint: str = ""
    fate: str = ""
    published: int = 0
    next: int = NEVER
    missing: int = 0


@dataclass
class TikTokPollState:
    """The poll state of one source.

    `place` is the setting that is polled; `records` are by link, or by the video's id if an account or
    hashtag is listed. Times are seconds since 1970. `floor` is when the oldest video of the first list was
    published, or 0 if that list was complete; `told` is the number of notes of the last poll.
    """

    place: str
    begun: int = 0
    floor: int = 0
    paused_until: int = 0
    told: int = 0
    records: dict[str, TikTokRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any], *, place: str) -> TikTokPollState:
        """Return the stored state, or an empty state if it is of another place."""
        poll_state = cls(place)
        stored_records = state.get("records")
        if state.get("place") != place or not isinstance(stored_records, dict):
            return poll_state
        poll_state.begun = _positive_int(state.get("begun"))
        poll_state.floor = _positive_int(state.get("floor"))
        poll_state.paused_until = _positive_int(state.get("paused_until"))
        poll_state.told = _positive_int(state.get("told"))
        for key, stored in stored_records.items():
            if isinstance(stored, dict):
                texts = [stored.get(name) for name in ("video_id", "address", "fingerprint", "fate")]
                video_id, address, fingerprint, fate = (
                    text if isinstance(text, str) else "" for text in texts
                )
                poll_state.records[key] = TikTokRecord(
                    video_id,
                    address,
                    fingerprint,
                    fate,
                    published=_positive_int(stored.get("published")),
                    next=_positive_int(stored.get("next")),
                    missing=_positive_int(stored.get("missing")),
                )
        return poll_state

    def as_state(self) -> dict[str, Any]:
        """Return the state as JSON to store, with the newest `MAX_RECORDS` records."""
        newest = list(self.records.items())[-MAX_RECORDS:]
        return {
            "place": self.place,
            "begun": self.begun,
            "floor": self.floor,
            "paused_until": self.paused_until,
            "told": self.told,
            "records": {key: dict(vars(record)) for key, record in newest},
        }


def _positive_int(value: object) -> int:
    """Return a positive integer, or 0 for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
