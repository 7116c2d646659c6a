"""What every platform offers: judge a payload, send it once, find it again, measure it.

`commit` is the only call that can't be repeated. From it everything but a proof that the platform did not accept is
`OutcomeUnknown`. None of the methods sleeps: a longer publication keeps its `state` between steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from config.ground.outbound import Client
    from pipeline.engines.base import Bucket
    from pipeline.plugins import Problem


@dataclass(frozen=True)
class Account:
    """A workspace's account on the platform: public `config`, opened `credentials`."""

    outlet: str
    config: Mapping[str, Any] = field(default_factory=dict)
    credentials: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PayloadAsset:
    url: str
    mime_type: str
    role: str = ""
    alt_text: str = ""
    bytes: int = 0


@dataclass(frozen=True)
class Payload:
    """What is to be sent: one revision of a generated item with the outlet's overrides laid over it."""

    item: str
    revision: int
    bucket: Bucket
    title: str
    body: str
    body_format: str
    language: str = ""
    link: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    assets: tuple[PayloadAsset, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Length:
    """How long the words are as this platform counts them; `limit` None where it has none."""

    count: int
    limit: int | None
    unit: str


@dataclass(frozen=True)
class Sent:
    """The platform has it. `external_id` is the platform's own; `url` where a person can see it, or empty."""

    external_id: str
    url: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pending:
    """Not ready: look again after that time."""

    after: timedelta


@dataclass(frozen=True)
class Ready:
    """`commit` may be called now."""


@dataclass(frozen=True)
class Found:
    sent: Sent


@dataclass(frozen=True)
class Absent:
    """A proof that the platform does not have it: it may be sent again."""


@dataclass(frozen=True)
class CannotTell:
    """Neither proof: look again later, and tell a person if it stays so."""

    reason: str


@dataclass(frozen=True)
class Sample:
    """One metric of one publication: cumulative `value`, or None with the reason.

    `availability` is `ok`, `unsupported`, `delayed` or `unavailable`.
    """

    metric: str
    value: int | None
    availability: str = "ok"


METRICS = ("impressions", "views", "likes", "comments", "shares", "clicks")


class Platform(ABC):
    kind: ClassVar[str]
    label: ClassVar[str]
    buckets: ClassVar[tuple[Bucket, ...]]
    is_simulated: ClassVar[bool] = False
    """True: reaches nobody; the only ones that a test token's items may go to."""
    can_reconcile: ClassVar[bool] = False
    posts_are_ours: ClassVar[bool] = False
    """True: it shows what our own database says, so that a restored database can't differ from it."""
    can_remove: ClassVar[bool] = False
    config_schema: ClassVar[Mapping[str, Any]]
    metrics_given: ClassVar[tuple[str, ...]] = ()
    text_limit: ClassVar[int | None] = None
    text_unit: ClassVar[str] = "characters"

    @abstractmethod
    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The outlet's settings as they will be stored; raises `ConfigInvalid`."""

    @abstractmethod
    def length(self, payload: Payload) -> Length:
        """How long the words are as this platform counts them."""

    @abstractmethod
    def validate(self, account: Account, payload: Payload) -> tuple[Problem, ...]:
        """Everything for which the platform would refuse this payload; no network."""

    def prepare(
        self, account: Account, payload: Payload, state: Mapping[str, Any], *, http: Client, key: str
    ) -> dict[str, Any]:
        """Upload media, make containers; may be repeated any number of times. The answer is the next `state`."""
        del account, payload, http, key
        return dict(state)

    def poll(
        self, account: Account, payload: Payload, state: Mapping[str, Any], *, http: Client
    ) -> Pending | Ready:
        """One read of what `prepare` began."""
        del account, payload, state, http
        return Ready()

    @abstractmethod
    def commit(
        self,
        account: Account,
        payload: Payload,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        """Make it public: the one call that can't be repeated. `key` is the same for every try of a publication.

        Raises `TryLater`, `Refused`, `NeedsReconnect` only where the platform proved that it did not accept;
        `OutcomeUnknown` otherwise.
        """

    @abstractmethod
    def reconcile(
        self,
        account: Account,
        payload: Payload,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found | Absent | CannotTell:
        """Look up whether the platform has what an earlier `commit` with this `key` tried to send."""

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        """One tuple of samples for each publication given (with its moment of publication), in the same order."""
        del account, http, now
        return tuple(tuple(Sample(metric, None, "unsupported") for metric in METRICS) for _ in sent)
