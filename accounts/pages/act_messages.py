"""Shows the outcome of a user's action: a success message, with an undo if possible, or why it failed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.contrib import messages
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from config.core.errors import AppError
from config.core.states import Overtaken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django.forms import BaseForm
    from django.http import HttpRequest
    from django.utils.functional import _StrOrPromise


@contextmanager
def report_errors(
    request: HttpRequest,
    form: BaseForm | None = None,
    *,
    overtaken: _StrOrPromise = "",
    on_overtaken: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Catch an `AppError` of the block, and show it in a message or, with a form, at its fields.

    The view goes on after the block, and the same form may be sent again. So report success and redirect within
    the block, after the call that may fail. If a row has changed since the page was opened, `on_overtaken` is
    called if given; without a form the message is `overtaken`, or else a general one.
    """
    try:
        yield
    except AppError as error:
        kept_forms.allow_sending_again(request)
        if isinstance(error, Overtaken) and on_overtaken is not None:
            on_overtaken()
        elif form is not None:
            show_at_fields(form, error)
        elif isinstance(error, Overtaken):
            messages.error(request, overtaken or changed_meanwhile_message())
        else:
            messages.error(request, str(error))


def show_at_fields(form: BaseForm, error: AppError) -> None:
    """Add each detail of an error to the field that it names, or else to the whole form.

    A form whose field names differ from the API's has a method `field_of` that translates them.
    """
    field_of = getattr(form, "field_of", first_part)
    for detail in error.detail:
        name = field_of(detail.field or "")
        form.add_error(name if name in form.fields else None, detail.message)


def first_part(path: str) -> str:
    """Return the field's name in a path such as `media[0].url`."""
    return path.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]


def changed_meanwhile_message() -> str:
    return _("Changed since you opened it. This is the current version.")


def offer_undo(
    request: HttpRequest,
    sentence: str,
    address: str,
    fields: Mapping[str, str] | None = None,
    *,
    is_good: bool = True,
) -> None:
    """Show a message, a warning unless `is_good`, with an undo button that posts the fields to the address."""
    context = {"sentence": sentence, "address": address, "fields": dict(fields or {})}
    text = render_to_string("components/undo.html", context, request=request)
    level = messages.SUCCESS if is_good else messages.WARNING
    messages.add_message(request, level, text, extra_tags="lasting")
