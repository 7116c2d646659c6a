"""What is told of a publication: its answers as they are stored, its events and its notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from accounts import notices
from config.core.datetimes import as_z
from config.core.ids import encode
from pipeline import events, payloads
from pipeline.media import item_pictures
from pipeline.models import Attempt, GeneratedItem, Publication, PublicationStatus
from pipeline.plugins import OutcomeUnknown, PluginError
from pipeline.publish.item_status import publications_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

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


def posted_twice(external_id: str, attempt: Attempt) -> dict[str, Any]:
    other = answer_of(attempt)["external_id"]
    message = (
        f"It may be there twice, as {external_id or 'a post whose number isn’t known'} and as {other}: the platform took "
        f"call {attempt.number} after it had been given up and the post sent again."
    )
    action = f"Look at both on the platform, and delete one{_at(attempt)}."
    return serialize_failure(OutcomeUnknown(message, code="posted_twice", action=action), is_retried=False)


def posted_after_all(attempt: Attempt) -> dict[str, Any]:
    other = answer_of(attempt)["external_id"]
    message = f"It is public after all, as {other}: the platform took call {attempt.number} after it had been given up."
    action = f"Delete it on the platform, or leave it{_at(attempt)}."
    return serialize_failure(
        OutcomeUnknown(message, code="posted_after_all", action=action), is_retried=False
    )


def _at(attempt: Attempt) -> str:
    url = answer_of(attempt)["url"]
    return f" ({url})" if url else ""


def notify_of_late_answer(row: Publication, item: GeneratedItem, now: datetime) -> None:
    if row.test:
        return
    error: Mapping[str, Any] = row.error or {}
    words = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("“%(item)s” was published more than once on %(outlet)s") % words,
        text=f"{error['message']} {error['action']}",
        path=f"items/{encode('gen', item.pk)}",
        now=now,
    )


def storable(value: Any) -> Any:
    """What a platform answered, without what no database keeps: halves of surrogate pairs, and NUL."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if isinstance(value, dict):
        return {storable(name): storable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [storable(one) for one in value]
    return value


def serialize_failure(
    error: PluginError, *, is_retried: bool, connection: OutletConnection | None = None
) -> dict[str, Any]:
    """A failure as its publication and its event tell it: what happened, whose it is, what to do."""

    def safe(text: str) -> str:
        return str(storable(connection.redact(text) if connection else text))[:MESSAGE_CHARACTERS]

    return {
        "code": error.code,
        "class": error.error_class,
        "message": safe(error.message),
        "action": safe(error.action),
        "retryable": is_retried,
        "platform_status": error.platform_status,
        "platform_message": safe(error.platform_message) or None,
    }


def record_publication_event(
    row: Publication,
    item: GeneratedItem,
    event_type: str,
    now: datetime,
    *,
    will_retry: bool | None = None,
    publications: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Record an event of it; `publications` are the item's, where they were read in this transaction."""
    data: dict[str, Any] = {
        "generated_item": payloads.generated_item(
            payloads.row_of(item),
            publications=publications_of(item) if publications is None else publications,
            assets=item_pictures.files_of(item),
            now=now,
        ),
        "publication": payloads.publication(payloads.row_of(row), now=now),
    }
    if event_type == "published.failed":
        data["error"] = row.error
        data["will_retry"] = will_retry
        data["next_attempt_at"] = as_z(row.next_attempt_at) if will_retry and row.next_attempt_at else None
    events.record(
        event_type,
        workspace_id=row.workspace_id,
        test=row.test,
        data=data,
        generated_item_id=row.item_id,
        publication_id=row.pk,
        source_id=item.source_id,
        will_retry=will_retry,
        request=row.request_id,
        now=now,
    )
    if event_type == "published.failed" and will_retry is False and not row.test:
        _notify_of_failure(row, item, now)


def _notify_of_failure(row: Publication, item: GeneratedItem, now: datetime) -> None:
    """A failure that ends its tries; sent anew by a person and failed again, it is another one."""
    words = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    if row.status == PublicationStatus.UNKNOWN:
        title = _("Status of “%(item)s” on %(outlet)s is unknown") % words
    else:
        title = _("“%(item)s” was not published on %(outlet)s") % words
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=title,
        text=str((row.error or {}).get("message", "")),
        path="#failed",
        now=now,
    )
