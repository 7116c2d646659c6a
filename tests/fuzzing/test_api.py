"""Invented requests against what the OpenAPI document says: no fault, no answer that isn't in it, no bad input taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import hypothesis
import pytest
from hypothesis.stateful import rule

from accounts.models import Workspace
from pipeline.publish import workspace_hold
from tests.fuzzing.conftest import undone, work
from tests.sizes import size

if TYPE_CHECKING:
    from schemathesis import Case, Response

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.postgres_if_there,
    pytest.mark.minutes(5),
]

LEAST_CASES: Final = size(3000, 10_000)
JOURNEYS: Final = size(20, 200)
STEPS: Final = 12
LEAST_STEPS: Final = size(100, 1000)

# Operations whose success takes a state that no seeded row has for long, or something of the world outside.
NEVER_BY_CHANCE: Final[set[str]] = {
    # No film is made in this world: tests/contracts/test_storyboards.py reads and changes one.
    "GET /v1/generated/{id}/storyboard",
    "PATCH /v1/generated/{id}/storyboard",
}


@pytest.fixture
def run(newsroom):
    from tests.fuzzing.runs import Run

    return Run(newsroom)


@pytest.fixture
def document(application):
    from tests.fuzzing.runs import load_document

    return load_document(application)


def test_operations(run, document, record_property):
    """Examples, the edges of every schema, and inventions; each case finds the same rows."""
    from schemathesis.pytest.lazy import get_all_tests

    def one(case: Case) -> None:
        with undone():
            run.judge(case, run.send(case))

    # Held, so that there is something to let go; no operation waits for a publication.
    workspace_hold.hold_workspace(Workspace.everywhere.get(), reason="A storm warning.", by="alice")
    labels = set()
    for result in get_all_tests(schema=document, test_func=one, settings=None, given_kwargs=None):
        operation, test = result.ok()
        labels.add(operation.label)
        test()
        if operation.label not in run.succeeded:
            run.ask_all(operation)
    record_property("told", run.summary())
    assert not run.findings, run.report()
    assert run.cases.total() >= LEAST_CASES, run.summary()
    assert labels - run.succeeded == NEVER_BY_CHANCE, "What never succeeds isn't tested."


def test_journeys(run, document, record_property):
    """From answer to answer along the document's links, while the hands work; each journey is taken back."""

    class Journey(document.as_state_machine()):
        def setup(self) -> None:
            self.all_undone = undone()
            self.all_undone.__enter__()

        def teardown(self) -> None:
            self.all_undone.__exit__(None, None, None)

        def call(self, case: Case, **more: Any) -> Response:
            return run.send(case)

        def validate_response(self, response: Response, case: Case, **more: Any) -> None:
            run.judge(case, response, recorder=self.recorder)

        @rule()
        def time_passes(self) -> None:
            work()

    Journey.run(
        settings=hypothesis.settings(
            max_examples=JOURNEYS,
            stateful_step_count=STEPS,
            derandomize=True,
            database=None,
            deadline=None,
            # Findings are gathered, so nothing is ever made smaller.
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
    )
    record_property("told", run.summary())
    assert not run.findings, run.report()
    assert run.cases.total() >= LEAST_STEPS, run.summary()
