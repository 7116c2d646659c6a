"""The two forms of the page New: what is pasted, and what is made of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django import forms
from django.utils.html import strip_tags
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core import limits as core_limits
from pipeline import limits
from pipeline.pages import choices
from pipeline.text.links import TOP_LEVEL_DOMAINS

if TYPE_CHECKING:
    from accounts.models import Workspace

_ADDRESS: Final = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
_BARE_ADDRESS: Final = re.compile(
    r"(?P<host>(?:[a-z0-9-]+\.)+[a-z]{2,24}|(?:[^\W_][\w-]*\.)+[^\W\d_]{2,24})(?::[0-9]{1,5})?(?:[/?#][^\s<>\"]*)?",
    re.IGNORECASE,
)
_FEED_SCHEME: Final = re.compile(r"feed:(?://)?(?=https?://)|feed:(?=//)", re.IGNORECASE)
"""How browsers and feed readers hand on the address of a feed."""
WORDS_CHARACTERS: Final = 200_000


def address_in(text: str) -> str:
    """The address that the text is, and nothing else; empty where it holds more, or none."""
    text = text.strip()
    if text.startswith("<") and text.endswith(">"):
        # As mails and Markdown write it.
        text = text[1:-1]
    text = _FEED_SCHEME.sub("", text, count=1) if text[:5].lower() == "feed:" else text
    text = text.removeprefix("//")
    address = text if _ADDRESS.fullmatch(text) else f"https://{text}" if _is_bare(text) else ""
    return address if _has_host(address) else ""


def _is_bare(text: str) -> bool:
    found = _BARE_ADDRESS.fullmatch(text)
    # Two words in another script with a full stop between them are an address only where there is such a domain.
    return found is not None and (
        found["host"].isascii() or found["host"].rpartition(".")[2].lower() in TOP_LEVEL_DOMAINS
    )


def _has_host(address: str) -> bool:
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        # A bracket of an IPv6 address that isn't closed.
        return False


class PasteForm(forms.Form):
    what = forms.CharField(
        label=gettext_lazy("Link or text"),
        required=False,
        max_length=WORDS_CHARACTERS,
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
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("what", "").strip() and not cleaned.get("file") and not self.errors:
            self.add_error("what", _("Paste a link or a text, or choose a file."))
        return cleaned


class ChosenForm(forms.Form):
    """What is made, in how many variants, and who speaks."""

    engines = forms.MultipleChoiceField(
        label=gettext_lazy("Formats"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one format.")},
    )
    variants = forms.TypedChoiceField(
        label=gettext_lazy("Variants per format"),
        coerce=int,
        choices=[(number, str(number)) for number in range(1, limits.VARIANTS + 1)],
        initial=1,
    )
    persona = forms.ChoiceField(label=gettext_lazy("Persona"))

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["engines"].choices = choices.engines()
        fields["persona"].choices = choices.personas(workspace)


class MakeForm(ChosenForm):
    title = forms.CharField(label=gettext_lazy("Title"), required=False, max_length=limits.TITLE_CHARACTERS)
    body = forms.CharField(
        label=gettext_lazy("Text"),
        required=False,
        max_length=WORDS_CHARACTERS,
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
    """Whether its words came in a file."""
    price = forms.IntegerField(required=False, widget=forms.HiddenInput)
    """The price that was shown last; nothing is made for a higher one before that has been shown too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _mark_alternatives(self, "title", "body")

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"].strip()
        if url and not address_in(url):
            raise forms.ValidationError(_("Enter a full http:// or https:// URL."), code="address")
        return address_in(url)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("upload") and not self.errors:
            why = why_no_text(cleaned.get("title", ""), cleaned.get("body", ""))
            if why:
                self.add_error("body", why)
        return cleaned


def why_no_text(title: str, body: str) -> str:
    """What to do where the two hold no words, as a sentence; empty where they do."""
    text = f"{title} {body}"
    if any(one.isalnum() for one in strip_tags(text)):
        return ""
    return _("This has no words. Enter a text with words.") if text.strip() else _("Enter a text.")


def _mark_alternatives(form: forms.Form, *names: str) -> None:
    """One of these fields is needed: none is optional, and none is required as long as another one is filled."""
    for name in names:
        field: Any = form.fields[name]
        field.is_alternative = True
