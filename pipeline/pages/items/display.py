"""Formats what people read about an item: its progress, its checks, who wrote it, and what it cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core.ids import decode
from pipeline import labels
from pipeline.models import Angle, GeneratedItemStatus, GenerationStage, Revision
from pipeline.states import EDITABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.utils.functional import _StrPromise

    from pipeline.models import GeneratedItem


def progress_label(item: GeneratedItem) -> str:
    """Return how far the item's run is and what it waits for, or an empty text if it isn't being generated."""
    if item.status != GeneratedItemStatus.GENERATING:
        return ""
    run = item.generation
    waits_for = (run.error or {}).get("message", "")
    if run.stage == GenerationStage.RENDER and item.bucket == "video":
        if run.progress:
            return _("Rendering: %(percent)s %%") % {"percent": run.progress}
        return waits_for or _("Rendering soon")
    return " ".join(filter(None, (waits_for, str(labels.STAGES.get(run.stage, "")))))


_ITEM_ID: Final = re.compile(r"\bgen_[0-9a-z]{26}\b")


def without_ids(message: str) -> str:
    """Return the message with each item's id replaced by `another item`."""
    return _ITEM_ID.sub(_("another item"), message)


def with_links(message: str, workspace: UUID) -> SafeString:
    """Return the message as HTML, with each item's id replaced by a link to that item."""

    def link_of(named: re.Match[str]) -> str:
        key = decode("gen", named[0])
        if key is None:
            return named[0]
        address = reverse("item_page", kwargs={"ws": workspace, "gen": key})
        return format_html('<a href="{}">{}</a>', address, _("another item"))

    return mark_safe(_ITEM_ID.sub(link_of, conditional_escape(message)))  # noqa: S308  escaped, with our own links


@dataclass(frozen=True)
class ShownCheck:
    """The label and the message of a check, as pages show them."""

    label: str
    message: SafeString


@dataclass(frozen=True)
class Checks:
    """The checks of an item's text, by outcome."""

    failed: tuple[ShownCheck, ...]
    warning: tuple[ShownCheck, ...]
    passed: tuple[ShownCheck, ...]
    is_missing: bool = False
    """True if the item has a text whose present version hasn't been checked."""
    is_edited: bool = False
    leads: bool = False
    """True if the page shows the checks first: the item can be edited, and a check found something or is missing."""

    def __len__(self) -> int:
        """Return the number of checks; if the text wasn't checked, that counts as one more."""
        return len(self.failed) + len(self.warning) + len(self.passed) + self.is_missing


def checks_of(item: GeneratedItem) -> Checks:
    """Return the checks of the item's present text, by outcome."""
    grouped: dict[str, list[ShownCheck]] = {"failed": [], "warning": [], "passed": []}
    for check in item.present_checks:
        code = str(check.get("code", ""))
        label = str(labels.CHECKS.get(code, "")) or capfirst(code.replace("_", " "))
        check_seen = ShownCheck(label, with_links(str(check.get("message", "")), item.workspace_id))
        grouped.setdefault(str(check.get("outcome")), []).append(check_seen)
    is_missing = item.revision > 0 and not item.is_checked
    return Checks(
        failed=tuple(grouped["failed"]),
        warning=tuple(grouped["warning"]),
        passed=tuple(grouped["passed"]),
        is_missing=is_missing,
        is_edited=item.revision > 1,
        leads=item.status in EDITABLE_ITEMS and (is_missing or bool(grouped["failed"] or grouped["warning"])),
    )


@dataclass(frozen=True)
class MadeBy:
    """Who wrote an item's text, and what that cost in tokens, US dollars and credits.

    `writer` names who wrote the first text; `label` also says if a person has edited it since; `disclosure` says
    how platforms label the text.
    """

    is_offline: bool
    writer: str
    label: str
    disclosure: str
    tokens_in: int
    tokens_out: int
    dollars: str
    credits: int
    prompt: str


def origin_of(item: GeneratedItem) -> str:
    """Return where the item's raw item came from, or an empty text for an item without a source."""
    if item.source is None:
        return ""
    external_id = item.raw_item.external_id if item.raw_item is not None else ""
    return labels.origin_of(item.source.name, external_id, is_push=item.source.is_push)


def made_by(item: GeneratedItem) -> MadeBy | None:
    """Return who wrote the item and what that cost, or `None` if nothing was written yet."""
    generator: Mapping[str, Any] = item.generator
    if not generator:
        return None
    is_offline = bool(generator.get("offline"))
    is_edited = item.revision > 1
    if is_offline:
        writer = _("Without AI · from the source")
        label = _("Without AI · edited") if is_edited else writer
        disclosure = ""
    else:
        model = {"model": generator.get("model", "")}
        writer = _("AI: %(model)s") % model
        label = _("AI: %(model)s · edited") % model if is_edited else writer
        disclosure = _("Labelled as AI where supported")
    return MadeBy(
        is_offline=is_offline,
        writer=writer,
        label=label,
        disclosure=disclosure,
        tokens_in=int(generator.get("input_tokens") or 0),
        tokens_out=int(generator.get("output_tokens") or 0),
        dollars=_format_dollars(str(generator.get("cost_usd") or "0")),
        credits=int(generator.get("credits") or 0),
        prompt=str(generator.get("prompt_version") or ""),
    )


def _format_dollars(amount: str) -> str:
    """Return the amount without trailing zeros but with two decimals at least: `0.0042` for `0.004200`."""
    dollars, _point, decimals = amount.partition(".")
    return f"{dollars}.{decimals.rstrip('0').ljust(2, '0')}"


# Matches the name of a numbered text on the screen, such as `point 2`.
_NUMBERED_NAME: Final = re.compile(r"(.+?) (\d+)")
_SCENE_TEXT_LABELS: Final[Mapping[str, _StrPromise]] = {
    "title": gettext_lazy("Title"),
    "point": gettext_lazy("Point"),
    "number": gettext_lazy("Metric"),
    "handle": gettext_lazy("Handle"),
    "label": gettext_lazy("Label"),
    "end": gettext_lazy("End card"),
    "person": gettext_lazy("Name"),
}


def scene_name(name: str) -> str:
    """Return the label of a text on the screen, which is its name if the name isn't a common one."""
    match = _NUMBERED_NAME.fullmatch(name)
    base_name, number = (match[1], f" {match[2]}") if match else (name, "")
    return f"{_SCENE_TEXT_LABELS.get(base_name) or capfirst(base_name.replace('_', ' '))}{number}"


def angle_of(item: GeneratedItem) -> str:
    """Return the label of the item's angle, or an empty text if it has none."""
    return str(labels.ANGLES[Angle(item.angle)]) if item.angle else ""


def describe_newer_edit(item: GeneratedItem, user: str) -> str:
    """Return the sentence for `user`, whose edit came too late, about who wrote the newest text.

    `item` must have been loaded after the refusal.
    """
    writers = Revision.objects.of(item.workspace_id).filter(item=item, number=item.revision)
    if user in writers.values_list("made_by", flat=True):
        return _("You edited it in another window.")
    return _("Edited by someone else.") if item.revision > 1 else _("Changed since you opened it.")


def title_of(item: GeneratedItem) -> str:
    """Return the item's title, else its excerpt, else its raw item's title or address, else `Untitled`."""
    raw_item = item.raw_item
    raw_title = (raw_item.title or raw_item.url) if raw_item is not None else ""
    return item.title or item.excerpt or raw_title or _("Untitled")
