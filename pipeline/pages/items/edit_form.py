"""The form in which an item is edited in place: its title, its words, the typed fields of its kind, its alt texts."""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pipeline import limits
from pipeline.pages.items.differences import differences
from pipeline.pages.items.forms import VersionedForm
from pipeline.text.content_buckets import NUMBER, OBJECT, OBJECTS, TEXTS, TRAITS
from pipeline.text.content_schema import MAX_MEMBERS, ItemWords, text_following_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.forms import BoundField

    from pipeline.models import Asset, GeneratedItem
    from pipeline.pages.items.differences import DiffSegment

_HIDDEN: Final = frozenset({"version", "began"})
_PART: Final = "part_"
_CONTENT: Final = "content_"
_ALT: Final = "alt_"
_KIND: Final = "kind"
"""What a slide is for; its engine counts on it, and it is no word of the slide."""
_SHORT: Final = frozenset({"title", "heading"})
"""Members of a slide or section that stand on one line."""
_FURTHER_PARTS: Final = 1
"""Empty fields after the last part of a thread, to write on in."""
_ALT_CHARACTERS: Final = 2000
_LINES: Final[Mapping[str, int]] = {"caption": 4, "script": 10, "meta_description": 3}
_LABELS: Final = {
    "caption": gettext_lazy("Caption"),
    "tags": gettext_lazy("Tags"),
    "script": gettext_lazy("Script"),
    "slug": gettext_lazy("Address"),
    "meta_description": gettext_lazy("Description"),
    "canonical_url": gettext_lazy("Original at"),
    "subject": gettext_lazy("Subject"),
    "preheader": gettext_lazy("Preheader"),
}
_NOT_WRITTEN: Final = frozenset({"form"})
"""Text that nobody writes: its engine says so, and the stage keeps it."""
_ORDER: Final = ("kind", "title", "heading", "headline", "text", "link")
"""Members of a slide or section as they are read; the database keeps no order of its own."""
# Their words stand in the body too, which leads where both were changed.
_FOLLOWS_BODY: Final = "sections"


class _Words(forms.CharField):
    """Words as they are, with the white space at their ends: what nobody touched comes back as it was."""

    def __init__(self, **given: Any) -> None:
        super().__init__(strip=False, max_length=limits.BODY_CHARACTERS, **given)

    def validate(self, value: str) -> None:
        super().validate(value if value.strip() else "")


class ItemEditForm(VersionedForm):
    """Its fields are those that the item has; `changes` holds what differs from the item alone."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        required=False,
        max_length=limits.TITLE_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    began = forms.CharField(required=False, widget=forms.HiddenInput)
    """A short sum of what each field had in it when the form was opened."""

    def __init__(self, *args: Any, item: GeneratedItem, assets: Sequence[Asset], **kwargs: Any) -> None:
        self.item = item
        self.described = {f"{_ALT}{one.pk.hex}": one for one in assets if _is_described(one)}
        super().__init__(*args, **{**kwargs, "initial": _initial(item, self.described)})
        self._add_words()
        for name, field in _typed_fields(item):
            self.fields[name] = field
        for name, asset in self.described.items():
            label = _("Alt text of %(file)s") % {"file": asset.name}
            self.fields[name] = forms.CharField(
                label=label,
                required=False,
                strip=False,
                max_length=_ALT_CHARACTERS,
                widget=forms.Textarea(attrs={"rows": 2}),
            )
        self.initial["began"] = json.dumps(
            {name: _hash_of(self._newest(name)) for name in self._editable_fields()}
        )

    def _editable_fields(self) -> list[str]:
        return [name for name in self.fields if name not in _HIDDEN]

    def _newest(self, name: str) -> str:
        return str(self.initial.get(name) or "")

    def merge_with_newest(self) -> None:
        """Of a form that was overtaken: what was typed stays, and every other field has the newest words.

        Else the next save would take back what somebody else wrote in fields that this person never touched.
        """
        sent: Any = self.data
        again = sent.copy()
        began = _read_hashes(again.get("began", ""))
        for name in self._editable_fields():
            if name not in again or _hash_of(again[name]) == began.get(name):
                again[name] = self._newest(name)
        again["version"], again["began"] = str(self.item.version), self.initial["began"]
        self.data = again

    @property
    def differing(self) -> Iterator[tuple[str, tuple[DiffSegment, ...]]]:
        """Label and differences of each field in which something else was typed than stands there now."""
        for name in self._editable_fields():
            typed, newest = _lines(str(self[name].value() or "")), _lines(self._newest(name))
            if typed != newest:
                yield str(self[name].label), differences(typed, newest)

    def _add_words(self) -> None:
        parts = _parts(self.item)
        if not parts:
            rows = 6 if TRAITS[self.item.bucket].is_posted else 18
            self.fields["body"] = _Words(
                label=_body_label(self.item),
                widget=forms.Textarea(attrs={"rows": rows}),
            )
            return
        count = len(parts) + (_FURTHER_PARTS if len(parts) > 1 else 0)
        # What was typed in a post that somebody else has left out meanwhile is not lost.
        while count < MAX_MEMBERS and self.data.get(f"{_PART}{count}"):
            count += 1
        for number in range(count):
            is_further = number >= len(parts)
            label = _("Text") if count == 1 else _("Post %(number)d") % {"number": number + 1}
            self.fields[f"{_PART}{number}"] = _Words(
                label=label,
                required=count == 1,
                widget=forms.Textarea(attrs={"rows": 2 if is_further else 5}),
                help_text=_("Leave empty to end the thread") if is_further else "",
            )

    @property
    def words(self) -> Iterator[BoundField]:
        return (self[name] for name in self.fields if name == "body" or name.startswith(_PART))

    @property
    def typed_fields(self) -> Iterator[BoundField]:
        return (self[name] for name in self.fields if name.startswith(_CONTENT))

    @property
    def alt_texts(self) -> Iterator[tuple[BoundField, str, bool]]:
        """Each with its file's address, and whether that is a picture."""
        for name, asset in self.described.items():
            yield self[name], f"/media/{asset.secret}/{asset.name}", asset.kind == "image"

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in self.fields if name.startswith(_PART)]
        if names and not self.errors and not any(given.get(name, "").strip() for name in names):
            self.add_error(names[0], _("Enter a text."))
        return given

    def changes(self) -> dict[str, Any]:
        """What differs from the item, as `decisions.edit` takes it."""
        given, item = self.cleaned_data, self.item
        found: dict[str, Any] = {}
        # It is one line, and no white space at its ends is meant.
        if given["title"] != item.title.strip():
            found["title"] = given["title"]
        content = self._content(given)
        if "body" in given and (body := _unless_only_newlines_differ(given["body"], item.body)) != item.body:
            found["body"] = body
        if "body" in found or _follows_body(item, _FOLLOWS_BODY):
            # It is made of the body anew.
            content.pop(_FOLLOWS_BODY, None)
        if not _are_alike(item.content, content):
            found["content"] = content
        alt_texts = {
            asset.pk: written
            for name, asset in self.described.items()
            if (written := _unless_only_newlines_differ(given[name], asset.alt_text)) != asset.alt_text
        }
        if alt_texts:
            found["alt_texts"] = alt_texts
        return found

    def _content(self, given: Mapping[str, Any]) -> dict[str, Any]:
        content = dict(self.item.content)
        former = _parts(self.item)
        if former:
            names = [name for name in self.fields if name.startswith(_PART)]
            written = [
                _unless_only_newlines_differ(given[name], old)
                for name, old in zip_longest(names, former, fillvalue="")
            ]
            parts = [part for part in written if part.strip()]
            if parts != former:
                content["parts"] = parts
        for name, kind in TRAITS[self.item.bucket].content.items():
            typed = f"{_CONTENT}{name}"
            if kind == OBJECTS and name in content and not _follows_body(self.item, name):
                content[name] = [
                    {
                        key: _unless_only_newlines_differ(given[field], value)
                        if (field := f"{typed}_{place}_{key}") in given
                        else value
                        for key, value in member.items()
                    }
                    for place, member in enumerate(content[name])
                ]
            elif kind == TEXTS and typed in given:
                old = content.get(name, [])
                is_same = given[typed] == _joined(old)
                content |= _unless_empty(name, old if is_same else _listed(given[typed]), content)
            elif typed in given:
                content |= _unless_empty(
                    name, _unless_only_newlines_differ(given[typed], content.get(name, "")), content
                )
        return content

    def _content_field(self, path: str) -> str:
        """That of a member such as `slides[2].text`; of a whole slide, its first."""
        names = [part for part in re.split(r"[.\[\]]+", path) if part]
        wanted = _CONTENT + "_".join(names)
        return next((one for one in self.fields if one == wanted or one.startswith(f"{wanted}_")), wanted)

    def field_of(self, path: str) -> str:
        head, _dot, rest = path.partition(".")
        name = self._content_field(rest) if head == "content" else head
        if name == f"{_CONTENT}parts" or (name == "body" and "body" not in self.fields):
            return f"{_PART}0"
        return name


def _is_described(asset: Asset) -> bool:
    """What readers meet; frames of a storyboard are for who looks it over."""
    return asset.kind in {"image", "video"} and not asset.role.startswith("frame")


def _are_alike(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether they differ in nothing, or in what follows the body by itself alone."""
    if _FOLLOWS_BODY in new:
        return dict(old) == dict(new)
    return {**old, _FOLLOWS_BODY: None} == {**new, _FOLLOWS_BODY: None}


def _hash_of(text: str) -> str:
    return blake2b(_lines(text).encode(), digest_size=6).hexdigest()


def _read_hashes(told: str) -> Mapping[str, Any]:
    """Of what a browser sent; empty where it is nothing that a form of ours said."""
    try:
        found = json.loads(told)
    except (RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _unless_empty(name: str, value: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """A field that was never there and is left empty stays out."""
    return {name: value} if value or name in content else {}


def _lines(text: str) -> str:
    """Browsers end lines with two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unless_only_newlines_differ(given: str, old: str) -> str:
    """The old words where they differ from them in nothing that a browser keeps."""
    return old if _lines(given) == _lines(old) else _lines(given)


def _joined(texts: Sequence[str]) -> str:
    return ", ".join(texts)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _parts(item: GeneratedItem) -> list[str]:
    if item.bucket != "text":
        return []
    return [str(part) for part in item.content.get("parts") or [item.body]]


def _follows_body(item: GeneratedItem, name: str) -> bool:
    """Whether the body leads and this member follows it by itself."""
    return name == _FOLLOWS_BODY and item.body_format == "markdown"


def _body_label(item: GeneratedItem) -> str:
    if item.body_format == "markdown":
        return _("Text (Markdown)")
    return _("Text (HTML)") if item.body_format == "html" else _("Text")


def _typed_fields(item: GeneratedItem) -> Iterator[tuple[str, forms.Field]]:
    # What follows the body has no field: no platform is sent what would be written there.
    left_out = _NOT_WRITTEN | {
        "parts",
        text_following_body(item.bucket, ItemWords(item.body, content=item.content)),
    }
    for name, kind in TRAITS[item.bucket].content.items():
        if kind in {NUMBER, OBJECT} or name in left_out or _follows_body(item, name):
            continue
        if kind == OBJECTS:
            yield from _members(item, name)
            continue
        label = str(_LABELS.get(name, capfirst(name.replace("_", " "))))
        rows = _LINES.get(name)
        widget = (
            forms.Textarea(attrs={"rows": rows}) if rows else forms.TextInput(attrs={"autocomplete": "off"})
        )
        helped = _("Comma-separated") if kind == TEXTS else ""
        yield (
            f"{_CONTENT}{name}",
            _Words(
                label=label,
                required=False,
                widget=widget,
                help_text=helped,
            ),
        )


def _members(item: GeneratedItem, name: str) -> Iterator[tuple[str, forms.Field]]:
    """The words of each slide or section, under a name that says which it is."""
    what = {"slides": _("Slide"), "sections": _("Section")}.get(name, str(capfirst(name)))
    for place, member in enumerate(item.content.get(name) or ()):
        for key in sorted(member, key=_rank):
            value = member[key]
            if key == _KIND or not isinstance(value, str):
                continue
            label = f"{what} {place + 1}: {key.replace('_', ' ')}"
            is_short = key in _SHORT
            yield (
                f"{_CONTENT}{name}_{place}_{key}",
                _Words(
                    label=label,
                    required=False,
                    widget=forms.TextInput() if is_short else forms.Textarea(attrs={"rows": 3}),
                ),
            )


def _rank(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER), key)


def _initial(item: GeneratedItem, files: Mapping[str, Asset]) -> dict[str, Any]:
    content: Mapping[str, Any] = item.content
    found: dict[str, Any] = {"version": item.version, "title": item.title, "body": item.body}
    found |= {f"{_PART}{number}": part for number, part in enumerate(_parts(item))}
    for name, value in content.items():
        if isinstance(value, str):
            found[f"{_CONTENT}{name}"] = value
        elif isinstance(value, list) and all(isinstance(one, str) for one in value):
            found[f"{_CONTENT}{name}"] = _joined(value)
        elif isinstance(value, list):
            for place, member in enumerate(value):
                found |= {f"{_CONTENT}{name}_{place}_{key}": words for key, words in member.items()}
    return found | {name: asset.alt_text for name, asset in files.items()}
