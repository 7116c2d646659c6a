"""Describes a source's health for people.

A person pauses and resumes a source by `collect/crud.py`. Polls make it `failing`, then `gone`: `poll_source.py`.
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
    """Return the source's health badge, without times, which pages show next to it."""
    message = str((source.last_error or {}).get("message", ""))
    if source.status == SourceStatus.PAUSED:
        return HealthBadge("", "circle-pause", _("Paused"), _("Paused until you resume it."))
    if source.status == SourceStatus.GONE:
        return HealthBadge("bad", "circle-alert", _("Gone"), message)
    if source.status == SourceStatus.FAILING:
        return HealthBadge("bad", "circle-alert", _("Failing"), message)
    if not workspace.is_at_work:
        return HealthBadge("info", "lock", _("Waiting"), _why_not_at_work(workspace))
    if source.type == "brand":
        return _brand_health(message)
    if not kind_of(source.type).fetches:
        message = _("Content sent to it is imported at once.")
        if source.last_new_at is not None:
            return HealthBadge("good", "circle-check", _("Active"), message)
        return HealthBadge("info", "webhook", _("Waiting for data"), message)
    if message:
        return HealthBadge("warn", "triangle-alert", _("Last poll failed"), message)
    if source.last_polled_at is None:
        return HealthBadge("info", "clock", _("New"), _("First poll within a minute."))
    return HealthBadge("good", "circle-check", _("Active"), "")


def _why_not_at_work(workspace: Workspace) -> str:
    """Return the sentence with the reason why the workspace's sources aren't polled."""
    if workspace.is_in_sandbox:
        return _("Paused until this workspace is approved.")
    if workspace.deletes_at is not None:
        return _("Paused because this workspace will be deleted.")
    return _("Paused because this workspace's access was revoked.")


def _brand_health(message: str) -> HealthBadge:
    """Return the badge of a brand source, which makes items of topics instead of polling."""
    if message:
        return HealthBadge("warn", "triangle-alert", _("No result"), message)
    return HealthBadge("good", "circle-check", _("Active"), "")
