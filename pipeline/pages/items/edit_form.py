"""Form that edits an item in place: its title, its text, the typed fields of its kind, and its alt texts."""

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
"""The purpose of a slide. Its engine relies on it, and it isn't part of the slide's text."""
_ONE_LINE_KEYS: Final = frozenset({"title", "heading"})
"""Keys of a slide or section whose text stands on one line."""
_EXTRA_PARTS: Final = 1
"""Empty fields after the last part of a thread, to continue it."""
_MAX_ALT_CHARACTERS: Final = 2000
_WIDGET_ROWS: Final[Mapping[str, int]] = {"caption": 4, "script": 10, "meta_description": 3}
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
"""Text that its engine sets and nobody edits; saving keeps it."""
_KEY_ORDER: Final = ("kind", "title", "heading", "headline", "text", "link")
"""Keys of a slide or section in reading order; the database keeps no order of its own."""
# The text of sections is part of a Markdown body too; the body wins where both were changed.
_DERIVED_FIELD: Final = "sections"


class _VerbatimField(forms.CharField):
    """A text field that keeps white space at the ends, so that what nobody touched comes back as it was."""

    def __init__(self, **given: Any) -> None:
        super().__init__(strip=False, max_length=limits.BODY_CHARACTERS, **given)

    def validate(self, value: str) -> None:
        super().validate(value if value.strip() else "")


class ItemEditForm(VersionedForm):
    """The form of one item: it has the fields that the
    item has. `changes` returns only what differs from it.
    """

    title = forms.CharField(
        label=gettext_lazy("Title"),
        required=False,
        max_length=limits.TITLE_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    began = forms.CharField(required=False, widget=forms.HiddenInput)
    """A short hash of what each field held when the form was opened, as JSON."""

    def __init__(self, *args: Any, item: GeneratedItem, assets: Sequence[Asset], **kwargs: Any) -> None:
        self.item = item
        self.described = {f"{_ALT_PREFIX}{file.pk.hex}": file for file in assets if _needs_alt_text(file)}
        super().__init__(*args, **{**kwargs, "initial": _initial_values(item, self.described)})
        self._add_text_fields()
        for name, field in _build_typed_fields(item):
            self.fields[name] = field
        for name, asset in self.described.items():
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
        """Return what the item holds now for a field."""
        return str(self.initial.get(name) or "")

    def merge_with_newest(self) -> None:
        """Update a form that was overtaken: typed text stays, and every other field gets the newest text.

        Else the next save would revert what somebody else wrote in fields that this person never touched.
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
    def differing(self) -> Iterator[tuple[str, tuple[DiffSegment, ...]]]:
        """Yield label and differences of each field whose typed text differs from the newest text."""
        for name in self._editable_fields():
            typed, newest = (
                _normalize_newlines(str(self[name].value() or "")),
                _normalize_newlines(self._newest_value(name)),
            )
            if typed != newest:
                yield str(self[name].label), differences(typed, newest)

    def _add_text_fields(self) -> None:
        """Add a field for the body, or one for each post of a thread and some to continue it."""
        parts = _text_parts(self.item)
        if not parts:
            rows = 6 if TRAITS[self.item.bucket].is_posted else 18
            self.fields["body"] = _VerbatimField(
                label=_body_label(self.item),
                widget=forms.Textarea(attrs={"rows": rows}),
            )
            return
        count = len(parts) + (_EXTRA_PARTS if len(parts) > 1 else 0)
        # Text typed into a post that somebody else has removed meanwhile isn't lost.
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
    def words(self) -> Iterator[BoundField]:
        """The fields of the item's main text."""
        return (self[name] for name in self.fields if name == "body" or name.startswith(_PART_PREFIX))

    @property
    def typed_fields(self) -> Iterator[BoundField]:
        """The typed fields of the item's kind."""
        return (self[name] for name in self.fields if name.startswith(_CONTENT_PREFIX))

    @property
    def alt_texts(self) -> Iterator[tuple[BoundField, str, bool]]:
        """Yield each alt text's field, its file's address, and whether the file is a picture."""
        for name, asset in self.described.items():
            yield self[name], f"/media/{asset.secret}/{asset.name}", asset.kind == "image"

    def clean(self) -> dict[str, Any]:
        """Refuse a thread whose posts are all empty."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        names = [name for name in self.fields if name.startswith(_PART_PREFIX)]
        if names and not self.errors and not any(data.get(name, "").strip() for name in names):
            self.add_error(names[0], _("Enter a text."))
        return data

    def changes(self) -> dict[str, Any]:
        """Return what differs from the item, as `decisions.edit` takes it."""
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
            for name, asset in self.described.items()
            if (alt_text := _prefer_old_newlines(data[name], asset.alt_text)) != asset.alt_text
        }
        if alt_texts:
            changed["alt_texts"] = alt_texts
        return changed

    def _edited_content(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the item's content with what was typed."""
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
            typed = f"{_CONTENT_PREFIX}{name}"
            if kind == OBJECTS and name in content and not _is_derived_from_body(self.item, name):
                content[name] = [
                    {
                        key: _prefer_old_newlines(data[field], value)
                        if (field := f"{typed}_{index}_{key}") in data
                        else value
                        for key, value in member.items()
                    }
                    for index, member in enumerate(content[name])
                ]
            elif kind == TEXTS and typed in data:
                old = content.get(name, [])
                is_same = data[typed] == _join_tags(old)
                content |= _entry_unless_empty(name, old if is_same else _split_tags(data[typed]), content)
            elif typed in data:
                content |= _entry_unless_empty(
                    name, _prefer_old_newlines(data[typed], content.get(name, "")), content
                )
        return content

    def _content_field_name(self, path: str) -> str:
        """Return the name of the field for a content path such
        as `slides[2].text`; for a whole slide, its first field.
        """
        names = [part for part in re.split(r"[.\[\]]+", path) if part]
        wanted = _CONTENT_PREFIX + "_".join(names)
        return next((name for name in self.fields if name == wanted or name.startswith(f"{wanted}_")), wanted)

    def field_of(self, path: str) -> str:
        """Return the name of the field that an error's path belongs to."""
        head, _dot, rest = path.partition(".")
        name = self._content_field_name(rest) if head == "content" else head
        if name == f"{_CONTENT_PREFIX}parts" or (name == "body" and "body" not in self.fields):
            return f"{_PART_PREFIX}0"
        return name


def _needs_alt_text(asset: Asset) -> bool:
    """Return whether readers meet the file; frames of a storyboard are only for reviewing it."""
    return asset.kind in {"image", "video"} and not asset.role.startswith("frame")


def _is_same_content(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return whether both contents are equal, sections aside where they are derived from the body."""
    if _DERIVED_FIELD in new:
        return dict(old) == dict(new)
    return {**old, _DERIVED_FIELD: None} == {**new, _DERIVED_FIELD: None}


def _hash_text(text: str) -> str:
    """Return a short hash of the text, the same for every kind of line end."""
    return blake2b(_normalize_newlines(text).encode(), digest_size=6).hexdigest()


def _parse_hashes(text: str) -> Mapping[str, Any]:
    """Return the hashes that a browser sent; empty where they aren't what a form of ours holds."""
    try:
        hashes = json.loads(text)
    except (RecursionError, ValueError):
        return {}
    return hashes if isinstance(hashes, dict) else {}


def _entry_unless_empty(name: str, value: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value by its name; nothing for a field that never existed and is left empty."""
    return {name: value} if value or name in content else {}


def _normalize_newlines(text: str) -> str:
    """Return the text with single line feeds: browsers end lines with two characters."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _prefer_old_newlines(new: str, old: str) -> str:
    """Return the old text where the new one differs only in line ends, which a browser doesn't keep."""
    return old if _normalize_newlines(new) == _normalize_newlines(old) else _normalize_newlines(new)


def _join_tags(texts: Sequence[str]) -> str:
    return ", ".join(texts)


def _split_tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def _text_parts(item: GeneratedItem) -> list[str]:
    """Return the posts of a text item; empty for any other kind."""
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
    # What follows the body has no field: no platform is sent what would be written there.
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
        yield (
            f"{_CONTENT_PREFIX}{name}",
            _VerbatimField(
                label=label,
                required=False,
                widget=widget,
                help_text=help_text,
            ),
        )


def _build_member_fields(item: GeneratedItem, name: str) -> Iterator[tuple[str, forms.Field]]:
    """Yield a field for each text of a slide or section; the field's name says which one it is."""
    member_label = {"slides": _("Slide"), "sections": _("Section")}.get(name, str(capfirst(name)))
    for index, member in enumerate(item.content.get(name) or ()):
        for key in sorted(member, key=_key_rank):
            value = member[key]
            if key == _KIND_KEY or not isinstance(value, str):
                continue
            label = f"{member_label} {index + 1}: {key.replace('_', ' ')}"
            is_short = key in _ONE_LINE_KEYS
            yield (
                f"{_CONTENT_PREFIX}{name}_{index}_{key}",
                _VerbatimField(
                    label=label,
                    required=False,
                    widget=forms.TextInput() if is_short else forms.Textarea(attrs={"rows": 3}),
                ),
            )


def _key_rank(key: str) -> tuple[int, str]:
    """Return the sort key of a member's key: known keys in reading order, then others by name."""
    return (_KEY_ORDER.index(key) if key in _KEY_ORDER else len(_KEY_ORDER), key)


def _initial_values(item: GeneratedItem, described_assets: Mapping[str, Asset]) -> dict[str, Any]:
    """Return what each field of the form holds at first."""
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
