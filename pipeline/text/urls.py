"""What makes two addresses the same: their canonical form."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

import idna

TRACKING_PARAMETERS: Final = frozenset(
    {
        "_hsenc", "_hsmi", "dclid", "fbclid", "gbraid", "gclid", "gclsrc", "igsh", "igshid", "li_fat_id", "mc_cid",
        "mc_eid", "mkt_tok", "msclkid", "oly_anon_id", "oly_enc_id", "ref_src", "ref_url", "srsltid", "ttclid",
        "twclid", "vero_id", "wbraid", "yclid",
    }
)  # fmt: skip
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# Every printable ASCII character stays as it is written; the rest is percent-encoded as browsers do.
_URL_SAFE: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# `urlsplit` normalises the host in quadratic time: 200,000 combining marks in it cost 30 s.
MAX_URL_CHARS: Final = 8192
# DNS allows 253 characters; IDNA of anything longer is wasted work.
MAX_HOST_CHARS: Final = 253


def canonical_url(url: str) -> str:
    """The address by which two entries are the same page; what isn't an http(s) address comes back stripped."""
    stripped = url.strip()
    if len(stripped) > MAX_URL_CHARS:
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
    return f"{parts.scheme}://{netloc}{path}" + (f"?{query}" if query else "")


def _canonical_netloc(netloc: str, default_port: int) -> str | None:
    match = re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{0,5}))?", netloc)
    if match is None:
        return None
    host, port = match[1].lower(), match[2]
    if not host.isascii() and len(host) <= MAX_HOST_CHARS:
        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            # A name that no registry would take still has to compare equal to itself.
            return None
    host = host.rstrip(".")
    if not host or re.search(r"[\s\x00-\x20\x7f%\\]|[^\x00-\x7f]", host):
        return None
    return host if not port or int(port) == default_port else f"{host}:{int(port)}"


def _is_tracking(pair: str) -> bool:
    name = unquote(pair.partition("=")[0][:80]).lower()
    return name.startswith("utm_") or name in TRACKING_PARAMETERS
