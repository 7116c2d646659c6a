"""Validates the fields of personas and topics: collects all faults, and returns the values as they are stored.

With faults the returned values have no meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from config.core import limits as core_limits
from config.core.errors import Detail, Invalid
from pipeline import limits
from pipeline.engines.checks.persona_rules import KINDS
from pipeline.voices.base import MAX_RATE, MIN_RATE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_BROKEN: Final = re.compile(r"[\x00\ud800-\udfff]")
_SPACE: Final = re.compile(r"\s+")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_HANDLE: Final = re.compile(r"@?[\w][\w.\-]*(@[\w\-]+(\.[\w\-]+)+)?")
_COLOUR: Final = re.compile(r"#[0-9A-Fa-f]{6}")
_BRAND_KEYS: Final = ("primary", "accent", "font", "portrait", "logo", "voice_rate", "voice_pitch")
_VOICE: Final = {"voice_rate": (MIN_RATE, MAX_RATE), "voice_pitch": (0, 100)}
"""The bounds of the rate in words per minute, and of the pitch from low to high."""
MAX_STRUCTURE_VALUE: Final = 1000
"""The largest number in a required structure."""


class Faults(list[Detail]):
    """Collects all faults of the input, to report them at once."""

    def add(self, field: str, code: str, message: str) -> None:
        self.append(Detail(field, code, message))

    def raise_if_any(self) -> None:
        if self:
            raise Invalid(*self)


def refuse_unknown(fields: Mapping[str, Any], known: Collection[str], faults: Faults) -> None:
    """Add a fault for each field that isn't known."""
    for name in fields:
        if name not in known:
            faults.add(name, "unknown_field", f"There is no field {name!r}.")


def read_line(value: Any, field: str, faults: Faults, *, most: int, is_needed: bool = False) -> str:
    """Return one line of text, with its white space collapsed. Adds to `faults`, as each reader below does."""
    if not isinstance(value, str) or _BROKEN.search(value):
        faults.add(field, "invalid_type", "Give text.")
        return ""
    line = _SPACE.sub(" ", value).strip()
    if is_needed and not line:
        faults.add(field, "required", "Give at least one word.")
    if len(line) > most:
        faults.add(field, "too_long", f"Give at most {most} characters.")
    return line


def read_text(value: Any, field: str, faults: Faults, *, most: int) -> str:
    """Return a text with its lines, without white space around it."""
    if not isinstance(value, str) or _BROKEN.search(value):
        faults.add(field, "invalid_type", "Give text.")
        return ""
    text = value.replace("\r\n", "\n").strip()
    if len(text) > most:
        faults.add(field, "too_long", f"Give at most {most} characters.")
    return text


def read_lines(value: Any, field: str, faults: Faults, *, most: int, characters: int) -> list[str]:
    """Return a list of lines without empty and repeated ones."""
    if not _is_list(value, field, faults, most):
        return []
    lines = [
        read_line(entry, f"{field}[{index}]", faults, most=characters) for index, entry in enumerate(value)
    ]
    return list(dict.fromkeys(line for line in lines if line))


def read_texts(value: Any, field: str, faults: Faults, *, most: int, characters: int) -> list[str]:
    """Return a list of texts with their lines, without empty and repeated ones."""
    if not _is_list(value, field, faults, most):
        return []
    texts = [
        read_text(entry, f"{field}[{index}]", faults, most=characters) for index, entry in enumerate(value)
    ]
    return list(dict.fromkeys(text for text in texts if text))


def read_whole_number(value: Any, field: str, faults: Faults, *, least: int, most: int) -> int:
    """Return a whole number within the bounds."""
    # In JSON 3.0 is a whole number too.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        faults.add(field, "invalid_type", "Give a whole number.")
        return least
    if not least <= value <= most:
        faults.add(field, "out_of_range", f"Give a number from {least} to {most}.")
    return value


def read_address(value: Any, field: str, faults: Faults) -> str:
    """Return an absolute http(s) address, or an empty string."""
    address = read_line(value, field, faults, most=core_limits.URL_CHARACTERS)
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not is_valid or " " in address:
        faults.add(field, "invalid_address", "Give an absolute http:// or https:// address.")
    return address


def read_links(value: Any, field: str, faults: Faults) -> list[str]:
    """Return the addresses of a persona, each once."""
    if not _is_list(value, field, faults, limits.PERSONA_LINKS):
        return []
    links = [read_address(entry, f"{field}[{index}]", faults) for index, entry in enumerate(value)]
    return list(dict.fromkeys(link for link in links if link))


def read_language(value: Any, field: str, faults: Faults) -> str:
    """Return a BCP 47 language tag."""
    language = read_line(value, field, faults, most=35, is_needed=True)
    if language and _LANGUAGE.fullmatch(language) is None:
        faults.add(field, "pattern", "Give a BCP 47 language tag, such as en or pt-BR.")
    return language


def read_handle(value: Any, field: str, faults: Faults) -> str:
    """Return an account's name, or an empty string."""
    handle = read_line(value, field, faults, most=60)
    if handle and _HANDLE.fullmatch(handle) is None:
        faults.add(field, "pattern", "Give an account's name, such as @newsroom.")
    return handle


def read_brand(value: Any, field: str, faults: Faults) -> dict[str, str]:
    """Return the brand kit (colours, font, ids of pictures, rate and pitch of its voice), without empty values."""
    if not isinstance(value, dict):
        faults.add(field, "invalid_type", "Give an object.")
        return {}
    kit = {}
    for name, entry in value.items():
        if name not in _BRAND_KEYS:
            faults.add(f"{field}.{name}", "unknown_field", f"Known are: {', '.join(_BRAND_KEYS)}.")
            continue
        text = read_line(entry if entry is not None else "", f"{field}.{name}", faults, most=200)
        if name in {"primary", "accent"} and text and _COLOUR.fullmatch(text) is None:
            faults.add(f"{field}.{name}", "pattern", "Give a colour as #RRGGBB.")
        if name in _VOICE and text and not _is_within(text, _VOICE[name]):
            minimum, maximum = _VOICE[name]
            faults.add(f"{field}.{name}", "out_of_range", f"Give a whole number from {minimum} to {maximum}.")
        if text:
            kit[name] = text
    return kit


def _is_within(text: str, bounds: tuple[int, int]) -> bool:
    is_number = text.isascii() and text.isdecimal() and len(text) <= 6 and str(int(text)) == text
    return is_number and bounds[0] <= int(text) <= bounds[1]


def read_structures(value: Any, field: str, faults: Faults) -> list[dict[str, Any]]:
    """Return structures, each once, as `{"kind", "most" | "text"}` by `persona_rules.KINDS`."""
    if not _is_list(value, field, faults, limits.REQUIRED_STRUCTURES):
        return []
    structures: list[dict[str, Any]] = []
    for index, entry in enumerate(value):
        path = f"{field}[{index}]"
        kind_name = entry.get("kind") if isinstance(entry, dict) else None
        kind = KINDS.get(kind_name) if isinstance(kind_name, str) else None
        if kind is None:
            faults.add(f"{path}.kind", "invalid", f"Give one of {', '.join(KINDS)}.")
            continue
        structure: dict[str, Any] = {"kind": kind_name}
        if kind.takes == "most":
            structure["most"] = read_whole_number(
                entry.get("most"), f"{path}.most", faults, least=0, most=MAX_STRUCTURE_VALUE
            )
        elif kind.takes == "text":
            structure["text"] = read_text(
                entry.get("text", ""), f"{path}.text", faults, most=limits.STRUCTURE_CHARACTERS
            )
            if not structure["text"]:
                faults.add(f"{path}.text", "required", "Say what is required.")
        for key in set(entry) - {"kind", kind.takes}:
            faults.add(f"{path}.{key}", "unknown_field", f"A structure {kind_name} has no {key!r}.")
        if structure not in structures:
            structures.append(structure)
    return structures


def _is_list(value: Any, field: str, faults: Faults, maximum: int) -> bool:
    if not isinstance(value, list | tuple):
        faults.add(field, "invalid_type", "Give a list.")
        return False
    if len(value) > maximum:
        faults.add(field, "too_many", f"Give at most {maximum} of them.")
        return False
    return True
