"""Defines the interface of sources: clean the settings, fetch new entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from config.core.api.nearest import find_nearest
from pipeline.limits import POLL_INTERVAL_MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.plugins import Evidence, Unavailability

FETCH_SECONDS: Final = 40
"""The time limit of one fetch with all its requests, in seconds; unread pages wait for the next poll."""


@dataclass(frozen=True)
class EntryMedia:
    """A file that an entry points at; `type` is a MIME type, or empty if the source doesn't say."""

    url: str
    type: str = ""


@dataclass(frozen=True)
class Note:
    """A remark on a source or an entry: a code for programs, a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True)
class Entry:
    """One entry of a source.

    `external_id` is the source's id of the entry, compared as an exact string; `body_format` is `text`,
    `markdown` or `html`; `published_at` is aware, or `None` if the source gives no date or an impossible one.
    `left_out` gives the reason why no item is made of the entry (`no_captions`, `noindex`), which is listed
    all the same. `withdrawn` is `True` if the source took this entry back; then only its id counts.
    `metadata` is stored with the raw item, with the licence and the rules for robots.
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
    """The times at which a source asks not to be read, in GMT.

    Hours are from 0 to 23, days of the week from 0 (Monday) to 6.
    """

    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()

    def end_after(self, moment: datetime) -> datetime:
        """Return the first moment, from `moment` on, at which the source may be read.

        All 24 hours or all 7 days leave no time at all, and are ignored: then it is `moment`.
        """
        if len(self.hours) >= 24 or len(self.days) >= 7:
            return moment
        candidate = moment.astimezone(UTC)
        while candidate.hour in self.hours or candidate.weekday() in self.days:
            candidate = candidate.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return candidate


@dataclass(frozen=True)
class Hub:
    """The WebSub hubs that announce a source's changes, in its order; `topic` is the address that they know."""

    urls: tuple[str, ...]
    topic: str


@dataclass(frozen=True)
class Fetch:
    """The result of one poll, newest entry first.

    `state` is opaque JSON (validators, a hash of the body) that comes back with the next poll. `malformed` counts
    entries that could not be read. `wait_at_least` is the wait until the next poll that the source asks for (`ttl`,
    `max-age`). `gone` is `True` if the source says that it is gone for ever (410), and then there are no entries.
    `is_window` is `True` if the entries are the newest of a longer list, without gaps: an entry that is missing
    between others was taken back. `moved_to` is the address to which permanent redirects led, or an empty string.
    `notes` are shown with the source's health, for as long as each poll brings them: rules of robots.txt and
    licences, and pages that could not be read, with the reason. `quiet` are the hours and days at which the source
    asks not to be read; `wait_at_least` alone can't say it, because the source doesn't know the interval. `hub` can
    be asked to announce changes, if the source names one.
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


def have_notes_ended(notes: Sequence[Note], *, previous_count: int) -> bool:
    """Return whether the last poll brought notes (`previous_count` of them) and this one brings none.

    That must count as a change: a fetch that is `not_modified` keeps the last poll's notes.
    """
    return not notes and previous_count > 0


def host_in(address: str) -> str:
    """Return the host name of an address in lower case, or an empty string if none can be read."""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        # Such as "[abc]", or a name with characters that Unicode normalization (NFKC) doesn't allow there.
        return ""


class Source(ABC):
    """A kind of source; a plug-in's module holds one instance as `PLUGIN`.

    `fetches` is `False` for a kind that is only pushed to, or whose fetcher isn't built yet.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    evidence: ClassVar[Evidence]
    fetches: ClassVar[bool] = False
    config_schema: ClassVar[Mapping[str, Any]]
    """The JSON Schema of `config`, for the API's document."""
    default_interval_minutes: ClassVar[int] = POLL_INTERVAL_MINUTES
    environment: ClassVar[Mapping[str, str]] = {}
    """The operator's settings that `fetch` needs (base addresses, keys, paths), each with its default."""

    @abstractmethod
    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings as stored. Raises `ConfigInvalid` with a `Problem` on each faulty `config.<key>`."""

    def guess_settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that these values were probably meant to be.

        A misspelt key becomes the nearest known one, and a single text for a list becomes a list of it. The
        guess is to be shown and never stored, because it may be as wrong as the values.
        """
        known = self.config_schema["properties"]
        guessed: dict[str, Any] = {}
        for name, value in values.items():
            known_name = name if name in known else find_nearest(name, known) or name
            is_listed = known.get(known_name, {}).get("type") == "array" and isinstance(value, str)
            guessed.setdefault(known_name, [value] if is_listed else value)
        return guessed

    def unavailable_settings(self, environment: Mapping[str, str]) -> Mapping[str, Unavailability]:
        """Return the settings that can't be used with the operator's setup, each with the reason."""
        del environment
        return {}

    def unavailable(
        self, config: Mapping[str, Any] | None, environment: Mapping[str, str]
    ) -> Unavailability | None:
        """Return why a source with this clean `config` can't work here, or `None` if it can.

        Without a `config` the answer is about every source of the kind.
        """
        if config is None:
            return None
        unusable = self.unavailable_settings(environment)
        return next((reason for name, reason in unusable.items() if config.get(name)), None)

    def host(self, config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
        """Return the host that `fetch` mostly asks; only one poll at a time asks it, across all workspaces.

        By default it is the host of `config.url`, else of the first address in `environment`, or an empty
        string if neither holds a web address.
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
        """Fetch the source once, within `FETCH_SECONDS`.

        `environment` holds the settings that `self.environment` names. An empty `state` makes the plug-in
        forget which entries it has seen, as a preview needs it. Nothing is written. Raises `TryLater` if a
        later poll may succeed, `Refused` if the settings must be changed first, `NeedsReconnect` if the
        source asks for new access, and `LookupError` if the kind isn't fetched.
        """
        del config, state, http, now, environment
        message = f"Sources of type {self.kind} are not fetched."
        raise LookupError(message)
