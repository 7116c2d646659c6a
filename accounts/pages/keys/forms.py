"""Provides the forms that create and rotate a key."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from accounts.access import tokens
from accounts.pages.keys.rows import PRESET_LABELS
from config.core import limits
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOSEN: Final = "chosen"
"""The value of `rights` for scopes that are ticked one by one."""
_SCOPE_LABELS: Final = {
    "sources:read": _("read sources"),
    "sources:write": _("manage sources"),
    "raw:read": _("read raw items"),
    "raw:write": _("push content"),
    "raw:delete": _("delete raw items; puts their items on hold"),
    "generated:read": _("read items"),
    "generated:write": _("edit and delete items"),
    "generated:approve": _("approve and reject items"),
    "generated:publish": _("publish items"),
    "analytics:read": _("read analytics"),
}


def _choice_html(label: object, explanation: object) -> str:
    return format_html("<span>{} <span class='soft small'>{}</span></span>", label, explanation)


def _scope_html(name: str, label: object) -> str:
    return format_html("<span><code>{}</code> <span class='soft small'>{}</span></span>", name, label)


# Built when the page is rendered, in the language of its reader.
_lazy_choice = lazy(_choice_html, str)
_lazy_scope = lazy(_scope_html, str)


class KeyForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=limits.NAME_CHARACTERS,
        help_text=_("For example “Website import” or “Zapier”"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    rights = forms.ChoiceField(
        label=_("Access"),
        choices=[
            # The least risky one comes first, because many people keep it.
            ("read-only", _lazy_choice(PRESET_LABELS["read-only"], _("Read everything, change nothing"))),
            ("push-only", _lazy_choice(PRESET_LABELS["push-only"], _("Push content only"))),
            ("full", _lazy_choice(PRESET_LABELS["full"], _("All API operations"))),
            (CHOSEN, _lazy_choice(_("Custom"), _("Choose permissions"))),
        ],
        initial="read-only",
        widget=forms.RadioSelect,
    )
    scopes = forms.MultipleChoiceField(
        label=_("Permissions"),
        choices=[(name, _lazy_scope(name, _SCOPE_LABELS[name])) for name in tokens.SCOPES],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    kind = forms.ChoiceField(
        label=_("Mode"),
        choices=[
            ("live", _lazy_choice(_("Live"), _("Your real content"))),
            ("test", _lazy_choice(_("Test"), _("Sandbox: nothing is published or charged"))),
        ],
        initial="live",
        widget=forms.RadioSelect,
    )
    expires = forms.ChoiceField(
        label=_("Expires"),
        choices=[
            ("never", _("No expiry")),
            ("30", _("30 days")),
            ("90", _("90 days")),
            ("365", _("365 days")),
            ("date", _("On a date")),
        ],
        initial="never",
    )
    expires_on = forms.DateField(
        label=_("Last day"),
        required=False,
        help_text=_("Valid to the end of this day"),
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, timezone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._zone = ZoneInfo(timezone)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        self._validate_rights(cleaned)
        self._validate_expiry(cleaned)
        return cleaned

    def _validate_rights(self, cleaned: Mapping[str, Any]) -> None:
        rights, scopes = cleaned.get("rights"), cleaned.get("scopes")
        if rights == CHOSEN and not scopes and "scopes" not in self.errors:
            self.add_error("scopes", _("Choose at least one permission."))
        elif rights and rights != CHOSEN and scopes:
            # Silently giving more, or less, than what was ticked would be a surprise.
            self.add_error("rights", _("Choose “Custom” to use the permissions below."))

    def _validate_expiry(self, cleaned: Mapping[str, Any]) -> None:
        if cleaned.get("expires") != "date" or "expires_on" in self.errors:
            return
        last_day = cleaned.get("expires_on")
        if last_day is None:
            self.add_error("expires_on", _("Enter the last day."))
        elif last_day == date.max:
            # Python's calendar has no midnight at the end of its last day.
            self.add_error("expires_on", _("Enter an earlier day."))
        elif self._end_of_day(last_day) <= utc_now():
            self.add_error("expires_on", _("Enter a later day."))

    def chosen_scopes(self) -> tuple[str, ...]:
        """Return the scopes of the preset, or those that were ticked."""
        rights = self.cleaned_data["rights"]
        return tuple(self.cleaned_data["scopes"]) if rights == CHOSEN else tokens.PRESETS[rights]

    def expires_at(self) -> datetime | None:
        """Return the expiry in UTC, or `None` for a key without expiry."""
        expires = self.cleaned_data["expires"]
        if expires == "never":
            return None
        if expires == "date":
            return self._end_of_day(self.cleaned_data["expires_on"])
        return utc_now() + timedelta(days=int(expires))

    def _end_of_day(self, day: date) -> datetime:
        """Return the midnight at the end of the day in the workspace's time zone, in UTC.

        It isn't always 24 hours after the midnight before, because the clocks may change on that day.
        """
        return datetime.combine(day + timedelta(days=1), time(), self._zone).astimezone(UTC)


class RotateKeyForm(forms.Form):
    overlap = forms.TypedChoiceField(
        label=_("Old key stays valid for"),
        choices=[
            ("0", _lazy_choice(_("Revoke now"), _("If it has leaked"))),
            ("3600", _("1 hour")),
            ("86400", _lazy_choice(_("24 hours"), _("Time to replace it"))),
            ("604800", _("7 days")),
        ],
        initial="86400",
        coerce=lambda seconds: timedelta(seconds=int(seconds)),
        widget=forms.RadioSelect,
    )
