"""Encrypts fields with Fernet keys that have ids, for every secret that must be readable again.

A sealed (encrypted) value is `<key id>:<token>`. The first key of `FIELD_KEYS` encrypts, and every key decrypts, so
a new key is put first and the old one stays until `manage.py rotate_keys` has encrypted every value again.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.db import models

from config.core.errors import AppError

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.expressions import Expression

    TextField = models.TextField[Any, Any]
else:
    TextField = models.TextField


class CannotDecrypt(AppError):
    """Raised if the key that encrypted a value isn't among `FIELD_KEYS`, or the value is damaged."""


@cache
def _keys(pairs: tuple[str, ...]) -> dict[str, Fernet]:
    """Return the ciphers by key id."""
    keys = {}
    for pair in pairs:
        key_id, _, key = pair.partition(":")
        keys[key_id] = Fernet(key)
    return keys


def seal(value: str) -> str:
    """Return the value encrypted with the first key."""
    keys = _keys(tuple(settings.FIELD_KEYS))
    key_id, key = next(iter(keys.items()))
    return f"{key_id}:{key.encrypt(value.encode()).decode()}"


def unseal(sealed: str) -> str:
    """Return the decrypted value. Raises `CannotDecrypt` if its key is unknown or the value is damaged."""
    key_id, _, token = sealed.partition(":")
    key = _keys(tuple(settings.FIELD_KEYS)).get(key_id)
    if key is None:
        message = f"A secret in the database is encrypted with key {key_id!r}, which isn't in FIELD_KEYS."
        raise CannotDecrypt from LookupError(message)
    try:
        return key.decrypt(token.encode()).decode()
    except InvalidToken as error:
        raise CannotDecrypt from error


class SealedTextField(TextField):
    """Text that is encrypted in the database and plain in memory; it can't be searched."""

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else seal(str(value))

    def from_db_value(
        self, value: str | None, expression: Expression, connection: BaseDatabaseWrapper
    ) -> str | None:
        del expression, connection
        return None if value is None else unseal(value)


class Sealed:
    """A value that stays encrypted in memory until `open()` decrypts it."""

    __slots__ = ("_stored",)

    def __init__(self, stored: str) -> None:
        self._stored = stored

    def __repr__(self) -> str:
        return "Sealed()"

    def open(self) -> str:
        """Return the decrypted value. Raises `CannotDecrypt` if its key is unknown or the value is damaged."""
        return unseal(self._stored)

    def as_stored(self) -> str:
        """Return the encrypted value."""
        return self._stored


class ClosedTextField(SealedTextField):
    """Text that stays encrypted in memory too, so that rows loaded along, as by a join, bring no secret.

    A row gives a `Sealed`, or `None`; plain text that is assigned is encrypted when it is saved.
    """

    def get_prep_value(self, value: Any) -> Any:
        return value.as_stored() if isinstance(value, Sealed) else super().get_prep_value(value)

    def from_db_value(  # type: ignore[override]  # the same value, still encrypted
        self, value: str | None, expression: Expression, connection: BaseDatabaseWrapper
    ) -> Sealed | None:
        del expression, connection
        return None if value is None else Sealed(value)

    def to_python(self, value: Any) -> Any:
        return value


class SealedJSON(Sealed):
    """A JSON object that stays encrypted in memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SealedJSON()"

    def open_object(self) -> dict[str, Any]:
        """Return the decrypted object. Raises `CannotDecrypt` if its key is unknown or the value is damaged."""
        opened: dict[str, Any] = json.loads(self.open())
        return opened


class ClosedJSONField(ClosedTextField):
    """A JSON object that stays encrypted in memory too.

    A row gives a `SealedJSON`, or `None`; an object that is assigned is encrypted when it is saved.
    """

    def get_prep_value(self, value: Any) -> Any:
        if value is None:
            return None
        return value.as_stored() if isinstance(value, Sealed) else seal(json.dumps(value))

    def from_db_value(  # type: ignore[override]  # the same value, still encrypted
        self, value: str | None, expression: Expression, connection: BaseDatabaseWrapper
    ) -> SealedJSON | None:
        del expression, connection
        return None if value is None else SealedJSON(value)
