"""Forms that lose nothing: what was typed outlives an expired session, and a second click makes no second thing."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.contrib import messages
from django.core.cache import cache
from django.forms import BaseForm
from django.http import QueryDict
from django.utils.translation import gettext as _

from config.ground.limits import BODY_CHARACTERS

if TYPE_CHECKING:
    from django.http import HttpRequest

    from config.ground.errors import AppError

AnyForm = TypeVar("AnyForm", bound=BaseForm)

_KEPT: Final = "typed"
# The longest body in any script, and the fields around it.
_KEPT_BYTES: Final = 4 * BODY_CHARACTERS + 64 * 1024
_NEVER_KEPT: Final = ("password", "secret", "key", "code", "csrfmiddlewaretoken", "once")
_ONCE_SECONDS: Final = 24 * 3600


def keep(request: HttpRequest) -> bool:
    """Keep a form that was sent without a session, secrets left out, until its page is opened again.

    False where it is too long, so that it is on the open page alone.
    """
    if request.method != "POST":
        return True
    wanted = request.POST.copy()
    for name in list(wanted):
        if any(part in name for part in _NEVER_KEPT):
            del wanted[name]
    # As they were typed: encoded for an address, words in other scripts are three times as long.
    if sum(len(value.encode()) for _name, values in wanted.lists() for value in values) > _KEPT_BYTES:
        return False
    if text := wanted.urlencode():
        request.session[_KEPT] = {"path": request.path, "form": text}
    return True


def form_for(request: HttpRequest, form_class: type[AnyForm], **arguments: Any) -> AnyForm:
    """The form as it was sent; else a fresh one, with what was typed before the session ended."""
    if request.method == "POST":
        return form_class(request.POST, **arguments)
    form = form_class(**arguments)
    kept = request.session.get(_KEPT)
    if kept and kept["path"] == request.path:
        del request.session[_KEPT]
        data = QueryDict(kept["form"])
        for name, field in form.fields.items():
            prefixed = form.add_prefix(name)
            if not field.widget.value_omitted_from_data(data, {}, prefixed):
                form.initial[name] = field.widget.value_from_datadict(data, {}, prefixed)
        messages.info(request, _("You had been signed out. What you typed is still here: send it again."))
    return form


def blame(form: BaseForm, error: AppError) -> None:
    """Show an error of the layer below beside the field that it names, else above the form."""
    for detail in error.detail:
        head = (detail.field or "").split(".")[0].split("[")[0]
        form.add_error(head if head in form.fields else None, detail.message)


def once() -> str:
    """What tells one showing of a form from the next; the tag `once` puts it there."""
    return secrets.token_urlsafe(12)


def is_first(request: HttpRequest) -> bool:
    """False where this showing of the form was sent before: a double click, or the back button."""
    token = request.POST.get("once", "")
    # A form without the mark can't be told from its repetition.
    return not token or cache.add(f"once:{request.user.pk}:{token[:64]}", 1, _ONCE_SECONDS)


def sent_in_vain(request: HttpRequest) -> None:
    """The form was refused after all: the same showing may be sent again."""
    cache.delete(f"once:{request.user.pk}:{request.POST.get('once', '')[:64]}")
