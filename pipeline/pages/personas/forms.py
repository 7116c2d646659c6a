"""The persona's editor: five sections, its approved lines, its name and links; and the brand kit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from config.core import limits as core_limits
from pipeline import limits
from pipeline.voices.base import DEFAULT_RATE, MAX_RATE, MIN_RATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.models import Persona

_BETWEEN_POSTS: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_WITH_TEXT: Final = ("starts_with", "ends_with")
_WITH_MOST: Final = ("max_words", "max_hashtags", "max_emoji")
STRUCTURE_FIELDS: Final = ("ends_with_question", *_WITH_TEXT, *_WITH_MOST)
"""Fields of the editor that hold one required structure each."""


def _area(label: Any, help_text: Any, rows: int, most: int = 20_000) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=most,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


def _most(label: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0, max_value=1000)


class NewPersonaForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        help_text=_("A person, desk or brand. Shown on images."),
    )
    language = forms.CharField(
        label=_("Language"), max_length=35, initial="en", help_text=_("For example en or pt-BR")
    )


class PersonaForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), max_length=core_limits.NAME_CHARACTERS, help_text=_("Shown on images")
    )
    handle = forms.CharField(
        label=_("Handle"), max_length=60, required=False, help_text=_("For example @newsroom")
    )
    language = forms.CharField(label=_("Language"), max_length=35, help_text=_("For example en or pt-BR"))
    links = _area(_("Links"), _("One per line. Posts link only to these."), 2)
    who_you_are = _area(_("1. Identity"), _("Facts about you, and your audience"), 5)
    voice = _area(_("2. Voice"), _("For example calm, short, informal"), 4)
    banned_words = _area(_("3. Banned words"), _("One per line"), 4)
    ends_with_question = forms.BooleanField(label=_("Every post ends with a question"), required=False)
    starts_with = forms.CharField(label=_("Starts with"), max_length=200, required=False)
    ends_with = forms.CharField(label=_("Ends with"), max_length=200, required=False)
    max_words = _most(_("Maximum words"))
    max_hashtags = _most(_("Maximum hashtags"))
    max_emoji = _most(_("Maximum emoji"))
    other = _area(_("Other rules"), _("One per line. Guides the AI; not checked."), 2)
    reference_posts = _area(
        _("5. Reference posts"),
        _("Style examples, separated by ---"),
        8,
    )
    approved_lines = _area(_("Approved lines"), _("Sentences to publish word for word, one per line"), 4)
    version = forms.IntegerField(widget=forms.HiddenInput)

    def values(self) -> dict[str, Any]:
        """As the stage takes them."""
        given = self.cleaned_data
        return {
            **{name: given[name] for name in ("name", "handle", "language", "who_you_are", "voice")},
            **{name: given[name].splitlines() for name in ("links", "banned_words", "approved_lines")},
            "reference_posts": _BETWEEN_POSTS.split(given["reference_posts"].replace("\r\n", "\n")),
            "required_structures": self._structures(given),
        }

    def field_of(self, path: str) -> str:
        """The field of a fault; one of a structure is at that structure's own."""
        name, _bracket, rest = path.partition(".")[0].partition("[")
        if name == "required_structures" and rest:
            return str(self.values()[name][int(rest.partition("]")[0])]["kind"])
        return name

    def _structures(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if given["ends_with_question"]:
            found.append({"kind": "ends_with_question"})
        found += [{"kind": kind, "text": given[kind]} for kind in _WITH_TEXT if given[kind]]
        found += [{"kind": kind, "most": given[kind]} for kind in _WITH_MOST if given[kind] is not None]
        lines = (line.strip() for line in given["other"].splitlines())
        return found + [{"kind": "other", "text": line} for line in lines if line]


class DraftForm(forms.Form):
    url = forms.CharField(
        label=_("A page or a feed"),
        required=False,
        max_length=core_limits.URL_CHARACTERS,
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://example.org/"}),
        help_text=_("Your site or feed. robots.txt is respected."),
    )
    posts = _area(
        _("Past posts"),
        _("Separated by blank lines, or by --- if posts contain blank lines"),
        8,
        limits.DRAFT_POSTS * 2_000,
    )


def values_of(persona: Persona) -> dict[str, Any]:
    """What the editor begins with."""
    by_kind = _structures_of(persona.required_structures)
    return {
        **{name: getattr(persona, name) for name in ("name", "handle", "language", "who_you_are", "voice")},
        **{name: "\n".join(getattr(persona, name)) for name in ("links", "banned_words", "approved_lines")},
        **by_kind,
        "reference_posts": "\n---\n".join(persona.reference_posts),
        "version": persona.version,
    }


def values_of_draft(sections: Mapping[str, Any], persona: Persona | None) -> dict[str, Any]:
    """What the editor begins with after a draft: its sections that say something, above what the persona has."""
    found: dict[str, Any] = {"language": "en", "version": 1} if persona is None else values_of(persona)
    texts = ("who_you_are", "voice") if persona is not None else ("name", "language", "who_you_are", "voice")
    found |= {name: sections[name] for name in texts if sections[name]}
    if sections["banned_words"]:
        found["banned_words"] = "\n".join(sections["banned_words"])
    if sections["reference_posts"]:
        found["reference_posts"] = "\n---\n".join(sections["reference_posts"])
    if sections["required_structures"]:
        found |= {**dict.fromkeys(STRUCTURE_FIELDS), **_structures_of(sections["required_structures"])}
    return found


def _structures_of(structures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    by_kind: dict[str, Any] = {"other": []}
    for one in structures:
        if one["kind"] == "other":
            by_kind["other"].append(one["text"])
        else:
            by_kind[one["kind"]] = one.get("text", one.get("most", True))
    return {**by_kind, "other": "\n".join(by_kind["other"])}


def _colour(label: Any) -> forms.CharField:
    return forms.CharField(
        label=label, required=False, max_length=7, widget=forms.TextInput(attrs={"type": "color"})
    )


class LookForm(forms.Form):
    own_colours = forms.BooleanField(label=_("Use own colours"), required=False)
    primary = _colour(_("Background"))
    accent = _colour(_("Accent"))
    portrait = forms.FileField(
        label=_("Portrait"),
        required=False,
        help_text=_("JPEG, PNG or WebP, up to 20 MiB, cropped square. Location data is removed"),
        widget=forms.FileInput(attrs={"accept": "image/jpeg,image/png,image/webp"}),
    )
    without_portrait = forms.BooleanField(label=_("Remove photo"), required=False)
    voice_rate = forms.IntegerField(
        label=_("Speaking rate"),
        required=False,
        min_value=MIN_RATE,
        max_value=MAX_RATE,
        help_text=_("Words per minute. Leave empty for %(usual)d.") % {"usual": DEFAULT_RATE},
    )
    voice_pitch = forms.IntegerField(
        label=_("Voice pitch"),
        required=False,
        min_value=0,
        max_value=100,
        help_text=_("0 (low) to 100 (high). Leave empty for 50."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput)

    def field_of(self, path: str) -> str:
        name = path.removeprefix("brand.")
        return "portrait" if name == "file" else name


class TryPersonaForm(forms.Form):
    words = forms.CharField(
        label=_("Sample text"),
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 5}),
    )
