"""What every writer offers: find the facts of a source, find the words of a draft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater
from pipeline.text.prompt_injection import LONGEST_READ
from pipeline.text.prose.sentences import goes_on
from pipeline.writers.strip_injections import screened, with_orders

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.engines.base import Brief, Check, Draft, Engine, PersonaCard, SourceText

Judge: TypeAlias = "Callable[[Draft], tuple[Check, ...]]"
"""The engine's checks with the source already given to them: a writer may ask it, and never sees the source."""

NO_HINTS: Final = (
    "Without AI the words are taken from the source as they stand, so that no hint can be followed. Leave the hint out, "
    "or give the workspace a key for a model."
)


@dataclass(frozen=True)
class Usage:
    """What one answer cost. Money in millionths of a US dollar; the offline writer uses nothing."""

    provider: str
    model: str
    offline: bool
    prompt_version: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micro_usd: int = 0


@dataclass(frozen=True)
class CallRecord:
    """One call to a model as the cost ledger keeps it, failed calls too. It quotes neither prompt nor answer.

    `outcome` is `answered`, `refused`, `truncated`, `too_long`, `unreadable`, `rate_limited`, `timed_out`,
    `unreachable` or `failed`; what came of an answer's checks is not the call's. A call that timed out may have been
    billed all the same: nobody was told the tokens, so it counts none.
    """

    step: str
    """`brief` or `draft`."""
    provider: str
    asked_model: str
    model: str
    """As answered; empty where no answer came."""
    prompt_version: str
    outcome: str
    request_id: str = ""
    http_status: int | None = None
    stop_reason: str = ""
    mode: str = "live"
    """`live` or `batch`."""
    input_tokens: int = 0
    """Without those that were written to or read from the cache."""
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    """With the thinking."""
    thinking_tokens: int = 0
    service_tier: str = ""
    price_table: str = ""
    is_price_known: bool = True
    """False where the table doesn't name the model: it was priced as the dearest that is known."""
    cost_micro_usd: int = 0
    latency_ms: int = 0


class Accounted(PluginError):
    """A failure that may have cost something: `calls` are the calls that led to it."""

    calls: tuple[CallRecord, ...] = ()


class WriterTryLater(Accounted, TryLater):
    """The model can't be asked now."""


class WriterRefused(Accounted, Refused):
    """No words will ever come of this content."""


class WriterNeedsReconnect(Accounted, NeedsReconnect):
    """The model's key, or the account behind it, has to be seen to by a person."""


def accounted(
    error: TryLater | Refused | NeedsReconnect, calls: tuple[CallRecord, ...]
) -> WriterTryLater | WriterRefused | WriterNeedsReconnect:
    """The same failure, with the calls that led to it."""
    same: WriterTryLater | WriterRefused | WriterNeedsReconnect
    status = error.platform_status
    if isinstance(error, TryLater):
        same = WriterTryLater(error.message, code=error.code, after=error.after, platform_status=status)
    elif isinstance(error, Refused):
        same = WriterRefused(error.message, code=error.code, field=error.field, platform_status=status)
    else:
        same = WriterNeedsReconnect(error.message, code=error.code, platform_status=status)
    same.calls = calls
    return same


@dataclass(frozen=True)
class BriefAnswer:
    brief: Brief
    usage: Usage
    calls: tuple[CallRecord, ...] = ()
    dropped: int = 0
    """Facts that were thrown away, because the source doesn't hold their quote or because they give orders."""


@dataclass(frozen=True)
class DraftAnswer:
    drafts: tuple[Draft, ...]
    usage: Usage
    calls: tuple[CallRecord, ...] = ()


def answer_screened(source: SourceText, find: Callable[[SourceText], BriefAnswer]) -> BriefAnswer:
    """What `find` finds in a source of which it isn't shown the orders to a machine; the brief names them."""
    shown, ordered = screened(source)
    answer = find(shown)
    # Words on both sides of an order are no quote of the source.
    facts = tuple(
        replace(fact, is_cut=goes_on(source.text, fact.end))
        for fact in answer.brief.facts
        if source.text[fact.start : fact.end] == fact.quote
    )
    whole = answer.brief.whole
    if whole is not None and (ordered or source.text[whole.start : whole.end] != whole.quote):
        whole = None
    texts = (shown.title, shown.author, shown.text[:LONGEST_READ])
    brief = with_orders(replace(answer.brief, facts=facts, whole=whole), ordered, texts)
    dropped = answer.dropped + len(answer.brief.facts) - len(facts)
    return replace(answer, brief=brief, dropped=dropped)


class Writer(ABC):
    """A finder of words. `client` is a ready model client, None for a writer that needs none."""

    kind: ClassVar[str]
    label: ClassVar[str]
    offline: ClassVar[bool]
    prompt_version: ClassVar[str]

    @final
    def brief(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """The source's facts, each with its verbatim quote. Raises `TryLater`, `Refused` or `NeedsReconnect`.

        No writer is shown a sentence that gives orders to a machine, so that none can be a fact; the brief names them.
        """
        return answer_screened(source, lambda shown: self.find(shown, client=client))

    @abstractmethod
    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        """The facts of what is shown; `brief` asks for them, nobody else does. Raises as `brief`."""

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
        """At most `variants` different drafts. Raises `TryLater`, `Refused` or `NeedsReconnect`.

        A `hint` is what a person of the workspace asks of these drafts; a writer without a model refuses one. With it
        `former` are words that are written again, for the most part as they are.

        A writer that can mend a draft asks `judge` and mends once; what still fails is returned as it is, for the
        caller runs the engine's checks again and decides by them.
        """
