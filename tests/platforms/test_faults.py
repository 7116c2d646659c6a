"""Every platform that is reached over HTTP, against a server that keeps a ledger: no fault ever makes two posts."""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline import plugins
from pipeline.platforms import http_calls
from pipeline.platforms.base import Absent, AccountInfo, CannotTell, Found, Pending, Platform, Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, TryLater
from tests.platforms.servers.base import FAULTS, TAKES_IT, Case, LedgerServer
from tests.platforms.support import asked_again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.platforms.payload_types import Adapted

SERVERS = Path(__file__).parent / "servers"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LOOKED_UP_AT = NOW + timedelta(minutes=30)
"""The stage looks up again for hours: a platform may say at first that its own list is behind."""
KEY = "pub_01m80wxp87eh3rnr6xcszcrb9t"
KINDS = tuple(
    platform.kind
    for platform in plugins.every("platforms", Platform)
    if not platform.posts_are_ours and not platform.is_simulated and not platform.is_by_hand
)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
KEEPS_FROM_DOUBLING = frozenset({"server_key", "client_id", "draft_flip", "resumable", "ours"})


@contextlib.contextmanager
def impatience() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(http_calls, "TIMEOUT_SECONDS", 0.8)
        patched.setattr(http_calls, "UPLOAD_SECONDS", 0.8)
        yield


@dataclass
class Sender:
    """Publishes as the stage does: prepare until done, poll until ready, one commit."""

    server: LedgerServer
    case: Case
    bucket: Any

    def __post_init__(self) -> None:
        self.state: dict[str, Any] = {}

    @property
    def post(self) -> Adapted:
        return self.case.platform.adapt(self.case.account, self.case.payloads[self.bucket])

    def prepare(self) -> None:
        platform, account = self.case.platform, self.case.account
        for _ in range(50):
            prepared = platform.prepare(account, self.post, self.state, http=HTTP, key=KEY, now=NOW)
            self.state = dict(prepared.state)
            if prepared.is_done:
                break
        else:
            pytest.fail("It is never prepared.")
        now = NOW
        for _ in range(50):
            progress = platform.poll(account, self.post, self.state, http=HTTP, now=now)
            if not isinstance(progress, Pending):
                return
            now += progress.after
        pytest.fail("It is never ready.")

    def commit(self) -> Sent:
        # Only a server that never answers is waited for in vain: every other call has the time that it has in life.
        with impatience() if "never_answers" in self.server.faults else contextlib.nullcontext():
            return self.case.platform.commit(
                self.case.account, self.post, self.state, http=HTTP, key=KEY, now=NOW
            )

    def reconcile(self) -> Found | Absent | CannotTell:
        return asked_again(
            lambda: self.case.platform.reconcile(
                self.case.account, self.post, self.state, http=HTTP, key=KEY, now=LOOKED_UP_AT
            )
        )


def test_every_kind_has_its_server() -> None:
    there = {path.stem for path in SERVERS.glob("*.py")} - {"__init__", "base"}

    assert set(KINDS) - there == set(), "Write tests/platforms/servers/<kind>.py as base.py says."


def _load(kind: str) -> Any:
    return importlib.import_module(f"tests.platforms.servers.{kind}")


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[LedgerServer]:
    with _load(request.param).Server() as there:
        there.kind = request.param
        yield there


@pytest.fixture
def case(server: Any) -> Case:
    found: Case = _load(server.kind).case(server)
    return found


@pytest.fixture
def sender(server: LedgerServer, case: Case) -> Sender:
    return Sender(server, case, next(iter(case.payloads)))


def test_every_bucket_is_taken(server: LedgerServer, case: Case) -> None:
    assert set(case.payloads) == set(case.platform.buckets)
    for number, bucket in enumerate(case.payloads, start=1):
        sender = Sender(server, case, bucket)
        assert case.platform.validate(case.account, sender.post) == ()
        # Each is another publication.
        global_key = f"{KEY[:-2]}{number:02d}"
        state: dict[str, Any] = {}
        for _ in range(50):
            prepared = case.platform.prepare(
                case.account, sender.post, state, http=HTTP, key=global_key, now=NOW
            )
            state = dict(prepared.state)
            if prepared.is_done:
                break
        now = NOW
        while isinstance(
            progress := case.platform.poll(case.account, sender.post, state, http=HTTP, now=now), Pending
        ):
            now += progress.after
        sent = case.platform.commit(case.account, sender.post, state, http=HTTP, key=global_key, now=NOW)
        assert isinstance(sent.external_id, str)
        assert len(sent.external_id) <= 300
        assert len(server.posts) == number


def test_account_is_checked(case: Case) -> None:
    info = case.platform.check_account(case.account, http=HTTP, now=NOW)

    assert type(info) is AccountInfo
    assert info.external_id


def test_nothing_is_public_before_the_commit(server: LedgerServer, sender: Sender) -> None:
    sender.prepare()

    assert server.posts == []


def test_preparing_twice_is_preparing_once(server: LedgerServer, sender: Sender) -> None:
    sender.prepare()
    kept = dict(sender.state)
    # A hand that was killed before it kept anything begins anew.
    sender.state = {}
    sender.prepare()
    sender.commit()

    assert len(server.posts) == 1
    assert sender.state.keys() == kept.keys()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_the_commit_never_makes_two(server: LedgerServer, sender: Sender, fault: str) -> None:
    """The stage's own rule: sent again only where it was provably not taken, looked up where nobody knows."""
    server.faults = [fault]
    sender.prepare()
    for _ in range(4):
        try:
            sender.commit()
            break
        except OutcomeUnknown:
            answer = sender.reconcile()
            if isinstance(answer, Found):
                break
            if not isinstance(answer, Absent):
                assert not sender.case.finds_what_was_sent, f"{fault}: {answer}"
                assert len(server.posts) <= 1
                return
        except (TryLater, NeedsReconnect):
            # Sent again by the stage, after a wait or a reconnection.
            assert fault not in TAKES_IT or fault == "slow"
        sender.prepare()
    assert len(server.posts) == 1


@pytest.mark.parametrize("fault", ["drops_after", "500_after", "never_answers"])
def test_a_lost_answer_is_found_again(server: LedgerServer, sender: Sender, fault: str) -> None:
    if not sender.case.finds_what_was_sent:
        pytest.skip("This platform can't be asked; the stage tells a person.")
    server.faults = [fault]
    sender.prepare()
    with pytest.raises(OutcomeUnknown):
        sender.commit()
    answer = sender.reconcile()

    assert isinstance(answer, Found), answer
    assert len(server.posts) == 1


def test_repeating_the_commit_blindly_makes_one(server: LedgerServer, sender: Sender) -> None:
    """Where the platform has a key, an id of ours or a draft, even a second call makes no second post."""
    if sender.case.platform.idempotency not in KEEPS_FROM_DOUBLING:
        pytest.skip("This platform can't tell two calls apart; the stage never makes the second.")
    server.faults = ["drops_after"]
    sender.prepare()
    with pytest.raises(OutcomeUnknown):
        sender.commit()
    with contextlib.suppress(PluginError):
        sender.commit()
    assert len(server.posts) == 1


def test_too_many_says_when(server: LedgerServer, sender: Sender) -> None:
    server.faults = ["429"]
    sender.prepare()
    with pytest.raises(TryLater) as asked:
        sender.commit()

    assert asked.value.code == "rate_limited"
    assert asked.value.after is not None
    assert timedelta(seconds=5) <= asked.value.after <= timedelta(seconds=8)
    assert server.posts == []


def test_an_expired_credential_is_the_accounts(server: LedgerServer, sender: Sender) -> None:
    server.faults = ["expired"]
    sender.prepare()
    with pytest.raises(NeedsReconnect) as ended:
        sender.commit()

    assert ended.value.message.endswith(".")
    assert server.posts == []


def test_no_secret_is_told(server: LedgerServer, sender: Sender) -> None:
    """What goes wrong is shown to people and sent in events."""
    secrets = [
        value
        for value in sender.case.account.credentials.values()
        if isinstance(value, str) and len(value) > 5
    ]
    sender.prepare()
    for fault in ("drops_before", "drops_after", "500_after", "expired", "429", "502_html"):
        server.faults = [fault]
        with pytest.raises(PluginError) as raised:
            sender.commit()
        told = f"{raised.value.message} {raised.value.action} {raised.value.platform_message}"
        assert [secret for secret in secrets if secret in told] == []
    assert repr(sender.case.account).find(secrets[0] if secrets else "\0") == -1


def test_what_was_sent_is_removed(server: LedgerServer, sender: Sender) -> None:
    platform, account = sender.case.platform, sender.case.account
    if not platform.can_remove:
        pytest.skip("This platform doesn't let a post be taken back.")
    sender.prepare()
    sent = sender.commit()
    platform.remove(account, sent, http=HTTP, now=NOW)
    # Gone already is what was wanted.
    platform.remove(account, sent, http=HTTP, now=NOW)

    assert server.posts == []


def test_metrics_are_counts_or_reasons(sender: Sender) -> None:
    sender.prepare()
    sent = sender.commit()
    platform = sender.case.platform
    samples = platform.metrics(sender.case.account, [(sent, NOW)], http=HTTP, now=NOW + timedelta(hours=1))

    assert len(samples) == 1
    given = {sample.metric for sample in samples[0] if sample.availability != "unsupported"}
    assert given == set(platform.metrics_given)
    for sample in samples[0]:
        assert (sample.value is None) == (sample.availability != "ok")
