"""What a person fills in to connect an account, as a JSON schema and as cleaned values."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from unicodedata import category
from urllib.parse import urlsplit

from pipeline.plugins import ConfigInvalid, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.platforms.base import Setting

_MAIL_ADDRESS: Final = re.compile(
    r"(?!.{255})[^\s@<>()\[\],;:\\\"\x00-\x20\x7f]{1,64}@([\w-]{1,63}\.)+[\w-]{2,63}"
)
_TYPES = {"number": "integer", "flag": "boolean"}


def schema_of(settings: Sequence[Setting]) -> dict[str, Any]:
    """The JSON schema of the settings that are no secrets."""
    properties: dict[str, Any] = {}
    for one in settings:
        if one.is_secret:
            continue
        shown: dict[str, Any] = {"type": _TYPES.get(one.kind, "string"), "title": one.label}
        if one.help:
            shown["description"] = one.help
        if one.choices:
            shown["enum"] = [value for value, _ in one.choices]
        elif shown["type"] == "string":
            shown["maxLength"] = one.max_length
        if one.default is not None:
            shown["default"] = one.default
        properties[one.name] = shown
    required = [one.name for one in settings if one.is_required and not one.is_secret and one.default is None]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def clean_settings(label: str, settings: Sequence[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they will be stored, defaults filled in; raises `ConfigInvalid` naming each that can't be used."""
    known = {one.name: one for one in settings if not one.is_secret}
    problems = [
        Problem(f"config.{name}", "unknown_field", f"{label} has no setting {name!r}.")
        for name in given
        if name not in known
    ]
    kept: dict[str, Any] = {}
    for name, one in known.items():
        value = given.get(name)
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "":
            if one.default is not None:
                kept[name] = one.default
            elif one.is_required:
                problems.append(Problem(f"config.{name}", "required", f"Give {one.label}."))
            continue
        message = _refusal(one, value)
        if message:
            problems.append(Problem(f"config.{name}", "invalid", message))
        else:
            kept[name] = value
    if problems:
        raise ConfigInvalid(problems)
    return kept


def _refusal(one: Setting, value: Any) -> str:
    if one.kind == "flag":
        return "" if isinstance(value, bool) else f"{one.label}: give true or false."
    if one.kind == "number":
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if is_number else f"{one.label}: give a whole number."
    if not isinstance(value, str) or len(value) > one.max_length:
        return f"{one.label}: give a text of at most {one.max_length} characters."
    if one.choices and value not in {choice for choice, _ in one.choices}:
        return f"{one.label}: give one of {', '.join(choice for choice, _ in one.choices)}."
    if one.kind == "url" and not (is_web_address(value) and _travels_safely(value)):
        return f"{one.label}: give a web address that begins with https://."
    if one.kind == "email" and not _MAIL_ADDRESS.fullmatch(value):
        return f"{one.label}: give an email address such as name@example.com."
    return ""


def refusal_of_secret(one: Setting, value: str) -> str:
    """Why a secret can't be used, without quoting it: copied text often brings signs along that nobody sees."""
    # Control and format characters, surrogates, and code points that mean nothing.
    shown = value.replace("\r", "").replace("\n", "") if one.has_lines else value
    if any(category(sign).startswith("C") for sign in shown):
        return f"{one.label} holds an invisible character. Type it, or copy it again."
    if not one.allows_unicode and not value.isascii():
        return f"{one.label} holds a character that no such value has. Copy it again."
    return ""


def _travels_safely(address: str) -> bool:
    """By TLS, or without leaving the machine."""
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    if parts.scheme == "https" or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_web_address(text: str) -> bool:
    """An address that a server can be asked at: no user, no fragment, a host. Whether it is public is the guard's."""
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and port_is_fine
        and not (parts.username or parts.password or parts.fragment)
        and not any(sign.isspace() for sign in text)
    )
