"""What people read about an item: how far it is, its checks, who wrote it, and for how much."""

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
    """How far the run of an item is that is being made, and what it waits for; empty for any other."""
    if item.status != GeneratedItemStatus.GENERATING:
        return ""
    run = item.generation
    waits_for = (run.error or {}).get("message", "")
    if run.stage == GenerationStage.RENDER and item.bucket == "video":
        if run.progress:
            return _("Rendering: %(percent)s %%") % {"percent": run.progress}
        return waits_for or _("Rendering soon")
    return " ".join(filter(None, (waits_for, str(labels.STAGES.get(run.stage, "")))))


_ID: Final = re.compile(r"\bgen_[0-9a-z]{26}\b")


def without_ids(message: str) -> str:
    """A sentence as people read it: an item that it names by its id is `another item`."""
    return _ID.sub(_("another item"), message)


def with_links(message: str, workspace: UUID) -> SafeString:
    """The same as HTML, with a link to that item."""

    def link_of(named: re.Match[str]) -> str:
        key = decode("gen", named[0])
        if key is None:
            return named[0]
        address = reverse("item_page", kwargs={"ws": workspace, "gen": key})
        return format_html('<a href="{}">{}</a>', address, _("another item"))

    return mark_safe(_ID.sub(link_of, conditional_escape(message)))  # noqa: S308  escaped, with our own links


@dataclass(frozen=True)
class CheckSeen:
    label: str
    message: SafeString


@dataclass(frozen=True)
class Checks:
    failed: tuple[CheckSeen, ...]
    warning: tuple[CheckSeen, ...]
    passed: tuple[CheckSeen, ...]
    is_missing: bool = False
    """There are words, and nothing has checked them as they are now."""
    is_edited: bool = False
    leads: bool = False
    """It can still be decided on, and something was found in it or nothing was looked for: that is read first."""

    def __len__(self) -> int:
        return len(self.failed) + len(self.warning) + len(self.passed) + self.is_missing


def checks_of(item: GeneratedItem) -> Checks:
    """Those of the words that it holds, what was found first."""
    grouped: dict[str, list[CheckSeen]] = {"failed": [], "warning": [], "passed": []}
    for one in item.present_checks:
        code = str(one.get("code", ""))
        label = str(labels.CHECKS.get(code, "")) or capfirst(code.replace("_", " "))
        seen = CheckSeen(label, with_links(str(one.get("message", "")), item.workspace_id))
        grouped.setdefault(str(one.get("outcome")), []).append(seen)
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
    """`writer` says who wrote the first words, `label` also whether a person has changed them since; `disclosure` what is told of that elsewhere."""

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
    """Where its raw item came from; empty for what has no source."""
    if item.source is None:
        return ""
    external_id = item.raw_item.external_id if item.raw_item is not None else ""
    return labels.origin_of(item.source.name, external_id, is_push=item.source.is_push)


def made_by(item: GeneratedItem) -> MadeBy | None:
    """None where nothing was written yet."""
    made: Mapping[str, Any] = item.generator
    if not made:
        return None
    is_offline = bool(made.get("offline"))
    is_edited = item.revision > 1
    if is_offline:
        writer = _("Without AI · from the source")
        label = _("Without AI · edited") if is_edited else writer
        disclosure = ""
    else:
        model = {"model": made.get("model", "")}
        writer = _("AI: %(model)s") % model
        label = _("AI: %(model)s · edited") % model if is_edited else writer
        disclosure = _("Labelled as AI where supported")
    return MadeBy(
        is_offline=is_offline,
        writer=writer,
        label=label,
        disclosure=disclosure,
        tokens_in=int(made.get("input_tokens") or 0),
        tokens_out=int(made.get("output_tokens") or 0),
        dollars=_dollars(str(made.get("cost_usd") or "0")),
        credits=int(made.get("credits") or 0),
        prompt=str(made.get("prompt_version") or ""),
    )


def _dollars(written: str) -> str:
    """Without the zeros that say nothing: `0.004200` is 0.0042."""
    whole, _point, parts = written.partition(".")
    return f"{whole}.{parts.rstrip('0').ljust(2, '0')}"


_NUMBERED: Final = re.compile(r"(.+?) (\d+)")
_SCENE_WORDS: Final[Mapping[str, _StrPromise]] = {
    "title": gettext_lazy("Title"),
    "point": gettext_lazy("Point"),
    "number": gettext_lazy("Metric"),
    "handle": gettext_lazy("Handle"),
    "label": gettext_lazy("Label"),
    "end": gettext_lazy("End card"),
    "person": gettext_lazy("Name"),
}


def scene_name(name: str) -> str:
    """What people call a piece of words on the screen; a template may have names of its own."""
    numbered = _NUMBERED.fullmatch(name)
    bare, number = (numbered[1], f" {numbered[2]}") if numbered else (name, "")
    return f"{_SCENE_WORDS.get(bare) or capfirst(bare.replace('_', ' '))}{number}"


def angle_of(item: GeneratedItem) -> str:
    """What people call it; empty where it has none."""
    return str(labels.ANGLES[Angle(item.angle)]) if item.angle else ""


def overtaken_by(item: GeneratedItem, user: str) -> str:
    """Who wrote the newest words, to `user` who meant to save others; the item is read anew."""
    writers = Revision.objects.of(item.workspace_id).filter(item=item, number=item.revision)
    if user in writers.values_list("made_by", flat=True):
        return _("You edited it in another window.")
    return _("Edited by someone else.") if item.revision > 1 else _("Changed since you opened it.")


def title_of(item: GeneratedItem) -> str:
    raw = item.raw_item
    of_raw = (raw.title or raw.url) if raw is not None else ""
    return item.title or item.excerpt or of_raw or _("Untitled")
