"""Defines the forms of a webhook source: one tries a mapping, one rotates the sender's secret."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.pages.secret_input import SecretInput
from config.core.api.jsonio import parse_json
from config.core.errors import AppError
from pipeline import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.utils.functional import _StrPromise

FIELDS: Final[Mapping[str, _StrPromise]] = {
    "title": _("Title"),
    "body": _("Body"),
    "url": _("Address"),
    "external_id": _("Sender ID"),
    "author": _("Author"),
    "published_at": _("Published at"),
    "language": _("Language"),
    "media": _("Media"),
    "tags": _("Tags"),
    "metadata": _("Metadata"),
    "body_format": _("Body format"),
}
"""The labels of the fields that a mapping can fill, by name."""


class TryMappingForm(forms.Form):
    """A payload and a mapping, with one field for each expression.

    With `has_delivery`, the payload is that of a stored delivery. Empty fields are left out of the mapping.
    """

    payload = forms.CharField(
        label=_("Payload"),
        required=False,
        help_text=_("JSON"),
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "class": "mono"}),
    )

    def __init__(self, *args: Any, has_delivery: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if has_delivery:
            del self.fields["payload"]
        for name, label in FIELDS.items():
            self.fields[name] = _expression_field(label)

    def clean_payload(self) -> dict[str, Any]:
        """Return the JSON object of the payload, which is an empty object for an empty text."""
        try:
            payload = parse_json((self.cleaned_data.get("payload") or "{}").encode())
        except AppError as error:
            raise forms.ValidationError(str(error)) from error
        if not isinstance(payload, dict):
            raise forms.ValidationError(_("Enter a JSON object."))
        return payload

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path is shown: `title` for `mapping.title`."""
        return path.rpartition(".")[2]

    def wishes(self) -> dict[str, Any]:
        """Return the settings to change; a mapping without any field is `None`, which removes the setting."""
        mapping = {name: self.cleaned_data[name] for name in FIELDS if self.cleaned_data[name]}
        return {"mapping": mapping or None}

    @staticmethod
    def values_of(config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values: an example payload, and the source's mapping."""
        example = json.dumps({"title": "…", "body": "…", "url": "https://…"}, ensure_ascii=False, indent=2)
        return {"payload": example, **config.get("mapping", {})}


def _expression_field(label: Any) -> forms.CharField:
    """Return a field for the expression of one value."""
    return forms.CharField(
        label=label,
        required=False,
        max_length=limits.MAPPING_CHARACTERS,
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off", "class": "mono"}),
    )


class RotateSecretForm(forms.Form):
    """The new secret, which is generated if it is left out, and whether the old one ends at once."""

    secret = forms.CharField(
        label=_("Own secret"),
        required=False,
        max_length=300,
        help_text=_("If the sender provides it (Slack, Stripe). Leave empty to generate one."),
        widget=SecretInput(attrs={"autocomplete": "off"}),
    )
    stops_now = forms.BooleanField(
        label=_("Revoke the old one now"),
        required=False,
        help_text=_("Otherwise it stays valid for a day."),
    )
