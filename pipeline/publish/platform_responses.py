"""What platforms answered, as publications and attempts store it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.models import Attempt, Publication
from pipeline.plugins import OutcomeUnknown, PluginError

if TYPE_CHECKING:
    from pipeline.outlets.outlet_client import OutletConnection

MESSAGE_CHARACTERS: Final = 1000
"""Of what a platform says of a failure; the rest is in nobody's interest."""


def late_answer_of(row: Publication) -> Attempt | None:
    """The newest attempt that its platform has answered late."""
    rows = Attempt.everywhere.filter(publication=row, late_answer__isnull=False)
    found: Attempt | None = rows.order_by("-number").first()
    return found


def answer_of(attempt: Attempt) -> dict[str, Any]:
    answer: dict[str, Any] = attempt.late_answer or {}
    return answer


def posted_twice_error(external_id: str, attempt: Attempt) -> dict[str, Any]:
    other = answer_of(attempt)["external_id"]
    message = (
        f"It may be there twice, as {external_id or 'a post whose number isn’t known'} and as {other}: the platform took "
        f"call {attempt.number} after it had been given up and the post sent again."
    )
    action = f"Look at both on the platform, and delete one{_at(attempt)}."
    return serialize_failure(OutcomeUnknown(message, code="posted_twice", action=action), is_retried=False)


def posted_after_all_error(attempt: Attempt) -> dict[str, Any]:
    other = answer_of(attempt)["external_id"]
    message = f"It is public after all, as {other}: the platform took call {attempt.number} after it had been given up."
    action = f"Delete it on the platform, or leave it{_at(attempt)}."
    return serialize_failure(
        OutcomeUnknown(message, code="posted_after_all", action=action), is_retried=False
    )


def _at(attempt: Attempt) -> str:
    url = answer_of(attempt)["url"]
    return f" ({url})" if url else ""


def clean_for_storage(value: Any) -> Any:
    """What a platform answered, without what no database keeps: halves of surrogate pairs, and NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, dict):
        return {clean_for_storage(name): clean_for_storage(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [clean_for_storage(one) for one in value]
    return value


def serialize_failure(
    error: PluginError, *, is_retried: bool, connection: OutletConnection | None = None
) -> dict[str, Any]:
    """A failure as its publication and its event tell it: what happened, whose it is, what to do."""

    def safe(text: str) -> str:
        return str(clean_for_storage(connection.redact(text) if connection else text))[:MESSAGE_CHARACTERS]

    return {
        "code": error.code,
        "class": error.error_class,
        "message": safe(error.message),
        "action": safe(error.action),
        "retryable": is_retried,
        "platform_status": error.platform_status,
        "platform_message": safe(error.platform_message) or None,
    }
