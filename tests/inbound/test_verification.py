"""Who may push: each kind of proof, forged, old, repeated, with an old and a new secret."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from config.core.errors import Conflict, Invalid
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.models import InboundDelivery, InboundSecret, RawItem, Source
from tests.inbound.conftest import SECRET, SENDERS, post, send

STORM = {"title": "Storm", "type": "x"}
KINDS = sorted(SENDERS)
TIMED = ["ghost", "slack", "standard_webhooks", "stripe"]
OTHER = {"standard_webhooks": "whsec_" + "b" * 43 + "="}


@pytest.fixture
def verified(source_of):
    def make(kind, **config):
        secret = SECRET.get(kind, "a-secret-of-the-sender")
        settings = {"mapping": {"title": "title"}, **config}
        return source_of(verification={"type": kind, "secret": secret}, **settings)

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_proof_of_each_kind_is_taken(workspace, verified, kind):
    answer = send(kind, verified(kind), STORM)

    assert (answer.status_code, answer.json()["outcome"]) == (202, "new"), answer.content
    assert RawItem.objects.of(workspace).get().title == "Storm"


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_secret_is_refused_and_noted_without_the_body(workspace, verified, kind):
    source = verified(kind)
    answer = send(kind, source, STORM, secret=OTHER.get(kind, "another-secret"))

    assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    row = InboundDelivery.objects.of(workspace).get()
    assert (row.status, row.body, row.sender_key, row.made) == ("refused", None, None, None)
    assert row.reason["code"] in {"secret_wrong", "signature_wrong"}
    assert RawItem.objects.of(workspace).count() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_missing_proof_is_refused(verified, kind):
    answer = post(verified(kind), STORM)

    assert answer.status_code == 401
    assert answer.json()["detail"][0]["code"] in {"secret_missing", "signature_missing"}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"header", "bearer"}])
def test_changed_body_is_refused(verified, kind):
    source = verified(kind)
    signed = SENDERS[kind](source.told, b'{"title": "Storm"}', time.time())
    answer = post(source, b'{"title": "storm"}', **signed)

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (401, "signature_wrong")


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("away", [-360, 360])
def test_old_and_early_signatures_are_refused(verified, kind, away):
    answer = send(kind, verified(kind), STORM, at=time.time() + away)

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (401, "timestamp_outside_window")


@pytest.mark.parametrize("kind", TIMED)
@pytest.mark.parametrize("away", [-200, 200])
def test_clocks_may_differ_by_some_minutes(verified, kind, away):
    assert send(kind, verified(kind), STORM, at=time.time() + away).status_code == 202


@pytest.mark.parametrize("sent", ["", "soon", "-5", "9" * 40, "1.5", "١٢٣"])
def test_time_that_is_none_is_refused(verified, sent):
    source = verified("standard_webhooks")
    signed = SENDERS["standard_webhooks"](source.told, b"{}", time.time())
    answer = post(source, b"{}", **{**signed, "webhook-timestamp": sent.encode().decode("latin-1")})

    assert answer.status_code == 401


def test_header_is_the_one_that_the_source_names(workspace, source_of):
    source = source_of(verification={"type": "header", "header": "X-My-Event", "secret": "a-long-secret"})

    assert post(source, STORM, X_Webhook_Secret="a-long-secret").status_code == 401
    assert post(source, STORM, X_My_Event="a-long-secret").status_code == 202
    # Though headers of that name are kept of other sources.
    assert all("x-my-event" not in row.head for row in InboundDelivery.objects.of(workspace))


@pytest.mark.parametrize("kind", ["github", "standard_webhooks", "slack", "stripe", "ghost"])
def test_repeated_delivery_is_known_by_the_senders_id(workspace, verified, kind):
    source = verified(kind)
    payload = {**STORM, "event_id": "Ev1", "id": "evt_1"}
    at = time.time()
    first, second = send(kind, source, payload, at=at), send(kind, source, payload, at=at)

    assert (first.json()["outcome"], second.status_code, second.json()["outcome"]) == (
        "new",
        200,
        "duplicate",
    )
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["delivery"] == first.json()["delivery"]
    assert InboundDelivery.objects.of(workspace).get().repeats == 1


def test_a_delivery_of_githubs_that_comes_again_under_another_id_is_the_same(workspace, verified):
    """Its id isn't signed, nor its time. Two that were seen could be sent in turns, and each turn be a new version."""
    source = verified("github", mapping={"external_id": "id", "title": "title"})
    old, new = {"id": "7", "title": "Storm"}, {"id": "7", "title": "Calm"}
    sent = [(old, "a"), (new, "b"), (old, "c"), (new, "d"), (old, "e")]
    outcomes = [send("github", source, one, delivery=key).json()["outcome"] for one, key in sent]

    assert outcomes == ["new", "revised", "duplicate", "duplicate", "duplicate"]
    raw = RawItem.objects.of(workspace).get()
    assert (raw.title, raw.content_version) == ("Calm", 2)


@pytest.mark.parametrize("kind", TIMED)
def test_a_delivery_that_was_seen_proves_nothing_at_another_time_or_place(workspace, verified, kind):
    """Its time changed, its id changed, its signature shown to another source, or by a secret whose time is over."""
    source, other = verified(kind), verified(kind)
    secrets.rotate(other, secret=OTHER.get(kind, "another-secret"), actor="alice", overlap=timedelta(0))
    body, at = b'{"title": "Storm", "id": "evt_1", "event_id": "Ev1"}', time.time() - 280
    signed = SENDERS[kind](source.told, body, at)
    assert post(source, body, **signed).json()["outcome"] == "new"
    later = {name: value.replace(str(int(at)), str(int(at) + 200)) for name, value in signed.items()}
    assert post(source, body, **later).status_code == 401
    assert post(other, body, **signed).status_code == 401
    if kind == "standard_webhooks":
        assert post(source, body, **{**signed, "webhook-id": "msg_2"}).status_code == 401
    assert post(source, body, **signed).json()["outcome"] == "duplicate"
    assert RawItem.objects.of(workspace).count() == 1


def test_own_code_may_name_its_deliveries(workspace, source_of):
    source = source_of(mapping={"body": "text"})
    first = post(source, {"text": "One"}, Idempotency_Key="a")
    second = post(source, {"text": "Another body, the same key"}, Idempotency_Key="a")
    third = post(source, {"text": "Two"}, Idempotency_Key="b")

    assert [one.json()["outcome"] for one in (first, second, third)] == ["new", "duplicate", "new"]
    assert RawItem.objects.of(workspace).count() == 2


def test_keys_of_two_sources_are_their_own(source_of):
    outcomes = [post(source_of(), {"title": f"{n}"}, Idempotency_Key="a").json()["outcome"] for n in range(2)]

    assert outcomes == ["new", "new"]


def test_id_of_a_refused_delivery_can_still_be_used(workspace, verified):
    source = verified("github")
    send("github", source, STORM, secret="another-secret")
    answer = send("github", source, STORM)

    assert answer.json()["outcome"] == "new"
    assert InboundDelivery.objects.of(workspace).count() == 2


def test_refusals_leave_some_notes_a_minute(workspace, verified, monkeypatch):
    monkeypatch.setattr("pipeline.limits.INBOUND_REFUSALS_NOTED", 3)
    source = verified("header")

    assert [post(source, STORM).status_code for _ in range(6)] == [401] * 6
    assert InboundDelivery.objects.of(workspace).count() == 3


def test_slacks_question_is_answered_only_when_it_is_signed(workspace, verified):
    source = verified("slack")
    question = {"type": "url_verification", "challenge": "3eZbrw1aB10FEMAGAZd4FyFQ"}

    assert post(source, question).status_code == 401
    answer = send("slack", source, question)
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aB10FEMAGAZd4FyFQ"})
    assert InboundDelivery.objects.of(workspace).filter(status="received").count() == 0


def test_githubs_ping_is_answered(workspace, verified):
    answer = send("github", verified("github"), {"zen": "Keep it logically awesome."}, event="ping")

    assert (answer.status_code, answer.json()["outcome"]) == (200, "ignored")
    assert InboundDelivery.objects.of(workspace).get().reason["code"] == "ping"


@pytest.mark.parametrize("kind", ["github", "standard_webhooks", "slack", "stripe", "ghost"])
def test_service_isnt_told_that_nothing_was_made(workspace, verified, kind):
    """It would try again for days, or switch the webhook off; the owner sees it."""
    answer = send(kind, verified(kind), {"strange": 1})

    assert (answer.status_code, answer.json()["outcome"]) == (202, "failed")
    assert answer.json()["reason"]["code"] == "nothing_found"
    assert InboundDelivery.objects.of(workspace).get().status == "failed"


# --- Secrets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["header", "bearer", "standard_webhooks", "github", "ghost"])
def test_secret_that_nobody_gave_is_made(source_of, kind):
    source = source_of(verification={"type": kind}, mapping={"title": "title"})

    assert len(source.told) >= 40
    assert "secret" not in source.config["verification"]
    assert send(kind, source, STORM).status_code == 202


def test_secret_is_sealed_and_in_no_settings(source_of):
    source = source_of(verification={"type": "header", "secret": "a-secret-of-the-sender"})
    kept = InboundSecret.everywhere.get()

    assert "a-secret-of-the-sender" not in kept.secret.as_stored()
    assert kept.secret.open() == "a-secret-of-the-sender"
    assert Source.everywhere.get(pk=source.pk).config == {"verification": {"type": "header"}}


@pytest.mark.parametrize("kind", ["slack", "stripe"])
def test_secret_of_the_senders_making_may_come_later(workspace, source_of, kind):
    source = source_of(verification={"type": kind}, mapping={"title": "title"})
    assert source.told is None
    config = {"verification": {"type": kind, "secret": "from-the-sender"}, "mapping": {"title": "title"}}
    secrets.change(source, {"config": config}, workspace=workspace, now=timezone.now())

    assert send(kind, source, STORM, secret="from-the-sender").status_code == 202


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("header", "short"),
        ("standard_webhooks", "whsec_not base64"),
        ("standard_webhooks", "whsec_AAAA"),
        ("github", "ä" * 20),
    ],
)
def test_secret_that_can_be_none_is_refused(source_of, kind, secret):
    with pytest.raises(Invalid) as caught:
        source_of(verification={"type": kind, "secret": secret})
    assert caught.value.detail[0].field == "config.verification.secret"
    assert Source.everywhere.filter(type="webhook", is_push=False).count() == 0


def test_both_generations_count_while_they_overlap(workspace, source_of, time_machine):
    source = source_of(verification={"type": "header"}, mapping={"title": "title"})
    first, now = source.told, timezone.now()
    second = secrets.rotate(source, overlap=timedelta(hours=1), actor="alice", now=now)

    assert [post(source, STORM, X_Webhook_Secret=one).status_code for one in (first, second)] == [202, 200]
    time_machine.move_to(now + timedelta(hours=1, seconds=1))
    assert [post(source, STORM, X_Webhook_Secret=one).status_code for one in (first, second)] == [401, 200]
    assert AuditEntry.everywhere.filter(action="source.secret_rotated", actor="alice").count() == 1


def test_rotation_without_overlap_ends_the_old_one(source_of):
    source = source_of(verification={"type": "bearer"})
    secrets.rotate(source, overlap=timedelta(0), actor="alice")

    assert send("bearer", source, STORM).status_code == 401


def test_rotation_asks_for_a_secret_that_only_the_sender_knows(source_of):
    source = source_of(verification={"type": "slack", "secret": "from-slack-1"})
    with pytest.raises(Invalid):
        secrets.rotate(source, actor="alice")
    assert secrets.rotate(source, secret="from-slack-2", actor="alice") is None
    for secret in ("from-slack-1", "from-slack-2"):
        assert send("slack", source, STORM, secret=secret).status_code != 401


def test_rotation_of_a_source_without_a_secret_is_refused(source_of):
    with pytest.raises(Conflict):
        secrets.rotate(source_of(), actor="alice")


def test_other_verification_ends_the_secret_of_the_old_one(workspace, source_of):
    source = source_of(verification={"type": "header", "secret": "a-long-secret"})
    now = timezone.now()

    made = secrets.change(
        source, {"config": {"verification": {"type": "bearer"}}}, workspace=workspace, now=now
    ).secret
    assert post(source, STORM, Authorization="Bearer a-long-secret").status_code == 401
    assert post(source, STORM, Authorization=f"Bearer {made}").status_code == 202
    again = {"config": {"verification": {"type": "bearer"}, "mapping": {"title": "title"}}}
    assert secrets.change(source, again, workspace=workspace, now=now).secret is None
    assert post(source, STORM, Authorization=f"Bearer {made}").status_code == 200
    secrets.change(source, {"config": {}}, workspace=workspace, now=now)
    assert InboundSecret.everywhere.count() == 0


def test_change_of_something_else_leaves_the_secret(workspace, source_of):
    source = source_of(verification={"type": "header"})
    changed = secrets.change(source, {"name": "Other"}, workspace=workspace, now=timezone.now())

    assert changed.secret is None
    assert post(source, STORM, X_Webhook_Secret=source.told).status_code == 202


def test_sources_of_other_types_have_no_secret(workspace):
    given = collect.SourceSettings(type="rss", config={"url": "https://example.test/feed"})

    assert secrets.register(workspace, given).secret is None
    assert InboundSecret.everywhere.count() == 0
