"""What is done to workspaces, and to the people and plans around them: create, whitelist, change, vouch for, forget."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from accounts import audit, credits, limits
from accounts.models import Membership, Plan, User, Workspace
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.encrypted_fields import SealedTextField
from config.core.errors import Conflict, Invalid
from config.core.ids import decode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import Model

_DEFAULT_PLAN: Final = "Standard"
_KEY_FORM: Final = re.compile(r"[\x21-\x7e]{16,400}")
"""Of a model's key: no vendor promises more than that it is one printable word, too long to be guessed."""
_ALLOWANCE: Final = frozenset({"plan", "credits_per_month"})
_FORGOTTEN_AT_ONCE: Final = 500


def create(
    name: str,
    *,
    owner: User | None = None,
    timezone: str = "UTC",
    plan: Plan | None = None,
    actor: str | None = None,
) -> Workspace:
    """A workspace with its account and everything that the other apps furnish it with; not whitelisted yet."""
    return establish(
        Workspace(name=name, timezone=timezone, plan=plan or default_plan()), owner=owner, actor=actor
    )


def establish(workspace: Workspace, *, owner: User | None = None, actor: str | None = None) -> Workspace:
    """Store a workspace that is new and give it what it needs, all or nothing."""
    workspace.name = workspace.name.strip()
    _refuse_bad_name(workspace.name)
    refuse_unknown_timezone(workspace.timezone)
    with transaction.atomic():
        workspace.save(force_insert=True)
        credits.open_account(workspace, utc_now())
        if owner is not None:
            Membership.everywhere.create(workspace=workspace, user=owner, role=Membership.Role.OWNER)
        for furnisher in settings.WORKSPACE_FURNISHERS:
            import_string(furnisher)(workspace)
        audit.note(
            "workspace.created",
            workspace=workspace,
            actor=actor or (owner.email if owner else "system"),
            subject=workspace.public_id,
            details={"name": workspace.name, "timezone": workspace.timezone, "plan": workspace.plan.name},
        )
    return workspace


def find(name: str) -> Workspace | None:
    """The workspace of that name or `ws_…` id; None where there is none. Raises `Conflict` where several have the name."""
    living = Workspace.everywhere.filter(deleted_at=None)
    key = decode("ws", name)
    if key is not None:
        by_id: Workspace | None = living.filter(pk=key).first()
        return by_id
    # Two are enough to know that the name is not one workspace's.
    named = list(living.filter(name=name.strip())[:2])
    if len(named) > 1:
        message = f"Several workspaces are named {name}; give the ws_ id instead."
        raise Conflict.because(code="ambiguous", message=message, field="workspace")
    return named[0] if named else None


def memberships_of(user: User) -> list[Membership]:
    """A person's workspaces by name, without the deleted ones."""
    rows = (
        Membership.everywhere.filter(user=user, workspace__deleted_at=None)
        .select_related("workspace")
        .defer("workspace__model_key")
    )
    return list(rows.order_by("workspace__name", "id"))


@cache
def _known_timezones() -> frozenset[str]:
    """Read once: each call of the library looks at some hundred files."""
    return frozenset(zoneinfo.available_timezones())


def timezone_choices() -> list[tuple[str, str]]:
    """Every time zone that a workspace may have, for a form."""
    places = sorted(name for name in _known_timezones() if "/" in name and not name.startswith("Etc/"))
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in places)]


def _refuse_bad_name(name: str) -> None:
    if not 1 <= len(name) <= core_limits.NAME_CHARACTERS:
        raise Invalid.one(
            field="name",
            code="length",
            message=f"Give a name of 1 to {core_limits.NAME_CHARACTERS} characters.",
        )


def refuse_unknown_timezone(name: str) -> None:
    if name not in _known_timezones():
        raise Invalid.one(
            field="timezone",
            code="unknown_timezone",
            message="Give an IANA time zone, such as Europe/Berlin.",
        )


def default_plan() -> Plan:
    plan = Plan.objects.filter(is_default=True).first()
    if plan is None:
        plan, _ = Plan.objects.get_or_create(name=_DEFAULT_PLAN, defaults={"is_default": True})
    return plan


def whitelist(workspace: Workspace, actor: str) -> bool:
    """Let its tokens work from the next request on; False where they already do."""
    now = utc_now()
    return _set(workspace, actor, "workspace.whitelisted", was={"whitelisted_at": None}, whitelisted_at=now)


def delist(workspace: Workspace, actor: str) -> bool:
    """Refuse its tokens from the next request on; what else pauses is the other apps' reading of `whitelisted_at`."""
    was = {"whitelisted_at__isnull": False}
    return _set(workspace, actor, "workspace.delisted", was=was, whitelisted_at=None)


def lift_limits(workspace: Workspace, actor: str) -> bool:
    """No rate limit and no quota from the next request on."""
    was = {"is_unlimited": False}
    return _set(workspace, actor, "workspace.limits_lifted", was=was, is_unlimited=True)


def restore_limits(workspace: Workspace, actor: str) -> bool:
    was = {"is_unlimited": True}
    return _set(workspace, actor, "workspace.limits_restored", was=was, is_unlimited=False)


def set_model_key(workspace: Workspace, key: str, actor: str) -> None:
    """The next run asks the model with this key; nobody is shown it again, and the audit log doesn't hold it."""
    key = key.strip()
    refuse_unless_model_key(key)
    _keep_model_key(workspace, "workspace.model_key_set", actor, model_key=key, model_key_last_four=key[-4:])


def refuse_unless_model_key(key: str) -> None:
    if _KEY_FORM.fullmatch(key) is None:
        message = "Paste the whole key as its vendor shows it: 16 to 400 characters without spaces."
        raise Invalid.one(field="model_key", code="invalid", message=message)


def remove_model_key(workspace: Workspace, actor: str) -> bool:
    """The operator's key holds again; False where it did already."""
    return _keep_model_key(
        workspace,
        "workspace.model_key_removed",
        actor,
        was={"model_key__isnull": False},
        model_key=None,
        model_key_last_four="",
    )


def _keep_model_key(
    workspace: Workspace, action: str, actor: str, *, was: dict[str, Any] | None = None, **values: Any
) -> bool:
    with transaction.atomic():
        if not Workspace.everywhere.filter(pk=workspace.pk, **(was or {})).update(**values):
            return False
        audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id)
    # What the instance held is not what is stored now, and it must not hold the key in the open.
    workspace.refresh_from_db(fields=list(values))
    return True


def _set(workspace: Workspace, actor: str, action: str, *, was: dict[str, Any], **values: Any) -> bool:
    """Write the values if the row still is as it was, and note it; doing it twice notes it once."""
    with transaction.atomic():
        if not Workspace.everywhere.filter(pk=workspace.pk, **was).update(**values):
            return False
        for name, value in values.items():
            setattr(workspace, name, value)
        audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id)
    return True


def change(workspace: Workspace, fields: Iterable[str], actor: str) -> None:
    """Write the named fields of the instance; another plan or credit override holds for this month already."""
    names = sorted(fields)
    if not names:
        return
    if "name" in names:
        workspace.name = workspace.name.strip()
        _refuse_bad_name(workspace.name)
    if "timezone" in names:
        refuse_unknown_timezone(workspace.timezone)
    with transaction.atomic():
        # Two operators who change the same allowance at once must not both give the difference. The weaker lock lets
        # ledger entries of others refer to the row meanwhile; the stronger would deadlock with a settlement.
        before = (
            Workspace.everywhere.select_related("plan")
            .select_for_update(of=("self",), no_key=True)
            .get(pk=workspace.pk)
        )
        difference = (
            credits.plan_limits(workspace).credits_per_month - credits.plan_limits(before).credits_per_month
            if _ALLOWANCE & set(names)
            else 0
        )
        now = utc_now()
        if difference:
            # The month turns first and by the old allowance, or the difference would be given twice.
            credits.turn_month_if_over(workspace.pk, now)
        workspace.save(update_fields=names)
        credits.adjust(workspace, difference, "the workspace's allowance was changed", actor, now=now)
        audit.note(
            "workspace.changed",
            workspace=workspace,
            actor=actor,
            subject=workspace.public_id,
            details={name: [_told(before, name), _told(workspace, name)] for name in names},
        )


def keep_plan(plan: Plan, fields: Iterable[str], actor: str) -> None:
    """Store a new plan, or the named fields of one; its workspaces get other credits with their next month."""
    with transaction.atomic():
        _keep(plan, fields)
        audit.note("plan.changed", actor=actor, subject=plan.name, details=_details(plan, fields))


def make_default(plan: Plan, actor: str) -> bool:
    """New workspaces get this plan; the former default gives way. False where it is the default already."""
    with transaction.atomic():
        # The constraint allows one at a time, so the former goes first.
        Plan.objects.filter(is_default=True).exclude(pk=plan.pk).update(is_default=False)
        if not Plan.objects.filter(pk=plan.pk, is_default=False).update(is_default=True):
            return False
        plan.is_default = True
        audit.note("plan.made_default", actor=actor, subject=plan.name)
    return True


def keep_user(user: User, fields: Iterable[str], actor: str) -> None:
    """Store a new person, or the named fields of one."""
    with transaction.atomic():
        _keep(user, fields)
        audit.note("user.changed", actor=actor, subject=user.email, details=_details(user, fields))


def _keep(row: Model, fields: Iterable[str]) -> None:
    if row._state.adding:
        row.save(force_insert=True)
    else:
        row.save(update_fields=sorted(fields))


def _details(row: Model, fields: Iterable[str]) -> dict[str, Any]:
    """Passwords are never among them."""
    return {name: _told(row, name) for name in sorted(fields) if "password" not in name}


def _told(row: Model, name: str) -> Any:
    value = getattr(row, name)
    if value is not None and isinstance(row._meta.get_field(name), SealedTextField):
        # The audit log is kept for good and read by many.
        return "[sealed]"
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def vouch_for(user: User, actor: str) -> None:
    """Take the person's address as proven: their first log-in asks for no code by mail."""
    with transaction.atomic():
        user.vouch_for_email()
        audit.note("user.address_vouched_for", actor=actor, subject=user.email)


def remove_second_factor(user: User, actor: str) -> bool:
    """Authenticator app and recovery codes are gone; False where there were none."""
    with transaction.atomic():
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            audit.note("user.second_factor_removed", actor=actor, subject=user.email)
    return bool(removed)


def forget_unverified(now: datetime) -> int:
    """Delete some accounts that were signed up for and never proven: anybody can give anybody's address.

    Those that an operator made have no row of allauth's for their address before it is proven, and stay.
    """
    unused = User.objects.filter(
        date_joined__lte=now - limits.UNVERIFIED_KEPT, last_login=None, is_staff=False, memberships=None
    )
    proven = EmailAddress.objects.filter(verified=True).values("user_id")
    asked = EmailAddress.objects.filter(verified=False).values("user_id")
    some = list(
        unused.filter(pk__in=asked).exclude(pk__in=proven).values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE]
    )
    if some:
        unused.filter(pk__in=some).exclude(pk__in=proven).delete()
    return len(some)
