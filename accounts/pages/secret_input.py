"""Defines the input of a secret, which survives an error elsewhere in its form without being shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.forms import BaseForm, PasswordInput
from django.utils.html import format_html
from django.utils.translation import gettext as _

from config.core.clock import utc_now
from config.core.encrypted_fields import CannotDecrypt, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.safestring import SafeString

KEPT_SECONDS: Final = 3600
"""Seconds for which a form can be sent again without typing its secret again."""


class SecretInput(PasswordInput):
    """A password field that keeps what was typed when its form is shown again with errors.

    An address is shown as it was typed, because it is no password and a person has to see what is wrong with it. Any
    other secret comes back encrypted, for `owner` alone; the field may stay empty then.
    """

    owner = ""
    """The user who may send the kept secret; `set_owner` sets it, and nothing is kept without one."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        """Return what was typed, or else the secret that an earlier sending of the form kept."""
        typed = super().value_from_datadict(data, files, name)
        return typed or self._open(str(data.get(_kept_name(name), ""))) or typed

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Return the template's context: with the address that was typed, or without having to be filled again."""
        context = super().get_context(name, value, attrs)
        if not value:
            return context
        widget = context["widget"]
        if _is_address(value):
            widget |= {"type": "text", "value": value}
        elif self.owner:
            widget["attrs"].pop("required", None)
        return context

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the input, with the kept secret in a hidden one beside it."""
        html = super().render(name, value, attrs, renderer)
        if not value or _is_address(value) or not self.owner:
            return html
        return format_html(
            '{}<input type="hidden" name="{}" value="{}"><span class="help">{}</span>',
            html,
            _kept_name(name),
            self._close(str(value)),
            _("Still stored. Leave empty to keep it."),
        )

    def _close(self, secret: str) -> str:
        expires_at = int(utc_now().timestamp()) + KEPT_SECONDS
        return seal(json.dumps(["form", self.owner, expires_at, secret]))

    def _open(self, kept: str) -> str:
        """Return the kept secret, or an empty text if it is somebody else's, has expired or is damaged."""
        try:
            purpose, owner, expires_at, secret = json.loads(unseal(kept))
        except (CannotDecrypt, ValueError, TypeError):
            return ""
        is_valid = purpose == "form" and owner == self.owner and expires_at > utc_now().timestamp()
        return str(secret) if is_valid and self.owner else ""


def set_owner(form: BaseForm, owner: str) -> None:
    """Let the secrets of a form be kept for this user."""
    for field in form.fields.values():
        if isinstance(field.widget, SecretInput):
            field.widget.owner = owner


def _is_address(value: Any) -> bool:
    return str(value).lower().startswith(("http://", "https://"))


def _kept_name(name: str) -> str:
    return f"{name}_kept"
