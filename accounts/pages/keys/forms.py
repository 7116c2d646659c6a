"""What is asked before a key is made or replaced."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from accounts.access import tokens
from accounts.pages.keys.labels import PRESETS
from config.core import limits
from config.core.clock import utc_now

CHOSEN: Final = "chosen"
_TOLD: Final = {
    "sources:read": _("see sources"),
    "sources:write": _("add, change and delete sources"),
    "raw:read": _("see what came in"),
    "raw:write": _("push content"),
    "raw:delete": _("delete what came in; what was made of it is held"),
    "generated:read": _("see what was made of it"),
    "generated:write": _("edit and delete items"),
    "generated:approve": _("approve and reject items"),
    "generated:publish": _("schedule and publish items"),
    "analytics:read": _("see counts and measurements"),
}


def _labelled(strong: object, rest: object) -> str:
    return format_html("<span>{} <span class='soft small'>{}</span></span>", strong, rest)


def _scope(name: str, told: object) -> str:
    return format_html("<span><code>{}</code> <span class='soft small'>{}</span></span>", name, told)


# Of translated words, so made when the page is.
_late = lazy(_labelled, str)
_late_scope = lazy(_scope, str)


class KeyForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=limits.NAME_CHARACTERS,
        help_text=_(
            "What will use it: “Website import”, “Zapier”. You see the name in the list and the log."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    rights = forms.ChoiceField(
        label=_("What may it do?"),
        choices=[
            ("full", _late(PRESETS["full"], _("everything that the API can do"))),
            ("read-only", _late(PRESETS["read-only"], _("sees everything, changes nothing"))),
            ("push-only", _late(PRESETS["push-only"], _("only sends content in; the safest for a website"))),
            (CHOSEN, _late(_("Only what I tick"), _("one right at a time"))),
        ],
        initial="full",
        widget=forms.RadioSelect,
    )
    scopes = forms.MultipleChoiceField(
        label=_("Single rights"),
        choices=[(name, _late_scope(name, _TOLD[name])) for name in tokens.SCOPES],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    kind = forms.ChoiceField(
        label=_("Live or test?"),
        choices=[
            ("live", _late(_("Live"), _("works on your real content"))),
            ("test", _late(_("Test"), _("what it makes is kept apart, goes nowhere and costs nothing"))),
        ],
        initial="live",
        widget=forms.RadioSelect,
    )
    expires = forms.ChoiceField(
        label=_("Works until"),
        choices=[
            ("never", _("I revoke it")),
            ("30", _("30 days from now")),
            ("90", _("90 days from now")),
            ("365", _("365 days from now")),
            ("date", _("a date")),
        ],
        initial="never",
    )
    expires_on = forms.DateField(
        label=_("Last day"),
        required=False,
        help_text=_("It works to the end of this day, in the workspace's time zone."),
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
    )

    def __init__(self, *args: Any, timezone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._zone = ZoneInfo(timezone)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        rights, scopes = cleaned.get("rights"), cleaned.get("scopes")
        if rights == CHOSEN and not scopes and "scopes" not in self.errors:
            self.add_error("scopes", _("Tick at least one right."))
        elif rights and rights != CHOSEN and scopes:
            # Silently giving more, or less, than what was ticked would surprise.
            self.add_error("rights", _("Rights are ticked below: choose “Only what I tick”, or untick them."))
        expires, on = cleaned.get("expires"), cleaned.get("expires_on")
        if expires == "date" and "expires_on" not in self.errors:
            if on is None:
                self.add_error("expires_on", _("Give the last day on which it works."))
            elif self._end_of(on) <= utc_now():
                self.add_error("expires_on", _("This day is over; give a later one."))
        return cleaned

    def chosen_scopes(self) -> tuple[str, ...]:
        rights = self.cleaned_data["rights"]
        return tuple(self.cleaned_data["scopes"]) if rights == CHOSEN else tokens.PRESETS[rights]

    def expires_at(self) -> datetime | None:
        expires = self.cleaned_data["expires"]
        if expires == "never":
            return None
        if expires == "date":
            return self._end_of(self.cleaned_data["expires_on"])
        return utc_now() + timedelta(days=int(expires))

    def _end_of(self, day: date) -> datetime:
        """Midnight after it where the workspace is: no 24 hours later, for a day of a changed clock has others."""
        return datetime.combine(day + timedelta(days=1), time(), self._zone).astimezone(UTC)


class RotateKeyForm(forms.Form):
    overlap = forms.TypedChoiceField(
        label=_("How long does the old key go on working?"),
        choices=[
            ("0", _late(_("Not at all"), _("it is refused at once; choose this when it has leaked"))),
            ("3600", _("1 hour")),
            ("86400", _late(_("24 hours"), _("time to put the new key everywhere"))),
            ("604800", _("7 days")),
        ],
        initial="86400",
        coerce=lambda seconds: timedelta(seconds=int(seconds)),
        widget=forms.RadioSelect,
    )
