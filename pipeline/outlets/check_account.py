"""Asks a platform whose account credentials belong to, and says what to do about failures.

No transaction is open meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import work_queue
from config.core.datetimes import format_utc
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
"""Characters of a platform's error message that are kept."""
_FITTING_NAMES: Final = frozenset(setting.name for setting in FITTING_SETTINGS)


class BeingRenewed(TryLater):
    """Raised while another worker renews the credential; only one at a time may."""


class CannotAsk(AppError):
    """Raised if the platform couldn't be asked; the account may be all right."""

    code = "unavailable"


def clean_settings(
    platform: Platform, config: Mapping[str, Any], credentials: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and secrets as they are stored. Raises `Invalid` with every field that can't be used.

    With `credentials` None they aren't checked.
    """
    problems = []
    settings: dict[str, Any] = {}
    secrets: dict[str, Any] = {}
    try:
        settings = platform.clean_config(config)
    except ConfigInvalid as error:
        problems += error.problems
    if credentials is not None:
        try:
            secrets = platform.clean_credentials(credentials)
        except ConfigInvalid as error:
            problems += error.problems
    if problems:
        raise Invalid(*(Detail(problem.field, problem.code, problem.message) for problem in problems))
    return settings, secrets


def fetch_account(
    outlet: Outlet,
    platform: Platform,
    *,
    config: Mapping[str, Any],
    credentials: Mapping[str, Any],
    now: datetime,
) -> AccountInfo:
    """Return whose account the credentials belong to.

    Raises `Invalid` or `CannotAsk`, neither of which contains a secret.
    """
    account = new_account(
        platform.kind,
        outlet=encode("out", outlet.pk),
        config=config,
        credentials=credentials,
        profile=outlet.profile,
    )
    connection = OutletConnection(platform, account, client_for(platform, outlet))
    release_database_for_call()
    try:
        with connection.telling_no_secret():
            return platform.check_account(account, http=connection.http, now=now)
    except TryLater as error:
        raise CannotAsk(_detail(None, error)) from None
    except Refused as error:
        raise Invalid(_detail(_field_of(error), error)) from None
    except PluginError as error:
        raise Invalid(_detail("credentials", error)) from None


def release_database_for_call() -> None:
    """Release the database connection, unless in a transaction: the platform may take long to answer."""
    if not transaction.get_connection().in_atomic_block:
        work_queue.release_connections()


def _field_of(error: Refused) -> str:
    field = error.field or "config"
    return field if field.split(".")[0] in {"config", "credentials"} else f"config.{field}"


def _detail(field: str | None, error: PluginError) -> Detail:
    """Return what happened and, if the platform says something specific, what to do about it."""
    message = error.message
    if error.action != error.default_action:
        message = f"{message} {error.action}"
    return Detail(field, error.code, message[:MESSAGE_CHARACTERS])


def profile_of(info: AccountInfo, *, renewed_at: datetime) -> dict[str, Any]:
    """Return the profile for an outlet's row; `renewed_at` is when its credential's life began."""
    return {
        "external_id": info.external_id,
        "handle": info.handle,
        "name": info.name,
        "url": info.url,
        "scopes": list(info.scopes),
        "limits": dict(info.limits),
        "notes": list(info.notes),
        "renewed_at": format_utc(renewed_at),
    }


def is_same_account(outlet: Outlet, info: AccountInfo) -> bool:
    """Return whether it is the account that the outlet was connected to; True if that isn't known."""
    known_id = str(outlet.profile.get("external_id") or "")
    return not known_id or known_id == info.external_id


def refuse_another(outlet: Outlet, info: AccountInfo) -> None:
    """Raise `Invalid` for any other account than the outlet's."""
    if is_same_account(outlet, info):
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
    """Return whether the setting names the account, or where its secrets are sent.

    Such a setting is changed only by reconnecting, which takes the secrets again.
    """
    if setting.name in _FITTING_NAMES or setting.is_secret:
        return False
    return setting.kind in {"url", "email"} or (setting.kind in {"text", "password"} and setting.is_required)
