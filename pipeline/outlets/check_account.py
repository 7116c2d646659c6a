"""Ask a platform whose account it is, and say of each failure what a person can do; no transaction is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import work_queue
from config.core.datetimes import as_z
from config.core.errors import AppError, Detail, Invalid
from config.core.ids import encode
from pipeline.outlets.outlet_client import OutletConnection, client_for, new_account
from pipeline.platforms.fitting import FITTING_SETTINGS
from pipeline.plugins import ConfigInvalid, PluginError, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.models import Outlet
    from pipeline.platforms.base import AccountInfo, Platform, Setting

MESSAGE_CHARACTERS: Final = 1000
"""Of what a platform says of a failure; the rest is in nobody's interest."""
_FITTING: Final = frozenset(setting.name for setting in FITTING_SETTINGS)


class BeingRenewed(TryLater):
    """Another hand is renewing the credential at this moment; only one of them may."""


class CannotAsk(AppError):
    """The platform couldn't be asked; the account may be all right."""

    code = "unavailable"


def clean_settings(
    platform: Platform, config: Mapping[str, Any], credentials: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and secrets as they will be stored; raises `Invalid` naming every field that can't be used.

    `credentials` None: they aren't looked at.
    """
    problems = []
    kept: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    try:
        kept = platform.clean_config(config)
    except ConfigInvalid as error:
        problems += error.problems
    if credentials is not None:
        try:
            secrets = platform.clean_credentials(credentials)
        except ConfigInvalid as error:
            problems += error.problems
    if problems:
        raise Invalid(*(Detail(problem.field, problem.code, problem.message) for problem in problems))
    return kept, secrets


def ask_whose(
    outlet: Outlet,
    platform: Platform,
    *,
    config: Mapping[str, Any],
    credentials: Mapping[str, Any],
    now: datetime,
) -> AccountInfo:
    """Whose account these are the credentials of; raises `Invalid` or `CannotAsk`, neither of which quotes a secret."""
    account = new_account(
        platform.kind,
        outlet=encode("out", outlet.pk),
        config=config,
        credentials=credentials,
        profile=outlet.profile,
    )
    connection = OutletConnection(platform, account, client_for(platform, outlet))
    release_for_the_call()
    try:
        with connection.telling_no_secret():
            return platform.check_account(account, http=connection.http, now=now)
    except TryLater as error:
        raise CannotAsk(_detail(None, error)) from None
    except Refused as error:
        raise Invalid(_detail(_field_of(error), error)) from None
    except PluginError as error:
        raise Invalid(_detail("credentials", error)) from None


def release_for_the_call() -> None:
    """The platform may take long to answer: no connection of the database is held meanwhile."""
    if not transaction.get_connection().in_atomic_block:
        work_queue.release_connections()


def _field_of(error: Refused) -> str:
    field = error.field or "config"
    return field if field.split(".")[0] in {"config", "credentials"} else f"config.{field}"


def _detail(field: str | None, error: PluginError) -> Detail:
    """What happened and, where the platform says something of its own, what to do about it."""
    words = error.message
    if error.action != error.usual_action:
        words = f"{words} {error.action}"
    return Detail(field, error.code, words[:MESSAGE_CHARACTERS])


def profile_of(info: AccountInfo, *, renewed_at: datetime) -> dict[str, Any]:
    """As an outlet keeps what its platform said; `renewed_at` is when its credential's life began."""
    return {
        "external_id": info.external_id,
        "handle": info.handle,
        "name": info.name,
        "url": info.url,
        "scopes": list(info.scopes),
        "limits": dict(info.limits),
        "notes": list(info.notes),
        "renewed_at": as_z(renewed_at),
    }


def is_same(outlet: Outlet, info: AccountInfo) -> bool:
    """Whether it is the account that the outlet was connected to; True where that isn't known."""
    known = str(outlet.profile.get("external_id") or "")
    return not known or known == info.external_id


def refuse_another(outlet: Outlet, info: AccountInfo) -> None:
    """Raises `Invalid` for any other account than the outlet's."""
    if is_same(outlet, info):
        return
    message = _(
        "These belong to another account (%(found)s). %(name)s stays connected to %(known)s: add the other account "
        "as an outlet of its own."
    ) % {
        "found": info.handle or info.name or info.external_id,
        "known": outlet.profile.get("handle") or outlet.profile.get("name") or outlet.profile["external_id"],
        "name": outlet.name,
    }
    raise Invalid.one("credentials", "another_account", message)


def is_fixed(setting: Setting) -> bool:
    """Says which account it is, or where its secrets are sent: changed only by whoever gives the secrets again."""
    if setting.name in _FITTING or setting.is_secret:
        return False
    return setting.kind in {"url", "email"} or (setting.kind in {"text", "password"} and setting.is_required)
