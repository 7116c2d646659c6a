"""What people read about an item: its status, its checks, who wrote it, and for how much."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.utils.functional import _StrPromise

    from pipeline.models import GeneratedItem

UNDER_WAY: Final = frozenset({"queued", "generating"})
STATES: Final[Mapping[str, tuple[str, str, _StrPromise]]] = {
    "queued": ("info", "clock", gettext_lazy("Waits its turn")),
    "generating": ("info", "zap", gettext_lazy("Is being made")),
    "ready": ("good", "circle-check", gettext_lazy("Ready")),
    "failed": ("bad", "circle-alert", gettext_lazy("Could not be made")),
    "rejected": ("", "x", gettext_lazy("Rejected")),
    "scheduled": ("info", "calendar", gettext_lazy("Scheduled")),
    "publishing": ("info", "send", gettext_lazy("Is being published")),
    "published": ("good", "circle-check", gettext_lazy("Published")),
    "partially_published": ("warn", "circle-alert", gettext_lazy("Published in part")),
    "publish_failed": ("bad", "circle-alert", gettext_lazy("Could not be published")),
    "removed": ("", "x", gettext_lazy("Removed")),
}
"""Tone, icon and words of each status."""
WAITS: Final[tuple[str, str, _StrPromise]] = ("", "inbox", gettext_lazy("Waits for review"))
APPROVED: Final[tuple[str, str, _StrPromise]] = ("good", "check", gettext_lazy("Approved"))
"""What is ready, told apart by whether somebody has decided on it."""
ICONS: Final[Mapping[str, str]] = {
    "text": "type",
    "image": "image",
    "video": "video",
    "blog": "file-text",
    "newsletter": "mail",
}
"""By bucket."""
STAGES: Final[Mapping[str, _StrPromise]] = {
    "brief": gettext_lazy("The source is read for what may be said."),
    "draft": gettext_lazy("The words are being written."),
    "render": gettext_lazy("The pictures are being made."),
    "write": gettext_lazy("It is put together."),
}
"""How far a run is, by its stage."""
ANGLES: Final[Mapping[str, _StrPromise]] = {
    "number": gettext_lazy("a number"),
    "contrast": gettext_lazy("a contrast"),
    "question": gettext_lazy("a question"),
    "story": gettext_lazy("a story"),
    "how-to": gettext_lazy("a how-to"),
    "myth": gettext_lazy("a myth"),
    "warning": gettext_lazy("a warning"),
}
_CHECKS: Final[Mapping[str, _StrPromise]] = {
    "numbers": gettext_lazy("Numbers"),
    "quotations": gettext_lazy("Quotations"),
    "names": gettext_lazy("Names"),
    "claims": gettext_lazy("Claims"),
    "content": gettext_lazy("Content"),
    "length": gettext_lazy("Length"),
    "characters": gettext_lazy("Characters"),
    "link_origin": gettext_lazy("Links"),
    "link_count": gettext_lazy("Number of links"),
    "hashtags": gettext_lazy("Hashtags"),
    "mentions": gettext_lazy("Mentions"),
    "contacts": gettext_lazy("Contacts"),
    "instructions": gettext_lazy("Orders in the source"),
    "thread_mark": gettext_lazy("Thread sign"),
    "banned_words": gettext_lazy("Banned words"),
    "repetition": gettext_lazy("Repetition"),
    "portrait": gettext_lazy("Portrait"),
    "photo": gettext_lazy("Photo"),
    "film": gettext_lazy("Film"),
    "derived": gettext_lazy("Derived numbers"),
    "attribution": gettext_lazy("Who said it"),
    "support": gettext_lazy("Statements"),
}


def state_of(item: GeneratedItem) -> tuple[str, str, str]:
    """Tone, icon and words of an item's status; of one that is being filmed with how far it is."""
    tone, icon, label = STATES[item.status]
    percent = item.generation.progress if item.status == "generating" else 0
    return tone, icon, _("Is being made: %(percent)s %%") % {"percent": percent} if percent else str(label)


def stage_of(item: GeneratedItem) -> str:
    """How far the run of an item is that is being made; empty for any other."""
    if item.status != "generating":
        return ""
    run = item.generation
    if run.stage == "render" and run.progress:
        return _("The film is being made: %(percent)s %%.") % {"percent": run.progress}
    return str(STAGES.get(run.stage, ""))


@dataclass(frozen=True)
class CheckSeen:
    label: str
    message: str


@dataclass(frozen=True)
class Checks:
    failed: tuple[CheckSeen, ...]
    warning: tuple[CheckSeen, ...]
    passed: tuple[CheckSeen, ...]

    def __len__(self) -> int:
        return len(self.failed) + len(self.warning) + len(self.passed)


def checks_of(found: Sequence[Mapping[str, Any]]) -> Checks:
    grouped: dict[str, list[CheckSeen]] = {"failed": [], "warning": [], "passed": []}
    for one in found:
        code = str(one.get("code", ""))
        label = str(_CHECKS.get(code, "")) or capfirst(code.replace("_", " "))
        seen = CheckSeen(label, str(one.get("message", "")))
        grouped.setdefault(str(one.get("outcome")), []).append(seen)
    return Checks(tuple(grouped["failed"]), tuple(grouped["warning"]), tuple(grouped["passed"]))


@dataclass(frozen=True)
class MadeBy:
    """`label` says whose hand it was; `disclosure` what is told of that elsewhere."""

    is_offline: bool
    label: str
    disclosure: str
    tokens_in: int
    tokens_out: int
    dollars: str
    credits: int
    prompt: str


def made_by(item: GeneratedItem) -> MadeBy | None:
    """None where nothing was written yet."""
    made: Mapping[str, Any] = item.generator
    if not made:
        return None
    is_offline = bool(made.get("offline"))
    if is_offline:
        label = _("Made without AI: sentences taken from the source")
        disclosure = _("No model wrote it, so no outlet labels it as made by AI.")
    else:
        label = _("Written with AI: %(model)s") % {"model": made.get("model", "")}
        disclosure = _("Outlets that can label what AI made are told that a model wrote it.")
    return MadeBy(
        is_offline=is_offline,
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
    "number": gettext_lazy("Number"),
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


def title_of(item: GeneratedItem) -> str:
    raw = item.raw_item
    return item.title or item.excerpt or (raw.title if raw is not None else "") or _("Untitled")
