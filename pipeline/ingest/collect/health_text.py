"""How a source is doing, in words.

A person pauses a source, and lets it go on, by `collect/crud.py`. Polls make it `failing`, then `gone`: `poll_source.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from pipeline.ingest.collect.source_validation import kind_of
from pipeline.labels import HealthBadge
from pipeline.models import SourceStatus

if TYPE_CHECKING:
    from accounts.models import Workspace
    from pipeline.models import Source


def health_of(source: Source, workspace: Workspace) -> HealthBadge:
    """In plain words; the moments stand beside it. `workspace` is the source's."""
    said = str((source.last_error or {}).get("message", ""))
    if source.status == SourceStatus.PAUSED:
        return HealthBadge("", "circle-pause", _("Paused"), _("Paused until you resume it."))
    if source.status == SourceStatus.GONE:
        return HealthBadge("bad", "circle-alert", _("Gone"), said)
    if source.status == SourceStatus.FAILING:
        return HealthBadge("bad", "circle-alert", _("Failing"), said)
    if not workspace.is_at_work:
        return HealthBadge("info", "lock", _("Waiting"), _why_not_at_work(workspace))
    if source.type == "brand":
        return _health_of_lane(said)
    if not kind_of(source.type).fetches:
        said = _("Content sent to it is imported at once.")
        if source.last_new_at is not None:
            return HealthBadge("good", "circle-check", _("Active"), said)
        return HealthBadge("info", "webhook", _("Waiting for data"), said)
    if said:
        return HealthBadge("warn", "triangle-alert", _("Last poll failed"), said)
    if source.last_polled_at is None:
        return HealthBadge("info", "clock", _("New"), _("First poll within a minute."))
    return HealthBadge("good", "circle-check", _("Active"), "")


def _why_not_at_work(workspace: Workspace) -> str:
    if workspace.is_in_sandbox:
        return _("Paused until this workspace is approved.")
    if workspace.deletes_at is not None:
        return _("Paused because this workspace will be deleted.")
    return _("Paused because this workspace's access was revoked.")


def _health_of_lane(said: str) -> HealthBadge:
    if said:
        return HealthBadge("warn", "triangle-alert", _("No result"), said)
    return HealthBadge("good", "circle-check", _("Active"), "")
