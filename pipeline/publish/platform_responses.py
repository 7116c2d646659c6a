"""Converts what platforms answered into the form that publications and attempts store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.models import Attempt, Publication
from pipeline.plugins import OutcomeUnknown, PluginError

if TYPE_CHECKING:
    from pipeline.outlets.outlet_client import OutletConnection

MESSAGE_CHARACTERS: Final = 1000
"""The most that is stored of each text of a failure."""


def late_answer_of(row: Publication) -> Attempt | None:
    """Return the newest attempt that its platform answered after it had been given up, or None."""
    rows = Attempt.everywhere.filter(publication=row, late_answer__isnull=False)
    attempt: Attempt | None = rows.order_by("-number").first()
    return attempt


def answer_of(attempt: Attempt) -> dict[str, Any]:
    """Return the late answer of an attempt; empty if there is none."""
    answer: dict[str, Any] = attempt.late_answer or {}
    return answer


def posted_twice_error(external_id: str, attempt: Attempt) -> dict[str, Any]:
    """Return the stored error of a post that may be public twice."""
    late_id = answer_of(attempt)["external_id"]
    message = (
        f"It may have been published twice, as {external_id or 'a post whose number isn’t known'} and as "
        f"{late_id}: the platform took call {attempt.number} after it had been given up and the post sent "
        "again."
    )
    action = f"Check both on the platform, and delete one{_parenthesized_url(attempt)}."
    return serialize_failure(OutcomeUnknown(message, code="posted_twice", action=action), is_retried=False)


def posted_after_all_error(attempt: Attempt) -> dict[str, Any]:
    """Return the stored error of a post that is public although its call had been given up."""
    late_id = answer_of(attempt)["external_id"]
    message = (
        f"It was published after all, as {late_id}: the platform took call {attempt.number} after it had "
        "been given up."
    )
    action = f"Delete it on the platform, or leave it{_parenthesized_url(attempt)}."
    return serialize_failure(
        OutcomeUnknown(message, code="posted_after_all", action=action), is_retried=False
    )


def _parenthesized_url(attempt: Attempt) -> str:
    """Return the late answer's address in parentheses with a space before it; empty without one."""
    url = answer_of(attempt)["url"]
    return f" ({url})" if url else ""


def clean_for_storage(value: Any) -> Any:
    """Return a platform's answer without what no database stores: lone surrogates and NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, dict):
        return {clean_for_storage(name): clean_for_storage(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [clean_for_storage(member) for member in value]
    return value


def serialize_failure(
    error: PluginError, *, is_retried: bool, connection: OutletConnection | None = None
) -> dict[str, Any]:
    """Return a failure as its publication and its event store it: what happened, whose fault, what to do."""

    def redact(text: str) -> str:
        return str(clean_for_storage(connection.redact(text) if connection else text))[:MESSAGE_CHARACTERS]

    return {
        "code": error.code,
        "class": error.error_class,
        "message": redact(error.message),
        "action": redact(error.action),
        "retryable": is_retried,
        "platform_status": error.platform_status,
        "platform_message": redact(error.platform_message) or None,
    }
