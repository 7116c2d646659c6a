"""Finds web addresses in text, compares their spellings, and brings them to canonical form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import idna

TRACKING_PARAMETERS: Final = frozenset(
    {
        "_hsenc", "_hsmi", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igsh", "igshid", "li_fat_id", "mc_cid",
        "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "ref_src", "ref_url", "srsltid", "ttclid",
        "twclid", "vero_id", "wbraid", "yclid",
    }
)  # fmt: skip
ROUTE_SIGNS: Final = ("/", "!")
"""The beginning of a fragment that leads to another page of a single-page site.

Other fragments only lead to a position in the page.
"""
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Every printable ASCII character stays as it is written; the rest is percent-encoded as browsers do.
_URL_SAFE: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# `urlsplit` normalises the host in quadratic time: 200,000 combining marks in it cost 30 s.
MAX_URL_CHARACTERS: Final = 8192
# DNS allows 253 characters; IDNA of anything longer is wasted work.
MAX_HOST_CHARACTERS: Final = 253


def canonical_url(url: str) -> str:
    """Return the address by which two entries count as the same page.

    Tracking parameters, credentials and fragments that are no routes are dropped. An address that isn't http(s),
    is malformed or has over `MAX_URL_CHARACTERS` is only stripped.
    """
    stripped = url.strip()
    if len(stripped) > MAX_URL_CHARACTERS:
        return stripped
    try:
        parts = urlsplit(re.sub(r"[\t\r\n]", "", stripped))
    except ValueError:
        return stripped
    if parts.scheme not in DEFAULT_PORTS:
        return stripped
    netloc = _canonical_netloc(parts.netloc.rpartition("@")[2], DEFAULT_PORTS[parts.scheme])
    if netloc is None:
        return stripped
    path = quote(parts.path or "/", safe=_URL_SAFE, errors="replace")
    query = "&".join(pair for pair in parts.query.split("&") if not _is_tracking(pair))
    query = quote(query, safe=_URL_SAFE, errors="replace")
    canonical = f"{parts.scheme}://{netloc}{path}" + (f"?{query}" if query else "")
    if not parts.fragment.startswith(ROUTE_SIGNS):
        return canonical
    return f"{canonical}#{quote(parts.fragment, safe=_URL_SAFE, errors='replace')}"


def _canonical_netloc(netloc: str, default_port: int) -> str | None:
    """Return the host in ASCII lower case, with a port that isn't the default, or `None` for an invalid host."""
    match = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", netloc)
    if match is None:
        return None
    host, port = match[1].lower(), match[2]
    if not host.isascii() and len(host) <= MAX_HOST_CHARACTERS:
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            # A name that no registry would accept still has to compare equal to itself.
            return None
    host = host.rstrip(".")
    if not host or re.search(r"[\s\x00-\x20\x7f%\\]|[^\x00-\x7f]", host):
        return None
    return host if not port or int(port) == default_port else f"{host}:{int(port)}"


def _is_tracking(pair: str) -> bool:
    name = unquote(pair.partition("=")[0][:80]).lower()
    return name.startswith("utm_") or name in TRACKING_PARAMETERS


def _load_top_level_domains() -> frozenset[str]:
    """Return the top-level domains in IANA's list, in both spellings."""
    lines = Path(__file__).with_name("top_level_domains.txt").read_text(encoding="ascii").splitlines()
    names = frozenset(line for line in lines if not line.startswith("#"))
    return names | {name.encode("ascii").decode("idna") for name in names}


TOP_LEVEL_DOMAINS = _load_top_level_domains()
"""The top-level domains, in lower case; those in other scripts in both spellings, `xn--…` and their letters."""
_LATIN = "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
# The characters that X takes as part of a path or query; others end the link (twitter-text, version 3).
_TAIL = rf"[A-Za-z0-9{_LATIN}\u0400-\u04ff!*'();:=+,.$/%#\[\]\-\u2013_~@|&?\\]"
_SCHEMED = re.compile(rf"https?://[\w\-.]*(?:[:/?#@\[]{_TAIL}*)?", re.IGNORECASE)
# The look-behind lets each run of letters be tried once, from its start: the scan stays linear.
_BARE = re.compile(
    rf"(?<![A-Za-z0-9{_LATIN}@\uff20$#\uff03_./:\-])"
    rf"(?P<host>[A-Za-z0-9{_LATIN}](?:[A-Za-z0-9{_LATIN}_\-]{{0,62}})"
    rf"(?:\.[A-Za-z0-9{_LATIN}][A-Za-z0-9{_LATIN}_\-]{{0,62}})+)"
    rf"(?P<tail>(?::[0-9]{{1,5}})?(?:[/?]{_TAIL}*)?)(?P<mail>@?)"
)
_ASCII_LETTERS = re.compile(r"[A-Za-z]*")
_TRAILING = "!*';:,.$%[]~|?\\\u2013@("


@dataclass(frozen=True)
class Link:
    """An address in a text, `text[start:end]`. `is_known` says that its top-level domain exists."""

    start: int
    end: int
    url: str
    has_scheme: bool
    is_known: bool


def _trim_punctuation(url: str) -> str:
    """Return the address without punctuation of the sentence; a closing bracket stays if the address opens it."""
    unclosed = url.count(")") - url.count("(")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and unclosed > 0:
            unclosed -= 1
        elif last not in _TRAILING:
            break
        elif last == "(":
            unclosed += 1
        end -= 1
    return url[:end]


def _longest_known_host(host: str) -> str:
    """Return the longest beginning of `host` that ends in a top-level domain, or "" if there is none."""
    labels = host[:MAX_HOST_CHARACTERS].split(".")
    for last in range(len(labels) - 1, 0, -1):
        label = labels[last]
        if label.lower() in TOP_LEVEL_DOMAINS:
            return ".".join(labels[: last + 1])
        letters = _ASCII_LETTERS.match(label)
        ascii_part = letters.group() if letters else ""
        following = label[len(ascii_part) : len(ascii_part) + 1]
        if ascii_part.lower() in TOP_LEVEL_DOMAINS and not following.isascii():
            return ".".join([*labels[:last], ascii_part])
    return ""


def _link_with_scheme(match: re.Match[str]) -> Link:
    url = _trim_punctuation(match.group())
    rest = url[url.index("://") + 3 :]
    host = re.split(r"[:/?#@\[]", rest, maxsplit=1)[0]
    known = _longest_known_host(host)
    if known and len(known) < len(host):
        # Words in another script follow without a space: X ends the link with the domain.
        url = url[: len(url) - len(rest) + len(known)]
    return Link(match.start(), match.start() + len(url), url, has_scheme=True, is_known=bool(known))


def _link_without_scheme(match: re.Match[str]) -> Link | None:
    """Return the link of a bare host, or `None` for an unknown domain or an email address."""
    host = _longest_known_host(match["host"])
    if not host or match["mail"]:
        return None
    url = _trim_punctuation(host + match["tail"]) if host == match["host"] else host
    return Link(match.start(), match.start() + len(url), url, has_scheme=False, is_known=True)


def find_links(text: str) -> tuple[Link, ...]:
    """Return the addresses in a text, in order; bare ones (`example.com/x`) only with an existing domain."""
    links: list[Link] = []
    position = 0
    for match in _SCHEMED.finditer(text):
        links.extend(_bare_links(text, position, match.start()))
        link = _link_with_scheme(match)
        links.append(link)
        position = link.end
    links.extend(_bare_links(text, position, len(text)))
    return tuple(links)


def _bare_links(text: str, start: int, end: int) -> list[Link]:
    links = (_link_without_scheme(match) for match in _BARE.finditer(text, start, end))
    return [link for link in links if link is not None]


def without_links(text: str) -> str:
    """Return the text with a space in place of each address."""
    parts: list[str] = []
    position = 0
    for link in find_links(text):
        parts.append(text[position : link.start])
        position = link.end
    parts.append(text[position:])
    return " ".join(parts)


def _ascii_host(host: str) -> str:
    # An IPv6 address, which `hostname` gives without brackets, is no name that IDNA can encode.
    return f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")


def ascii_url(url: str) -> str:
    """Return the same address in ASCII, ready for a post, or "" if it isn't a valid http(s) address.

    An address with credentials isn't valid here.
    """
    try:
        parts = urlsplit(url.strip())
        host = _ascii_host(parts.hostname or "")
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme.lower() not in {"http", "https"} or not host or parts.username is not None:
        return ""
    if not re.fullmatch(r"[A-Za-z0-9._\-]+|\[[0-9a-f:.]+\]", host):
        return ""
    netloc = host if port is None else f"{host}:{port}"
    path, query, fragment = (_percent_encode(part) for part in (parts.path, parts.query, parts.fragment))
    encoded = urlunsplit((parts.scheme.lower(), netloc, path, query, fragment))
    trimmed = _trim_punctuation(encoded)
    # Platforms cut closing punctuation off links in running text, so it is percent-encoded.
    return trimmed + "".join(f"%{ord(character):02X}" for character in encoded[len(trimmed) :])


def has_host(url: str) -> bool:
    """Return whether the URL has a host after normalization.

    A pattern can't check that, because normalization may yield characters that end a host.
    """
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        # An IPv6 address whose bracket isn't closed raises it too.
        return False


def is_same_address(first: str, second: str) -> bool:
    """Return whether two spellings are the same address, escaped or not, with closing punctuation or not."""
    return _normalize(first) == _normalize(second) != ""


def _normalize(url: str) -> str:
    return _trim_punctuation(unquote(ascii_url(url)))


def _percent_encode(part: str) -> str:
    return quote(part, safe="!*'();:=+,.$/%#[]-_~@|&?", errors="replace")


def spellings_of(url: str) -> list[str]:
    """Return the address and its host in their own letters and in ASCII, the host with and without "www."."""
    spellings: list[str] = []
    for address in (url.strip(), ascii_url(url)):
        try:
            host = urlsplit(address).hostname or ""
        except ValueError:
            continue
        spellings += [address, host, host.removeprefix("www.")]
    return [spelling for spelling in dict.fromkeys(spellings) if spelling]
