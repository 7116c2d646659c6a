"""Passes a secret to the one page that shows it, encrypted in the session until it is shown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from django.core.cache import caches

from config.core.encrypted_fields import seal, unseal

if TYPE_CHECKING:
    from django.http import HttpRequest

_SESSION_KEY: Final = "shown_once"
_MAX_SECRETS: Final = 5
"""Secrets that wait in one session; a further one pushes out the oldest."""
_REPEATED_WITHIN_SECONDS: Final = 20
"""Seconds within which the second click of a double one comes."""
_MAX_WAIT_SECONDS: Final = 3.0
"""Seconds for which the second click waits for the first one's secret."""


def keep_secret(request: HttpRequest, of: str, secret: str) -> None:
    """Keep a secret until its page takes it; `of` identifies what the secret belongs to, mostly a public id.

    For `_REPEATED_WITHIN_SECONDS` the encrypted secret is also stored under the form's mark, for
    `secret_of_first_sending`.
    """
    _store_in_session(request, of, secret)
    if mark := _form_mark(request):
        caches["marks"].set(mark, seal(f"{of} {secret}"), _REPEATED_WITHIN_SECONDS)


def secret_of_first_sending(request: HttpRequest) -> str | None:
    """Return the `of` of the secret that the form's first sending kept, for the second click of a double one.

    The secret can be taken again. The browser shows only the second click's answer, and the first may still be
    running, so this waits up to `_MAX_WAIT_SECONDS`. Returns `None` if the first sending kept no secret, or was
    more than `_REPEATED_WITHIN_SECONDS` ago.
    """
    deadline = time.monotonic() + _MAX_WAIT_SECONDS
    mark = _form_mark(request)
    while mark:
        if sealed := caches["marks"].get(mark):
            of, _, secret = unseal(sealed).partition(" ")
            _store_in_session(request, of, secret)
            return of
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return None


def take_secret(request: HttpRequest, of: str) -> str | None:
    """Return the secret and forget it, or return `None` if it was taken before or never kept."""
    secrets = dict(request.session.get(_SESSION_KEY, {}))
    sealed = secrets.pop(of, None)
    if sealed is None:
        return None
    request.session[_SESSION_KEY] = secrets
    return unseal(sealed)


def _store_in_session(request: HttpRequest, of: str, secret: str) -> None:
    secrets = dict(list(request.session.get(_SESSION_KEY, {}).items())[-(_MAX_SECRETS - 1) :])
    request.session[_SESSION_KEY] = {**secrets, of: seal(secret)}


def _form_mark(request: HttpRequest) -> str:
    """Return the cache key of this rendering of the form, or an empty text if the form has no mark."""
    once = request.POST.get("once", "")[:64]
    return f"shown_once:{request.user.pk}:{once}" if once else ""
