"""What every platform has to keep, run over the registry; a new kind fails until its sample is recorded.

A sample holds an `account`, a `payload`, the `key`, whether committing uses the `network`, and:
`commit` (the `answer` that accepts, what was `asked`, the `sent` that follows), `reconcile` (the answers for a post
that is `found` and for one that is `absent`), `metrics` (the `answer` and the `samples`).
"""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.ground.outbound import (
    BadResponse,
    ConnectFailed,
    OutboundError,
    Response,
    ResponseTooLarge,
    TimedOut,
)
from pipeline import plugins
from pipeline.engines.base import BUCKETS
from pipeline.platforms.base import (
    METRICS,
    Absent,
    Account,
    CannotTell,
    Found,
    Payload,
    PayloadAsset,
    Platform,
    Ready,
    Sample,
    Sent,
)
from pipeline.plugins import OutcomeUnknown, TryLater
from tests.platforms.support import answer, client

SAMPLES = Path(__file__).parent / "samples"
PLATFORMS = plugins.every("platforms", Platform)
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

MAY_HAVE_REACHED = {
    "timed-out": TimedOut("No answer came.", may_have_reached=True),
    "broken-off": BadResponse("The server broke off.", may_have_reached=True),
    "too-large": ResponseTooLarge("The answer is too large.", may_have_reached=True),
    "connection-lost": ConnectFailed("The connection was lost.", may_have_reached=True),
    "500": answer(500, {"error": "oops"}),
    "502": answer(502, b"<html>Bad gateway</html>"),
    "504": answer(504, b""),
    "302": answer(302, b"", {"Location": "https://elsewhere.example.com/"}),
    "200-html": answer(200, b"<html>Welcome</html>"),
    "201-empty": answer(201, b""),
    "201-list": answer(201, []),
    "201-without-id": answer(201, {"ok": True}),
    "201-not-utf-8": answer(201, b"\xff\xfe{"),
    "201-deeply-nested": answer(201, b"[" * 200_000),
}
NEVER_REACHED = {
    "timed-out": TimedOut("The connection took too long.", may_have_reached=False),
    "not-connected": ConnectFailed("Nobody listens.", may_have_reached=False),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One platform with its sample."""

    platform: Platform
    recorded: dict[str, Any]

    @property
    def account(self) -> Account:
        return Account(**self.recorded["account"])

    @property
    def payload(self) -> Payload:
        given = self.recorded["payload"]
        return Payload(**{**given, "assets": tuple(PayloadAsset(**asset) for asset in given["assets"])})

    def commit(self, *answers: Response | OutboundError) -> tuple[Sent, list[tuple[str, str, Any]]]:
        http, recorder = client(*answers)
        sent = self.platform.commit(
            self.account, self.payload, {}, http=http, key=self.recorded["key"], now=NOW
        )
        return sent, recorder.asked

    def reconcile(self, *answers: Response | OutboundError) -> Found | Absent | CannotTell:
        http, _ = client(*answers)
        return self.platform.reconcile(
            self.account, self.payload, {}, http=http, key=self.recorded["key"], now=NOW
        )


def read(platform: Platform) -> dict[str, Any]:
    path = SAMPLES / f"{platform.kind}.json"
    assert path.is_file(), (
        f"Record tests/platforms/samples/{platform.kind}.json as tests/platforms/test_contract.py says."
    )
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def uses_network(platform: Platform) -> bool:
    """True also where no sample tells: the missing sample then fails the network's tests as well."""
    path = SAMPLES / f"{platform.kind}.json"
    return not path.is_file() or json.loads(path.read_text(encoding="utf-8"))["network"] is True


def recorded_answer(given: dict[str, Any]) -> Response:
    return answer(given["status"], given.get("json"), given.get("headers"))


@pytest.fixture(params=PLATFORMS, ids=lambda platform: platform.kind)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param, read(request.param))


@pytest.fixture(
    params=[platform for platform in PLATFORMS if uses_network(platform)], ids=lambda one: one.kind
)
def network_case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param, read(request.param))


@pytest.fixture(params=[one for one in PLATFORMS if not uses_network(one)], ids=lambda one: one.kind)
def local_case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param, read(request.param))


def test_platform_is_described(case: Case) -> None:
    platform = case.platform

    assert platform.label.strip() == platform.label != ""
    assert platform.buckets != ()
    assert set(platform.buckets) - set(BUCKETS) == set()
    assert set(platform.metrics_given) - set(METRICS) == set()
    assert platform.config_schema["type"] == "object"
    assert json.loads(json.dumps(platform.config_schema)) == platform.config_schema


def test_clean_config_is_settled_after_one_pass(case: Case) -> None:
    clean = case.platform.clean_config({})

    assert case.platform.clean_config(clean) == clean


def test_unknown_setting_is_named(case: Case) -> None:
    with pytest.raises(plugins.ConfigInvalid) as invalid:
        case.platform.clean_config({"no_such_setting": 1})

    assert [(problem.field, problem.code) for problem in invalid.value.problems] == [
        ("config.no_such_setting", "unknown_field")
    ]


def test_payload_of_the_sample_is_valid(case: Case) -> None:
    length = case.platform.length(case.payload)

    assert case.platform.validate(case.account, case.payload) == ()
    assert (length.limit, length.unit) == (case.platform.text_limit, case.platform.text_unit)
    assert length.count >= 1


def test_text_over_the_limit_is_named(case: Case) -> None:
    limit = case.platform.text_limit
    body = "x" * ((limit or 0) + 1)
    problems = case.platform.validate(case.account, dataclasses.replace(case.payload, body=body))

    assert [(problem.field, problem.code) for problem in problems] == (
        [] if limit is None else [("body", "too_long")]
    )


def test_nothing_to_prepare_keeps_the_state(case: Case) -> None:
    http, recorder = client()

    assert case.platform.prepare(case.account, case.payload, {"a": 1}, http=http, key="k") == {"a": 1}
    assert case.platform.poll(case.account, case.payload, {}, http=http) == Ready()
    assert recorder.asked == []


def test_commit_sends_what_is_recorded(case: Case) -> None:
    recorded = case.recorded["commit"]
    answers = [recorded_answer(recorded["answer"])] if case.recorded["network"] else []

    sent, asked = case.commit(*answers)

    assert sent == Sent(**recorded["sent"])
    assert asked == [tuple(request) for request in recorded["asked"]]


@pytest.mark.parametrize("fault", MAY_HAVE_REACHED.values(), ids=MAY_HAVE_REACHED.keys())
def test_commit_without_proof_is_unknown(network_case: Case, fault: Response | OutboundError) -> None:
    with pytest.raises(OutcomeUnknown, match=r"^[A-Z].*\.$"):
        network_case.commit(fault)


@pytest.mark.parametrize("fault", NEVER_REACHED.values(), ids=NEVER_REACHED.keys())
def test_commit_that_never_reached_may_be_tried_again(network_case: Case, fault: OutboundError) -> None:
    with pytest.raises(TryLater, match=r"^[A-Z].*\.$"):
        network_case.commit(fault)


def test_commit_twice_without_network_is_one(local_case: Case) -> None:
    assert local_case.commit() == local_case.commit()


def test_reconcile_finds_what_was_sent(case: Case) -> None:
    given = case.recorded["reconcile"]["found"]

    assert case.reconcile(*([recorded_answer(given)] if given else [])) == Found(
        Sent(**case.recorded["commit"]["sent"])
    )


def test_reconcile_proves_absence(network_case: Case) -> None:
    assert network_case.reconcile(recorded_answer(network_case.recorded["reconcile"]["absent"])) == Absent()


@pytest.mark.parametrize(
    "fault",
    [*MAY_HAVE_REACHED.values(), *NEVER_REACHED.values(), answer(429, {}), answer(401, {}), answer(404, {})],
    ids=[*MAY_HAVE_REACHED, *(f"never-{name}" for name in NEVER_REACHED), "429", "401", "404"],
)
def test_reconcile_without_proof_can_not_tell(network_case: Case, fault: Response | OutboundError) -> None:
    result = network_case.reconcile(fault)

    assert type(result) is CannotTell
    assert result.reason.endswith(".")


def test_metrics_are_as_recorded(case: Case) -> None:
    recorded = case.recorded["metrics"]
    http, _ = client(*([recorded_answer(recorded["answer"])] if recorded["answer"] else []))
    sent = Sent(**case.recorded["commit"]["sent"])

    samples = case.platform.metrics(case.account, [(sent, NOW)], http=http, now=NOW)

    assert samples == (tuple(Sample(**sample) for sample in recorded["samples"]),)
    assert [sample.metric for sample in samples[0]] == list(METRICS)
    assert tuple(sample.metric for sample in samples[0] if sample.availability != "unsupported") == (
        case.platform.metrics_given
    )


def test_metrics_of_nothing_ask_nobody(case: Case) -> None:
    http, recorder = client()

    assert case.platform.metrics(case.account, [], http=http, now=NOW) == ()
    assert recorder.asked == []
