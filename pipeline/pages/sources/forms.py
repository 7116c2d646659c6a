"""Defines the forms of sources: the address of a new source, and a source's settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.core import signing
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages.act_messages import first_part
from config.core import limits as core_limits
from config.core.ids import decode, encode
from pipeline import limits
from pipeline.ingest.pasted_url import AddressReading
from pipeline.pages import form_choices
from pipeline.pages.new.forms import address_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.utils.functional import _StrPromise

    from accounts.models import Workspace
    from pipeline.models import Source

_SALT: Final = "sources.found"
_SIGNATURE_SECONDS: Final = 24 * 3600
"""How many seconds the signed readings of a form can be used."""
_WEEK_MINUTES: Final = 60 * 24 * 7
_FIRST_POLL_CHOICES: Final = (
    ("newest", gettext_lazy("Latest")),
    ("all", gettext_lazy("All")),
    ("none", gettext_lazy("New only")),
)


@dataclass(frozen=True)
class SourceTile:
    """A kind of source that has an address, with an example of one."""

    kind: str
    label: _StrPromise
    about: _StrPromise
    example: str


TILES: Final = (
    SourceTile(
        "rss", gettext_lazy("Feed"), gettext_lazy("RSS, Atom or JSON Feed"), "https://example.org/feed.xml"
    ),
    SourceTile(
        "scraper",
        gettext_lazy("Website"),
        gettext_lazy("A site, its sitemap or a page"),
        "https://example.org/news",
    ),
    SourceTile(
        "youtube",
        gettext_lazy("YouTube"),
        gettext_lazy("A channel, playlist or video"),
        "https://www.youtube.com/@name",
    ),
    SourceTile(
        "tiktok",
        gettext_lazy("TikTok"),
        gettext_lazy("An account or a video"),
        "https://www.tiktok.com/@name",
    ),
)


class AddressForm(forms.Form):
    """Asks for the address of a new source."""

    address = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=core_limits.URL_CHARACTERS,
        help_text=gettext_lazy("Feed, website, YouTube channel or TikTok account"),
        widget=forms.TextInput(
            attrs={
                "placeholder": "https://example.org/news",
                "autocomplete": "off",
                "spellcheck": "false",
                "inputmode": "url",
            }
        ),
    )

    def ask_for(self, tile: SourceTile) -> None:
        """Show an example address of that kind; the form accepts addresses of other kinds too."""
        field = self.fields["address"]
        field.help_text = tile.about
        field.widget.attrs |= {"placeholder": tile.example, "autofocus": True}

    def clean_address(self) -> str:
        """Return the address; one without a scheme gets https://."""
        address = address_in(self.cleaned_data["address"])
        if not address:
            message = _("Enter an address such as https://example.org/news.")
            raise forms.ValidationError(message, code="address")
        return address


class FormatsForm(forms.Form):
    """The formats of a source."""

    engines = forms.MultipleChoiceField(
        label=gettext_lazy("Formats"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": gettext_lazy("Choose at least one format."),
            "invalid_choice": gettext_lazy("Choose one of the formats that are listed."),
        },
    )

    def __init__(self, *args: Any, source: Source, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        made_from = "topic" if source.type == "brand" else ""
        choices = form_choices.short_engine_choices(made_from=made_from)
        # The source's other formats are listed too, so that no save drops them unseen.
        others = [name for name in source.engines if name not in dict(choices)]
        fields["engines"].choices = choices + form_choices.unavailable_choices(others)


class BasicsForm(forms.Form):
    """The settings that sources of every kind have."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        required=False,
    )
    engines = forms.MultipleChoiceField(
        label=gettext_lazy("Formats"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Leave empty for the default"),
    )
    persona = forms.ChoiceField(
        label=gettext_lazy("Persona"),
        required=False,
        help_text=gettext_lazy("The voice that posts are written in"),
    )
    outlets = forms.MultipleChoiceField(
        label=gettext_lazy("Outlets"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Leave empty for the default"),
    )
    autopilot = forms.BooleanField(
        label=gettext_lazy("Autopilot: publish items that pass all checks"), required=False
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["engines"].choices = form_choices.engine_choices()
        fields["persona"].choices = [("", _("Default")), *form_choices.persona_choices(workspace)]
        fields["outlets"].choices = form_choices.outlet_choices(workspace)

    def values(self) -> dict[str, Any]:
        """Return the settings as `collect` takes them."""
        form_data = self.cleaned_data
        return {
            **{name: form_data[name] for name in ("engines", "outlets", "autopilot")},
            "name": form_data["name"].strip(),
            "persona_id": decode("per", form_data["persona"]) if form_data["persona"] else None,
        }


class SourceSettingsForm(BasicsForm):
    """The settings of a source that brings entries: how often it is polled, and how old and how many entries may be."""

    first_poll = forms.ChoiceField(
        label=gettext_lazy("First import"), choices=_FIRST_POLL_CHOICES, widget=forms.RadioSelect
    )
    newest = forms.IntegerField(
        label=gettext_lazy("Number of entries"), min_value=1, max_value=limits.FEED_ENTRIES
    )
    poll_interval_minutes = forms.IntegerField(
        label=gettext_lazy("Poll interval (minutes)"),
        required=False,
        min_value=1,
        max_value=_WEEK_MINUTES,
        help_text=gettext_lazy("Leave empty for automatic"),
    )
    max_age_days = forms.IntegerField(
        label=gettext_lazy("Maximum age (days)"), required=False, min_value=1, max_value=3650
    )
    max_burst = forms.IntegerField(
        label=gettext_lazy("Maximum entries per poll"),
        required=False,
        min_value=1,
        max_value=limits.FEED_ENTRIES,
        help_text=gettext_lazy("Others stay in the log"),
    )

    def values(self) -> dict[str, Any]:
        form_data = self.cleaned_data
        first_poll: Any = form_data["first_poll"]
        return {
            **super().values(),
            **{name: form_data[name] for name in ("poll_interval_minutes", "max_age_days", "max_burst")},
            "first_poll": {"newest": form_data["newest"]} if first_poll == "newest" else first_poll,
        }


class ChooseForm(SourceSettingsForm):
    """The settings of a new source; `found` holds its signed readings, and `kind` the index of the chosen one."""

    field_order = ("kind",)
    kind = forms.ChoiceField(label=gettext_lazy("Read as"), widget=forms.RadioSelect)
    found = forms.CharField(widget=forms.HiddenInput)
    newest = forms.IntegerField(
        label=gettext_lazy("Number of entries"),
        min_value=1,
        max_value=limits.FEED_ENTRIES,
        initial=limits.FIRST_POLL_NEWEST,
    )

    def __init__(self, *args: Any, readings: Sequence[AddressReading], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["kind"].choices = [
            (str(number), _reading_label(reading)) for number, reading in enumerate(readings)
        ]

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path, such as `config.url`, is shown."""
        name = first_part(path)
        return "kind" if name in {"config", "type"} else name


def _reading_label(reading: AddressReading) -> str:
    return format_html(
        '<span>{}<br><span class="soft small anywhere">{}</span></span>', reading.label, reading.about
    )


def sign_readings(readings: Sequence[AddressReading]) -> str:
    """Return the readings as a signed text, for a hidden field."""
    return signing.dumps(
        [[reading.type, reading.config, reading.label, reading.about] for reading in readings], salt=_SALT
    )


def load_readings(text: str) -> list[AddressReading]:
    """Return the readings that `sign_readings` signed, or none if the signature is wrong or has expired."""
    try:
        return [
            AddressReading(*fields) for fields in signing.loads(text, salt=_SALT, max_age=_SIGNATURE_SECONDS)
        ]
    except signing.BadSignature:
        return []


INITIAL_VALUES: Final[Mapping[str, Any]] = {
    "kind": "0",
    "first_poll": "newest",
    "newest": limits.FIRST_POLL_NEWEST,
}
"""The initial values of a new source's form."""


def values_of(source: Source) -> dict[str, Any]:
    """Return the initial values of an existing source's form."""
    first_poll: Any = source.first_poll
    newest = first_poll["newest"] if isinstance(first_poll, dict) else limits.FIRST_POLL_NEWEST
    names = ("name", "engines", "outlets", "autopilot", "poll_interval_minutes", "max_age_days", "max_burst")
    return {
        **{name: getattr(source, name) for name in names},
        "persona": encode("per", source.persona_id) if source.persona_id else "",
        "first_poll": first_poll if isinstance(first_poll, str) else "newest",
        "newest": newest,
    }
