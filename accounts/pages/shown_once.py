"""Secrets on their way to the one page that shows them: sealed in the session, gone when they were shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from django.core.cache import caches

from config.core.encrypted_fields import seal, unseal

if TYPE_CHECKING:
    from django.http import HttpRequest

_NAME: Final = "shown_once"
_KEPT_MOST: Final = 5
_REPEATED_WITHIN_SECONDS: Final = 20
_WAITED_SECONDS: Final = 3.0


def keep_secret(request: HttpRequest, of: str, secret: str) -> None:
    """Keep a secret until its page takes it. `of` is the public id of what it belongs to.

    For some seconds the sealed secret is also kept beside the form's mark, for `secret_of_first_sending`.
    """
    _keep(request, of, secret)
    if mark := _mark(request):
        caches["marks"].set(mark, seal(f"{of} {secret}"), _REPEATED_WITHIN_SECONDS)


def secret_of_first_sending(request: HttpRequest) -> str | None:
    """What the first sending of this form made, for the second click of a double one; its secret can be taken again.

    The browser shows the answer to the second click only, and the first may still be at work: wait for it. None where
    the first made nothing, or was sent longer ago.
    """
    until = time.monotonic() + _WAITED_SECONDS
    mark = _mark(request)
    while mark:
        if sealed := caches["marks"].get(mark):
            of, _, secret = unseal(sealed).partition(" ")
            _keep(request, of, secret)
            return of
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return None


def take_secret(request: HttpRequest, of: str) -> str | None:
    """The secret, the first time; None ever after."""
    kept = dict(request.session.get(_NAME, {}))
    sealed = kept.pop(of, None)
    if sealed is None:
        return None
    request.session[_NAME] = kept
    return unseal(sealed)


def _keep(request: HttpRequest, of: str, secret: str) -> None:
    kept = dict(list(request.session.get(_NAME, {}).items())[-(_KEPT_MOST - 1) :])
    request.session[_NAME] = {**kept, of: seal(secret)}


def _mark(request: HttpRequest) -> str:
    """The cache's name for this showing of the form; empty where the form has no mark."""
    once = request.POST.get("once", "")[:64]
    return f"shown_once:{request.user.pk}:{once}" if once else ""
