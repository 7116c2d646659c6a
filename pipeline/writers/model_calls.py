"""What a writer asks of a model, and what it is told: the border between prompts and the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.writers.base import CallRecord


@dataclass(frozen=True)
class ModelChoice:
    """Which models are asked. `other` is asked once where one refused; the same name, or none, means nobody else."""

    brief: str = "claude-haiku-5-5"
    draft: str = "claude-haiku-5-5"
    other: str = "claude-sonnet-5-5"
    effort: str = "low"
    """`low` to `max`; empty leaves it to the model."""


@dataclass(frozen=True)
class ModelRequest:
    """One call. `system` holds nothing that a third party wrote; `schema` describes the JSON that is answered."""

    step: str
    model: str
    system: tuple[Mapping[str, Any], ...]
    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    max_tokens: int
    effort: str
    prompt_version: str
    variants: tuple[int, ...] = ()
    """Of a repair: which variants, counted from 0, are asked for again."""


@dataclass(frozen=True)
class ModelReply:
    """What came back with a 200: `record` is complete, whatever the text turns out to be."""

    text: str
    stop_reason: str
    refusal_category: str
    record: CallRecord
    variants: tuple[int, ...] | None = None
    """The `variants` of the call that it answers, where that was put before this one; None: of this one."""


class Awaited(TryLater):
    """The call is put and its answer comes later: who asks the same then is given it.

    It is no failure: a writer lets it through, whatever it does about the failures of a call.
    """


class ModelClient(Protocol):
    """A ready client. It never waits and never repeats a call: whoever has the row decides when to ask again."""

    @property
    def choice(self) -> ModelChoice: ...

    def ask(self, ask: ModelRequest) -> ModelReply:
        """Raises `WriterTryLater`, `WriterRefused` or `WriterNeedsReconnect`, with the failed call in `calls`; and
        `Awaited`, which no writer catches.
        """
