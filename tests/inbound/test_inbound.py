"""The inbound door of a webhook source."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts import workspaces
from pipeline.models import InboundDelivery, RawBody, RawItem, Source
from tests.inbound.conftest import post


def test_inbound_makes_a_raw_item_of_its_source(workspace, source_of):
    source = source_of()

    answer = post(source, {"title": "Storm", "body": "The storm took the pier.", "strange": [1, 2]})

    raw = RawItem.objects.of(workspace).get()
    assert (answer.status_code, answer.json()["outcome"]) == (202, "new")
    assert (raw.source_id, raw.title, raw.status) == (source.pk, "Storm", "queued")
    assert RawBody.objects.of(workspace).get().body == "The storm took the pier."


def test_inbound_keeps_what_was_sent_and_what_became_of_it(workspace, source_of):
    source = source_of()
    body = '{"title": "Storm", "language": "not one at all"}'

    answer = post(
        source, body, User_Agent="Bridge/1", X_My_Event="created", Authorization="Bearer s", Cookie="a=b"
    )

    row = InboundDelivery.objects.of(workspace).get()
    assert (row.status, bytes(row.body).decode(), row.body_bytes) == ("taken", body, len(body))
    assert row.raw_item_id == RawItem.objects.of(workspace).get().pk
    assert row.head == {
        "content-type": "application/json",
        "user-agent": "Bridge/1",
        "x-my-event": "created",
    }
    assert row.made["title"] == "Storm"
    assert row.notes == [
        {"code": "left_out", "message": "language is left out: it is a BCP 47 tag, such as en or pt-BR."}
    ]
    assert answer.json()["delivery"].startswith("ind_")


def test_inbound_answers_a_repetition_with_the_item_already_there(workspace, source_of):
    source = source_of()
    first = post(source, {"external_id": "7", "title": "Storm"})
    second = post(source, {"external_id": "7", "title": "Storm"})

    assert (second.status_code, second.json()["outcome"]) == (200, "duplicate")
    assert second.json()["id"] == first.json()["id"]
    assert RawItem.objects.of(workspace).count() == 1


def test_inbound_makes_an_edited_thing_the_next_version_of_its_item(workspace, source_of):
    source = source_of()
    first = post(source, {"external_id": "7", "title": "Storm"})
    second = post(source, {"external_id": "7", "title": "Storm over"})

    assert (second.status_code, second.json()["outcome"]) == (200, "revised")
    assert second.json()["id"] == first.json()["id"]
    assert RawItem.objects.of(workspace).get().title == "Storm over"


def test_inbound_follows_the_mapping(workspace, source_of):
    source = source_of(mapping={"title": "data.items[0].name", "body": "data.text"})

    post(source, {"data": {"items": [{"name": "Mapped"}], "text": "Words."}, "title": "not this"})

    assert RawItem.objects.of(workspace).get().title == "Mapped"


@pytest.mark.parametrize(
    ("payload", "status", "code"),
    [
        ("not json", 400, "malformed_json"),
        ([1], 400, "invalid_request"),
        ({"strange": 1}, 400, "invalid_request"),
        ({"title": {"no": "text"}}, 400, "invalid_request"),
        ({"title": "a\x00b"}, 400, "invalid_request"),
        ('{"a":' * 40 + "1" + "}" * 40, 400, "invalid_request"),
    ],
)
def test_inbound_keeps_what_makes_nothing_and_tells_a_bridge(workspace, source_of, payload, status, code):
    answer = post(source_of(), payload)

    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert RawItem.objects.of(workspace).count() == 0
    row = InboundDelivery.objects.of(workspace).get()
    assert (row.status, row.reason["code"]) == ("failed", answer.json()["detail"][0]["code"])
    assert row.body is not None


def test_inbound_refuses_a_body_that_is_too_large(workspace, source_of):
    answer = post(source_of(), {"title": "x" * 1024 * 1024})

    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert InboundDelivery.objects.of(workspace).count() == 0


def test_inbound_says_that_a_source_still_waits_for_its_secret(workspace, source_of):
    source = source_of(verification={"type": "stripe"})
    answer = post(source, {"title": "Storm"})

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (503, "not_verifiable")
    assert RawItem.objects.of(workspace).count() == 0


def test_inbound_of_a_paused_source_has_to_come_again(workspace, source_of):
    source = source_of()
    Source.everywhere.filter(pk=source.pk).update(status="paused")
    answer = post(source, {"title": "Storm"})

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (503, "paused")


def test_inbound_of_an_unknown_deleted_or_delisted_source_is_not_there(workspace, source_of):
    source = source_of()
    unknown = Client().post(f"/hooks/{'x' * 32}", "{}", content_type="application/json")
    workspaces.delist(workspace, actor="operator")
    delisted = post(source, {"title": "Storm"})

    assert (unknown.status_code, delisted.status_code) == (404, 404)
    assert unknown.json() == delisted.json()


def test_inbound_takes_posts_only(source_of):
    answer = Client().get(f"/hooks/{source_of().inbound_token}")

    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.usefixtures("one_minute")
def test_inbound_counts_calls_of_one_address(source_of, monkeypatch):
    monkeypatch.setattr("pipeline.limits.INBOUND_CALLS", "2/m")
    source = source_of()

    answers = [post(source, {"title": f"Storm {number}"}) for number in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    (detail,) = answers[2].json()["detail"]
    assert detail["message"] == "More than 2 calls a minute came to this address; wait a minute."


FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=xx"


@pytest.mark.parametrize(
    ("content_type", "body", "made"),
    [
        (FORM, "title=Storm+one&tags=a&tags=b", {"title": "Storm one", "metadata": {"tags": ["a", "b"]}}),
        (FORM, "payload=%7B%22title%22%3A%22Storm%22%7D", {"title": "Storm"}),
        (FORM, "payload=%7Bnot+json&title=Storm", {"title": "Storm"}),
        ("text/plain", '{"title": "Storm"}', {"title": "Storm"}),
        ("", '{"title": "Storm"}', {"title": "Storm"}),
        ("application/json; charset=utf-8", b'\xef\xbb\xbf{"title": "Storm"}', {"title": "Storm"}),
        (
            MULTIPART,
            (
                '--xx\r\nContent-Disposition: form-data; name="title"\r\n\r\nStürm\r\n'
                '--xx\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nfile\r\n--xx--\r\n'
            ),
            {"title": "Stürm"},
        ),
    ],
)
def test_inbound_reads_every_form_of_a_body(workspace, source_of, content_type, body, made):
    answer = post(source_of(), body, content_type)

    assert (answer.status_code, answer.json().get("outcome")) == (202, "new"), answer.content
    row = InboundDelivery.objects.of(workspace).get()
    assert {name: row.made[name] for name in made} == made


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        (FORM, "title=a%00b", "nul_character"),
        (FORM, b"title=\xff", "malformed_form"),
        (FORM, "&".join(f"f{number}=1" for number in range(1200)), "malformed_form"),
        (MULTIPART, '--xx\r\nContent-Disposition: form-data; name="title"\r\n\r\nStorm', "malformed_form"),
        ("multipart/form-data", "--xx", "malformed_form"),
    ],
)
def test_inbound_refuses_a_form_that_breaks_the_rules(source_of, content_type, body, code):
    answer = post(source_of(), body, content_type)

    assert (answer.status_code, answer.json()["detail"][0]["code"]) == (400, code)


def test_inbound_keeps_the_bodies_of_the_newest(workspace, source_of, monkeypatch):
    monkeypatch.setattr("pipeline.limits.INBOUND_BODIES_KEPT", 3)
    source, other = source_of(), source_of()
    post(other, {"title": "Of another source"})
    for number in range(5):
        post(source, {"title": f"Storm {number}"})

    rows = InboundDelivery.objects.of(workspace).filter(source=source).order_by("id")
    assert [row.body is not None for row in rows] == [False, False, True, True, True]
    assert [row.made is not None for row in rows] == [False, False, True, True, True]
    assert InboundDelivery.objects.of(workspace).get(source=other).body is not None
