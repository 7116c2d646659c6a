"""Defines the forms of personas: for a new one, the editor, a draft, the brand kit and a trial of it."""

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

_POST_SEPARATOR: Final = re.compile(r"^\s*-{3,}\s*$", re.MULTILINE)
_TEXT_STRUCTURES: Final = ("starts_with", "ends_with")
_MAXIMUM_STRUCTURES: Final = ("max_words", "max_hashtags", "max_emoji")
STRUCTURE_FIELDS: Final = ("ends_with_question", *_TEXT_STRUCTURES, *_MAXIMUM_STRUCTURES)
"""The fields of the editor that hold one required structure each."""


def _text_area(label: Any, help_text: Any, rows: int, max_characters: int = 20_000) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=max_characters,
        widget=forms.Textarea(attrs={"rows": rows}),
    )


def _maximum_field(label: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0, max_value=1000)


class NewPersonaForm(forms.Form):
    """What a new persona must have: a name and a language."""

    name = forms.CharField(
        label=_("Name"),
        max_length=core_limits.NAME_CHARACTERS,
        help_text=_("A person, desk or brand. Shown on images."),
    )
    language = forms.CharField(
        label=_("Language"), max_length=35, initial="en", help_text=_("For example en or pt-BR")
    )


class PersonaForm(forms.Form):
    """The editor: name and links, the five numbered sections, and the approved lines."""

    name = forms.CharField(
        label=_("Name"), max_length=core_limits.NAME_CHARACTERS, help_text=_("Shown on images")
    )
    handle = forms.CharField(
        label=_("Handle"), max_length=60, required=False, help_text=_("For example @newsroom")
    )
    language = forms.CharField(label=_("Language"), max_length=35, help_text=_("For example en or pt-BR"))
    links = _text_area(_("Links"), _("One per line. Posts link only to these."), 2)
    who_you_are = _text_area(_("1. Identity"), _("Facts about you, and your audience"), 5)
    voice = _text_area(_("2. Voice"), _("For example calm, short, informal"), 4)
    banned_words = _text_area(_("3. Banned words"), _("One per line"), 4)
    ends_with_question = forms.BooleanField(label=_("Every post ends with a question"), required=False)
    starts_with = forms.CharField(label=_("Starts with"), max_length=200, required=False)
    ends_with = forms.CharField(label=_("Ends with"), max_length=200, required=False)
    max_words = _maximum_field(_("Maximum words"))
    max_hashtags = _maximum_field(_("Maximum hashtags"))
    max_emoji = _maximum_field(_("Maximum emoji"))
    other = _text_area(_("Other rules"), _("One per line. Guides the AI; not checked."), 2)
    reference_posts = _text_area(
        _("5. Reference posts"),
        _("Style examples, separated by ---"),
        8,
    )
    approved_lines = _text_area(_("Approved lines"), _("Sentences to publish word for word, one per line"), 4)
    version = forms.IntegerField(widget=forms.HiddenInput)

    def values(self) -> dict[str, Any]:
        """Return the values as `pipeline.personas.crud` takes them."""
        cleaned = self.cleaned_data
        return {
            **{name: cleaned[name] for name in ("name", "handle", "language", "who_you_are", "voice")},
            **{name: cleaned[name].splitlines() for name in ("links", "banned_words", "approved_lines")},
            "reference_posts": _POST_SEPARATOR.split(cleaned["reference_posts"].replace("\r\n", "\n")),
            "required_structures": self._structures_of_form(cleaned),
        }

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path is shown; the fields of structures are their kinds."""
        name, _bracket, rest = path.partition(".")[0].partition("[")
        if name == "required_structures" and rest:
            return str(self.values()[name][int(rest.partition("]")[0])]["kind"])
        return name

    def _structures_of_form(self, cleaned: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the required structures that the form has, each as its kind with its text or maximum."""
        structures: list[dict[str, Any]] = []
        if cleaned["ends_with_question"]:
            structures.append({"kind": "ends_with_question"})
        structures += [{"kind": kind, "text": cleaned[kind]} for kind in _TEXT_STRUCTURES if cleaned[kind]]
        structures += [
            {"kind": kind, "most": cleaned[kind]} for kind in _MAXIMUM_STRUCTURES if cleaned[kind] is not None
        ]
        lines = (line.strip() for line in cleaned["other"].splitlines())
        return structures + [{"kind": "other", "text": line} for line in lines if line]


class DraftForm(forms.Form):
    """What a draft is made of: a page or feed, past posts, or both."""

    url = forms.CharField(
        label=_("A page or a feed"),
        required=False,
        max_length=core_limits.URL_CHARACTERS,
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://example.org/"}),
        help_text=_("Your site or feed. robots.txt is respected."),
    )
    posts = _text_area(
        _("Past posts"),
        _("Separated by blank lines, or by --- if posts contain blank lines"),
        8,
        limits.DRAFT_POSTS * 2_000,
    )


def values_of(persona: Persona) -> dict[str, Any]:
    """Return the editor's initial values for a persona."""
    by_kind = _structure_values(persona.required_structures)
    return {
        **{name: getattr(persona, name) for name in ("name", "handle", "language", "who_you_are", "voice")},
        **{name: "\n".join(getattr(persona, name)) for name in ("links", "banned_words", "approved_lines")},
        **by_kind,
        "reference_posts": "\n---\n".join(persona.reference_posts),
        "version": persona.version,
    }


def values_of_draft(sections: Mapping[str, Any], persona: Persona | None) -> dict[str, Any]:
    """Return the editor's initial values for a draft.

    Sections that the draft leaves empty keep what the persona has.
    """
    values: dict[str, Any] = {"language": "en", "version": 1} if persona is None else values_of(persona)
    texts = ("who_you_are", "voice") if persona is not None else ("name", "language", "who_you_are", "voice")
    values |= {name: sections[name] for name in texts if sections[name]}
    if sections["banned_words"]:
        values["banned_words"] = "\n".join(sections["banned_words"])
    if sections["reference_posts"]:
        values["reference_posts"] = "\n---\n".join(sections["reference_posts"])
    if sections["required_structures"]:
        values |= {**dict.fromkeys(STRUCTURE_FIELDS), **_structure_values(sections["required_structures"])}
    return values


def _structure_values(structures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the editor's values of required structures; that of one without text or maximum is `True`."""
    by_kind: dict[str, Any] = {"other": []}
    for structure in structures:
        if structure["kind"] == "other":
            by_kind["other"].append(structure["text"])
        else:
            by_kind[structure["kind"]] = structure.get("text", structure.get("most", True))
    return {**by_kind, "other": "\n".join(by_kind["other"])}


def _colour_field(label: Any) -> forms.CharField:
    return forms.CharField(
        label=label, required=False, max_length=7, widget=forms.TextInput(attrs={"type": "color"})
    )


class LookForm(forms.Form):
    """The brand kit: colours, portrait, and rate and pitch of the voice."""

    own_colours = forms.BooleanField(label=_("Use own colours"), required=False)
    primary = _colour_field(_("Background"))
    accent = _colour_field(_("Accent"))
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
        """Return the form's field for the path of an error."""
        name = path.removeprefix("brand.")
        return "portrait" if name == "file" else name


class TryPersonaForm(forms.Form):
    """The text of which samples of the branding are made."""

    words = forms.CharField(
        label=_("Sample text"),
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 5}),
    )
