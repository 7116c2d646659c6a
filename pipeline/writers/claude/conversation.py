"""Holds one conversation with a model, with its calls, its few remedies and its cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from pipeline.writers.base import Accounted, CallRecord, Usage, WriterNeedsReconnect, WriterRefused
from pipeline.writers.claude import prompts
from pipeline.writers.claude.answers import AnswerUnreadable
from pipeline.writers.model_calls import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.writers.model_calls import ModelClient, ModelReply

MAX_CALLS: Final = 3
"""The most calls that are paid for one brief, or for all variants of one draft, whatever goes wrong."""
MAX_TOKENS: Final = 16_000
"""The most tokens of one answer; more would have to be streamed to arrive in time."""

Answer = TypeVar("Answer")


class Conversation:
    """One conversation of at most `MAX_CALLS` calls, with each remedy used at most once.

    The remedies are another model after a refusal, twice the tokens after a truncated answer, and one repair of an
    answer that can't be parsed or fails its checks.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        step: str,
        model: str,
        system: tuple[Mapping[str, Any], ...],
        schema: Mapping[str, Any],
        max_tokens: int,
    ) -> None:
        """Prepare a conversation whose calls have this system prompt and answer schema; nothing is asked yet."""
        self._client = client
        self._step = step
        self._model = model
        self._system = system
        self._schema = schema
        self._max_tokens = min(max_tokens, MAX_TOKENS)
        self._remedies: set[str] = set()
        self.calls: tuple[CallRecord, ...] = ()
        self.messages: tuple[Mapping[str, Any], ...] = ()
        self.text = ""
        """The last answer, unparsed."""
        self.variants: tuple[int, ...] = ()
        """The variants that the last answer writes again, which are those of the first repair."""

    def can_repair(self) -> bool:
        """Return whether the one repair is unused and a call is left for it."""
        return "repair" not in self._remedies and len(self.calls) < MAX_CALLS

    def use_repair(self, variants: Iterable[int] = ()) -> None:
        """Mark the one repair as used, for these variants; call `can_repair` first."""
        self._remedies.add("repair")
        self.variants = tuple(variants)

    def answer(self, messages: tuple[Mapping[str, Any], ...], reader: Callable[[str], Answer]) -> Answer:
        """Ask, use the remedies, and return the value that `reader` parses from the answer.

        Raises `WriterRefused` if no remedy is left, and the `Accounted` errors of the client, with every call so
        far in their `calls`. `Awaited` gets through.
        """
        self.messages = messages
        while True:
            reply = self._call()
            if reply.stop_reason == "refusal":
                self._use_other_model(reply)
            elif reply.stop_reason == "max_tokens":
                self._raise_token_limit()
            elif reply.stop_reason == "model_context_window_exceeded":
                raise self._refusal("The source is too long for the model.", "too_long")
            else:
                self.text = reply.text
                try:
                    return reader(reply.text)
                except AnswerUnreadable as error:
                    if not self.can_repair():
                        message = (
                            f"The model's answer can't be used: {error} Retry it, or choose another model."
                        )
                        raise self._refusal(message, "invalid_output") from error
                    self.use_repair()
                    self.messages = prompts.repair_unreadable(self.messages, reply.text, error.problems)

    def usage(self) -> Usage:
        """Return the usage of all calls together; its model is the last one that answered."""
        answered = [call for call in self.calls if call.model]
        return Usage(
            provider="anthropic",
            model=answered[-1].model if answered else self._model,
            offline=False,
            prompt_version=prompts.PROMPT_VERSION,
            input_tokens=sum(
                call.input_tokens
                + call.cache_write_5m_tokens
                + call.cache_write_1h_tokens
                + call.cache_read_tokens
                for call in self.calls
            ),
            output_tokens=sum(call.output_tokens for call in self.calls),
            cost_micro_usd=sum(call.cost_micro_usd for call in self.calls),
        )

    def _call(self) -> ModelReply:
        """Ask the model with the conversation so far, and record the call, a failed one too."""
        ask = ModelRequest(
            step=self._step,
            model=self._model,
            system=self._system,
            messages=self.messages,
            schema=self._schema,
            max_tokens=self._max_tokens,
            effort=self._client.choice.effort,
            prompt_version=prompts.PROMPT_VERSION,
            variants=self.variants,
        )
        try:
            reply = self._client.ask(ask)
        except Accounted as error:
            self.calls += error.calls
            error.calls = self.calls
            raise
        self.calls += (reply.record,)
        if reply.variants is not None:
            self.variants = reply.variants
        return reply

    def _use_other_model(self, reply: ModelReply) -> None:
        """Use the fallback model, because the same one would refuse again.

        Raises `WriterRefused` if there is none, if it was used already, or if no call is left.
        """
        other_model = self._client.choice.other
        if "other" in self._remedies or other_model in {"", self._model} or len(self.calls) >= MAX_CALLS:
            category = f" (its category: {reply.refusal_category})" if reply.refusal_category else ""
            message = (
                f"The model declined to work with this content{category}. Write it by hand, or leave it out."
            )
            raise self._refusal(message, "refused")
        self._remedies.add("other")
        self._model = other_model

    def _raise_token_limit(self) -> None:
        """Allow twice the tokens. Raises `WriterRefused` if that was tried already or no call is left."""
        if "tokens" in self._remedies or len(self.calls) >= MAX_CALLS:
            message = "The model's answer was cut off for its length, with twice the room too. Retry it."
            raise self._refusal(message, "truncated")
        self._remedies.add("tokens")
        self._max_tokens = min(2 * self._max_tokens, MAX_TOKENS)

    def _refusal(self, message: str, code: str) -> WriterRefused:
        refusal = WriterRefused(message, code=code)
        refusal.calls = self.calls
        return refusal


def require_client(client: Any) -> ModelClient:
    """Return the client. Raises `WriterNeedsReconnect` if it is `None`."""
    if client is None:
        message = "There is no key for the model. Enter one, or let the workspace write without AI."
        raise WriterNeedsReconnect(message, code="model_key_missing")
    model_client: ModelClient = client
    return model_client
