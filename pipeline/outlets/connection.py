"""Connects a workspace to an account on a platform, and reconnects it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Workspace
from config.core import states, work_queue
from config.core.errors import Conflict, Invalid
from config.core.ids import encode, uuid7
from pipeline import plugins
from pipeline.models import Outlet, OutletStatus
from pipeline.outlets import health
from pipeline.outlets.check_account import clean_settings, fetch_account, profile_of, refuse_another
from pipeline.outlets.outlet_client import credentials_of, platform_of
from pipeline.outlets.renewal import reload_outlet
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.platforms.base import Platform

MAX_NAME_CHARACTERS = 120


def connect_outlet(
    workspace: Workspace,
    kind: str,
    *,
    name: str,
    config: Mapping[str, Any],
    credentials: Mapping[str, Any],
    by: str,
    now: datetime,
    expires_at: datetime | None = None,
) -> Outlet:
    """Create an outlet, after its platform has said whose account it is. An empty `name` takes the account's.

    Raises `Invalid` if the kind, name, settings or secrets can't be used, the platform refuses the account, or
    the workspace has it already; `Conflict` if the platform is unavailable here; `CannotAsk` if the platform
    can't be reached.
    """
    platform = _find_connectable_platform(kind)
    name = clean_name(name, is_required=False)
    settings, secrets = clean_settings(platform, config, credentials)
    outlet = Outlet(pk=uuid7(), workspace=workspace, platform=kind, name=name)
    info = fetch_account(outlet, platform, config=settings, credentials=secrets, now=now)
    expiry = expires_at or info.expires_at
    next_check_at = health.next_check(now, expiry, now)
    with transaction.atomic():
        # If two requests connect the same account at once, the second finds the first one's outlet.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        _refuse_duplicate(workspace, kind, info.external_id)
        outlet.name = name or (info.name or info.handle or str(platform.label))[:MAX_NAME_CHARACTERS]
        outlet.config = {**settings, **info.config}
        outlet.credentials = {**secrets, **info.credentials}
        outlet.profile = profile_of(info, renewed_at=now)
        outlet.is_simulated = platform.is_simulated
        outlet.connected_by = by[:200]
        outlet.connected_at = outlet.checked_at = outlet.created_at = outlet.updated_at = now
        outlet.expires_at = expiry
        outlet.due_at = outlet.wake_at = next_check_at
        outlet.save(force_insert=True)
        audit_outlet(
            "outlet.connected", outlet, by, {"platform": kind, "account": info.handle or info.external_id}
        )
    return reload_outlet(outlet)


def reconnect(
    outlet: Outlet,
    *,
    config: Mapping[str, Any],
    credentials: Mapping[str, Any],
    by: str,
    now: datetime,
    expires_at: datetime | None = None,
) -> Outlet:
    """Store new secrets for the same account; publications and mails that failed with the old ones go on at once.

    `config` may name only some settings; the others stay. Raises `Invalid` if settings or secrets can't be used,
    the platform refuses them, or they belong to another account; `Conflict` if the outlet was disconnected or
    the platform is unavailable here; `CannotAsk` if the platform can't be reached.
    """
    platform = _find_connectable_platform(outlet.platform)
    refuse_deleted(outlet)
    settings, secrets = clean_settings(
        platform, {**settings_of(platform, outlet.config), **config}, credentials
    )
    info = fetch_account(outlet, platform, config=settings, credentials=secrets, now=now)
    refuse_another(outlet, info)
    expiry = expires_at or info.expires_at
    next_check_at = health.next_check(now, expiry, now)
    with transaction.atomic():
        locked: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
        refuse_deleted(locked)
        values: dict[str, Any] = {
            "config": {**locked.config, **settings, **info.config},
            "credentials": {**secrets, **info.credentials},
            "profile": profile_of(info, renewed_at=now),
            "connected_by": by[:200],
            "connected_at": now,
            "checked_at": now,
            "expires_at": expiry,
            "expiry_told_at": None,
            "rests_until": None,
            "last_error": None,
            "due_at": next_check_at,
            "wake_at": next_check_at,
            "updated_at": now,
            # A worker that renews the old secrets at this moment must not overwrite the new ones.
            **work_queue.overtake(),
        }
        if locked.status == OutletStatus.NEEDS_RECONNECT:
            states.move(locked, "ok", **values)
        else:
            states.write_as(locked, locked.status, **values)
        audit_outlet("outlet.reconnected", locked, by, {"platform": outlet.platform})
    health.wake_publications(locked, now)
    health.wake_mails(locked, now, ends_rest=True)
    return reload_outlet(outlet)


def generated_secret_of(outlet: Outlet, credentials: Mapping[str, Any]) -> str | None:
    """Return the secret that was generated for a new outlet because `credentials` had none, or `None`."""
    for setting in platform_of(outlet.platform).settings:
        if setting.make is not None and not str(credentials.get(setting.name) or "").strip():
            return str(credentials_of(outlet)[setting.name])
    return None


def settings_of(platform: Platform, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a person chose, without what the platform answered."""
    setting_names = {setting.name for setting in platform.settings}
    return {name: value for name, value in config.items() if name in setting_names}


def clean_name(name: str, *, is_required: bool) -> str:
    """Return the name with single spaces. Raises `Invalid` if it is too long, or empty and required."""
    cleaned = " ".join(name.split())
    if is_required and not cleaned:
        raise Invalid.one("name", "required", _("Give it a name."))
    if len(cleaned) > MAX_NAME_CHARACTERS:
        message = _("Use at most %(most)d characters.") % {"most": MAX_NAME_CHARACTERS}
        raise Invalid.one("name", "too_long", message)
    return cleaned


def refuse_deleted(outlet: Outlet) -> None:
    """Raise `Conflict` if the outlet was disconnected."""
    if outlet.deleted_at is not None:
        raise Conflict.because(code="deleted", message=_("This outlet was disconnected."))


def audit_outlet(action: str, outlet: Outlet, by: str, details: Mapping[str, Any] | None = None) -> None:
    """Write an audit entry with the outlet's name, in the transaction of the change."""
    audit.note(
        action,
        workspace=outlet.workspace,
        actor=by,
        subject=encode("out", outlet.pk),
        details={"name": outlet.name, **(details or {})},
    )


def _find_connectable_platform(kind: str) -> Platform:
    """Return the platform.

    Raises `Invalid` if it doesn't exist or isn't connected by people, and `Conflict` if it is unavailable here.
    """
    try:
        platform = platform_of(kind)
    except plugins.UnknownKind:
        raise Invalid.one("kind", "unknown", _("There is no such platform here.")) from None
    unavailability = availability.of_platform(platform)
    if unavailability is not None:
        raise Conflict.because("platform_unavailable", unavailability.sentence, field="kind")
    if not platform.is_connectable:
        message = _("%(platform)s: a workspace has its own from the start.") % {"platform": platform.label}
        raise Invalid.one("kind", "not_connectable", message)
    return platform


def _refuse_duplicate(workspace: Workspace, kind: str, external_id: str) -> None:
    """Raise `Invalid` if the workspace has the account already; an account without an id can't be recognized."""
    if not external_id:
        return
    connected = Outlet.objects.of(workspace).filter(platform=kind, deleted_at=None)
    for other in connected.filter(profile__external_id=external_id).order_by("id")[:1]:
        message = _("This account is connected already, as %(name)s. Connect that outlet again instead.")
        raise Invalid.one("account", "already_connected", message % {"name": other.name})
