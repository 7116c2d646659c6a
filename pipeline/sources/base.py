"""What every kind of source offers: read its settings, fetch what is new."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from config.core.api.nearest import nearest
from pipeline.limits import POLL_INTERVAL_MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client
    from pipeline.plugins import Evidence, Unavailability

FETCH_SECONDS: Final = 40
"""How long one fetch may take with all its requests; what is left is for the next poll."""


@dataclass(frozen=True)
class EntryMedia:
    """A file that an entry points at; `type` is a MIME type or empty where the source doesn't say."""

    url: str
    type: str = ""


@dataclass(frozen=True)
class Note:
    """Something to know of a source or an entry: a code for programs, a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Entry:
    """One thing that a source gave.

    `external_id` is the source's own identity for it, compared as an exact string; `body_format` is `text`,
    `markdown` or `html`; `published_at` is aware, or None where the source doesn't say or says nonsense. `left_out`
    says why the source's own rules keep it from being worked on (`no_captions`, `noindex`): it is listed all the same.
    `withdrawn` is True where the source says that it took this entry back; then its identity is all that counts.
    `metadata` is stored with the raw item, licence and robots' rules among it.
    """

    external_id: str | None = None
    url: str = ""
    title: str = ""
    body: str = ""
    body_format: str = "text"
    author: str = ""
    language: str = ""
    published_at: datetime | None = None
    media: tuple[EntryMedia, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Note | None = None
    withdrawn: bool = False


@dataclass(frozen=True)
class Quiet:
    """When a source asks not to be read, in GMT: hours from 0 to 23, days of the week from 0 (Monday) to 6."""

    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()

    def end_after(self, moment: datetime) -> datetime:
        """The first moment from this one on at which it may be read. Asks that leave no time at all are ignored."""
        if len(self.hours) >= 24 or len(self.days) >= 7:
            return moment
        free = moment.astimezone(UTC)
        while free.hour in self.hours or free.weekday() in self.days:
            free = free.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return free


@dataclass(frozen=True)
class Hub:
    """Who tells of this source's changes at once (WebSub): hubs in the source's order, and its topic there."""

    urls: tuple[str, ...]
    topic: str


@dataclass(frozen=True)
class Fetch:
    """What one poll brought, newest entry first.

    `state` is opaque JSON (validators, a hash of the body) that comes back with the next poll. `malformed` counts
    entries that could not be read. `wait_at_least` is the source's own wish for the next poll (`ttl`, `max-age`).
    `gone` is True when the source says that it is gone for ever (410), and then there are no entries. `is_window` is
    True where the entries are the newest of a longer list, without gaps: one that is missing between others was taken
    back. `moved_to` is where a permanent redirect led. `notes` are told with the source's health, for as long as each
    poll brings them: what robots.txt and licences say, what could not be had and why. `quiet` are the hours and days at
    which the source asks not to be read; `wait_at_least` alone can't say it, because it doesn't know the interval.
    `hub` is who can be asked to tell of changes, where the source names one.
    """

    entries: tuple[Entry, ...]
    state: Mapping[str, Any]
    not_modified: bool = False
    malformed: int = 0
    title: str = ""
    wait_at_least: timedelta | None = None
    gone: bool = False
    is_window: bool = False
    moved_to: str = ""
    notes: tuple[Note, ...] = ()
    quiet: Quiet = Quiet()
    hub: Hub | None = None


def host_in(address: str) -> str:
    """The host's name in lower case; empty where the address has none that can be read."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        # "[abc]" is no address, and some names hold what their normal form doesn't allow.
        return ""


class Source(ABC):
    """A kind of source. `fetches` is False for a kind that is only pushed to, or whose fetcher isn't built yet."""

    kind: ClassVar[str]
    label: ClassVar[str]
    evidence: ClassVar[Evidence]
    fetches: ClassVar[bool] = False
    config_schema: ClassVar[Mapping[str, Any]]
    """JSON Schema of `config`, for the API's document."""
    default_interval_minutes: ClassVar[int] = POLL_INTERVAL_MINUTES
    environment: ClassVar[Mapping[str, str]] = {}
    """Settings of the operator that `fetch` needs (base addresses, keys, paths), each with its default."""

    @abstractmethod
    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as they will be stored; raises `ConfigInvalid` with a `Problem` on each `config.<key>`."""

    def meant(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that somebody means who writes these, in other words or another form; else as they are written.

        A guess, to be shown and never stored: what it gives may be as wrong as what was given.
        """
        known = self.config_schema["properties"]
        found: dict[str, Any] = {}
        for name, value in values.items():
            own = name if name in known else nearest(name, known) or name
            is_listed = known.get(own, {}).get("type") == "array" and isinstance(value, str)
            found.setdefault(own, [value] if is_listed else value)
        return found

    def unavailable_settings(self, environment: Mapping[str, str]) -> Mapping[str, Unavailability]:
        """The settings of `config` that can't be used with what the operator has set and installed, each with why."""
        del environment
        return {}

    def unavailable(
        self, config: Mapping[str, Any] | None, environment: Mapping[str, str]
    ) -> Unavailability | None:
        """Why a source with this clean `config` can't work here; without a `config`, why none of the kind can.

        None where it can.
        """
        if config is None:
            return None
        unusable = self.unavailable_settings(environment)
        return next((why for name, why in unusable.items() if config.get(name)), None)

    def host(self, config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
        """The name of the host that `fetch` mostly asks: it is asked by one at a time, whoever's sources they are.

        By default that of `config.url`, else of the first address in `environment`; empty where nobody is asked.
        """
        addresses = (config.get("url"), *environment.values())
        for address in addresses:
            if isinstance(address, str) and address.lower().startswith(("http://", "https://")):
                return host_in(address)
        return ""

    def fetch(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        http: Client,
        now: datetime,
        environment: Mapping[str, str],
    ) -> Fetch:
        """Ask the source once, within `FETCH_SECONDS`. `environment` holds what `self.environment` names.

        Raises `TryLater`, `Refused` or `NeedsReconnect`; never writes anything. An empty `state` makes it forget what it
        has seen, as a preview needs it.
        """
        del config, state, http, now, environment
        message = f"Sources of type {self.kind} are not fetched."
        raise LookupError(message)
