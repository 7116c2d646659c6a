"""Changes an outlet, except for its secrets: its name, settings and pace, and whether it is on and a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import dispatcher, states
from config.core.errors import Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline import limits
from pipeline.models import Outlet, OutletStatus, WorkspaceDefaults
from pipeline.outlets import health
from pipeline.outlets.check_account import clean_settings, is_fixed
from pipeline.outlets.connection import audit_outlet, clean_name, refuse_deleted, settings_of
from pipeline.outlets.outlet_client import platform_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.platforms.base import Platform


def change(
    outlet: Outlet,
    *,
    name: str,
    config: Mapping[str, Any],
    per_day: int | None,
    gap_minutes: int | None,
    discloses_ai: bool,
    counts_clicks: bool | None = None,
    by: str,
    now: datetime,
) -> Outlet:
    """Change an outlet's name, settings, pace, disclosure and counting of clicks.

    Settings that name the account, or where secrets are sent, change only by `reconnect`. If `counts_clicks` is
    `None`, counting stays as it is. Raises `Invalid` if a value can't be used, and `Conflict` if the outlet was
    disconnected.
    """
    platform = platform_of(outlet.platform)
    name = clean_name(name, is_required=True)
    _refuse_pace(per_day, gap_minutes)
    with transaction.atomic():
        locked = _lock(outlet)
        settings = _merge_settings(platform, locked, config)
        has_new_pace = (per_day, gap_minutes) != (locked.per_day, locked.gap_minutes)
        states.write_as(
            locked,
            locked.status,
            name=name,
            config={**locked.config, **settings},
            per_day=per_day,
            gap_minutes=gap_minutes,
            discloses_ai=discloses_ai,
            clicks_since=_clicks_since(locked, now, counts_clicks=counts_clicks),
            updated_at=now,
        )
        audit_outlet("outlet.changed", locked, by, {"per_day": per_day, "gap_minutes": gap_minutes})
        if has_new_pace:
            health.wake_waiting_publications(locked, now)
    return locked


def _merge_settings(platform: Platform, outlet: Outlet, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with the changes. Raises `Invalid` if one can't be used, or changes only by `reconnect`."""
    if not platform.settings:
        return clean_settings(platform, {**outlet.config, **config}, None)[0]
    old_settings = settings_of(platform, outlet.config)
    new_settings, _secrets = clean_settings(platform, {**old_settings, **config}, None)
    message = _("Reconnect the outlet to change this. Its secrets have to be entered again.")
    problems = [
        Detail(f"config.{setting.name}", "fixed", message)
        for setting in platform.settings
        if is_fixed(setting) and new_settings.get(setting.name) != old_settings.get(setting.name)
    ]
    if problems:
        raise Invalid(*problems)
    return new_settings


def _clicks_since(outlet: Outlet, now: datetime, *, counts_clicks: bool | None) -> datetime | None:
    """Return the moment since which clicks are counted, or `None` if they aren't."""
    if counts_clicks is None:
        return outlet.clicks_since
    return (outlet.clicks_since or now) if counts_clicks else None


def _refuse_pace(per_day: int | None, gap_minutes: int | None) -> None:
    """Raise `Invalid` if a number is out of range; `None` is no limit."""
    problems = []
    if per_day is not None and not 1 <= per_day <= limits.OUTLET_PER_DAY_MOST:
        message = _("Give a number from 1 to %(most)d, or nothing.") % {"most": limits.OUTLET_PER_DAY_MOST}
        problems.append(Detail("per_day", "out_of_range", message))
    if gap_minutes is not None and not 1 <= gap_minutes <= limits.OUTLET_GAP_MINUTES_MOST:
        message = _("Give a number from 1 to %(most)d, or nothing.") % {
            "most": limits.OUTLET_GAP_MINUTES_MOST
        }
        problems.append(Detail("gap_minutes", "out_of_range", message))
    if problems:
        raise Invalid(*problems)


def switch_off(outlet: Outlet, *, by: str, now: datetime) -> Outlet:
    """Stop publishing to the outlet until it is switched on; its credential is still renewed.

    Raises `Conflict` if it was disconnected.
    """
    with transaction.atomic():
        locked = _lock(outlet)
        if locked.status != OutletStatus.DISABLED:
            states.move(locked, "disabled", updated_at=now)
            audit_outlet("outlet.switched_off", locked, by)
    return locked


def switch_on(outlet: Outlet, *, by: str, now: datetime) -> Outlet:
    """Switch the outlet on, and have its account checked. Raises `Conflict` if it wasn't off or was disconnected."""
    with transaction.atomic():
        locked = _lock(outlet)
        if locked.status != OutletStatus.DISABLED:
            raise Conflict.because(code="not_disabled", message=_("It is switched on already."))
        states.move(locked, "ok", last_error=None, updated_at=now)
        audit_outlet("outlet.switched_on", locked, by)
        health.wake_mails(locked, now, ends_rest=False)
        if locked.credentials is not None:
            # A task that has claimed the row checks the account anyway.
            Outlet.everywhere.filter(pk=locked.pk, attempts=0).update(due_at=now, wake_at=now)
            dispatcher.wake()
    return locked


def set_default(outlet: Outlet, is_default: bool, *, by: str, now: datetime) -> bool:  # noqa: FBT001  the act's own word
    """Set whether items that name no outlet are published there; return `False` if that is so already.

    Raises `Invalid` if there would be too many default outlets, and `Conflict` if the outlet was disconnected.
    """
    public_id = encode("out", outlet.pk)
    with transaction.atomic():
        row: WorkspaceDefaults = (
            WorkspaceDefaults.objects.of(outlet.workspace_id).select_for_update(no_key=True).get()
        )
        if is_default == (public_id in row.outlets):
            return False
        if is_default and len(row.outlets) >= limits.OUTLETS_PER_ITEM:
            message = _("Choose at most %(most)d.") % {"most": limits.OUTLETS_PER_ITEM}
            raise Invalid.one("outlets", "too_many", message)
        locked = _lock(outlet)
        others = [name for name in row.outlets if name != public_id]
        row.outlets = [*others, public_id] if is_default else others
        row.save(update_fields=["outlets"])
        states.write_as(locked, locked.status, is_default=is_default, updated_at=now)
        audit_outlet("outlet.default_changed", locked, by, {"is_default": is_default})
    return True


def _lock(outlet: Outlet) -> Outlet:
    """Lock and return the outlet's row, with its workspace. Raises `Conflict` if it was disconnected."""
    row: Outlet = (
        Outlet.everywhere.select_for_update(no_key=True, of=("self",))
        .select_related("workspace")
        .get(pk=outlet.pk)
    )
    refuse_deleted(row)
    return row
