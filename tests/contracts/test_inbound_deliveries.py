"""GET /sources/:id/deliveries, replay, dry-run and rotate-secret; the secret in POST and PATCH /sources."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import IdempotencyKey
from config.core.ids import decode
from config.operations import retention
from pipeline import limits
from pipeline.ingest import collect, store_raw_item
from pipeline.ingest.inbound_deliveries import receive, try_and_replay
from pipeline.ingest.inbound_deliveries import receive as forgetting
from pipeline.models import GeneratedItem, InboundDelivery, InboundSecret, RawItem, Source
from tests.contracts.conftest import never_existed
from tests.inbound.conftest import post


@pytest.fixture
def bridge(alice):
    """A webhook source, as the API shows it."""

    def make(**config):
        answer = alice.api.post("/sources", {"type": "webhook", "name": "Bridge", "config": config})
        assert answer.status_code == 201, answer.content
        return answer.json()

    return make


def row_of(source):
    return Source.everywhere.get(pk=decode("src", source["id"]))


def test_deliveries_are_listed_newest_first(alice, bridge):
    source = bridge(mapping={"title": "headline", "language": "lang"})
    post(row_of(source), {"headline": "Storm", "lang": 5}, X_My_Event="made")
    post(row_of(source), {"strange": True})

    listed = alice.api.read(f"/sources/{source['id']}/deliveries")
    second, first = listed["data"]
    raw = RawItem.everywhere.get()
    assert (first["status"], first["raw_item"], first["made"]["title"]) == (
        "taken",
        alice.api.read("/raw")["data"][0]["id"],
        "Storm",
    )
    assert first["body_excerpt"] == '{"headline": "Storm", "lang": 5}'
    assert first["headers"] == {"content-type": "application/json", "x-my-event": "made"}
    assert [note["code"] for note in first["notes"]] == ["left_out"]
    assert (second["status"], second["reason"]["code"], second["made"], second["raw_item"]) == (
        "failed", "nothing_found", None, None,
    )  # fmt: skip
    failed = alice.api.read(f"/sources/{source['id']}/deliveries?status=failed")["data"]
    assert [one["id"] for one in failed] == [second["id"]]
    one = alice.api.read(f"/sources/{source['id']}/deliveries?limit=1")
    assert (one["has_more"], one["data"][0]["id"]) == (True, second["id"])
    assert raw.title == "Storm"


def test_excerpt_of_a_body_is_cut_between_any_bytes(alice, bridge):
    source = bridge(mapping={"title": "t"})
    post(row_of(source), '{"t": "' + "ä" * 3000 + '"}')

    (listed,) = alice.api.read(f"/sources/{source['id']}/deliveries")["data"]
    assert len(listed["body_excerpt"].encode()) <= limits.INBOUND_EXCERPT + 3
    assert listed["body_bytes"] == 6009


def test_deliveries_of_a_source_are_of_nobody_else(alice, charlie, bridge):
    source = bridge()
    post(row_of(source), {"title": "Storm"})
    delivery = alice.api.read(f"/sources/{source['id']}/deliveries")["data"][0]["id"]
    other = charlie.source()

    assert charlie.api.get(f"/sources/{source['id']}/deliveries").status_code == 404
    assert charlie.api.post(f"/sources/{source['id']}/deliveries/{delivery}/replay").status_code == 404
    # A delivery under another source than its own isn't there either.
    assert charlie.api.post(f"/sources/{other['id']}/deliveries/{delivery}/replay").status_code == 404
    assert charlie.api.post(f"/sources/{other['id']}/dry-run", {"delivery": delivery}).status_code == 404
    assert alice.api.post(f"/sources/{bridge()['id']}/deliveries/{delivery}/replay").status_code == 404


def test_dry_run_says_what_a_body_would_make_and_makes_nothing(alice, bridge):
    source = bridge(mapping={"title": "headline"})
    path = f"/sources/{source['id']}/dry-run"
    answer = alice.api.post(path, {"payload": {"headline": "The ferry leaves earlier", "x": 1}})

    body = answer.json()
    assert (answer.status_code, body["outcome"], body["raw_item"]["title"]) == (
        200,
        "taken",
        "The ferry leaves earlier",
    )
    words = "The first boat of the day takes bicycles free of charge until the end of March. " * 3
    better = alice.api.post(
        path, {"payload": {"headline": "Ferry", "x": words}, "mapping": {"title": "headline", "body": "x"}}
    ).json()
    assert better["raw_item"]["body"] == words
    assert better["plan"]["credits"] >= len(better["plan"]["engines"]) > 0
    assert (RawItem.everywhere.count(), GeneratedItem.everywhere.count()) == (0, 0)
    assert InboundDelivery.everywhere.count() == 0
    assert alice.api.read(f"/sources/{source['id']}")["config"] == {"mapping": {"title": "headline"}}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, None),
        ({"payload": {}, "delivery": never_existed("ind")}, 400, None),
        ({"payload": []}, 400, "payload"),
        ({"payload": {}, "mapping": {"title": "a..b"}}, 400, "mapping.title"),
        ({"payload": {}, "mapping": {}}, 400, "mapping"),
        ({"payload": {}, "defaults": {"author": 5}}, 400, "defaults.author"),
        ({"payload": {}, "only_if": "a ="}, 400, "only_if"),
        ({"delivery": never_existed("ind")}, 404, None),
    ],
)
def test_dry_run_refuses_what_it_cant_try(alice, bridge, body, status, field):
    answer = alice.api.post(f"/sources/{bridge()['id']}/dry-run", body)

    assert (answer.status_code, answer.json()["detail"][0]["field"]) == (status, field)


def test_dry_run_of_what_makes_nothing_says_why(alice, bridge):
    path = f"/sources/{bridge()['id']}/dry-run"

    failed = alice.api.post(path, {"payload": {"strange": 1}}).json()
    ignored = alice.api.post(
        path, {"payload": {"type": "event_callback", "event": {"type": "reaction_added"}}}
    ).json()
    assert (failed["outcome"], failed["reason"]["code"], failed["raw_item"]) == (
        "failed",
        "nothing_found",
        None,
    )
    assert (ignored["outcome"], ignored["reason"]["code"]) == ("ignored", "no_preset")


def test_dry_run_of_another_type_is_refused(alice):
    source = alice.source(type="rss", config={"url": "https://example.test/feed"})
    answer = alice.api.post(f"/sources/{source['id']}/dry-run", {"payload": {}})

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (409, "not_a_webhook")


def test_replay_takes_in_what_failed_once_the_mapping_fits(alice, bridge):
    source = bridge(mapping={"title": "headline"})
    post(row_of(source), {"name": "Storm"})
    path = f"/sources/{source['id']}"
    (delivery,) = alice.api.read(f"{path}/deliveries")["data"]
    tried = alice.api.post(
        f"{path}/dry-run", {"delivery": delivery["id"], "mapping": {"title": "name"}}
    ).json()
    assert tried["raw_item"]["title"] == "Storm"
    assert alice.api.patch(path, {"config": {"mapping": {"title": "name"}}}).status_code == 200

    replayed = alice.api.post(f"{path}/deliveries/{delivery['id']}/replay").json()
    again = alice.api.post(f"{path}/deliveries/{delivery['id']}/replay").json()
    raw = alice.api.read("/raw")["data"]
    assert [(one["title"]) for one in raw] == ["Storm"]
    assert (replayed["status"], replayed["raw_item"], replayed["reason"]) == ("taken", raw[0]["id"], None)
    assert (again["status"], again["raw_item"]) == ("duplicate", raw[0]["id"])
    assert again["replayed_at"] is not None
    assert InboundDelivery.everywhere.count() == 1


def test_replay_of_what_is_no_longer_kept_is_refused(alice, bridge):
    source = bridge(verification={"type": "header"})
    post(row_of(source), {"title": "Storm"})
    post(row_of(source), {"title": "Storm"}, X_Webhook_Secret=source["inbound_secret"])
    InboundDelivery.everywhere.update(body=None)
    path = f"/sources/{source['id']}/deliveries"
    for delivery in alice.api.read(path)["data"]:
        answer = alice.api.post(f"{path}/{delivery['id']}/replay")
        assert (answer.status_code, answer.json()["detail"][0]["code"]) == (409, "body_gone")


def test_retry_of_a_failed_delivery_is_taken_with_the_mapping_of_now(alice, bridge):
    source = bridge(mapping={"title": "headline"})
    row = row_of(source)
    first = post(row, {"name": "Storm"}, Idempotency_Key="k")
    alice.api.patch(f"/sources/{source['id']}", {"config": {"mapping": {"title": "name"}}})
    second = post(row, {"name": "Storm"}, Idempotency_Key="k")

    assert (first.status_code, second.json()["outcome"]) == (400, "new")
    assert InboundDelivery.everywhere.get().status == "taken"


# --- Secrets ---------------------------------------------------------------------------------------------------------


def test_secret_is_told_in_one_answer_only(alice):
    config = {"verification": {"type": "standard_webhooks"}}
    made = alice.api.post("/sources", {"type": "webhook", "config": config}).json()
    path = f"/sources/{made['id']}"

    assert made["inbound_secret"].startswith("whsec_")
    assert made["config"] == config
    for shown in (
        alice.api.read(path),
        alice.api.patch(path, {"name": "Other"}).json(),
        *alice.api.read("/sources")["data"],
    ):
        assert "inbound_secret" not in shown
        assert made["inbound_secret"] not in str(shown)
    changed = alice.api.patch(path, {"config": {"verification": {"type": "bearer"}}}).json()
    assert changed["inbound_secret"] != made["inbound_secret"]


def test_secret_that_was_given_is_never_told(alice):
    config = {"verification": {"type": "github", "secret": "a-long-secret"}}
    answer = alice.api.post("/sources", {"type": "webhook", "config": config})

    assert answer.json()["config"] == {"verification": {"type": "github"}}
    assert b"a-long-secret" not in answer.content
    assert InboundSecret.everywhere.get().secret.open() == "a-long-secret"


def test_secret_that_can_be_none_is_refused_with_its_field(alice):
    config = {"verification": {"type": "standard_webhooks", "secret": "not-of-that-form"}}
    answer = alice.api.post("/sources", {"type": "webhook", "config": config})

    assert (answer.status_code, answer.json()["detail"][0]["field"]) == (400, "config.verification.secret")
    assert Source.everywhere.filter(is_push=False).count() == 0


def test_secret_is_rotated(alice, bridge):
    source = bridge(verification={"type": "bearer"})
    path = f"/sources/{source['id']}/rotate-secret"
    rotated = alice.api.post(path, {"overlap_seconds": 60}).json()["secret"]

    for secret in (source["inbound_secret"], rotated):
        assert post(row_of(source), {"title": "x"}, Authorization=f"Bearer {secret}").status_code < 300
    given = alice.api.post(path, {"secret": "my-own-secret", "overlap_seconds": 0})
    assert given.json() == {"secret": None}
    assert post(row_of(source), {"title": "x"}, Authorization=f"Bearer {rotated}").status_code == 401


def test_rotation_of_a_source_without_a_secret_is_refused(alice, bridge):
    answer = alice.api.post(f"/sources/{bridge()['id']}/rotate-secret")

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (409, "no_secret")


# --- What is kept ----------------------------------------------------------------------------------------------------


def test_deletion_of_a_raw_item_erases_what_was_sent(alice, bridge):
    source = bridge()
    raw = post(row_of(source), {"title": "Private words"}).json()["id"]
    post(row_of(source), {"title": "Private words"})
    assert alice.api.delete(f"/raw/{raw}").status_code == 204

    rows = InboundDelivery.everywhere.all()
    assert [(row.body, row.made) for row in rows] == [(None, None)] * 2
    # Nor does sending them again bring them back.
    assert post(row_of(source), {"title": "Private words"}).json()["outcome"] == "duplicate"
    listed = alice.api.get(f"/sources/{source['id']}/deliveries")
    assert b"Private words" not in listed.content


def test_old_deliveries_and_secrets_of_deleted_sources_are_forgotten(alice, bridge, monkeypatch):
    monkeypatch.setattr(limits, "INBOUND_BODIES_KEPT", 2)
    kept, deleted = bridge(), bridge(verification={"type": "bearer"})
    for number in range(4):
        post(row_of(kept), {"title": f"Storm {number}"})
    post(row_of(deleted), {"title": "Storm"}, Authorization=f"Bearer {deleted['inbound_secret']}")
    alice.api.delete(f"/sources/{deleted['id']}")
    now = timezone.now()

    assert forgetting.forget_deliveries(now) == 0
    assert forgetting.forget_secrets(now) == 1
    # The ids carry the moment of their making.
    later = now + limits.INBOUND_DELIVERIES_KEPT + timedelta(minutes=1)
    assert forgetting.forget_deliveries(later) == 3
    assert [row.body is not None for row in InboundDelivery.everywhere.all()] == [True, True]
    assert forgetting.forget_deliveries in {kept.forget for kept in retention.RULES}


def test_rotated_secret_is_forgotten_when_its_time_is_over(alice, bridge):
    source = bridge(verification={"type": "bearer"})
    alice.api.post(f"/sources/{source['id']}/rotate-secret", {"overlap_seconds": 60})
    now = timezone.now()

    assert forgetting.forget_secrets(now) == 0
    assert forgetting.forget_secrets(now + timedelta(seconds=61)) == 1
    assert InboundSecret.everywhere.get().previous is None


# --- Races -----------------------------------------------------------------------------------------------------------


def test_failing_push_keeps_the_delivery(alice, bridge):
    """An engine output that is no longer there: the source has to be changed, and nothing is lost meanwhile."""
    source = bridge()
    Source.everywhere.filter(is_push=False).update(engines=["Gone Post"])
    answer = post(row_of(source), {"title": "Storm"})

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (400, "unknown_engine")
    row = InboundDelivery.everywhere.get()
    assert (row.status, row.reason["code"], row.body is None) == ("failed", "unknown_engine", False)
    Source.everywhere.filter(is_push=False).update(engines=[])
    assert try_and_replay.replay(row, now=timezone.now()).outcome == "new"


def test_broken_push_leaves_nothing(alice, bridge, monkeypatch):
    source = row_of(bridge())

    def broken(*_arguments, **_options):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(store_raw_item, "push", broken)
    with pytest.raises(RuntimeError):
        receive.receive(source, receive.IncomingDelivery(b'{"title": "x"}', {}), now=timezone.now())
    assert InboundDelivery.everywhere.count() == 0


def test_change_of_a_source_and_of_its_secret_is_one(alice, bridge, monkeypatch):
    source = row_of(bridge())
    monkeypatch.setattr("pipeline.ingest.inbound_deliveries.secrets.make_secret", lambda kind: "x")
    answer = alice.api.patch(
        f"/sources/{alice.api.read('/sources')['data'][0]['id']}",
        {"config": {"verification": {"type": "bearer"}}},
    )

    assert answer.status_code == 400
    assert Source.everywhere.get(pk=source.pk).config == {}
    assert collect.kind_of("webhook").kind == "webhook"


@pytest.mark.parametrize("act", ["create", "rotate"])
def test_a_secret_that_is_kept_for_a_replay_is_sealed(alice, bridge, act):
    if act == "create":
        sent = (
            "/sources",
            {"type": "webhook", "name": "Sealed", "config": {"verification": {"type": "bearer"}}},
        )
    else:
        source = bridge(verification={"type": "bearer"})
        sent = (f"/sources/{source['id']}/rotate-secret", {})
    first, again = (alice.api.post(*sent, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2))
    secret = first.json()["inbound_secret" if act == "create" else "secret"]
    kept = IdempotencyKey.everywhere.get(key="k")
    assert secret
    assert secret.encode() not in bytes(kept.body)
    assert (again.content, again["Idempotency-Replayed"]) == (first.content, "true")
