"""Create, rename and delete the views of a workspace's list of items."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from config.core.errors import Invalid
from pipeline import limits
from pipeline.models import SavedView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from accounts.models import Workspace


def create(workspace: Workspace, name: str, filters: Mapping[str, str]) -> SavedView:
    """Raises `Invalid` for a name that is taken, empty or too long, without a filter, and where there are too many."""
    name = _checked(name)
    if not filters:
        raise Invalid.one("filters", "required", _("Choose a filter first, then save it."))
    if SavedView.objects.of(workspace).count() >= limits.SAVED_VIEWS:
        message = _("This workspace has %(most)d views; delete one first.") % {"most": limits.SAVED_VIEWS}
        raise Invalid.one("name", "too_many", message)
    view = SavedView(workspace=workspace, name=name, filters=dict(filters))
    with _unique(name):
        view.save(force_insert=True)
    return view


def rename(view: SavedView, name: str) -> None:
    """Raises `Invalid` as `create`."""
    view.name = _checked(name)
    with _unique(view.name):
        SavedView.objects.of(view.workspace_id).filter(pk=view.pk).update(name=view.name)


def delete(view: SavedView) -> None:
    SavedView.objects.of(view.workspace_id).filter(pk=view.pk).delete()


def _checked(name: str) -> str:
    name = " ".join(name.split())
    most = int(SavedView._meta.get_field("name").max_length or 0)
    if not name:
        raise Invalid.one("name", "required", _("Enter a name for the view."))
    if len(name) > most:
        message = _("A view's name has at most %(most)d characters.") % {"most": most}
        raise Invalid.one("name", "too_long", message)
    return name


@contextmanager
def _unique(name: str) -> Iterator[None]:
    """Two people who choose one name at once meet at the constraint."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        message = _("There is a view named %(name)s already; choose another name.") % {"name": name}
        raise Invalid.one("name", "taken", message) from error
