"""Defines the input of a secret, which is never sent back to the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.forms import PasswordInput
from django.utils.html import format_html
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


class SecretInput(PasswordInput):
    """A password field that asks to type its secret again if its form is shown again with errors.

    An address is shown as it was typed, because it is no password and a person has to see what is wrong with it.
    """

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        """Return the template's context: with the address that was typed, or with the help of `render`."""
        context = super().get_context(name, value, attrs)
        widget = context["widget"]
        if _is_address(value):
            widget |= {"type": "text", "value": value}
        elif value:
            described_by = f"{widget['attrs'].get('aria-describedby', '')} {_help_id(name)}"
            widget["attrs"]["aria-describedby"] = described_by.strip()
        return context

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the input; if a secret was typed before, with the help that it isn't kept."""
        html = super().render(name, value, attrs, renderer)
        if not value or _is_address(value):
            return html
        help_text = _("Type it again: it isn't kept after an error.")
        return format_html('{}<span class="help" id="{}">{}</span>', html, _help_id(name), help_text)


def _is_address(value: Any) -> bool:
    return str(value).lower().startswith(("http://", "https://"))


def _help_id(name: str) -> str:
    return f"id_{name}_again"
