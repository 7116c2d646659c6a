"""Defines requests to a model and its replies: the border between prompts and the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.writers.base import CallRecord


@dataclass(frozen=True)
class ModelChoice:
    """The models to ask: one for each kind of step.

    `other` is asked once after a refusal; the same name, or "", means no other model.
    """

    brief: str = "claude-haiku-5-5"
    draft: str = "claude-haiku-5-5"
    other: str = "claude-sonnet-5-5"
    effort: str = "low"
    """`low` to `max`; "" leaves it to the model."""


@dataclass(frozen=True)
class ModelRequest:
    """One call. `system` holds nothing that a third party wrote; `schema` describes the JSON of the answer."""

    step: str
    model: str
    system: tuple[Mapping[str, Any], ...]
    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    max_tokens: int
    effort: str
    prompt_version: str
    variants: tuple[int, ...] = ()
    """For a repair: which variants, counted from 0, are asked for again."""


@dataclass(frozen=True)
class ModelReply:
    """The answer to a call that got a 200; `record` is complete whatever the text turns out to be."""

    text: str
    stop_reason: str
    refusal_category: str
    record: CallRecord
    variants: tuple[int, ...] | None = None
    """The answered request's `variants` if it was made earlier, in a batch; None for the current one's."""


class Awaited(TryLater):
    """Raised when the call was put into a batch: the same request gets its answer later.

    It is no failure: a writer lets it pass, whatever it does about failures of a call.
    """


class ModelClient(Protocol):
    """The interface of clients that put a request to a model.

    It never waits and never repeats a call: the task that holds the row decides when to ask again.
    """

    @property
    def choice(self) -> ModelChoice: ...

    def ask(self, ask: ModelRequest) -> ModelReply:
        """Make one call.

        Raises `WriterTryLater`, `WriterRefused` or `WriterNeedsReconnect`, with the failed call in `calls`;
        and `Awaited`, which no writer catches.
        """
