"""Defines the form that edits an item in place: its title, text, alt texts and the typed fields of its bucket."""

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
from pipeline.text.bucket_traits import NUMBER, OBJECT, OBJECTS, TEXTS, TRAITS
from pipeline.text.content_schema import MAX_MEMBERS, ItemWords, text_following_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.forms import BoundField

    from pipeline.models import Asset, GeneratedItem
    from pipeline.pages.items.differences import DiffSegment

_HIDDEN_FIELDS: Final = frozenset({"version", "began"})
_PART_PREFIX: Final = "part_"
_CONTENT_PREFIX: Final = "content_"
_ALT_PREFIX: Final = "alt_"
_KIND_KEY: Final = "kind"
"""The key of a slide's purpose, which isn't edited because the engine relies on it and no reader sees it."""
_ONE_LINE_KEYS: Final = frozenset({"title", "heading"})
"""The keys of a slide or section whose text has a single line."""
_EXTRA_PARTS: Final = 1
"""The number of empty fields after the last post of a thread, to continue it."""
_MAX_ALT_CHARACTERS: Final = 2000
_WIDGET_ROWS: Final[Mapping[str, int]] = {"caption": 4, "script": 10, "meta_description": 3}
"""The lines of the fields that have several; any other field has one line."""
_FIELD_LABELS: Final = {
    "caption": gettext_lazy("Caption"),
    "tags": gettext_lazy("Tags"),
    "script": gettext_lazy("Script"),
    "slug": gettext_lazy("Address"),
    "meta_description": gettext_lazy("Description"),
    "canonical_url": gettext_lazy("Original at"),
    "subject": gettext_lazy("Subject"),
    "preheader": gettext_lazy("Preheader"),
}
_ENGINE_FIELDS: Final = frozenset({"form"})
"""The fields that only the engine sets; saving the form keeps them."""
_KEY_ORDER: Final = ("kind", "title", "heading", "headline", "text", "link")
"""The keys of a slide or section in reading order, because the database keeps no order of keys."""
# The text of sections is part of a Markdown body too; if both were changed, the body wins.
_DERIVED_FIELD: Final = "sections"


class _VerbatimField(forms.CharField):
    """A text field that keeps white space at its ends, so that a text that wasn't edited comes back unchanged."""

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, max_length=limits.BODY_CHARACTERS, **options)

    def validate(self, value: str) -> None:
        # White space alone is no text, so it doesn't fill a required field.
        super().validate(value if value.strip() else "")


class ItemEditForm(VersionedForm):
    """The form of one item, with the fields that the item has; `changes` returns what differs from the item."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        required=False,
        max_length=limits.TITLE_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    began = forms.CharField(required=False, widget=forms.HiddenInput)
    """A JSON object with a short hash of the text that each field held when the form was opened."""

    def __init__(self, *args: Any, item: GeneratedItem, assets: Sequence[Asset], **kwargs: Any) -> None:
        self.item = item
        self.described_assets = {
            f"{_ALT_PREFIX}{file.pk.hex}": file for file in assets if _needs_alt_text(file)
        }
        super().__init__(*args, **{**kwargs, "initial": _initial_values(item, self.described_assets)})
        self._add_text_fields()
        for name, field in _build_typed_fields(item):
            self.fields[name] = field
        for name, asset in self.described_assets.items():
            label = _("Alt text of %(file)s") % {"file": asset.name}
            self.fields[name] = forms.CharField(
                label=label,
                required=False,
                strip=False,
                max_length=_MAX_ALT_CHARACTERS,
                widget=forms.Textarea(attrs={"rows": 2}),
            )
        self.initial["began"] = json.dumps(
            {name: _hash_text(self._newest_value(name)) for name in self._editable_fields()}
        )

    def _editable_fields(self) -> list[str]:
        return [name for name in self.fields if name not in _HIDDEN_FIELDS]

    def _newest_value(self, name: str) -> str:
        """Return the text that the stored item has in a field."""
        return str(self.initial.get(name) or "")

    def merge_with_newest(self) -> None:
        """Update a form after somebody else saved: typed text stays, and every other field gets the newest text.

        Without that, the next save would revert the other person's changes in fields that this person didn't edit.
        """
        posted: Any = self.data
        merged = posted.copy()
        opened_hashes = _parse_hashes(merged.get("began", ""))
        for name in self._editable_fields():
            if name not in merged or _hash_text(merged[name]) == opened_hashes.get(name):
                merged[name] = self._newest_value(name)
        merged["version"], merged["began"] = str(self.item.version), self.initial["began"]
        self.data = merged

    @property
    def conflicts(self) -> Iterator[tuple[str, tuple[DiffSegment, ...]]]:
        """The label and the differences of each field whose typed text differs from the newest text."""
        for name in self._editable_fields():
            typed = _normalize_newlines(str(self[name].value() or ""))
            newest = _normalize_newlines(self._newest_value(name))
            if typed != newest:
                yield str(self[name].label), differences(typed, newest)

    def _add_text_fields(self) -> None:
        """Add a field for the body, or one for each post of a text item and an empty one to continue a thread."""
        parts = _text_parts(self.item)
        if not parts:
            rows = 6 if TRAITS[self.item.bucket].is_posted else 18
            self.fields["body"] = _VerbatimField(
                label=_body_label(self.item),
                widget=forms.Textarea(attrs={"rows": rows}),
            )
            return
        count = len(parts) + (_EXTRA_PARTS if len(parts) > 1 else 0)
        # Text that was typed into a post keeps its field, even if somebody else removed that post meanwhile.
        while count < MAX_MEMBERS and self.data.get(f"{_PART_PREFIX}{count}"):
            count += 1
        for number in range(count):
            is_further = number >= len(parts)
            label = _("Text") if count == 1 else _("Post %(number)d") % {"number": number + 1}
            self.fields[f"{_PART_PREFIX}{number}"] = _VerbatimField(
                label=label,
                required=count == 1,
                widget=forms.Textarea(attrs={"rows": 2 if is_further else 5}),
                help_text=_("Leave empty to end the thread") if is_further else "",
            )

    @property
    def text_fields(self) -> Iterator[BoundField]:
        """The fields of the item's main text."""
        return (self[name] for name in self.fields if name == "body" or name.startswith(_PART_PREFIX))

    @property
    def typed_fields(self) -> Iterator[BoundField]:
        """The typed fields of the item's bucket."""
        return (self[name] for name in self.fields if name.startswith(_CONTENT_PREFIX))

    @property
    def alt_texts(self) -> Iterator[tuple[BoundField, str, bool]]:
        """The field of each alt text, the path of its file, and whether the file is a picture."""
        for name, asset in self.described_assets.items():
            yield self[name], f"/media/{asset.secret}/{asset.name}", asset.kind == "image"

    def clean(self) -> dict[str, Any]:
        """Refuse a thread whose posts are all empty."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in self.fields if name.startswith(_PART_PREFIX)]
        if names and not self.errors and not any(data.get(name, "").strip() for name in names):
            self.add_error(names[0], _("Enter a text."))
        return data

    def changes(self) -> dict[str, Any]:
        """Return what differs from the item, as `decisions.edit` takes it: empty if nothing was changed."""
        data, item = self.cleaned_data, self.item
        changed: dict[str, Any] = {}
        # The title is one line; white space at its ends is never meant.
        if data["title"] != item.title.strip():
            changed["title"] = data["title"]
        content = self._edited_content(data)
        if "body" in data and (body := _prefer_old_newlines(data["body"], item.body)) != item.body:
            changed["body"] = body
        if "body" in changed or _is_derived_from_body(item, _DERIVED_FIELD):
            # Saving derives the sections from the body again.
            content.pop(_DERIVED_FIELD, None)
        if not _is_same_content(item.content, content):
            changed["content"] = content
        alt_texts = {
            asset.pk: alt_text
            for name, asset in self.described_assets.items()
            if (alt_text := _prefer_old_newlines(data[name], asset.alt_text)) != asset.alt_text
        }
        if alt_texts:
            changed["alt_texts"] = alt_texts
        return changed

    def _edited_content(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the item's content with the typed texts; empty posts of a thread are left out."""
        content = dict(self.item.content)
        old_parts = _text_parts(self.item)
        if old_parts:
            names = [name for name in self.fields if name.startswith(_PART_PREFIX)]
            new_texts = [
                _prefer_old_newlines(data[name], old)
                for name, old in zip_longest(names, old_parts, fillvalue="")
            ]
            new_parts = [part for part in new_texts if part.strip()]
            if new_parts != old_parts:
                content["parts"] = new_parts
        for name, kind in TRAITS[self.item.bucket].content.items():
            field_name = f"{_CONTENT_PREFIX}{name}"
            if kind == OBJECTS and name in content and not _is_derived_from_body(self.item, name):
                content[name] = [
                    _edited_member(member, f"{field_name}_{index}", data)
                    for index, member in enumerate(content[name])
                ]
            elif kind == TEXTS and field_name in data:
                old = content.get(name, [])
                is_same = data[field_name] == _join_tags(old)
                new = old if is_same else _split_tags(data[field_name])
                content |= _entry_unless_empty(name, new, content)
            elif field_name in data:
                text = _prefer_old_newlines(data[field_name], content.get(name, ""))
                content |= _entry_unless_empty(name, text, content)
        return content

    def _content_field_name(self, path: str) -> str:
        """Return the name of the field for a content path such as `slides[2].text`.

        A path of a whole slide leads to the slide's first field.
        """
        keys = [part for part in re.split(r"[.\[\]]+", path) if part]
        field_name = _CONTENT_PREFIX + "_".join(keys)
        matches = (name for name in self.fields if name == field_name or name.startswith(f"{field_name}_"))
        return next(matches, field_name)

    def field_of(self, path: str) -> str:
        """Return the name of the field at which an error of this path, such as `content.tags`, is shown."""
        head, _dot, rest = path.partition(".")
        name = self._content_field_name(rest) if head == "content" else head
        if name == f"{_CONTENT_PREFIX}parts" or (name == "body" and "body" not in self.fields):
            return f"{_PART_PREFIX}0"
        return name


def _edited_member(member: Mapping[str, Any], prefix: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a slide or section with the texts of its fields, whose names begin with `prefix`."""
    return {
        key: _prefer_old_newlines(data[field_name], value)
        if (field_name := f"{prefix}_{key}") in data
        else value
        for key, value in member.items()
    }


def _needs_alt_text(asset: Asset) -> bool:
    """Return whether readers see the file; frames of a storyboard are only for reviewing it."""
    return asset.kind in {"image", "video"} and not asset.role.startswith("frame")


def _is_same_content(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether both contents are equal; sections are compared only if the new content has them."""
    if _DERIVED_FIELD in new:
        return dict(old) == dict(new)
    return {**old, _DERIVED_FIELD: None} == {**new, _DERIVED_FIELD: None}


def _hash_text(text: str) -> str:
    """Return a short hash of the text, which is the same for every kind of line end."""
    return blake2b(_normalize_newlines(text).encode(), digest_size=6).hexdigest()


def _parse_hashes(text: str) -> Mapping[str, Any]:
    """Return the hashes that a browser sent, or none if the text isn't a JSON object."""
    try:
        hashes = json.loads(text)
    except (RecursionError, ValueError):
        return {}
    return hashes if isinstance(hashes, dict) else {}


def _entry_unless_empty(name: str, value: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value by its name, or nothing if it is empty and the content has no such field."""
    return {name: value} if value or name in content else {}


def _normalize_newlines(text: str) -> str:
    """Return the text with line feeds as line ends, because browsers end lines with two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _prefer_old_newlines(new: str, old: str) -> str:
    """Return the old text if the new one differs only in line ends, which browsers change, else the new one."""
    return old if _normalize_newlines(new) == _normalize_newlines(old) else _normalize_newlines(new)


def _join_tags(texts: Sequence[str]) -> str:
    return ", ".join(texts)


def _split_tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def _text_parts(item: GeneratedItem) -> list[str]:
    """Return the posts of a text item, or none for an item of another bucket."""
    if item.bucket != "text":
        return []
    return [str(part) for part in item.content.get("parts") or [item.body]]


def _is_derived_from_body(item: GeneratedItem, name: str) -> bool:
    """Return whether a content field is derived from the item's body."""
    return name == _DERIVED_FIELD and item.body_format == "markdown"


def _body_label(item: GeneratedItem) -> str:
    if item.body_format == "markdown":
        return _("Text (Markdown)")
    return _("Text (HTML)") if item.body_format == "html" else _("Text")


def _build_typed_fields(item: GeneratedItem) -> Iterator[tuple[str, forms.Field]]:
    """Yield name and field of each content field that people may edit."""
    # The field that repeats the body is left out, because no platform is sent what would be typed there.
    left_out = _ENGINE_FIELDS | {
        "parts",
        text_following_body(item.bucket, ItemWords(item.body, content=item.content)),
    }
    for name, kind in TRAITS[item.bucket].content.items():
        if kind in {NUMBER, OBJECT} or name in left_out or _is_derived_from_body(item, name):
            continue
        if kind == OBJECTS:
            yield from _build_member_fields(item, name)
            continue
        label = str(_FIELD_LABELS.get(name, capfirst(name.replace("_", " "))))
        rows = _WIDGET_ROWS.get(name)
        widget = (
            forms.Textarea(attrs={"rows": rows}) if rows else forms.TextInput(attrs={"autocomplete": "off"})
        )
        help_text = _("Comma-separated") if kind == TEXTS else ""
        field = _VerbatimField(label=label, required=False, widget=widget, help_text=help_text)
        yield f"{_CONTENT_PREFIX}{name}", field


def _build_member_fields(item: GeneratedItem, name: str) -> Iterator[tuple[str, forms.Field]]:
    """Yield name and field of each text of a slide or section; the name holds its index and key."""
    member_label = {"slides": _("Slide"), "sections": _("Section")}.get(name, str(capfirst(name)))
    for index, member in enumerate(item.content.get(name) or ()):
        for key in sorted(member, key=_key_rank):
            value = member[key]
            if key == _KIND_KEY or not isinstance(value, str):
                continue
            label = f"{member_label} {index + 1}: {key.replace('_', ' ')}"
            widget = forms.TextInput() if key in _ONE_LINE_KEYS else forms.Textarea(attrs={"rows": 3})
            field = _VerbatimField(label=label, required=False, widget=widget)
            yield f"{_CONTENT_PREFIX}{name}_{index}_{key}", field


def _key_rank(key: str) -> tuple[int, str]:
    """Return the sort key of a member's key: known keys in reading order, then others by name."""
    return (_KEY_ORDER.index(key) if key in _KEY_ORDER else len(_KEY_ORDER), key)


def _initial_values(item: GeneratedItem, described_assets: Mapping[str, Asset]) -> dict[str, Any]:
    """Return the initial values of the form's fields."""
    content: Mapping[str, Any] = item.content
    values: dict[str, Any] = {"version": item.version, "title": item.title, "body": item.body}
    values |= {f"{_PART_PREFIX}{number}": part for number, part in enumerate(_text_parts(item))}
    for name, value in content.items():
        if isinstance(value, str):
            values[f"{_CONTENT_PREFIX}{name}"] = value
        elif isinstance(value, list) and all(isinstance(element, str) for element in value):
            values[f"{_CONTENT_PREFIX}{name}"] = _join_tags(value)
        elif isinstance(value, list):
            for index, member in enumerate(value):
                values |= {f"{_CONTENT_PREFIX}{name}_{index}_{key}": text for key, text in member.items()}
    return values | {name: asset.alt_text for name, asset in described_assets.items()}
