"""Reads robots.txt by RFC 9309: fetched once a day for each origin, and stored in the source's state."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from protego import Protego

from config.core.http_client import AddressRefused, NameNotFound, OutboundError
from pipeline.sources.base import Note

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client

ROBOTS_BYTES: Final = 500 * 1024
"""The size that a reader has to take at least (RFC 9309, 2.5); bytes beyond it are not read."""
MAX_REDIRECTS: Final = 5
"""The number of redirects that a reader has to follow at least (RFC 9309, 2.3.1.2)."""
MAX_AGE: Final = timedelta(hours=24)
"""The time for which a copy may be used (RFC 9309, 2.4)."""
MAX_AGE_IN_OUTAGE: Final = timedelta(days=30)
"""The time for which the last copy applies if the server answers with errors (RFC 9309, 2.3.1.4)."""
RETRY_UNREACHABLE_AFTER: Final = timedelta(hours=1)
"""The time after which robots.txt is fetched again from an origin that didn't answer."""
MAX_DELAY_SECONDS: Final = 60.0
"""The longest pause between two requests that an origin may ask for."""
MAX_ORIGINS: Final = 20
"""The most origins whose rules are stored."""
TIMEOUT_SECONDS: Final = 10
MAX_SITEMAPS: Final = 20
MAX_STORED_CHARACTERS: Final = 50_000
"""The most packed rules of one origin; those of the largest sites take about 5,000."""


@dataclass(frozen=True)
class RobotsRules:
    """One origin's rules for us; `kind` is `rules`, `none` (no limits) or `closed` (unreachable: nothing is read)."""

    kind: str
    text: str
    sitemaps: tuple[str, ...]
    at: int
    """The time of the last request for robots.txt, in seconds since 1970."""
    read_at: int
    """The time when its content was last received, in seconds since 1970."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> RobotsRules | None:
        """Return stored rules, or `None` if they can't be read."""
        try:
            packed = zlib.decompressobj().decompress(base64.b64decode(stored["text"]), ROBOTS_BYTES * 2)
            sitemaps = tuple(str(each) for each in stored["sitemaps"])
            return cls(
                str(stored["kind"]), packed.decode(), sitemaps, int(stored["at"]), int(stored["read_at"])
            )
        except (KeyError, TypeError, ValueError, zlib.error):
            # Stored by an earlier release or edited by hand: it is fetched again.
            return None

    def as_state(self) -> dict[str, Any]:
        """Return the rules as JSON to store."""
        text = base64.b64encode(zlib.compress(self.text.encode())).decode("ascii")
        return {
            "kind": self.kind,
            "text": text,
            "sitemaps": list(self.sitemaps),
            "at": self.at,
            "read_at": self.read_at,
        }


class Robots:
    """The robots.txt files of the origins that one fetch meets; `stored` is the state of the last fetch.

    Each method that takes an address may fetch the robots.txt of its origin. Raises `AddressRefused` or
    `NameNotFound` if the origin may not be called or doesn't exist.
    """

    def __init__(self, http: Client, stored: Mapping[str, Any], *, now: datetime) -> None:
        self._http = http
        self._token = product_token(http.policy.user_agent)
        self._now = int(now.timestamp())
        self._stored = {
            origin: rules
            for origin, each in stored.items()
            if isinstance(each, dict) and (rules := RobotsRules.of(each))
        }
        self._parsed: dict[str, Protego] = {}
        self._current_rules: dict[str, RobotsRules] = {}

    def allows(self, url: str) -> bool:
        """Return whether robots.txt allows us to read the address."""
        rules = self.rules_of(url)
        if rules.kind == "none":
            return True
        return rules.kind == "rules" and self._parsed_rules(url, rules).can_fetch(url, self._token)

    def is_closed(self, url: str) -> bool:
        """Return whether the origin's robots.txt could not be read, so that nothing of it may be read."""
        return self.rules_of(url).kind == "closed"

    def delay_of(self, url: str) -> float:
        """Return the seconds between two requests that the origin asks for, at most `MAX_DELAY_SECONDS`."""
        rules = self.rules_of(url)
        delay = self._parsed_rules(url, rules).crawl_delay(self._token) if rules.kind == "rules" else None
        return min(max(delay, 0.0), MAX_DELAY_SECONDS) if delay is not None and isfinite(delay) else 0.0

    def sitemaps_of(self, url: str) -> tuple[str, ...]:
        """Return the sitemaps that the origin's robots.txt names."""
        return self.rules_of(url).sitemaps

    def rules_of(self, url: str) -> RobotsRules:
        """Return the rules of the address's origin, and fetch them if they aren't known or are too old."""
        origin = origin_of(url)
        if origin not in self._current_rules:
            self._current_rules[origin] = self._load_rules(origin)
        return self._current_rules[origin]

    def as_state(self) -> dict[str, Any]:
        """Return the newest rules as JSON to store, without those that are too long."""
        all_rules = {**self._stored, **self._current_rules}
        newest = sorted(all_rules, key=lambda origin: all_rules[origin].at, reverse=True)[:MAX_ORIGINS]
        states = {origin: all_rules[origin].as_state() for origin in newest}
        # Longer rules aren't stored, but fetched at each poll.
        return {
            origin: state for origin, state in states.items() if len(state["text"]) <= MAX_STORED_CHARACTERS
        }

    def note_on(self, url: str) -> Note:
        """Return a note that says in words what the origin's robots.txt contains."""
        rules, host = self.rules_of(url), urlsplit(url).netloc
        if rules.kind == "closed":
            return Note(
                "robots_unreachable", f"The robots.txt of {host} can't be fetched, so nothing is read there."
            )
        if rules.kind == "none":
            return Note("robots_none", f"{host} has no robots.txt, so it sets no limits.")
        delay = self.delay_of(url)
        clauses = [
            f"robots.txt of {host} " + ("sets rules" if "Disallow" in rules.text else "disallows nothing")
        ]
        clauses += [f"it asks for {delay:g} seconds between two requests"] if delay else []
        clauses += [f"it names {len(rules.sitemaps)} sitemaps"] if rules.sitemaps else []
        return Note("robots_rules", "; ".join(clauses) + ".")

    def _parsed_rules(self, url: str, rules: RobotsRules) -> Protego:
        """Return the origin's rules as parsed by Protego."""
        origin = origin_of(url)
        if origin not in self._parsed:
            self._parsed[origin] = Protego.parse(rules.text)
        return self._parsed[origin]

    def _load_rules(self, origin: str) -> RobotsRules:
        """Return the stored rules while they are fresh, else fetched ones.

        If they can't be fetched, the stored ones apply for `MAX_AGE_IN_OUTAGE`; then the origin is closed.
        """
        known = self._stored.get(origin)
        max_age = RETRY_UNREACHABLE_AFTER if known is not None and known.kind == "closed" else MAX_AGE
        if known is not None and 0 <= self._now - known.at < max_age.total_seconds():
            return known
        fetched = self._fetch_rules(origin)
        if fetched is not None:
            return fetched
        if (
            known is not None
            and known.kind != "closed"
            and self._now - known.read_at < MAX_AGE_IN_OUTAGE.total_seconds()
        ):
            return known
        return RobotsRules("closed", "", (), self._now, self._now)

    def _fetch_rules(self, origin: str) -> RobotsRules | None:
        """Fetch robots.txt. Return `None` if the server is unreachable, fails, or is called too often.

        Raises `AddressRefused` or `NameNotFound` if the origin may not be called or doesn't exist.
        """
        try:
            answer = self._http.get(
                f"{origin}/robots.txt",
                headers={"Accept": "text/plain, */*;q=0.1"},
                timeout=TIMEOUT_SECONDS,
                max_bytes=ROBOTS_BYTES,
                max_redirects=MAX_REDIRECTS,
                truncate=True,
            )
        except (AddressRefused, NameNotFound):
            # No site can be read there, so the address itself is wrong.
            raise
        except OutboundError:
            return None
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return None
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            return RobotsRules("none", "", (), self._now, self._now)
        text, sitemaps = select_rules(
            answer.body.decode("utf-8", errors="replace"), self._token, base=answer.url
        )
        return RobotsRules("rules", text, sitemaps, self._now, self._now)


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address, for which one robots.txt applies."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def product_token(user_agent: str) -> str:
    """Return the part of a User-Agent that robots.txt names (RFC 9309, 2.2.1), in lower case.

    It is the letters, hyphens and underscores at the beginning, or `content-pipeline` if there are none.
    """
    match = re.match(r"[A-Za-z_-]+", user_agent)
    return match[0].lower() if match else "content-pipeline"


def select_rules(text: str, token: str, *, base: str) -> tuple[str, tuple[str, ...]]:
    """Return the rules for one product token, as a file of one group, and the sitemaps.

    Groups of the token are merged; if there is none, those for everybody apply (RFC 9309, 2.2.1). They are
    chosen here because the whole token has to match, while Protego lets a part of it match too.
    """
    our_rules: list[str] | None = None
    common_rules: list[str] = []
    sitemaps: list[str] = []
    group_tokens: set[str] = set()
    is_in_group_head = False
    for line in re.split(r"\r\n?|\n", text.removeprefix("\ufeff")):
        name, _, value = (part.strip() for part in line[:4096].partition("#")[0].partition(":"))
        name = name.lower()
        if name in {"user-agent", "useragent"}:
            group_tokens = group_tokens if is_in_group_head else set()
            group_tokens.add("*" if value.strip() == "*" else product_token(value) if value else "")
            is_in_group_head = True
            our_rules = our_rules if our_rules is not None or token not in group_tokens else []
        elif name == "sitemap":
            sitemaps += _sitemap_address(base, value)
        elif name in {"allow", "disallow", "crawl-delay"}:
            is_in_group_head = False
            rule = f"{name.capitalize()}: {value}"
            if token in group_tokens and our_rules is not None:
                our_rules.append(rule)
            if "*" in group_tokens:
                common_rules.append(rule)
    chosen = common_rules if our_rules is None else our_rules
    return "\n".join(["User-agent: *", *chosen]), tuple(dict.fromkeys(sitemaps))[:MAX_SITEMAPS]


def _sitemap_address(base: str, value: str) -> list[str]:
    """Return a list with the sitemap's absolute address, or an empty list if the address is invalid."""
    try:
        return [urljoin(base, value)[:2048]]
    except ValueError:
        return []
