"""Defines requests to a model and its replies, which separate prompts from the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.writers.base import CallRecord


@dataclass(frozen=True)
class ModelChoice:
    """The models to ask, one for each kind of step."""

    brief: str = "claude-haiku-5-5"
    draft: str = "claude-haiku-5-5"
    other: str = "claude-sonnet-5-5"
    """The model that is asked once after a refusal; the refusing model's name, or "", means none."""
    effort: str = "low"
    """The effort, `low` to `max`; "" leaves it to the model."""


@dataclass(frozen=True)
class ModelRequest:
    """One request. `system` holds no text by a third party; `schema` describes the JSON of the answer."""

    step: str
    model: str
    system: tuple[Mapping[str, Any], ...]
    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    max_tokens: int
    effort: str
    prompt_version: str
    variants: tuple[int, ...] = ()
    """The variants, counted from 0, that a repair asks for again."""


@dataclass(frozen=True)
class ModelReply:
    """The answer to a call with the status 200; `record` is complete even if the text can't be used."""

    text: str
    stop_reason: str
    refusal_category: str
    record: CallRecord
    variants: tuple[int, ...] | None = None
    """The `variants` of the request that a batch answered, or `None` if they are the current request's."""


class Awaited(TryLater):
    """Raised when the call was put into a batch; the same request gets its answer later.

    It is no failure of the call, so no writer catches it.
    """


class ModelClient(Protocol):
    """The interface of clients that put a request to a model.

    It never waits and never repeats a call: the task that holds the row decides when to ask again.
    """

    @property
    def choice(self) -> ModelChoice: ...

    def ask(self, ask: ModelRequest) -> ModelReply:
        """Make one call and return its reply.

        Raises `WriterTryLater`, `WriterRefused` or `WriterNeedsReconnect`, with the failed call in the error's
        `calls`, if there is no usable reply, and `Awaited` if a batch has the call.
        """
