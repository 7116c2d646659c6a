"""What people say of personas and topics, made sound: every fault is named, and the rest is stored as it is shown."""

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
"""Words a minute, and from low to high."""
STRUCTURE_MOST: Final = 1000


class Faults(list[Detail]):
    """Everything that is wrong with what was given, found at once."""

    def add(self, field: str, code: str, message: str) -> None:
        self.append(Detail(field, code, message))

    def raise_if_any(self) -> None:
        if self:
            raise Invalid(*self)


def refuse_unknown(given: Mapping[str, Any], known: Collection[str], faults: Faults) -> None:
    for name in given:
        if name not in known:
            faults.add(name, "unknown_field", f"There is no field {name!r}.")


def read_line(value: Any, field: str, faults: Faults, *, most: int, is_needed: bool = False) -> str:
    """One line of text, with its white space collapsed."""
    if not isinstance(value, str) or _BROKEN.search(value):
        faults.add(field, "invalid_type", "Give text.")
        return ""
    said = _SPACE.sub(" ", value).strip()
    if is_needed and not said:
        faults.add(field, "required", "Give at least one word.")
    if len(said) > most:
        faults.add(field, "too_long", f"Give at most {most} characters.")
    return said


def read_text(value: Any, field: str, faults: Faults, *, most: int) -> str:
    """Text with its lines."""
    if not isinstance(value, str) or _BROKEN.search(value):
        faults.add(field, "invalid_type", "Give text.")
        return ""
    said = value.replace("\r\n", "\n").strip()
    if len(said) > most:
        faults.add(field, "too_long", f"Give at most {most} characters.")
    return said


def read_lines(value: Any, field: str, faults: Faults, *, most: int, characters: int) -> list[str]:
    """A list of lines; empty ones are left out, repeated ones stand once."""
    if not _is_list(value, field, faults, most):
        return []
    found = [read_line(one, f"{field}[{index}]", faults, most=characters) for index, one in enumerate(value)]
    return list(dict.fromkeys(one for one in found if one))


def read_texts(value: Any, field: str, faults: Faults, *, most: int, characters: int) -> list[str]:
    """A list of texts with their lines; empty ones are left out, repeated ones stand once."""
    if not _is_list(value, field, faults, most):
        return []
    found = [read_text(one, f"{field}[{index}]", faults, most=characters) for index, one in enumerate(value)]
    return list(dict.fromkeys(one for one in found if one))


def read_whole_number(value: Any, field: str, faults: Faults, *, least: int, most: int) -> int:
    # To JSON 3.0 is a whole number.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        faults.add(field, "invalid_type", "Give a whole number.")
        return least
    if not least <= value <= most:
        faults.add(field, "out_of_range", f"Give a number from {least} to {most}.")
    return value


def read_address(value: Any, field: str, faults: Faults) -> str:
    """An absolute http(s) address, or nothing."""
    said = read_line(value, field, faults, most=core_limits.URL_CHARACTERS)
    if not said:
        return ""
    try:
        parts = urlsplit(said)
        is_sound = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_sound = False
    if not is_sound or " " in said:
        faults.add(field, "invalid_address", "Give an absolute http:// or https:// address.")
    return said


def read_links(value: Any, field: str, faults: Faults) -> list[str]:
    if not _is_list(value, field, faults, limits.PERSONA_LINKS):
        return []
    found = [read_address(one, f"{field}[{index}]", faults) for index, one in enumerate(value)]
    return list(dict.fromkeys(one for one in found if one))


def read_language(value: Any, field: str, faults: Faults) -> str:
    said = read_line(value, field, faults, most=35, is_needed=True)
    if said and _LANGUAGE.fullmatch(said) is None:
        faults.add(field, "pattern", "Give a BCP 47 language tag, such as en or pt-BR.")
    return said


def read_handle(value: Any, field: str, faults: Faults) -> str:
    said = read_line(value, field, faults, most=60)
    if said and _HANDLE.fullmatch(said) is None:
        faults.add(field, "pattern", "Give an account's name, such as @newsroom.")
    return said


def read_brand(value: Any, field: str, faults: Faults) -> dict[str, str]:
    """The brand kit: two colours, a font, the ids of a portrait and a logo, and how its voice speaks in films.

    An empty value takes a key out.
    """
    if not isinstance(value, dict):
        faults.add(field, "invalid_type", "Give an object.")
        return {}
    kept = {}
    for name, one in value.items():
        if name not in _BRAND_KEYS:
            faults.add(f"{field}.{name}", "unknown_field", f"Known are: {', '.join(_BRAND_KEYS)}.")
            continue
        said = read_line(one if one is not None else "", f"{field}.{name}", faults, most=200)
        if name in {"primary", "accent"} and said and _COLOUR.fullmatch(said) is None:
            faults.add(f"{field}.{name}", "pattern", "Give a colour as #RRGGBB.")
        if name in _VOICE and said and not _is_within(said, _VOICE[name]):
            least, most = _VOICE[name]
            faults.add(f"{field}.{name}", "out_of_range", f"Give a whole number from {least} to {most}.")
        if said:
            kept[name] = said
    return kept


def _is_within(said: str, bounds: tuple[int, int]) -> bool:
    is_number = said.isascii() and said.isdecimal() and len(said) <= 6 and str(int(said)) == said
    return is_number and bounds[0] <= int(said) <= bounds[1]


def read_structures(value: Any, field: str, faults: Faults) -> list[dict[str, Any]]:
    """`{"kind", "most" | "text"}` each, as `persona_rules.KINDS` lists them."""
    if not _is_list(value, field, faults, limits.REQUIRED_STRUCTURES):
        return []
    kept: list[dict[str, Any]] = []
    for index, one in enumerate(value):
        place = f"{field}[{index}]"
        named = one.get("kind") if isinstance(one, dict) else None
        kind = KINDS.get(named) if isinstance(named, str) else None
        if kind is None:
            faults.add(f"{place}.kind", "invalid", f"Give one of {', '.join(KINDS)}.")
            continue
        found: dict[str, Any] = {"kind": named}
        if kind.takes == "most":
            found["most"] = read_whole_number(
                one.get("most"), f"{place}.most", faults, least=0, most=STRUCTURE_MOST
            )
        elif kind.takes == "text":
            found["text"] = read_text(
                one.get("text", ""), f"{place}.text", faults, most=limits.STRUCTURE_CHARACTERS
            )
            if not found["text"]:
                faults.add(f"{place}.text", "required", "Say what is required.")
        for key in set(one) - {"kind", kind.takes}:
            faults.add(f"{place}.{key}", "unknown_field", f"A structure {named} has no {key!r}.")
        if found not in kept:
            kept.append(found)
    return kept


def _is_list(value: Any, field: str, faults: Faults, most: int) -> bool:
    if not isinstance(value, list | tuple):
        faults.add(field, "invalid_type", "Give a list.")
        return False
    if len(value) > most:
        faults.add(field, "too_many", f"Give at most {most} of them.")
        return False
    return True
