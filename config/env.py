"""Reads environment variables by type; each function raises `ImproperlyConfigured` for a wrong value."""

from __future__ import annotations

import os
from collections import ChainMap
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import environ
from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from config.core.logs import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = TypeVar("Value")

GENERATE_KEY_COMMAND: Final = (
    'python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
)
ROOT: Final = Path(__file__).resolve().parent.parent
ENV_FILE: Final = ROOT / (os.environ.get("ENV_FILE") or ".env")
"""The settings of a checkout, which `make install` writes; a container has none."""


# The file's values stay out of `os.environ`: a child process that must not have them would inherit them.
environ.Env.ENVIRON = ChainMap({}, os.environ)
try:
    with ENV_FILE.open(encoding="utf-8") as _file:
        environ.Env.read_env(_file)
except OSError as _error:
    if os.environ.get("ENV_FILE") or not isinstance(_error, FileNotFoundError):
        _message = f"The settings in {ENV_FILE} can't be read: {_error.strerror}."
        raise ImproperlyConfigured(_message) from None
_environment = environ.Env()


def _missing(
    name: str, reason: str = "it has no default in this mode. docs/settings.md says what it is for."
) -> ImproperlyConfigured:
    """Return the error for a variable that must be set, in development with how to set it."""
    message = f"{name} must be set: {reason}"
    if not ENV_FILE.exists() and _environment.ENVIRON.get("MODE") != "production":
        message += (
            " For development run `make install`, which writes .env;"
            " for production set the variables that docs/running.md names."
        )
    return ImproperlyConfigured(message)


def _read_typed(name: str, kind: str, reader: Callable[[], Value]) -> Value:
    """Return what `reader` returns; `kind` says in errors what the value must be.

    Raises `ImproperlyConfigured` with the variable's name if the variable must be set, or if `reader` raises
    `ValueError`, `TypeError` or `KeyError` because it can't read the value.
    """
    try:
        return reader()
    except ImproperlyConfigured:
        raise _missing(name) from None
    except (ValueError, TypeError, KeyError):
        message = f"{name} must be {kind}, not {redact(_environment.ENVIRON.get(name))!r}."
        raise ImproperlyConfigured(message) from None


def text(name: str, default: str | None = None) -> str:
    """Return the value without white space at its ends, or `default`; without one the variable must be set."""
    value = _environment.ENVIRON.get(name, "").strip()
    if value:
        return str(value)
    if default is None:
        raise _missing(name)
    return default


def one_of(name: str, choices: Sequence[str], default: str) -> str:
    """Return the value, which must be one of `choices`."""
    value = text(name, default)
    if value not in choices:
        message = f"{name} must be one of {', '.join(choices)}, not {value!r}."
        raise ImproperlyConfigured(message)
    return value


def flag(name: str, *, default: bool) -> bool:
    """Return True for 1, true, yes or on, False for 0, false, no or off, and `default` for an empty value."""
    value = text(name, "").lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    message = f"{name} must be 1 or 0 (true, yes, on; false, no, off), not {value!r}."
    raise ImproperlyConfigured(message)


def whole_number(name: str, default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return the value, which must be a whole number from `minimum` to `maximum`, or `default`."""
    value: int = _read_typed(name, "a whole number", lambda: int(text(name, str(default))))
    if value < minimum or (maximum is not None and value > maximum):
        range_text = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        message = f"{name} must be {range_text}, not {value}."
        raise ImproperlyConfigured(message)
    return value


def comma_list(name: str, default: Sequence[str] = ()) -> list[str]:
    """Return the members of a comma-separated list without empty ones, or `default` for an empty value."""
    value = text(name, "")
    if not value:
        return list(default)
    return [member.strip() for member in value.split(",") if member.strip()]


def pairs(name: str) -> dict[str, str]:
    """Return a comma-separated list of `key=value` as a dict."""
    values = {}
    for pair in comma_list(name):
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            message = f"{name} must be a list of name=value with commas between them, not {pair!r}."
            raise ImproperlyConfigured(message)
        values[key.strip()] = value.strip()
    return values


def database(name: str) -> dict[str, object]:
    """Return the `DATABASES` entry of a `postgres://` address."""
    if urlsplit(text(name)).scheme not in {"postgres", "postgresql"}:
        message = f"{name} must be a postgres:// address; leave it out for SQLite."
        raise ImproperlyConfigured(message)
    entry: dict[str, object] = _read_typed(
        name, "a database address", lambda: dict(_environment.db_url(name))
    )
    return entry


def web_address(name: str, default: str | None = None) -> str:
    """Return an http or https address without path and query, so that paths can be appended."""
    value = text(name, default).rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path or parts.query:
        message = f"{name} must be a web address such as https://pipeline.example, not {value!r}."
        raise ImproperlyConfigured(message)
    return value


def redis_address(name: str) -> str:
    """Return a Redis address, or an empty text if none is set."""
    value = text(name, "")
    if value and urlsplit(value).scheme not in {"redis", "rediss"}:
        message = f"{name} must be a redis:// or rediss:// address; leave it out for the embedded mode."
        raise ImproperlyConfigured(message)
    return value


def sealing_keys(name: str) -> list[str]:
    """Return the `id:key` pairs, at least one, each key as `Fernet.generate_key()` makes it."""
    keys = comma_list(name)
    if not keys:
        raise _missing(
            name,
            "secrets in the database are encrypted with it. It holds id:key pairs; generate a key with: "
            f"{GENERATE_KEY_COMMAND}.",
        )
    for key in keys:
        try:
            Fernet(key.partition(":")[2])
        except ValueError:
            # The value itself is a secret, so it isn't quoted.
            message = f"{name} must hold id:key pairs; generate a key with: {GENERATE_KEY_COMMAND}"
            raise ImproperlyConfigured(message) from None
    return keys


def mail_settings(name: str, default: str) -> dict[str, object]:
    """Return Django's EMAIL_* settings of an address such as `smtp+tls://user:password@host:587`."""
    expected_form = "a mail address such as smtp+tls://user:password@host:587"
    address = text(name, default)
    if urlsplit(address).scheme not in environ.Env.EMAIL_SCHEMES:
        # The address holds a password, so it isn't quoted.
        message = f"{name} must be {expected_form}."
        raise ImproperlyConfigured(message)
    return _read_typed(name, expected_form, lambda: dict(_environment.email_url(name, default=default)))
