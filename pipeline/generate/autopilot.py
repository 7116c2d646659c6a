"""Publishes items on autopilot: an item that passes all four gates needs no review by a person.

An item that doesn't pass waits for a review, and its checks name the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from config.core.errors import AppError
from pipeline import publish
from pipeline.engines.base import Check
from pipeline.models import GeneratedItem, Generation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pipeline.engines.base import Draft, PersonaCard

PREFIX: Final = "gate_"
"""The beginning of the code of a gate's check."""
FACTS: Final = frozenset(
    {"numbers", "quotations", "names", "support", "derived", "claims", "attribution", "reading"}
)
"""Codes of checks that compare the words with the source."""
SAFETY: Final = frozenset(
    {
        "banned_words",
        "required_structures",
        "mentions",
        "contacts",
        "link_origin",
        "instructions",
        "characters",
        "repetition",
        "copying",
    }
)
"""Codes of checks that protect the persona's name. A code in neither set is about the platform's format."""
_PASSED: Final[Mapping[str, str]] = {
    "persona": "A persona speaks.",
    "platform": "The words keep to the format of what they are; each outlet keeps its own pace.",
    "facts": "What it says is anchored in the source.",
    "safety": "Nothing in it could harm the persona's name.",
}


def check_gates(
    draft: Draft, persona: PersonaCard, checks: Sequence[Mapping[str, Any]], *, is_suspect: bool
) -> tuple[Check, ...]:
    """Return one check for each gate, in the order of `_PASSED`; a closed gate is a warning with its reasons.

    `checks` are the draft's checks as they are stored. `is_suspect` says that the source reads like orders to a
    model. The outlets' own rules and pace are checked by the publishing stage: it reports a refusal when
    publication is requested.
    """
    closed: dict[str, list[str]] = {name: [] for name in _PASSED}
    if not persona.name.strip():
        closed["persona"].append("No persona speaks.")
    if not any(claim.quote for claim in draft.claims):
        closed["facts"].append("It quotes no passage of the source as evidence.")
    if is_suspect:
        closed["safety"].append("The source reads like orders to a model.")
    for check in checks:
        if check["outcome"] != "passed":
            closed[_gate_of(check["code"])].append(check["message"])
    return tuple(
        Check(
            f"{PREFIX}{name}",
            "warning",
            f"Needs a review: {' '.join(dict.fromkeys(reasons))}",
        )
        if (reasons := closed[name])
        else Check(f"{PREFIX}{name}", "passed", passed)
        for name, passed in _PASSED.items()
    )


def _gate_of(code: str) -> str:
    return "facts" if code in FACTS else "safety" if code in SAFETY else "platform"


def are_gates_open(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all four gates were checked and passed."""
    outcomes = {check["code"]: check["outcome"] for check in checks if check["code"].startswith(PREFIX)}
    return outcomes == {f"{PREFIX}{name}": "passed" for name in _PASSED}


def publish_automatically(generation: Generation, made: Sequence[GeneratedItem], now: datetime) -> None:
    """Publish the first of the variants that passed all four gates, if their source is on autopilot.

    Nothing is published if none passed, if the first variant is held, or if a person must approve first; nor if a
    variant of the group is scheduled or published already, because a further variant that a person asked for is
    theirs to decide about. A refusal by the publishing stage is stored as the item's error.
    """
    source = made[0].source if made else None
    if source is None or not source.autopilot or source.deleted_at is not None or made[0].held:
        return
    if _is_group_published(made[0]):
        return
    best = next((item for item in made if are_gates_open(item.present_checks)), None)
    if best is None or best.lacks_approval(generation.workspace):
        return
    try:
        # A savepoint: if publishing is refused, the saved words must stay.
        with transaction.atomic():
            publish.request(best, publish.PublishWish(), by="autopilot", now=now)
    except AppError as error:
        GeneratedItem.everywhere.filter(pk=best.pk).update(
            error={"code": "autopilot", "message": str(error), "stage": "publish"}, version=F("version") + 1
        )


def _is_group_published(item: GeneratedItem) -> bool:
    """Return whether a variant of the item's group is scheduled, being published or published."""
    group = GeneratedItem.everywhere.filter(variant_group=item.variant_group, deleted_at=None)
    return group.filter(status__in=publish.PUBLISHING_STATUSES).exists()
