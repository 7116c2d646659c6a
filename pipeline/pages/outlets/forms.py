"""Forms that are built from what a platform asks for. A secret is typed in, and never shown again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core import limits as core_limits
from pipeline import limits
from pipeline.outlets.check_account import is_fixed
from pipeline.outlets.short_links import counted_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.models import Outlet
    from pipeline.platforms.base import Platform, Setting

# A name with "secret" in it is kept in no session: `accounts/pages/form_recovery.py`.
_CONFIG: Final = "config_"
_SECRET: Final = "secret_"


class PlatformSettingsForm(forms.Form):
    """The settings of a platform that `chosen` names, beside whatever a subclass has."""

    def __init__(self, *args: Any, chosen: Iterable[Setting], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in chosen:
            prefix = _SECRET if setting.is_secret else _CONFIG
            self.fields[prefix + setting.name] = _field(setting)

    def config(self) -> dict[str, Any]:
        return self._given(_CONFIG)

    def credentials(self) -> dict[str, Any]:
        return self._given(_SECRET)

    def _given(self, prefix: str) -> dict[str, Any]:
        return {
            name.removeprefix(prefix): value
            for name, value in self.cleaned_data.items()
            if name.startswith(prefix)
        }

    def field_of(self, path: str) -> str:
        head, _dot, rest = path.partition(".")
        prefix = {"config": _CONFIG, "credentials": _SECRET}.get(head)
        return f"{prefix}{rest.split('.')[0]}" if prefix else head


class ConnectForm(PlatformSettingsForm):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        required=False,
        help_text=gettext_lazy("Leave empty for the account's name"),
    )

    def __init__(self, *args: Any, platform: Platform, **kwargs: Any) -> None:
        super().__init__(*args, chosen=platform.settings, **kwargs)
        self.order_fields([name for name in self.fields if name != "name"])


class ReconnectForm(PlatformSettingsForm):
    """The secrets, and what says where they are sent."""

    def __init__(self, *args: Any, outlet: Outlet, platform: Platform, **kwargs: Any) -> None:
        chosen = [one for one in platform.settings if one.is_secret or is_fixed(one)]
        super().__init__(*args, chosen=chosen, initial=_initial(outlet, chosen), **kwargs)


class OutletEditForm(PlatformSettingsForm):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=core_limits.NAME_CHARACTERS)
    per_day = forms.IntegerField(
        label=gettext_lazy("Posts per 24 hours (maximum)"),
        required=False,
        min_value=1,
        max_value=limits.OUTLET_PER_DAY_MOST,
        help_text=gettext_lazy("Leave empty for the platform's limit"),
    )
    gap_minutes = forms.IntegerField(
        label=gettext_lazy("Minutes between posts (minimum)"),
        required=False,
        min_value=1,
        max_value=limits.OUTLET_GAP_MINUTES_MOST,
        help_text=gettext_lazy("Leave empty for the platform's minimum"),
    )
    discloses_ai = forms.BooleanField(
        label=gettext_lazy("Label as AI where supported"),
        required=False,
    )
    counts_clicks = forms.BooleanField(
        label=gettext_lazy("Track clicks"),
        required=False,
        help_text=gettext_lazy("New posts use short links that count clicks. No cookies, no personal data."),
    )

    def __init__(self, *args: Any, outlet: Outlet, platform: Platform, **kwargs: Any) -> None:
        chosen = [one for one in platform.settings if not one.is_secret and not is_fixed(one)]
        initial = {
            **{name: getattr(outlet, name) for name in ("name", "per_day", "gap_minutes", "discloses_ai")},
            "counts_clicks": outlet.clicks_since is not None,
            **_initial(outlet, chosen),
        }
        super().__init__(*args, chosen=chosen, initial={**initial, **kwargs.pop("initial", {})}, **kwargs)
        if not counted_types(platform):
            # What is published there links straight.
            del self.fields["counts_clicks"]
        if platform.is_own_feed:
            self.fields["config_title"] = forms.CharField(
                label=_("Feed title"),
                max_length=200,
                required=False,
                initial=outlet.config.get("title", ""),
                help_text=_("Leave empty for the workspace's name"),
            )


def _initial(outlet: Outlet, chosen: Iterable[Setting]) -> dict[str, Any]:
    return {_CONFIG + one.name: outlet.config.get(one.name) for one in chosen if not one.is_secret}


def _field(setting: Setting) -> forms.Field:
    # What a person must fill in is the platform's to say: it names every field at once.
    common: dict[str, Any] = {
        "label": setting.label,
        "help_text": setting.help,
        "required": setting.is_required and setting.default is None and setting.kind != "flag",
        "initial": setting.default,
    }
    plain = {"autocomplete": "off", "spellcheck": "false"}
    if setting.is_secret or setting.kind == "password":
        widget = forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"})
        return forms.CharField(**common, max_length=setting.max_length, widget=widget)
    if setting.kind == "flag":
        return forms.BooleanField(**common)
    if setting.kind == "number":
        return forms.IntegerField(**common, min_value=0)
    if setting.choices:
        return forms.ChoiceField(**common, choices=setting.choices)
    if setting.kind == "url":
        address = forms.TextInput(attrs={**plain, "inputmode": "url", "placeholder": "https://"})
        return forms.CharField(**common, max_length=setting.max_length, widget=address)
    if setting.kind == "email":
        mail = forms.EmailInput(attrs=plain)
        return forms.CharField(**common, max_length=setting.max_length, widget=mail)
    return forms.CharField(**common, max_length=setting.max_length, widget=forms.TextInput(attrs=plain))
