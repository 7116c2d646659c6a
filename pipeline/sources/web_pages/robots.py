"""robots.txt by RFC 9309: fetched once a day for each origin, and kept in the source's state."""

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
"""What a reader has to take at least (RFC 9309, 2.5); what follows is not read."""
MAX_REDIRECTS: Final = 5
"""How many a reader has to follow at least (RFC 9309, 2.3.1.2)."""
FRESH: Final = timedelta(hours=24)
"""How long a copy may be used (RFC 9309, 2.4)."""
STALE: Final = timedelta(days=30)
"""How long the last copy holds where the server answers with its own faults (RFC 9309, 2.3.1.4)."""
CLOSED_FRESH: Final = timedelta(hours=1)
"""How long an origin without an answer is left alone before it is asked again."""
MAX_DELAY_SECONDS: Final = 60.0
MAX_ORIGINS: Final = 20
TIMEOUT_SECONDS: Final = 10
MAX_SITEMAPS: Final = 20
MAX_KEPT_CHARS: Final = 50_000
"""Of the packed rules of one origin; those of the largest sites take about 5,000."""


@dataclass(frozen=True)
class RobotsRules:
    """What one origin's robots.txt says to us: `kind` is `rules`, `none` (no limits) or `closed` (unreachable)."""

    kind: str
    text: str
    sitemaps: tuple[str, ...]
    at: int
    """When it was asked, in seconds since 1970."""
    read_at: int
    """When what it says was last had."""

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> RobotsRules | None:
        try:
            packed = zlib.decompressobj().decompress(base64.b64decode(kept["text"]), ROBOTS_BYTES * 2)
            sitemaps = tuple(str(each) for each in kept["sitemaps"])
            return cls(str(kept["kind"]), packed.decode(), sitemaps, int(kept["at"]), int(kept["read_at"]))
        except (KeyError, TypeError, ValueError, zlib.error):
            # What an earlier release kept, or a hand wrote, is asked anew.
            return None

    def as_state(self) -> dict[str, Any]:
        text = base64.b64encode(zlib.compress(self.text.encode())).decode("ascii")
        return {
            "kind": self.kind,
            "text": text,
            "sitemaps": list(self.sitemaps),
            "at": self.at,
            "read_at": self.read_at,
        }


class Robots:
    """The robots.txt files of the origins that one fetch meets; `kept` is what the last one left."""

    def __init__(self, http: Client, kept: Mapping[str, Any], *, now: datetime) -> None:
        self._http = http
        self._token = product_token(http.policy.user_agent)
        self._now = int(now.timestamp())
        self._kept = {
            origin: rules
            for origin, each in kept.items()
            if isinstance(each, dict) and (rules := RobotsRules.of(each))
        }
        self._parsed: dict[str, Protego] = {}
        self._met: dict[str, RobotsRules] = {}

    def allows(self, url: str) -> bool:
        rules = self.rules_of(url)
        if rules.kind == "none":
            return True
        return rules.kind == "rules" and self._parse(url, rules).can_fetch(url, self._token)

    def is_closed(self, url: str) -> bool:
        """Whether the origin's robots.txt could not be had, so that nothing of it may be read."""
        return self.rules_of(url).kind == "closed"

    def delay_of(self, url: str) -> float:
        """Seconds between two requests that the origin asks for, at most `MAX_DELAY_SECONDS`."""
        rules = self.rules_of(url)
        asked = self._parse(url, rules).crawl_delay(self._token) if rules.kind == "rules" else None
        return min(max(asked, 0.0), MAX_DELAY_SECONDS) if asked is not None and isfinite(asked) else 0.0

    def sitemaps_of(self, url: str) -> tuple[str, ...]:
        return self.rules_of(url).sitemaps

    def rules_of(self, url: str) -> RobotsRules:
        origin = origin_of(url)
        if origin not in self._met:
            self._met[origin] = self._current(origin)
        return self._met[origin]

    def as_state(self) -> dict[str, Any]:
        kept = {**self._kept, **self._met}
        newest = sorted(kept, key=lambda origin: kept[origin].at, reverse=True)[:MAX_ORIGINS]
        states = {origin: kept[origin].as_state() for origin in newest}
        # Longer ones are asked for at each poll.
        return {origin: state for origin, state in states.items() if len(state["text"]) <= MAX_KEPT_CHARS}

    def note_on(self, url: str) -> Note:
        """What the origin's robots.txt says, in words."""
        rules, host = self.rules_of(url), urlsplit(url).netloc
        if rules.kind == "closed":
            return Note(
                "robots_unreachable", f"The robots.txt of {host} can't be had, so nothing is read there."
            )
        if rules.kind == "none":
            return Note("robots_none", f"{host} has no robots.txt, so it sets no limits.")
        delay = self.delay_of(url)
        words = [
            f"robots.txt of {host} " + ("sets rules" if "Disallow" in rules.text else "disallows nothing")
        ]
        words += [f"it asks for {delay:g} seconds between two requests"] if delay else []
        words += [f"it names {len(rules.sitemaps)} sitemaps"] if rules.sitemaps else []
        return Note("robots_rules", "; ".join(words) + ".")

    def _parse(self, url: str, rules: RobotsRules) -> Protego:
        origin = origin_of(url)
        if origin not in self._parsed:
            self._parsed[origin] = Protego.parse(rules.text)
        return self._parsed[origin]

    def _current(self, origin: str) -> RobotsRules:
        known = self._kept.get(origin)
        fresh = CLOSED_FRESH if known is not None and known.kind == "closed" else FRESH
        if known is not None and 0 <= self._now - known.at < fresh.total_seconds():
            return known
        found = self._ask(origin)
        if found is not None:
            return found
        if known is not None and known.kind != "closed" and self._now - known.read_at < STALE.total_seconds():
            return known
        return RobotsRules("closed", "", (), self._now, self._now)

    def _ask(self, origin: str) -> RobotsRules | None:
        """None where the server is unreachable or answers with a fault of its own."""
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
            # No site is there, so that it says nothing to readers either.
            raise
        except OutboundError:
            return None
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            return None
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            return RobotsRules("none", "", (), self._now, self._now)
        text, sitemaps = select(answer.body.decode("utf-8", errors="replace"), self._token, base=answer.url)
        return RobotsRules("rules", text, sitemaps, self._now, self._now)


def origin_of(url: str) -> str:
    """Scheme, host and port, for which one robots.txt stands."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def product_token(user_agent: str) -> str:
    """The part of a User-Agent that robots.txt names: letters, hyphens and underscores (RFC 9309, 2.2.1)."""
    found = re.match(r"[A-Za-z_-]+", user_agent)
    return found[0].lower() if found else "content-pipeline"


def select(text: str, token: str, *, base: str) -> tuple[str, tuple[str, ...]]:
    """The rules for one product token, as a file of one group, and the sitemaps.

    Groups of the token are merged; where there is none, those for everybody hold (RFC 9309, 2.2.1). The whole token
    has to match, while Protego takes a part of one for a match too.
    """
    ours: list[str] | None = None
    everybodys: list[str] = []
    sitemaps: list[str] = []
    named: set[str] = set()
    is_naming = False
    for line in re.split(r"\r\n?|\n", text.removeprefix("\ufeff")):
        name, _, value = (part.strip() for part in line[:4096].partition("#")[0].partition(":"))
        name = name.lower()
        if name in {"user-agent", "useragent"}:
            named = named if is_naming else set()
            named.add("*" if value.strip() == "*" else product_token(value) if value else "")
            is_naming = True
            ours = ours if ours is not None or token not in named else []
        elif name == "sitemap":
            sitemaps += _sitemap(base, value)
        elif name in {"allow", "disallow", "crawl-delay"}:
            is_naming = False
            rule = f"{name.capitalize()}: {value}"
            if token in named and ours is not None:
                ours.append(rule)
            if "*" in named:
                everybodys.append(rule)
    chosen = everybodys if ours is None else ours
    return "\n".join(["User-agent: *", *chosen]), tuple(dict.fromkeys(sitemaps))[:MAX_SITEMAPS]


def _sitemap(base: str, value: str) -> list[str]:
    """Its address; nothing where what stands there is none."""
    try:
        return [urljoin(base, value)[:2048]]
    except ValueError:
        return []
