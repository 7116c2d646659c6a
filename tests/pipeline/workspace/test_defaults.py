"""The workspace's defaults, changed below the pages: nothing that isn't there or isn't theirs is taken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.models import AuditEntry
from config.core.errors import Invalid
from config.core.ids import encode
from pipeline import limits
from pipeline.models import Outlet
from pipeline.workspace import defaults as stage
from tests.pipeline.steps import make_stage


def test_nothing_of_another_workspace_is_taken(workspace, charlies):
    before, theirs = stage.read(workspace), stage.read(charlies)
    for wanted, field in (
        (replace(before, persona=theirs.persona), "persona"),
        (replace(before, outlets=theirs.outlets), "outlets"),
        (replace(before, outlets=(*before.outlets, *before.outlets)), "outlets"),
        (replace(before, persona="per_x"), "persona"),
        (replace(before, engines=("No such engine",)), "engines"),
        (replace(before, engines=()), "engines"),
    ):
        with pytest.raises(Invalid) as refused:
            stage.change(workspace, wanted, actor="test")
        assert [one.field for one in refused.value.detail] == [field]
    assert stage.read(workspace) == before
    assert AuditEntry.everywhere.filter(action="defaults.changed").count() == 0


def test_a_deleted_outlet_and_too_many_are_refused(workspace):
    before = stage.read(workspace)
    gone = make_stage(workspace)
    Outlet.everywhere.filter(pk=gone.pk).update(deleted_at=gone.created_at)
    many = tuple(
        encode("out", make_stage(workspace, name=f"{number}").pk)
        for number in range(limits.OUTLETS_PER_ITEM + 1)
    )
    for outlets in ((encode("out", gone.pk),), many):
        with pytest.raises(Invalid):
            stage.change(workspace, replace(before, outlets=outlets), actor="test")
    assert stage.change(workspace, replace(before, outlets=many[:-1]), actor="test") is True
    assert stage.read(workspace).outlets == many[:-1]
    assert stage.change(workspace, replace(before, outlets=many[:-1]), actor="test") is False
