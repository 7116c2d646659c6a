"""Creates, renames and deletes the saved views of a workspace's list of items."""

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
    """Create a view.

    Raises `Invalid` if the name is empty, too long or taken, there is no filter, or the workspace has the most
    views that it may have.
    """
    name = _validate_name(name)
    if not filters:
        raise Invalid.one("filters", "required", _("Choose a filter first, then save it."))
    if SavedView.objects.of(workspace).count() >= limits.SAVED_VIEWS:
        message = _("This workspace has %(most)d views; delete one first.") % {"most": limits.SAVED_VIEWS}
        raise Invalid.one("name", "too_many", message)
    view = SavedView(workspace=workspace, name=name, filters=dict(filters))
    with _refuse_taken_name(name):
        view.save(force_insert=True)
    return view


def rename(view: SavedView, name: str) -> None:
    """Rename a view. Raises `Invalid` if the name is empty, too long or taken."""
    view.name = _validate_name(name)
    with _refuse_taken_name(view.name):
        SavedView.objects.of(view.workspace_id).filter(pk=view.pk).update(name=view.name)


def delete(view: SavedView) -> None:
    SavedView.objects.of(view.workspace_id).filter(pk=view.pk).delete()


def _validate_name(name: str) -> str:
    """Return the name with single spaces. Raises `Invalid` if it is empty or too long."""
    name = " ".join(name.split())
    max_characters = int(SavedView._meta.get_field("name").max_length or 0)
    if not name:
        raise Invalid.one("name", "required", _("Enter a name for the view."))
    if len(name) > max_characters:
        message = _("A view's name has at most %(most)d characters.") % {"most": max_characters}
        raise Invalid.one("name", "too_long", message)
    return name


@contextmanager
def _refuse_taken_name(name: str) -> Iterator[None]:
    """Raise `Invalid` if the block breaks the constraint, as it does if two people choose one name at once."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        message = _("There is a view named %(name)s already; choose another name.") % {"name": name}
        raise Invalid.one("name", "taken", message) from error
