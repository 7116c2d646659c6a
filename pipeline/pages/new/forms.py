"""Defines the forms of Create: one for what is pasted, one for what is made of it."""

from __future__ import annotations

import hashlib
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.html import format_html, strip_tags
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core import limits as core_limits
from pipeline import limits
from pipeline.pages import form_choices
from pipeline.text.links import TOP_LEVEL_DOMAINS, has_host

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accounts.models import Workspace

_ADDRESS: Final = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
# Matches an address without a scheme, such as `example.org:8000/news`; a host may have letters of any script.
_BARE_ADDRESS: Final = re.compile(
    r"(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,24}|(?:[^\W_][\w-]*\.)+[^\W\d_]{2,24})(?::[0-9]{1,5})?(?:[/?#][^\s<>\"]*)?",
    re.IGNORECASE,
)
_FEED_SCHEME: Final = re.compile(r"feed:(?://)?(?=https?://)|feed:(?=//)", re.IGNORECASE)
"""Matches the scheme with which browsers pass on a feed's address, as in `feed://…` and `feed:https://…`."""
MAX_TEXT_CHARACTERS: Final = 200_000
"""The longest text that is pasted, or read from a link or a file."""


def address_in(text: str) -> str:
    """Return the URL if the text is a URL with a valid host and nothing else, or an empty text.

    A URL without a scheme gets https://; angle brackets around it and the `feed:` scheme are removed.
    """
    text = text.strip()
    if text.startswith("<") and text.endswith(">"):
        # Mails and Markdown put an address in angle brackets.
        text = text[1:-1]
    text = _FEED_SCHEME.sub("", text, count=1) if text[:5].lower() == "feed:" else text
    text = text.removeprefix("//")
    address = text
    if not _ADDRESS.fullmatch(text):
        address = f"https://{text}" if _is_bare_address(text) else ""
    return address if has_host(address) else ""


def _is_bare_address(text: str) -> bool:
    """Return whether the text is a URL without its scheme, such as example.org/news."""
    match = _BARE_ADDRESS.fullmatch(text)
    # In other scripts two words around a full stop look like a host, so the top-level domain must exist.
    return match is not None and (
        match["host"].isascii() or match["host"].rpartition(".")[2].lower() in TOP_LEVEL_DOMAINS
    )


class PasteForm(forms.Form):
    """The first step: a link, several links or a text, or a file."""

    what = forms.CharField(
        label=gettext_lazy("Link or text"),
        required=False,
        max_length=MAX_TEXT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 8, "placeholder": "https://example.org/news/ferry"}),
        help_text=gettext_lazy("A URL or several, or text, Markdown or HTML"),
    )
    file = forms.FileField(
        label=gettext_lazy("Or a file"),
        required=False,
        help_text=gettext_lazy("Text, Markdown, HTML or CSV; or an image, audio or video to attach"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _mark_alternatives(self, "what", "file")

    def clean(self) -> dict[str, Any]:
        """Require the text or the file."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("what", "").strip() and not cleaned.get("file") and not self.errors:
            self.add_error("what", _("Paste a link or a text, or choose a file."))
        return cleaned


class FormatCheckboxes(forms.CheckboxSelectMultiple):
    """Checkboxes of formats; one that can't be made is unticked and disabled, and says why."""

    reasons: Mapping[str, str] = MappingProxyType({})
    """Why formats can't be made, by their names."""

    def create_option(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the template's context of one checkbox."""
        option: dict[str, Any] = super().create_option(*args, **kwargs)
        reason = self.reasons.get(str(option["value"]))
        if reason is not None:
            option["attrs"].pop("checked", None)
            option["attrs"]["disabled"] = True
            option["selected"] = False
            option["label"] = format_html(
                '<span>{}<br><span class="small why-not">{}</span></span>', option["label"], reason
            )
        return option


class ChosenForm(forms.Form):
    """The choices of formats, number of variants and persona."""

    waiting: Sequence[str] = ()
    """The formats that were chosen and can't be made; whether they can is tried again at each price."""

    engines = forms.MultipleChoiceField(
        label=gettext_lazy("Formats"),
        widget=FormatCheckboxes,
        error_messages={"required": gettext_lazy("Choose at least one format.")},
    )
    variants = forms.TypedChoiceField(
        label=gettext_lazy("Variants per format"),
        coerce=int,
        choices=[(number, str(number)) for number in range(1, limits.VARIANTS + 1)],
        initial=1,
    )
    persona = forms.ChoiceField(
        label=gettext_lazy("Persona"), help_text=gettext_lazy("The voice that posts are written in")
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["engines"].choices = form_choices.engine_choices()
        fields["persona"].choices = form_choices.persona_choices(workspace)

    @property
    def offered_formats(self) -> list[str]:
        """The names of all formats that the form offers."""
        engines: Any = self.fields["engines"]
        return [name for name, _label in engines.choices]

    @property
    def tried_formats(self) -> list[str]:
        """The chosen formats, and those that were chosen before and couldn't be made."""
        posted: Any = self.data
        waiting = posted.getlist("waiting") if self.is_bound else []
        return list(dict.fromkeys([*(self["engines"].value() or ()), *waiting]))

    @property
    def blocked_digest(self) -> str:
        """A digest of the formats that can't be made and why, by which a page sees that they changed."""
        widget: Any = self.fields["engines"].widget
        return hashlib.sha256(repr(sorted(widget.reasons.items())).encode()).hexdigest()[:16]

    def block_formats(self, reasons: Mapping[str, str]) -> list[str]:
        """Untick and disable the formats in `reasons`, and return the chosen ones that are left.

        It ticks none, also if it can be made now: only a person raises the price.
        """
        possible = [name for name in self["engines"].value() or () if name not in reasons]
        self.waiting = [name for name in self.tried_formats if name in reasons]
        if self.is_bound:
            posted: Any = self.data
            updated = posted.copy()
            updated.setlist("engines", possible)
            self.data = updated
        else:
            self.initial["engines"] = possible
        widget: Any = self.fields["engines"].widget
        widget.reasons = reasons
        return possible


class MakeForm(ChosenForm):
    """The second step: the text that was read, to be edited, and the choices of what is made of it."""

    title = forms.CharField(label=gettext_lazy("Title"), required=False, max_length=limits.TITLE_CHARACTERS)
    body = forms.CharField(
        label=gettext_lazy("Text"),
        required=False,
        max_length=MAX_TEXT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text=gettext_lazy("Posts use only this text"),
    )
    url = forms.CharField(
        label=gettext_lazy("Link"),
        required=False,
        max_length=core_limits.URL_CHARACTERS,
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Link for posts"),
    )
    upload = forms.CharField(required=False, widget=forms.HiddenInput)
    is_file = forms.BooleanField(required=False, widget=forms.HiddenInput)
    """True if the text came from a file."""
    price = forms.IntegerField(required=False, widget=forms.HiddenInput)
    """The price in credits that was shown last; nothing is made for a higher price that wasn't shown."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _mark_alternatives(self, "title", "body")

    def clean_url(self) -> str:
        """Return the full URL, or an empty text if none was typed."""
        url: str = self.cleaned_data["url"].strip()
        if url and not address_in(url):
            raise forms.ValidationError(_("Enter a full http:// or https:// URL."), code="address")
        return address_in(url)

    def clean(self) -> dict[str, Any]:
        """Require a text with a letter or digit, unless a file was uploaded."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("upload") and not self.errors:
            error_message = why_no_text(cleaned.get("title", ""), cleaned.get("body", ""))
            if error_message:
                self.add_error("body", error_message)
        return cleaned


def why_no_text(title: str, body: str) -> str:
    """Return a sentence that asks for a text if title and body have no letter or digit, else an empty text."""
    text = f"{title} {body}"
    if any(character.isalnum() for character in strip_tags(text)):
        return ""
    return _("This has no words. Enter a text with words.") if text.strip() else _("Enter a text.")


def _mark_alternatives(form: forms.Form, *names: str) -> None:
    """Mark fields of which one has to be filled, so that the page labels no field of them as optional.

    The fields aren't required, because the other one may be filled.
    """
    for name in names:
        field: Any = form.fields[name]
        field.is_alternative = True
