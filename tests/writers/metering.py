"""Tokens as the service counts them for a bill, and its cache of prompts: what is written, read, and for how long.

There is no tokenizer of the service's to be had; words are cut as finely as its newer one is said to cut them, about
1.6 tokens for an English word. What is compared by it is compared by the same measure on both sides.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PIECE = re.compile(r"\w{1,4}|[^\w\s]+")
LIVES = {"5m": 300.0, "1h": 3600.0}
MOST_MARKS = 4


def count(text: str) -> int:
    return sum(1 for _ in _PIECE.finditer(text))


class Declined(ValueError):
    """A request that the service answers with 400."""


@dataclass
class _Entry:
    life: float
    ends_at: float


@dataclass
class Meter:
    """`minimum` is the least length of a prefix that is kept. An entry's life begins anew with each reading."""

    minimum: int = 1_024
    clock: Callable[[], float] = time.monotonic
    _kept: dict[str, _Entry] = field(default_factory=dict)

    def usage(self, body: Mapping[str, Any], answer: str) -> dict[str, Any]:
        """The `usage` of the answer to this request; whatever it marked is in the cache from then on."""
        now = self.clock()
        marks, total = _marks(body)
        read = max((tokens for key, tokens, _ in marks if self._is_there(key, now)), default=0)
        written = {"5m": 0, "1h": 0}
        counted = read
        for key, tokens, life in marks:
            if tokens <= read:
                if key in self._kept and self._is_there(key, now):
                    self._kept[key].ends_at = now + self._kept[key].life
                continue
            if tokens < self.minimum:
                continue
            self._kept[key] = _Entry(LIVES[life], now + LIVES[life])
            written[life] += tokens - counted
            counted = tokens
        return {
            "input_tokens": total - counted,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
            "cache_read_input_tokens": read,
            "output_tokens": count(answer),
            "output_tokens_details": {"thinking_tokens": 0},
            "service_tier": "standard",
        }

    def _is_there(self, key: str, now: float) -> bool:
        return key in self._kept and now < self._kept[key].ends_at


def _marks(body: Mapping[str, Any]) -> tuple[list[tuple[str, int, str]], int]:
    """Hash and length of the prefix at each mark, with its life; and the length of the whole."""
    digest = hashlib.sha256()
    form = json.dumps(body.get("output_config", {}).get("format"), sort_keys=True)
    # The model and the form of the answer come first: with another of either nothing before is the same.
    digest.update(f"{body['model']}\x00{form}".encode())
    total = count(form)
    found: list[tuple[str, int, str]] = []
    for block in _blocks(body):
        mark = block.get("cache_control")
        words = json.dumps({key: one for key, one in block.items() if key != "cache_control"}, sort_keys=True)
        digest.update(words.encode())
        total += count(_words(block))
        if mark is not None:
            found.append((digest.hexdigest(), total, mark.get("ttl", "5m")))
    if len(found) > MOST_MARKS:
        message = "At most four blocks may be marked."
        raise Declined(message)
    lives = [life for _, _, life in found]
    if lives != sorted(lives, key=lambda life: life != "1h"):
        message = "What is kept for an hour has to come before what is kept for five minutes."
        raise Declined(message)
    return found, total


def _blocks(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from body.get("system", ())
    for message in body.get("messages", ()):
        yield from message["content"]


def _words(block: Mapping[str, Any]) -> str:
    return str(block.get("text", ""))
