"""The four gates of autopilot: what doesn't pass them all waits for a person, with the reason among its checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.engines.base import Draft, PersonaCard

PREFIX: Final = "gate_"
FACTS: Final = frozenset(
    {"numbers", "quotations", "names", "support", "derived", "claims", "attribution", "reading"}
)
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
"""What could harm the persona's name; whatever is neither of the facts nor in this list is of the platform's format."""
_PASSED: Final[Mapping[str, str]] = {
    "persona": "A persona speaks.",
    "platform": "The words keep to the format of what they are; each outlet keeps its own pace.",
    "facts": "What it says is anchored in the source.",
    "safety": "Nothing in it could harm the persona's name.",
}


def gates_of(
    draft: Draft, persona: PersonaCard, checks: Sequence[Mapping[str, Any]], *, is_suspect: bool
) -> tuple[Check, ...]:
    """One check for each gate, in the order of `_PASSED`; a closed one is a warning that names what closed it.

    `is_suspect` tells that the source reads like orders to a model. The outlets' own rules and pace are the publishing
    stage's: what they refuse is told when it is asked for.
    """
    closed: dict[str, list[str]] = {name: [] for name in _PASSED}
    if not persona.name.strip():
        closed["persona"].append("No persona speaks.")
    if not any(claim.quote for claim in draft.claims):
        closed["facts"].append("It names no place in the source that says what it says.")
    if is_suspect:
        closed["safety"].append("The source reads like orders to a model.")
    for check in checks:
        if check["outcome"] != "passed":
            closed[_gate_of(check["code"])].append(check["message"])
    return tuple(
        Check(
            f"{PREFIX}{name}",
            "warning",
            f"Autopilot leaves it to a person: {' '.join(dict.fromkeys(reasons))}",
        )
        if (reasons := closed[name])
        else Check(f"{PREFIX}{name}", "passed", passed)
        for name, passed in _PASSED.items()
    )


def _gate_of(code: str) -> str:
    return "facts" if code in FACTS else "safety" if code in SAFETY else "platform"


def are_open(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Whether all four gates were looked at, and let it through."""
    found = {check["code"]: check["outcome"] for check in checks if check["code"].startswith(PREFIX)}
    return found == {f"{PREFIX}{name}": "passed" for name in _PASSED}
