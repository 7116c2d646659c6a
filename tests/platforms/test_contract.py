"""What every platform has to keep, run over the registry; a new kind fails until its sample is recorded.

A sample holds:

- `config`, the settings as a person fills them in, where one is required; `account`; a `payload` with its `assets`, `[]` where
  there are none; the `key`; the `state` that preparing left, where it left one; whether committing uses the `network`;
- `commit`: the `answer` that accepts (`status`, and `json` and `headers` where it has them), what was `asked` (`[method, address, JSON]`) and
  the `sent` that follows; null where a person posts it;
- `reconcile`: the answers for a post that is `found` and for one that is `absent`; null for a platform that can never tell;
- `metrics`: the `answer` and the `samples`, one of each metric, null where the platform doesn't tell it;
- `accepts`: names of `MAY_HAVE_REACHED` that a platform without an id of its own says yes with.
"""

from __future__ import annotations

import dataclasses
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.core.http_client import (
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
    Platform,
    Prepared,
    Ready,
    Sample,
    Sent,
)
from pipeline.platforms.payload_types import Adapted, Payload, PayloadAsset
from pipeline.plugins import OutcomeUnknown, TryLater
from tests.platforms.support import answer, client

SAMPLES = Path(__file__).parent / "samples"
PLATFORMS = plugins.every("platforms", Platform)
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

MAY_HAVE_REACHED: dict[str, Response | OutboundError] = {
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
        return Payload(**{**given, "assets": tuple(map(recorded_asset, given["assets"]))})

    @property
    def config(self) -> dict[str, Any]:
        """What a person has filled in."""
        return dict(self.recorded.get("config", {}))

    @property
    def state(self) -> dict[str, Any]:
        """What `prepare` left, for a platform that does something before the call."""
        return dict(self.recorded.get("state", {}))

    @property
    def post(self) -> Adapted:
        return self.platform.adapt(self.account, self.payload)

    def commit(self, *answers: Response | OutboundError) -> tuple[Sent, list[tuple[str, str, Any]]]:
        http, recorder = client(*answers)
        sent = self.platform.commit(
            self.account, self.post, self.state, http=http, key=self.recorded["key"], now=NOW
        )
        return sent, recorder.asked

    def reconcile(self, *answers: Response | OutboundError) -> Found | Absent | CannotTell:
        http, _ = client(*answers)
        return self.platform.reconcile(
            self.account, self.post, self.state, http=http, key=self.recorded["key"], now=NOW
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


def recorded_asset(given: dict[str, Any]) -> PayloadAsset:
    """`content`, where it is recorded, are the file's bytes as text."""
    content = given.get("content", "").encode()
    kept = {name: value for name, value in given.items() if name != "content"}
    return PayloadAsset(**kept, open=(lambda: io.BytesIO(content)) if content else None)


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
    clean = case.platform.clean_config(case.config)

    assert case.platform.clean_config(clean) == clean


def test_unknown_setting_is_named(case: Case) -> None:
    with pytest.raises(plugins.ConfigInvalid) as invalid:
        case.platform.clean_config({**case.config, "no_such_setting": 1})

    assert [(problem.field, problem.code) for problem in invalid.value.problems] == [
        ("config.no_such_setting", "unknown_field")
    ]


def test_payload_of_the_sample_is_valid(case: Case) -> None:
    length = case.platform.length(case.account, case.post)
    rule = case.platform.rules_for(case.account, case.payload.bucket)

    assert case.platform.validate(case.account, case.post) == ()
    assert (length.limit, length.unit) == (
        (case.platform.text_limit, case.platform.text_unit) if rule is None else (rule.text_max, rule.unit)
    )
    assert length.count >= 1


SLIDE = PayloadAsset(
    "https://media.example.com/1.jpg", "image/jpeg", "image", "1/4: Trams run", 160_000, "1.jpg", 1080, 1350
)


def slides(case: Case, count: int) -> Adapted:
    """A carousel as the image bucket has it: its slides, one in another size, and a document."""
    shown = [
        dataclasses.replace(SLIDE, url=f"https://media.example.com/{place}.jpg", name=f"{place}.jpg")
        for place in range(1, count + 1)
    ]
    square = dataclasses.replace(SLIDE, role="alternative", height=1080)
    document = PayloadAsset(
        "https://media.example.com/c.pdf", "application/pdf", "document", "", 900_000, "c.pdf"
    )
    payload = dataclasses.replace(
        case.payload,
        bucket="image",
        title="Trams run",
        body="Trams run every seven minutes.",
        body_format="text",
        content={"caption": "Trams run.", "slides": []},
        assets=(*shown, square, document),
    )
    return case.platform.adapt(case.account, payload)


@pytest.mark.parametrize(
    "case", [one for one in PLATFORMS if "image" in one.buckets], indirect=True, ids=lambda one: one.kind
)
def test_several_pictures_are_posted_and_a_document_is_left_out(case: Case) -> None:
    """As many as the platform takes in one post; with one more it says so, and nothing is dropped in silence."""
    rule = case.platform.rules_for(case.account, "image")
    images = rule.images if rule is not None else None
    most = images.most if images is not None else 10
    post = slides(case, most)

    assert [(one.field, one.code) for one in case.platform.validate(case.account, post)] == []
    if images is None:
        return
    named = [step.message for step in post.steps if step.code == "files_left_out"]
    assert [message.partition(",")[0] for message in named] == ["1 file was left out"]
    over = case.platform.validate(case.account, slides(case, most + 1))
    assert {(one.field, one.code) for one in over} == {("assets", "too_many_files")}


def test_text_over_the_limit_is_named(case: Case) -> None:
    limit = case.platform.length(case.account, case.post).limit
    body = "x" * ((limit or 0) + 1)
    long = dataclasses.replace(case.payload, body=body, body_format="text")
    problems = case.platform.validate(case.account, case.platform.adapt(case.account, long))

    assert [(problem.field, problem.code) for problem in problems] == (
        [] if limit is None else [("body", "too_long")]
    )


def test_nothing_to_prepare_keeps_the_state(case: Case) -> None:
    if type(case.platform).prepare is not Platform.prepare:
        pytest.skip("It prepares something; tests/platforms/test_faults.py runs that against a server.")
    http, recorder = client()
    post = case.post

    assert case.platform.prepare(case.account, post, {"a": 1}, http=http, key="k", now=NOW) == Prepared(
        {"a": 1}
    )
    assert case.platform.poll(case.account, post, {}, http=http, now=NOW) == Ready()
    assert recorder.asked == []


def test_commit_sends_what_is_recorded(case: Case) -> None:
    if case.platform.is_by_hand:
        with pytest.raises(NotImplementedError):
            case.commit()
        return
    recorded = case.recorded["commit"]
    answers = [recorded_answer(recorded["answer"])] if case.recorded["network"] else []

    sent, asked = case.commit(*answers)

    assert sent == Sent(**recorded["sent"])
    assert asked == [tuple(request) for request in recorded["asked"]]


@pytest.mark.parametrize("name", MAY_HAVE_REACHED)
def test_commit_without_proof_is_unknown(network_case: Case, name: str) -> None:
    if name in network_case.recorded.get("accepts", ()):
        sent, _ = network_case.commit(MAY_HAVE_REACHED[name])
        assert sent == Sent(network_case.recorded["key"])
        return
    with pytest.raises(OutcomeUnknown, match=r"^[A-Z].*\.$"):
        network_case.commit(MAY_HAVE_REACHED[name])


@pytest.mark.parametrize("fault", NEVER_REACHED.values(), ids=NEVER_REACHED.keys())
def test_commit_that_never_reached_may_be_tried_again(network_case: Case, fault: OutboundError) -> None:
    with pytest.raises(TryLater, match=r"^[A-Z].*\.$"):
        network_case.commit(fault)


def test_commit_twice_without_network_is_one(local_case: Case) -> None:
    if local_case.platform.is_by_hand:
        pytest.skip("A person posts it.")
    assert local_case.commit() == local_case.commit()


def test_reconcile_finds_what_was_sent(case: Case) -> None:
    if case.recorded["reconcile"] is None:
        assert type(case.reconcile()) is CannotTell
        return
    given = case.recorded["reconcile"]["found"]

    assert case.reconcile(*([recorded_answer(given)] if given else [])) == Found(
        Sent(**case.recorded["commit"]["sent"])
    )


def test_reconcile_proves_absence(network_case: Case) -> None:
    if network_case.recorded["reconcile"] is None:
        pytest.skip("This platform can't be asked.")
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
    sent = Sent(**(case.recorded["commit"] or {"sent": {"external_id": ""}})["sent"])

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
