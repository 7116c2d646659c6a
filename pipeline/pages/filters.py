"""Defines the base of forms that filter a list by the parameters of the page's address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from django import forms
from django.http import QueryDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accounts.models import Workspace


class FilterForm(forms.Form):
    """The filters of a list of a workspace, all optional."""

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspace = workspace

    @classmethod
    def from_query(cls, data: QueryDict, workspace: Workspace) -> Self:
        """Return the validated form; invalid values are dropped, so that the form has no errors."""
        form = cls(data, workspace=workspace)
        if not form.is_valid():
            valid_names = [name for name in cls.base_fields if name not in form.errors]
            form = cls(_pick(data, valid_names), workspace=workspace)
            form.is_valid()
        return form

    @classmethod
    def query_in(cls, data: Mapping[str, Any]) -> str:
        """Return the query string of the filters alone, valid or not, without an SQL query."""
        return _pick(data, cls.base_fields).urlencode()

    @property
    def query(self) -> str:
        """The query string of this form's filters alone."""
        return self.query_in(self.data)


def _pick(data: Mapping[str, Any], names: Iterable[str]) -> QueryDict:
    """Return the values of these names that aren't empty."""
    picked = QueryDict(mutable=True)
    for name in names:
        if data.get(name):
            picked[name] = str(data[name])
    return picked
