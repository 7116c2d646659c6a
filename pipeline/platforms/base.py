"""Defines the interface of platforms: check a payload, fit it, send it once, find it again, measure it.

`commit` is the only call that can't be repeated. Unless the platform proves that it did not accept the post, a
failure of it is `OutcomeUnknown`. No method sleeps: a longer publication keeps its `state` between steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipeline import limits
from pipeline.platforms import settings as settings_of
from pipeline.platforms.payload_types import Adapted, Length, Payload
from pipeline.platforms.rules import problems_of
from pipeline.plugins import ConfigInvalid, Evidence, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date, datetime, timedelta

    from config.core.http_client import Client
    from pipeline.engines.base import Bucket
    from pipeline.platforms.rules import BucketRule


@dataclass(frozen=True)
class Account:
    """A workspace's account on the platform: public `config` and decrypted `credentials`.

    `profile` is what `check_account` found last; `base_url` and `api_version` are the platform's own unless
    the operator sets others.
    """

    outlet: str
    config: Mapping[str, Any] = field(default_factory=dict)
    # Kept out of the repr: an account in a traceback must not show its secrets.
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    profile: Mapping[str, Any] = field(default_factory=dict)
    base_url: str = ""
    api_version: str = ""


@dataclass(frozen=True)
class Sent:
    """A post that the platform has: `external_id` is the platform's, `url` is its public address, or empty."""

    external_id: str
    url: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """The state after one step of `prepare`, which is called again with it while `is_done` is `False`."""

    state: Mapping[str, Any]
    is_done: bool = True


@dataclass(frozen=True)
class Pending:
    """The platform isn't ready: poll after that time, but for `limits.PROCESSING_MOST` at most."""

    after: timedelta


@dataclass(frozen=True)
class Ready:
    """The platform is ready: `commit` may be called now."""


@dataclass(frozen=True)
class Found:
    """The platform has the post."""

    sent: Sent


@dataclass(frozen=True)
class Absent:
    """The platform does not have the post.

    Once all calls are over and the platform has settled, that is proof: the post may be sent again. `there` of
    the `parts` of a thread may be public already; the next try goes on after them.
    """

    there: int = 0
    parts: int = 1


@dataclass(frozen=True)
class CannotTell:
    """The platform's answer proves neither: it is asked again later, and a person is told if that stays so."""

    reason: str


@dataclass(frozen=True)
class AccountInfo:
    """An account as its platform describes it; `limits` are the account's, by the platform's names."""

    external_id: str
    handle: str = ""
    name: str = ""
    url: str = ""
    scopes: tuple[str, ...] = ()
    expires_at: datetime | None = None
    """When the credential expires unless it is renewed, or `None` if it doesn't expire."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings that the platform answered and that later calls need, such as the account's own server."""
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Credentials that the check produced, such as a session; they are stored with the person's."""
    notes: tuple[str, ...] = ()
    """Hints for the person, such as a missing permission or a setting that prevents publishing."""


@dataclass(frozen=True)
class Renewed:
    """New credentials that replace all former ones, and when they expire."""

    credentials: Mapping[str, Any] = field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Setting:
    """One field that a person fills in to connect an account, or to change it."""

    name: str
    label: str
    help: str = ""
    kind: Literal["text", "url", "password", "choice", "number", "flag", "email"] = "text"
    is_secret: bool = False
    is_required: bool = True
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None
    max_length: int = 500
    allows_unicode: bool = False
    """Whether a secret may hold more than ASCII; one that goes into a header or an address can't."""
    has_lines: bool = False
    """Whether a secret has several lines, such as a key in PEM."""
    make: Callable[[], str] | None = None
    """Makes the secret if the person enters none; the person is shown it once."""


@dataclass(frozen=True)
class Api:
    """A platform's address and API version; `reviewed_on` is when its documents were last read.

    `expires_on` is when the platform ends the version, or `None` if it names no day. The operator can set
    another address and version (`PLATFORM_ADDRESSES`, `PLATFORM_VERSIONS`). `base_url` is empty if each account
    names its own server.
    """

    base_url: str
    version: str
    reviewed_on: date
    expires_on: date | None = None


@dataclass(frozen=True)
class Pace:
    """The posting limits of one account: `per_day` in any 24 hours, `gap` between two posts; `None` is no limit."""

    per_day: int | None = None
    gap: timedelta | None = None


@dataclass(frozen=True)
class OAuth:
    """The OAuth 2.0 endpoints for the operator's application; the addresses may contain `{base_url}`."""

    authorize_url: str
    token_url: str
    scopes: tuple[str, ...]
    uses_pkce: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)
    """Further parameters of the authorization address."""
    client_auth: Literal["basic", "body"] = "body"
    setup: str = ""
    """What the operator does at the platform to get a client id, in a sentence or two."""


@dataclass(frozen=True)
class Sample:
    """One metric of one publication: cumulative `value`, or `None` with the reason.

    `availability` is `ok`, `unsupported`, `delayed` or `unavailable`.
    """

    metric: str
    value: int | None
    availability: str = "ok"


METRICS = ("impressions", "views", "likes", "comments", "shares", "clicks")

Idempotency = Literal["none", "server_key", "client_id", "draft_flip", "resumable", "ours"]
"""What keeps a second call from making a second post, in this order: nothing; a key that the platform remembers;
an id that we choose; a draft that is made public; an upload session that returns its post; our own database.
"""


class Platform(ABC):
    """A platform that items are published to; a plug-in's module holds one instance as `PLUGIN`."""

    kind: ClassVar[str]
    label: ClassVar[str]
    buckets: ClassVar[tuple[Bucket, ...]]
    summary: ClassVar[str] = ""
    """One sentence for a person who chooses a platform: what it is and what is published there."""
    icon: ClassVar[str] = ""
    """The name of its mark in `static/icons`, or an empty string if its mark has letters, as a company's does."""
    letters: ClassVar[str] = ""
    """One or two letters of its mark, or an empty string for the label's first letter and its next capital."""
    secret_addresses: ClassVar[tuple[str, ...]] = ()
    """Regular expressions of addresses that give access, each with a `/`; logs have only their first group."""
    secret_keys: ClassVar[tuple[str, ...]] = ()
    """Regular expressions of keys outside of addresses, for the same purpose."""
    evidence: ClassVar[Evidence]
    is_simulated: ClassVar[bool] = False
    """`True` if nobody sees its posts; items of a test token may only be published to such platforms."""
    is_connectable: ClassVar[bool] = True
    """`False` if a workspace has one from the start, and can't add another."""
    can_reconcile: ClassVar[bool] = False
    settles: ClassVar[timedelta] = limits.PLATFORM_SETTLES
    """The time in which a post may still appear after its call broke off; `Absent` counts only after that."""
    posts_are_ours: ClassVar[bool] = False
    """`True` if it shows posts of our own database, so that a restored database can't differ from it."""
    mails_subscribers: ClassVar[bool] = False
    """`True` if publishing creates a mailing to the outlet's subscribers, in the same transaction."""
    is_by_hand: ClassVar[bool] = False
    """`True` if a person posts and reports the outcome; `commit` is never called."""
    is_own_feed: ClassVar[bool] = False
    """`True` if its posts are in the workspace's own feed, at addresses that this service serves."""
    may_use_http: ClassVar[bool] = False
    """`True` if `allows_http` in its accounts says whether the operator allows webhooks without TLS."""
    shows_link_card: ClassVar[bool] = False
    """`True` if a post without files appears with a card of the page that its first link leads to."""
    picture_crop: ClassVar[Literal["", "wide"]] = ""
    """The way in which a timeline shows one picture: `wide` cuts it to 16:9, an empty string keeps its shape."""
    can_remove: ClassVar[bool] = False
    has_finish: ClassVar[bool] = False
    idempotency: ClassVar[Idempotency] = "none"
    config_schema: ClassVar[Mapping[str, Any]]
    settings: ClassVar[tuple[Setting, ...]] = ()
    """The fields that a person fills in to connect an account; the secret ones become its credentials."""
    oauth: ClassVar[OAuth | None] = None
    api: ClassVar[Api | None] = None
    pace: ClassVar[Pace] = Pace()
    rules: ClassVar[Mapping[Bucket, BucketRule]] = {}
    metrics_given: ClassVar[tuple[str, ...]] = ()
    text_limit: ClassVar[int | None] = None
    """The longest text in `text_unit`, only for a platform without `rules`, which have it by bucket."""
    text_unit: ClassVar[str] = "characters"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "settings" in vars(cls) and "config_schema" not in vars(cls):
            cls.config_schema = settings_of.schema_of(cls.settings)

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outlet's settings as they will be stored. Raises `ConfigInvalid` if one can't be used."""
        return settings_of.clean_settings(self.label, self.settings, config)

    def clean_credentials(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        """Return the secrets as they will be stored, with those made that can be.

        Raises `ConfigInvalid`, whose messages quote no secret, if one is unknown, missing or can't be used.
        """
        known = {setting.name: setting for setting in self.settings if setting.is_secret}
        problems = [
            Problem(f"credentials.{name}", "unknown_field", f"{self.label} takes no {name!r}.")
            for name in credentials
            if name not in known
        ]
        clean: dict[str, Any] = {}
        for name, setting in known.items():
            value = credentials.get(name, "")
            if not isinstance(value, str) or len(value) > setting.max_length:
                problems.append(Problem(f"credentials.{name}", "invalid", f"{setting.label} can't be used."))
            elif refusal := settings_of.refusal_of_secret(setting, value.strip()):
                problems.append(Problem(f"credentials.{name}", "invalid", refusal))
            elif value.strip():
                clean[name] = value.strip()
            elif setting.make is not None:
                clean[name] = setting.make()
            elif setting.is_required:
                problems.append(Problem(f"credentials.{name}", "required", f"Give {setting.label}."))
        if problems:
            raise ConfigInvalid(problems)
        return clean

    def check_account(self, account: Account, *, http: Client, now: datetime) -> AccountInfo:
        """Ask the platform whose account this is; reads only.

        Raises `NeedsReconnect` if the credential isn't accepted, `Refused` if the settings can't be right, and
        `TryLater` if the platform can't be reached.
        """
        del http, now
        return AccountInfo(external_id=account.outlet)

    def renew(self, account: Account, *, http: Client, now: datetime) -> Renewed | None:
        """Return new credentials for expiring ones, or `None` if there are none. Raises as `check_account`."""
        del account, http, now
        return None

    def rules_for(self, account: Account, bucket: Bucket) -> BucketRule | None:
        """Return the rules of a bucket, with the limits that this account's own server states."""
        del account
        return self.rules.get(bucket)

    def adapt(self, account: Account, payload: Payload) -> Adapted:
        """Return the payload as it will be sent, fitted by declared steps; a pure function."""
        del account
        return Adapted(payload, (payload.body,))

    def length(self, account: Account, post: Adapted) -> Length:
        """Return the length of the text as this platform counts, for a thread that of its longest post."""
        rule = self.rules_for(account, post.payload.bucket)
        if rule is None:
            return Length(len(post.payload.body), self.text_limit, self.text_unit)
        return Length(max(map(rule.count, post.parts), default=0), rule.text_max, rule.unit)

    def validate(self, account: Account, post: Adapted) -> tuple[Problem, ...]:
        """Return every problem for which the platform would refuse this post; makes no calls."""
        rule = self.rules_for(account, post.payload.bucket)
        return tuple(problems_of(rule, post)) if rule is not None else ()

    def prepare(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Prepared:
        """Take one step before the post is public, such as an upload or a draft; it may be repeated at will.

        A step makes one upload or two short calls at most, so that its result is kept when a later one fails,
        and a retry goes on from there. Raises as `check_account`, with `Refused` also for the content.
        """
        del account, post, http, key, now
        return Prepared(state)

    def poll(
        self, account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
    ) -> Pending | Ready:
        """Ask once whether the platform has processed what `prepare` began. Raises as `prepare` does."""
        del account, post, state, http, now
        return Ready()

    @abstractmethod
    def commit(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Sent:
        """Make the post public: the one call that can't be repeated.

        `key` is the same for every try of a publication. Raises `TryLater`, `Refused` or `NeedsReconnect` only if
        it is proven that the platform did not accept the post, and `OutcomeUnknown` otherwise.
        """

    @abstractmethod
    def reconcile(
        self,
        account: Account,
        post: Adapted,
        state: Mapping[str, Any],
        *,
        http: Client,
        key: str,
        now: datetime,
    ) -> Found | Absent | CannotTell:
        """Look up whether the platform has the post that an earlier `commit` with this `key` tried to send."""

    def wants_finish(self, account: Account) -> bool:
        """Return whether `finish` is to be called for posts of this account."""
        del account
        return self.has_finish

    def finish(
        self, account: Account, post: Adapted, sent: Sent, *, http: Client, now: datetime
    ) -> Mapping[str, Any] | None:
        """Do what follows once the post is public, such as a thumbnail; its failure never affects the post.

        It is called only if `wants_finish`. Returns details to store with the post; a `url` replaces its address.
        """
        del account, post, sent, http, now
        return None

    def remove(self, account: Account, sent: Sent, *, http: Client, now: datetime) -> None:
        """Delete the post; a post that is gone already is no failure. Raises as `check_account`."""
        del account, sent, http, now
        raise NotImplementedError

    def metrics(
        self, account: Account, sent: Sequence[tuple[Sent, datetime]], *, http: Client, now: datetime
    ) -> tuple[tuple[Sample, ...], ...]:
        """Return the samples of each publication in the same order; `sent` has each with its publication time."""
        del account, http, now
        return tuple(tuple(Sample(metric, None, "unsupported") for metric in METRICS) for _ in sent)
