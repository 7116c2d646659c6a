"""A hand-made case through all checks that prove a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.engines.base import Brief, Claim, Draft, PersonaCard, SourceText
from pipeline.engines.checks.grounded import check_grounding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engines.base import Check

WORST = ("passed", "warning", "failed")
PERSONA = PersonaCard("Ann", handle="ann")


def checks_of(case: Mapping[str, Any]) -> tuple[Check, ...]:
    source = SourceText(
        title=case.get("title", ""),
        text=case["source"],
        language=case.get("source_language", case.get("language", "en")),
    )
    claims = tuple(_claim(claim, case["source"]) for claim in case.get("claims", ()))
    draft = Draft(
        title="",
        body=case["draft"],
        body_format="text",
        content={"parts": [case["draft"]]},
        claims=claims,
        language=case.get("language", "en"),
    )
    brief = Brief(source.title, source.language, "", ())
    return check_grounding(draft, brief, source, PERSONA)


def _claim(claim: Mapping[str, Any], source: str) -> Claim:
    start = source.index(claim["quote"])
    return Claim(claim["text"], claim["quote"], start, start + len(claim["quote"]), claim.get("derived", ""))


def outcome_of(case: Mapping[str, Any]) -> str:
    """The worst of all checks."""
    return max((check.outcome for check in checks_of(case)), key=WORST.index)
