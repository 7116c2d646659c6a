"""Creates, finds, whitelists and changes workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from accounts import audit, languages
from accounts.audit import audit_value
from accounts.ledger import credits
from accounts.models import Membership, Plan, User, Workspace
from accounts.plans import default_plan
from accounts.timezones import validate_timezone
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.errors import Conflict, Invalid
from config.core.ids import decode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_ALLOWANCE_FIELDS: Final = frozenset({"plan", "credits_per_month"})


def create(
    name: str,
    *,
    owner: User | None = None,
    timezone: str = "UTC",
    language: str = languages.DEFAULT,
    plan: Plan | None = None,
    actor: str | None = None,
) -> Workspace:
    """Create a workspace with the plan, or else the default one; the rest is as in `establish`."""
    row = Workspace(name=name, timezone=timezone, plan=plan or default_plan())
    return establish(row, owner=owner, actor=actor, language=language)


def establish(
    workspace: Workspace,
    *,
    owner: User | None = None,
    actor: str | None = None,
    language: str = languages.DEFAULT,
) -> Workspace:
    """Store a new workspace with its credit account, its owner and what other apps provide, all or nothing.

    It isn't whitelisted yet. Its first persona writes in `language`, a BCP 47 tag. The audit log names `actor`,
    or else the owner, or else `system`. Raises `Invalid` for a bad name or time zone.
    """
    workspace.name = workspace.name.strip()
    _validate_name(workspace.name)
    validate_timezone(workspace.timezone)
    with transaction.atomic():
        workspace.save(force_insert=True)
        credits.open_account(workspace, utc_now())
        if owner is not None:
            Membership.everywhere.create(workspace=workspace, user=owner, role=Membership.Role.OWNER)
        for provisioner in settings.WORKSPACE_FURNISHERS:
            import_string(provisioner)(workspace, language)
        audit.note(
            "workspace.created",
            workspace=workspace,
            actor=actor or (owner.email if owner else "system"),
            subject=workspace.public_id,
            details={"name": workspace.name, "timezone": workspace.timezone, "plan": workspace.plan.name},
        )
    return workspace


def find_workspace(name: str) -> Workspace | None:
    """Return the workspace of that name or id, or `None`. Raises `Conflict` if several have the name."""
    workspaces = Workspace.everywhere.filter(deleted_at=None)
    workspace_id = decode("ws", name)
    if workspace_id is not None:
        by_id: Workspace | None = workspaces.filter(pk=workspace_id).first()
        return by_id
    # Two are enough to know that the name is ambiguous.
    matches = list(workspaces.filter(name=name.strip())[:2])
    if len(matches) > 1:
        message = f"Several workspaces are named {name}; give the ws_ id instead."
        raise Conflict.because(code="ambiguous", message=message, field="workspace")
    return matches[0] if matches else None


def memberships_of(user: User) -> list[Membership]:
    """Return the user's memberships by their workspaces' names, without deleted workspaces."""
    rows = (
        Membership.everywhere.filter(user=user, workspace__deleted_at=None)
        .select_related("workspace")
        .defer("workspace__model_key")
    )
    return list(rows.order_by("workspace__name", "id"))


def _validate_name(name: str) -> None:
    if not 1 <= len(name) <= core_limits.NAME_CHARACTERS:
        raise Invalid.one(
            field="name",
            code="length",
            message=f"Give a name of 1 to {core_limits.NAME_CHARACTERS} characters.",
        )


def whitelist(workspace: Workspace, actor: str) -> bool:
    """Whitelist the workspace from the next request on, or return `False` if it already is."""
    now = utc_now()
    expected = {"whitelisted_at": None}
    return _update_if(
        workspace, actor, "workspace.whitelisted", expected=expected, whitelisted_at=now, delisted_at=None
    )


def delist(workspace: Workspace, actor: str) -> bool:
    """Refuse the workspace's tokens from the next request on, or return `False` if it isn't whitelisted.

    The other apps read `whitelisted_at` too, and decide what else they pause.
    """
    expected = {"whitelisted_at__isnull": False}
    return _update_if(
        workspace, actor, "workspace.delisted", expected=expected, whitelisted_at=None, delisted_at=utc_now()
    )


def lift_limits(workspace: Workspace, actor: str) -> bool:
    """Switch off rate limit and quota from the next request on, or return `False` if they already are off."""
    expected = {"is_unlimited": False}
    return _update_if(workspace, actor, "workspace.limits_lifted", expected=expected, is_unlimited=True)


def restore_limits(workspace: Workspace, actor: str) -> bool:
    """Apply rate limit and quota again, or return `False` if they already apply."""
    expected = {"is_unlimited": True}
    return _update_if(workspace, actor, "workspace.limits_restored", expected=expected, is_unlimited=False)


def _update_if(
    workspace: Workspace, actor: str, action: str, *, expected: dict[str, Any], **values: Any
) -> bool:
    """Write and audit the values if the row still is as in `expected`, or else return `False`."""
    with transaction.atomic():
        if not Workspace.everywhere.filter(pk=workspace.pk, **expected).update(**values):
            return False
        for name, value in values.items():
            setattr(workspace, name, value)
        audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id)
    return True


def change(workspace: Workspace, fields: Iterable[str], actor: str) -> None:
    """Store the named fields and write them to the audit log; nothing happens without any.

    A changed plan or credit override adds or takes the difference for this month at once. Raises `Invalid`
    for a bad name or time zone.
    """
    names = sorted(fields)
    if not names:
        return
    _validate(workspace, names)
    with transaction.atomic():
        # Two operators who change the same allowance at once must not both give the difference. The weaker
        # lock lets ledger entries of others refer to the row meanwhile; the stronger would deadlock with a
        # settlement.
        old_row = (
            Workspace.everywhere.select_related("plan")
            .select_for_update(of=("self",), no_key=True)
            .get(pk=workspace.pk)
        )
        difference = _allowance_difference(old_row, workspace, names)
        now = utc_now()
        if difference:
            # The new month begins first, with the old allowance, or the difference would be given twice.
            credits.turn_month_if_over(workspace.pk, now)
        workspace.save(update_fields=names)
        credits.adjust(workspace, difference, "the workspace's allowance was changed", actor, now=now)
        audit.note(
            "workspace.changed",
            workspace=workspace,
            actor=actor,
            subject=workspace.public_id,
            details={name: [audit_value(old_row, name), audit_value(workspace, name)] for name in names},
        )


def _validate(workspace: Workspace, names: Collection[str]) -> None:
    """Strip the name. Raises `Invalid` for a bad name or time zone, if it is among the names."""
    if "name" in names:
        workspace.name = workspace.name.strip()
        _validate_name(workspace.name)
    if "timezone" in names:
        validate_timezone(workspace.timezone)


def _allowance_difference(old_row: Workspace, workspace: Workspace, names: Collection[str]) -> int:
    """Return by how many credits a month the change raises the allowance; below 0 if it lowers it."""
    if not _ALLOWANCE_FIELDS & set(names):
        return 0
    return credits.plan_limits(workspace).credits_per_month - credits.plan_limits(old_row).credits_per_month
