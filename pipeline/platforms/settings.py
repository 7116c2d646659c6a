"""Turns a platform's settings into a JSON schema, and cleans the values that a person filled in."""

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

# Such as name@mail.example.com: 254 characters at most, without what could end the address in a header.
_MAIL_ADDRESS: Final = re.compile(
    r"(?!.{255})[^\s@<>()\[\],;:\\\"\x00-\x20\x7f]{1,64}@([\w-]{1,63}\.)+[\w-]{2,63}"
)
_TYPES = {"number": "integer", "flag": "boolean"}


def schema_of(settings: Sequence[Setting]) -> dict[str, Any]:
    """Return the JSON schema of the settings that aren't secrets."""
    properties: dict[str, Any] = {}
    for setting in settings:
        if setting.is_secret:
            continue
        schema: dict[str, Any] = {"type": _TYPES.get(setting.kind, "string"), "title": setting.label}
        if setting.help:
            schema["description"] = setting.help
        if setting.choices:
            schema["enum"] = [value for value, _ in setting.choices]
        elif schema["type"] == "string":
            schema["maxLength"] = setting.max_length
        if setting.default is not None:
            schema["default"] = setting.default
        properties[setting.name] = schema
    required = [
        setting.name
        for setting in settings
        if setting.is_required and not setting.is_secret and setting.default is None
    ]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def clean_settings(label: str, settings: Sequence[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as they will be stored, with defaults.

    Raises `ConfigInvalid` with each setting that is unknown, missing or can't be used.
    """
    known = {setting.name: setting for setting in settings if not setting.is_secret}
    problems = [
        Problem(f"config.{name}", "unknown_field", f"{label} has no setting {name!r}.")
        for name in values
        if name not in known
    ]
    clean: dict[str, Any] = {}
    for name, setting in known.items():
        value = values.get(name)
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "":
            if setting.default is not None:
                clean[name] = setting.default
            elif setting.is_required:
                problems.append(Problem(f"config.{name}", "required", f"Give {setting.label}."))
            continue
        message = _refusal_of_value(setting, value)
        if message:
            problems.append(Problem(f"config.{name}", "invalid", message))
        else:
            clean[name] = value
    if problems:
        raise ConfigInvalid(problems)
    return clean


def _refusal_of_value(setting: Setting, value: Any) -> str:
    """Return the message why a value can't be used, or an empty string if it can."""
    if setting.kind == "flag":
        return "" if isinstance(value, bool) else f"{setting.label}: give true or false."
    if setting.kind == "number":
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return "" if is_number else f"{setting.label}: give a whole number."
    if not isinstance(value, str) or len(value) > setting.max_length:
        return f"{setting.label}: give a text of at most {setting.max_length} characters."
    if setting.choices and value not in {choice for choice, _ in setting.choices}:
        return f"{setting.label}: give one of {', '.join(choice for choice, _ in setting.choices)}."
    if setting.kind == "url" and not (is_web_address(value) and _is_safe_transport(value)):
        return f"{setting.label}: give a web address that begins with https://."
    if setting.kind == "email" and not _MAIL_ADDRESS.fullmatch(value):
        return f"{setting.label}: give an email address such as name@example.com."
    return ""


def refusal_of_secret(setting: Setting, value: str) -> str:
    """Return why a secret can't be used, without quoting it, or an empty string if it can."""
    # Copied text often has invisible characters of the category C: control and format characters, surrogates,
    # and unassigned code points.
    visible = value.replace("\r", "").replace("\n", "") if setting.has_lines else value
    if any(category(character).startswith("C") for character in visible):
        return f"{setting.label} holds an invisible character. Type it, or copy it again."
    if not setting.allows_unicode and not value.isascii():
        return f"{setting.label} holds a character that no such value has. Copy it again."
    return ""


def _is_safe_transport(address: str) -> bool:
    """Return whether calls to the address use TLS or never leave the machine."""
    parts = urlsplit(address)
    host = (parts.hostname or "").lower()
    if parts.scheme == "https" or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_web_address(text: str) -> bool:
    """Return whether a text is an HTTP address with a host, without user, fragment and white space.

    The HTTP client checks whether the address is public.
    """
    try:
        parts = urlsplit(text)
        is_port_valid = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and is_port_valid
        and not (parts.username or parts.password or parts.fragment)
        and not any(character.isspace() for character in text)
    )
