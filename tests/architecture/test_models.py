"""Models and migrations agree; names are given, not made up; the first manager is `everywhere`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models

from tests.architecture.code import PACKAGES, ROOT

OURS = [model for model in apps.get_models() if model._meta.app_label in PACKAGES]
NO_WORKSPACE = {
    "accounts.Plan": "plans are the operator's, and the same for all workspaces",
    "accounts.User": "a person may belong to several workspaces; Django's own managers serve log-in",
}
"""Models without the pair of managers."""


@pytest.mark.django_db
def test_migrations_are_what_the_models_say():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_constraints_and_indexes_are_named_by_us(model):
    table = model._meta.db_table
    made_up = re.compile(r"_[0-9a-f]{6,8}(_idx|_uniq)?$")
    for one in (*model._meta.constraints, *model._meta.indexes):
        assert one.name, f"{model._meta.label}: {one}"
        assert not made_up.search(one.name), one.name
        stem = table.removesuffix("_account")
        assert one.name.startswith(stem), f"{one.name} of the table {table}"
    assert not model._meta.unique_together


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_table_is_named_by_us(model):
    assert model._meta.db_table != f"{model._meta.app_label}_{model._meta.model_name}"


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_first_manager_is_everywhere(model):
    if model._meta.label in NO_WORKSPACE:
        return
    first = model._meta.managers[0]
    assert first.name == "everywhere"
    # Django's own answers: a queryset of ours may add methods to it, and may change none.
    assert type(first).get_queryset is models.Manager.get_queryset
    queryset = type(first.get_queryset())
    changed = {
        name
        for kind in queryset.__mro__[: queryset.__mro__.index(models.QuerySet)]
        for name in vars(kind)
        if hasattr(models.QuerySet, name) and not name.startswith("__")
    }
    assert changed == set()
    assert model._meta.default_manager is first


def test_reasons_are_still_needed():
    labels = {model._meta.label for model in OURS}
    assert set(NO_WORKSPACE) <= labels


def test_names_of_indexes_and_constraints_fit_every_database():
    names = [one.name for model in OURS for one in (*model._meta.constraints, *model._meta.indexes)]
    # PostgreSQL cuts longer ones off without a word.
    assert [name for name in names if len(name) > 63] == []
    assert len(names) == len(set(names))


def test_migrations_are_named_by_intent():
    files = [path for package in PACKAGES for path in (ROOT / package).glob("migrations/0*.py")]
    assert files
    assert [str(path) for path in files if "_auto_" in path.name] == []
    assert all(re.fullmatch(r"\d{4}_[a-z][a-z0-9_]*\.py", Path(path).name) for path in files)
