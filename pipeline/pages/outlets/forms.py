"""Builds forms from the settings that a platform declares; a secret isn't shown again once it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages.secret_input import SecretInput
from config.core import limits as core_limits
from pipeline import limits
from pipeline.outlets.check_account import is_fixed
from pipeline.outlets.short_links import counted_types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.models import Outlet
    from pipeline.platforms.base import Platform, Setting

# `accounts/pages/kept_forms.py` keeps no field in the session whose name contains "secret".
_CONFIG_PREFIX: Final = "config_"
_SECRET_PREFIX: Final = "secret_"


class PlatformSettingsForm(forms.Form):
    """Has a field for each setting in `chosen`, in addition to the fields that a subclass declares.

    The name of a secret's field begins with `secret_`, that of any other with `config_`.
    """

    def __init__(self, *args: Any, chosen: Iterable[Setting], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in chosen:
            prefix = _SECRET_PREFIX if setting.is_secret else _CONFIG_PREFIX
            self.fields[prefix + setting.name] = _form_field(setting)

    def config(self) -> dict[str, Any]:
        """Return the values that aren't secret, by the setting's name."""
        return self._values_with_prefix(_CONFIG_PREFIX)

    def credentials(self) -> dict[str, Any]:
        """Return the secrets, by the setting's name."""
        return self._values_with_prefix(_SECRET_PREFIX)

    def _values_with_prefix(self, prefix: str) -> dict[str, Any]:
        return {
            name.removeprefix(prefix): value
            for name, value in self.cleaned_data.items()
            if name.startswith(prefix)
        }

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path, such as `credentials.token`, is shown."""
        head, _dot, remainder = path.partition(".")
        prefix = {"config": _CONFIG_PREFIX, "credentials": _SECRET_PREFIX}.get(head)
        return f"{prefix}{remainder.split('.')[0]}" if prefix else head


class ConnectForm(PlatformSettingsForm):
    """All settings and secrets of a platform, followed by an optional name."""

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
    """Asks for the secrets again, and for the settings that name the account or where the secrets are sent."""

    def __init__(self, *args: Any, outlet: Outlet, platform: Platform, **kwargs: Any) -> None:
        settings = [setting for setting in platform.settings if setting.is_secret or is_fixed(setting)]
        super().__init__(*args, chosen=settings, initial=_initial_values(outlet, settings), **kwargs)


class OutletEditForm(PlatformSettingsForm):
    """The settings of a connected outlet that can be changed without a new log-in."""

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
        settings = [
            setting for setting in platform.settings if not setting.is_secret and not is_fixed(setting)
        ]
        initial = {
            **{name: getattr(outlet, name) for name in ("name", "per_day", "gap_minutes", "discloses_ai")},
            "counts_clicks": outlet.clicks_since is not None,
            **_initial_values(outlet, settings),
        }
        super().__init__(*args, chosen=settings, initial={**initial, **kwargs.pop("initial", {})}, **kwargs)
        if not counted_types(platform):
            # Links in posts on this platform are never shortened, so no click could be counted.
            del self.fields["counts_clicks"]
        if platform.is_own_feed:
            self.fields["config_title"] = forms.CharField(
                label=_("Feed title"),
                max_length=200,
                required=False,
                initial=outlet.config.get("title", ""),
                help_text=_("Leave empty for the workspace's name"),
            )


def _initial_values(outlet: Outlet, settings: Iterable[Setting]) -> dict[str, Any]:
    return {
        _CONFIG_PREFIX + setting.name: outlet.config.get(setting.name)
        for setting in settings
        if not setting.is_secret
    }


def _form_field(setting: Setting) -> forms.Field:
    """Return the field for a setting, by its kind; a secret's is a password field."""
    # The platform says which fields must be filled in. One with a default may be empty, and a flag may be off.
    options: dict[str, Any] = {
        "label": setting.label,
        "help_text": setting.help,
        "required": setting.is_required and setting.default is None and setting.kind != "flag",
        "initial": setting.default,
    }
    attributes = {"autocomplete": "off", "spellcheck": "false"}
    if setting.is_secret or setting.kind == "password":
        widget = SecretInput(attrs={"autocomplete": "new-password"})
        return forms.CharField(**options, max_length=setting.max_length, widget=widget)
    if setting.kind == "flag":
        return forms.BooleanField(**options)
    if setting.kind == "number":
        return forms.IntegerField(**options, min_value=0)
    if setting.choices:
        return forms.ChoiceField(**options, choices=setting.choices)
    if setting.kind == "url":
        text_input = forms.TextInput(attrs={**attributes, "inputmode": "url", "placeholder": "https://"})
        return forms.CharField(**options, max_length=setting.max_length, widget=text_input)
    if setting.kind == "email":
        email_input = forms.EmailInput(attrs=attributes)
        return forms.CharField(**options, max_length=setting.max_length, widget=email_input)
    return forms.CharField(**options, max_length=setting.max_length, widget=forms.TextInput(attrs=attributes))
