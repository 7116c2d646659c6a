"""The audit log's entries."""

import pytest
import structlog

from accounts import audit
from accounts.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_note_keeps_who_what_and_the_request(workspace):
    with structlog.contextvars.bound_contextvars(request_id="req_12345678"):
        audit.note("thing.done", workspace=workspace, actor="alice", subject="tok_1", details={"a": 1})
    [entry] = AuditEntry.objects.of(workspace)
    assert (entry.action, entry.actor, entry.subject, entry.details, entry.request_id) == (
        "thing.done",
        "alice",
        "tok_1",
        {"a": 1},
        "req_12345678",
    )


def test_note_needs_only_an_actor(db):
    entry = audit.note("thing.done", actor="x" * 300, subject="y" * 300)
    entry.refresh_from_db()
    assert (entry.workspace, entry.actor, entry.subject, entry.details, entry.request_id) == (
        None,
        "x" * 200,
        "y" * 200,
        {},
        "",
    )
