"""The forms of the sources' pages: an address, and what is made of what comes from there."""

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
from pipeline.pages import choices
from pipeline.pages.new.forms import address_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.utils.functional import _StrPromise

    from accounts.models import Workspace
    from pipeline.models import Source

_SALT: Final = "sources.found"
_WEEK_MINUTES: Final = 60 * 24 * 7
_FIRST: Final = (
    ("newest", gettext_lazy("Latest")),
    ("all", gettext_lazy("All")),
    ("none", gettext_lazy("New only")),
)


@dataclass(frozen=True)
class SourceTile:
    """A kind of source that is found by an address, with an example of one."""

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
        """Show an address of that kind as the example; any other is taken too."""
        field = self.fields["address"]
        field.help_text = tile.about
        field.widget.attrs |= {"placeholder": tile.example, "autofocus": True}

    def clean_address(self) -> str:
        address = address_in(self.cleaned_data["address"])
        if not address:
            message = _("Enter an address such as https://example.org/news.")
            raise forms.ValidationError(message, code="address")
        return address


class BasicsForm(forms.Form):
    """What is set of a source of any kind."""

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
    persona = forms.ChoiceField(label=gettext_lazy("Persona"), required=False)
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
        fields["engines"].choices = choices.engines()
        fields["persona"].choices = [("", _("Default")), *choices.personas(workspace)]
        fields["outlets"].choices = choices.outlets(workspace)

    def values(self) -> dict[str, Any]:
        """As the stage takes them."""
        given = self.cleaned_data
        return {
            **{name: given[name] for name in ("engines", "outlets", "autopilot")},
            "name": given["name"].strip(),
            "persona_id": decode("per", given["persona"]) if given["persona"] else None,
        }


class SourceSettingsForm(BasicsForm):
    """Of a source that brings entries: how often, how old, how many."""

    first_poll = forms.ChoiceField(
        label=gettext_lazy("First import"), choices=_FIRST, widget=forms.RadioSelect
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
        given = self.cleaned_data
        first: Any = given["first_poll"]
        return {
            **super().values(),
            **{name: given[name] for name in ("poll_interval_minutes", "max_age_days", "max_burst")},
            "first_poll": {"newest": given["newest"]} if first == "newest" else first,
        }


class ChooseForm(SourceSettingsForm):
    """`found` is what the address turned out to be, signed; `kind` is the number of the way that was chosen."""

    field_order = ("kind",)
    kind = forms.ChoiceField(label=gettext_lazy("Read as"), widget=forms.RadioSelect)
    found = forms.CharField(widget=forms.HiddenInput)
    newest = forms.IntegerField(
        label=gettext_lazy("Number of entries"),
        min_value=1,
        max_value=limits.FEED_ENTRIES,
        initial=limits.FIRST_POLL_NEWEST,
    )

    def __init__(self, *args: Any, found: Sequence[AddressReading], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["kind"].choices = [(str(number), _kind(one)) for number, one in enumerate(found)]

    def field_of(self, path: str) -> str:
        name = first_part(path)
        return "kind" if name in {"config", "type"} else name


def _kind(found: AddressReading) -> str:
    return format_html(
        '<span>{}<br><span class="soft small anywhere">{}</span></span>', found.label, found.about
    )


def sealed(found: Sequence[AddressReading]) -> str:
    return signing.dumps([[one.type, one.config, one.label, one.about] for one in found], salt=_SALT)


def opened(text: str) -> list[AddressReading]:
    """What `sealed` made, and nothing else; empty for everything that isn't ours, or is a day old."""
    try:
        return [AddressReading(*one) for one in signing.loads(text, salt=_SALT, max_age=24 * 3600)]
    except signing.BadSignature:
        return []


FRESH: Final[Mapping[str, Any]] = {
    "kind": "0",
    "first_poll": "newest",
    "newest": limits.FIRST_POLL_NEWEST,
}
"""What the form of a new source begins with."""


def values_of(source: Source) -> dict[str, Any]:
    """What the form of a source begins with."""
    first: Any = source.first_poll
    newest = first["newest"] if isinstance(first, dict) else limits.FIRST_POLL_NEWEST
    names = ("name", "engines", "outlets", "autopilot", "poll_interval_minutes", "max_age_days", "max_burst")
    return {
        **{name: getattr(source, name) for name in names},
        "persona": encode("per", source.persona_id) if source.persona_id else "",
        "first_poll": first if isinstance(first, str) else "newest",
        "newest": newest,
    }
