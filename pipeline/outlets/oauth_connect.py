"""Connects an outlet by OAuth 2.0: sends a person to the platform, and takes them back once.

RFC 6749 with PKCE (RFC 7636). The `state` that goes along is stored as a hash, bound to the person who began;
the PKCE verifier is stored encrypted. Both are deleted with their row when the person comes back, and after
ten minutes.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from oauthlib.common import add_params_to_uri
from oauthlib.oauth2 import WebApplicationClient

from accounts import audit
from config.core.encrypted_fields import Sealed
from config.core.errors import AppError, Conflict, Detail, Invalid
from config.core.http_client import shared
from pipeline import limits, outlets, plugins
from pipeline.models import OAuthApp, OAuthAttempt
from pipeline.outlets.check_account import release_database_for_call
from pipeline.outlets.outlet_client import OutletConnection, client_of, new_account, platform_of
from pipeline.platforms.oauth_tokens import TokenPlatform
from pipeline.plugins import PluginError

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import User, Workspace
    from pipeline.models import Outlet

VERIFIER_CHARACTERS: Final = 96
EXCHANGE_SECONDS: Final = 20.0
"""X wants its code back within 30 seconds of giving it."""
DELETED_AT_ONCE: Final = 500


class NotAllowed(AppError):
    """Raised if the platform, or the person there, didn't give the permission."""

    code = "conflict"


def platforms() -> tuple[TokenPlatform, ...]:
    """Return the platforms at which an operator can register an application."""
    all_platforms = [platform_of(kind) for kind in plugins.kinds("platforms")]
    return tuple(
        platform
        for platform in all_platforms
        if isinstance(platform, TokenPlatform) and platform.oauth is not None
    )


def redirect_address(kind: str) -> str:
    """Return the redirect URL that the operator registers at the platform; it must always match exactly."""
    return f"{settings.PUBLIC_URL.rstrip('/')}/outlets/connect/{kind}/callback"


def is_registered(kind: str) -> bool:
    """Return whether the operator has registered an application at the platform."""
    is_known = any(platform.kind == kind for platform in platforms())
    return is_known and OAuthApp.everywhere.filter(platform=kind).exists()


def begin(workspace: Workspace, kind: str, *, user: User, outlet: Outlet | None, now: datetime) -> str:
    """Return the platform's address to send the person to.

    Raises `Conflict` if the operator hasn't registered an application, `Invalid` for an outlet of another
    platform.
    """
    platform = _oauth_platform(kind)
    app = OAuthApp.everywhere.filter(platform=kind).first()
    if app is None or platform.oauth is None:
        message = _("The operator of this service first has to register an application at %(platform)s.")
        raise Conflict.because(code="not_registered", message=message % {"platform": platform.label})
    if outlet is not None and outlet.platform != kind:
        raise Invalid.one("outlet", "another_platform", _("This outlet is on another platform."))
    client = WebApplicationClient(app.client_id)
    state = secrets.token_urlsafe(32)
    verifier = client.create_code_verifier(VERIFIER_CHARACTERS) if platform.oauth.uses_pkce else ""
    OAuthAttempt.everywhere.create(
        workspace=workspace,
        user=user,
        platform=kind,
        outlet=outlet,
        state_hash=_hash(state),
        verifier=verifier,
        created_at=now,
        expires_at=now + limits.OAUTH_ATTEMPT_KEPT,
    )
    parameters = {
        "response_type": "code",
        "client_id": app.client_id,
        "redirect_uri": redirect_address(kind),
        "scope": " ".join(dict.fromkeys([*platform.oauth.scopes, *app.scopes.split()])),
        "state": state,
        **platform.oauth.extra,
    }
    if verifier:
        parameters["code_challenge"] = client.create_code_challenge(verifier, "S256")
        parameters["code_challenge_method"] = "S256"
    address = platform.at(new_account(kind, config={}, credentials={}), platform.oauth.authorize_url)
    return add_params_to_uri(address, list(parameters.items()))


def take_attempt(kind: str, *, state: str, user: User, now: datetime) -> OAuthAttempt:
    """Return the attempt that belongs to the `state`, and delete its row.

    Raises `Invalid` for every other state.
    """
    message = _("This way back was used already, is older than ten minutes, or isn't yours. Begin again.")
    expired = Invalid.one("state", "over", message)
    # Of two requests with the same state at the same moment, one finds it gone.
    with transaction.atomic():
        rows = OAuthAttempt.everywhere.select_for_update(of=("self",)).select_related("workspace", "outlet")
        attempt: OAuthAttempt | None = rows.filter(state_hash=_hash(state), user=user, platform=kind).first()
        if attempt is None:
            raise expired
        taken, attempt_id = attempt, attempt.pk
        attempt.delete()
    taken.pk = attempt_id
    if now >= taken.expires_at:
        raise expired
    return taken


def complete(attempt: OAuthAttempt, *, code: str, by: str, now: datetime) -> Outlet:
    """Exchange the code and connect the outlet. Raises `AppError` with a message for people."""
    platform = _oauth_platform(attempt.platform)
    verifier = attempt.verifier
    verifier_text = verifier.open() if isinstance(verifier, Sealed) else verifier
    parameters = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_address(attempt.platform),
        **({"code_verifier": verifier_text} if verifier_text else {}),
    }
    secret = {"code": code, "verifier": verifier_text, **client_of(attempt.platform)}
    account = new_account(attempt.platform, config={}, credentials=secret)
    connection = OutletConnection(platform, account, shared.client())
    release_database_for_call()
    try:
        granted = platform.tokens(
            account, parameters, http=connection.http, now=now, timeout=EXCHANGE_SECONDS
        )
    except PluginError as error:
        message = error.message if error.action == error.default_action else f"{error.message} {error.action}"
        raise NotAllowed(Detail(None, error.code, connection.redact(message))) from None
    if attempt.outlet is not None:
        return outlets.reconnect(
            attempt.outlet,
            config={},
            credentials=granted.credentials,
            by=by,
            now=now,
            expires_at=granted.expires_at,
        )
    return outlets.connect_outlet(
        attempt.workspace,
        attempt.platform,
        name="",
        config={},
        credentials=granted.credentials,
        by=by,
        now=now,
        expires_at=granted.expires_at,
    )


def forget(now: datetime) -> int:
    """Delete some attempts that nobody came back from, and return how many."""
    old = OAuthAttempt.everywhere.filter(expires_at__lt=now).order_by("expires_at")
    ids = list(old.values_list("pk", flat=True)[:DELETED_AT_ONCE])
    if ids:
        OAuthAttempt.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def register(app: OAuthApp, *, secret: str, by: str, now: datetime) -> OAuthApp:
    """Store what the operator has registered at a platform; an empty `secret` keeps the former one.

    Raises `Invalid` for a platform without OAuth.
    """
    _oauth_platform(app.platform)
    app.client_id = app.client_id.strip()
    if secret.strip():
        app.client_secret = secret.strip()
    app.updated_at = now
    changed = ["client_id", "client_secret", "scopes", "review", "note", "updated_at"]
    with transaction.atomic():
        if app._state.adding:
            app.save(force_insert=True)
        else:
            # The platform can't change: the redirect URL that is registered there contains it.
            app.save(update_fields=changed)
        audit.note("oauth_app.saved", actor=by, subject=app.platform, details={"review": app.review})
    return app


def unregister(app: OAuthApp, *, by: str) -> None:
    """Delete the application.

    Connected outlets work until their tokens expire: nothing can renew them then.
    """
    with transaction.atomic():
        audit.note("oauth_app.deleted", actor=by, subject=app.platform)
        app.delete()


def _hash(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()


def _oauth_platform(kind: str) -> TokenPlatform:
    """Return the platform. Raises `Invalid` for a kind without OAuth."""
    for platform in platforms():
        if platform.kind == kind:
            return platform
    raise Invalid.one("platform", "unknown", _("Nothing is connected there by its own log-in."))
