"""Defines the interface of writers, which find the facts of a source and write drafts from them.

It also defines the records of their calls to a model, and removes orders to a machine before a writer sees a
source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater
from pipeline.text.prompt_injection import (
    MAX_CHARACTERS_READ,
    gives_instructions,
    is_suspicious,
    without_instructions,
)
from pipeline.text.prose.sentences import sentence_continues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.engines.base import Brief, Check, Draft, Engine, PersonaCard, SourceText

Judge: TypeAlias = "Callable[[Draft], tuple[Check, ...]]"
"""Returns the checks of a draft. The source is bound already, so a writer that calls it never sees the source."""

NO_HINTS: Final = (
    "Without AI the words are taken from the source as they stand, so that no hint can be followed. Leave the hint out, "
    "or give the workspace a key for a model."
)

_MAX_ORDERS: Final = 12
"""The most orders that are stored with a brief."""
_MAX_ORDER_CHARACTERS: Final = 600
"""The most characters that are stored of one order."""


@dataclass(frozen=True)
class Usage:
    """The tokens of one answer and its cost in millionths of a US dollar; the offline writer uses none."""

    provider: str
    model: str
    offline: bool
    prompt_version: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


@dataclass(frozen=True)
class CallRecord:
    """One call to a model, failed ones too, as the cost ledger stores it.

    It quotes neither prompt nor answer. `outcome` is `answered`, `refused`, `truncated`, `too_long`,
    `unreadable`, `rate_limited`, `timed_out`, `unreachable` or `failed`, and in a batch `cancelled` or `expired`
    too; the result of an answer's checks isn't part of it. A call that timed out may have been billed all the
    same, but its tokens are unknown, so it counts none.
    """

    step: str
    """The step that asked: `brief`, `draft` or `persona`."""
    provider: str
    asked_model: str
    model: str
    """The model that answered, or "" if none did."""
    prompt_version: str
    outcome: str
    request_id: str = ""
    http_status: int | None = None
    stop_reason: str = ""
    mode: str = "live"
    """`live` or `batch`."""
    input_tokens: int = 0
    """Tokens of the prompt, except those that were written to or read from the cache."""
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    """Tokens of the answer, thinking tokens included."""
    thinking_tokens: int = 0
    service_tier: str = ""
    price_table: str = ""
    is_price_known: bool = True
    """False if the table doesn't name the model, which was priced as the most expensive one then."""
    cost_micro_usd: int = 0
    latency_ms: int = 0


class Accounted(PluginError):
    """A failure that may have cost something; `calls` are the calls that led to it."""

    calls: tuple[CallRecord, ...] = ()


class WriterTryLater(Accounted, TryLater):
    """Raised when the model can't be asked now."""


class WriterRefused(Accounted, Refused):
    """Raised when another try wouldn't make anything of this content either."""


class WriterNeedsReconnect(Accounted, NeedsReconnect):
    """Raised when a person has to fix the model's key, or the account behind it."""


def accounted(
    error: TryLater | Refused | NeedsReconnect, calls: tuple[CallRecord, ...]
) -> WriterTryLater | WriterRefused | WriterNeedsReconnect:
    """Return the same failure as an `Accounted` one, with the calls that led to it."""
    failure: WriterTryLater | WriterRefused | WriterNeedsReconnect
    status = error.platform_status
    if isinstance(error, TryLater):
        failure = WriterTryLater(error.message, code=error.code, after=error.after, platform_status=status)
    elif isinstance(error, Refused):
        failure = WriterRefused(error.message, code=error.code, field=error.field, platform_status=status)
    else:
        failure = WriterNeedsReconnect(error.message, code=error.code, platform_status=status)
    failure.calls = calls
    return failure


@dataclass(frozen=True)
class BriefAnswer:
    """The brief of a source, with its calls and their usage."""

    brief: Brief
    usage: Usage
    calls: tuple[CallRecord, ...] = ()
    dropped: int = 0
    """How many facts were dropped because the source doesn't hold their quote, or because they give orders."""


@dataclass(frozen=True)
class DraftAnswer:
    """The drafts of one request, with its calls and their usage."""

    drafts: tuple[Draft, ...]
    usage: Usage
    calls: tuple[CallRecord, ...] = ()


def answer_screened(source: SourceText, find: Callable[[SourceText], BriefAnswer]) -> BriefAnswer:
    """Return the answer of `find` for the source without orders to a machine; its brief names these orders.

    Facts that span a removed order are dropped. The offsets of facts are those in the original source.
    """
    screened, orders = screen_source(source)
    answer = find(screened)
    # A quote that spans a removed order doesn't stand in the source.
    facts = tuple(
        replace(fact, is_cut=sentence_continues(source.text, fact.end))
        for fact in answer.brief.facts
        if source.text[fact.start : fact.end] == fact.quote
    )
    whole = answer.brief.whole
    if whole is not None and (orders or source.text[whole.start : whole.end] != whole.quote):
        whole = None
    texts = (screened.title, screened.author, screened.text[:MAX_CHARACTERS_READ])
    brief = with_orders(replace(answer.brief, facts=facts, whole=whole), orders, texts)
    dropped = answer.dropped + len(answer.brief.facts) - len(facts)
    return replace(answer, brief=brief, dropped=dropped)


def screen_source(source: SourceText) -> tuple[SourceText, tuple[str, ...]]:
    """Return the source without orders to a machine, and the orders, those in hidden text too.

    The rest of the text keeps its offsets. A title or an author that gives orders becomes "".
    """
    text, orders = without_instructions(source.text)
    _, hidden = without_instructions(source.hidden)
    title, author = ("" if gives_instructions(line) else line for line in (source.title, source.author))
    lines = [line for line in (source.title, source.author) if line and line not in {title, author}]
    return replace(source, title=title, author=author, text=text), (*lines, *orders, *hidden)


def with_orders(brief: Brief, orders: Iterable[str], texts: Iterable[str]) -> Brief:
    """Return the brief with its first orders, and marked as suspect if there are any or a text is suspicious."""
    stored_orders = tuple(order[:_MAX_ORDER_CHARACTERS] for order in orders)[:_MAX_ORDERS]
    is_suspect = brief.is_suspect or bool(stored_orders) or any(map(is_suspicious, texts))
    return replace(brief, orders=stored_orders, is_suspect=is_suspect)


class Writer(ABC):
    """Finds facts and writes drafts; `client` is an open model client, or `None` for a writer without a model."""

    kind: ClassVar[str]
    label: ClassVar[str]
    offline: ClassVar[bool]
    prompt_version: ClassVar[str]

    @final
    def brief(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """Return the source's facts, each with its verbatim quote.

        No writer sees a sentence that gives orders to a machine, so none becomes a fact; the brief names them.
        Raises `TryLater` if the model can't be asked now, `Refused` if nothing will come of the source, and
        `NeedsReconnect` if a person has to fix the model's key or account.
        """
        return answer_screened(source, lambda screened: self.find(screened, client=client))

    @abstractmethod
    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """Return the facts of the screened source, with the errors of `brief`; only `brief` calls it."""

    @abstractmethod
    def draft(
        self,
        engine: Engine,
        brief: Brief,
        persona: PersonaCard,
        *,
        variants: int,
        seed: str,
        client: Any = None,
        judge: Judge | None = None,
        hint: str = "",
        former: Draft | None = None,
    ) -> DraftAnswer:
        """Return at most `variants` different drafts.

        `hint` is a person's wish for these drafts; a writer without a model refuses one. With it, `former` is a
        draft to be written again, for the most part as it is.

        A writer that can repair drafts calls `judge` and repairs once. A draft that still fails is returned as it
        is, because the caller runs the engine's checks again and decides by them.

        Raises `TryLater` if the model can't be asked now, `Refused` if no draft can be made of the brief or a
        hint can't be followed, and `NeedsReconnect` if a person has to fix the model's key or account.
        """
