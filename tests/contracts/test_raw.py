"""GET|POST /raw, GET|DELETE /raw/:id, POST /raw/:id/retry."""

from __future__ import annotations

import json

import pytest

from accounts.ledger import credits as credit_account
from accounts.models import Workspace
from config.core import limits, task_runner
from config.core.api.jsonio import dump
from pipeline.generate import run
from pipeline.models import Event, GeneratedItem, RawBody, RawItem
from pipeline.plugins import Refused
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, problem, refusal


def _shown(content, **changes):
    return {
        "id": "raw_*",
        "status": "queued",
        "reason": None,
        "version": 1,
        "content_version": 1,
        "source": "src_*",
        "external_id": content.get("external_id"),
        "url": None,
        "title": content.get("title", ""),
        "language": content.get("language"),
        "author": None,
        "published_at": None,
        "media": [],
        "metadata": {},
        "engines": ["Short Post"],
        "variants": 1,
        "language_guessed": False,
        "outcomes": [_outcome("pending")],
        "persona": "per_*",
        "near_duplicate": None,
        "withdrawn_at": None,
        "test": False,
        "deleted_at": None,
        "created_at": "<moment>",
        "updated_at": "<moment>",
        **changes,
    }


def _outcome(outcome, variant=0, **changes):
    """One of Short Post, as `normal` leaves it."""
    return {
        "engine_output": "Short Post",
        "variant": variant,
        "outcome": outcome,
        "reason": None,
        "retryable": None,
        "generated_item": "gen_*",
        **changes,
    }


NEW = {"duplicate": False, "revised": False}


# --- POST /raw -------------------------------------------------------------------------------------------------------


def test_push_is_accepted(alice):
    content = alice.content()
    answer = alice.api.post("/raw", content)
    assert (answer.status_code, normal(answer.json())) == (202, _shown(content, **NEW))
    assert answer["Location"] == f"/v1/raw/{answer.json()['id']}"
    assert answer.json()["source"] == alice.push_source
    assert list(Event.everywhere.values_list("type", flat=True)) == ["raw.ingested"]


def test_push_keeps_everything_that_was_given(alice):
    source = alice.source()
    given = {
        "source": source["id"],
        "external_id": "a b",
        "url": "https://example.test/story?x=1",
        "title": " Harbour ",
        "language": "pt-BR",
        "author": "Ann Onymous",
        "media": [{"url": "https://example.test/crane.jpg", "type": "image/jpeg"}],
        "metadata": {"desk": {"floor": 3, "open": True, "note": None, "deed": 10**30}},
        "engines": ["Short Post"],
        "variants": 3,
        "persona": alice.persona,
    }
    answer = alice.api.post(
        "/raw",
        {**given, "body": "Words.", "body_format": "text", "published_at": "2026-11-20T10:30:00+01:00"},
    )
    assert answer.status_code == 202
    shown = answer.json()
    assert {name: shown[name] for name in given} == given
    assert shown["published_at"] == "2026-11-20T09:30:00.000Z"
    kept = RawBody.everywhere.get()
    assert (kept.body, kept.body_format, kept.title) == ("Words.", "text", " Harbour ")


@pytest.mark.parametrize(
    "content",
    [
        {"title": "Only a title of the harbour"},
        {"body": "Only a body of the harbour."},
        {"media": [{"url": "https://example.test/crane.jpg"}]},
    ],
)
def test_push_needs_one_of_three(api, content):
    assert api.post("/raw", content).status_code == 202


@pytest.mark.parametrize(
    "content", [{}, {"title": "", "body": ""}, {"external_id": "x"}, {"media": []}, {"url": None}]
)
def test_push_without_content(api, content):
    answer = api.post("/raw", content)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert RawItem.everywhere.count() == 0


@pytest.mark.parametrize("more", [{}, {"title": "", "body": ""}, {"external_id": "x"}])
def test_address_alone_is_refused_with_the_remedy(api, more):
    content = {"url": "https://example.test/only-an-address", **more}
    detail = {
        "field": "url",
        "code": "address_alone",
        "message": "An address alone isn't fetched here. Send the page's text as body, or read the "
        "address with a source of type scraper: POST /v1/sources.",
    }
    for answer in (api.post("/raw", content), api.post("/estimate", content)):
        assert (answer.status_code, answer.json()["detail"]) == (400, [detail])
    batch = api.post("/raw", {"items": [content, {"title": "The tram line opens in April"}]})
    assert [one["status"] for one in batch.json()["data"]] == [400, 202]
    assert RawItem.everywhere.count() == 1


def test_push_that_nothing_can_be_made_of_is_kept_as_skipped(api):
    answer = api.post("/raw", {"title": "–", "engines": ["Short Post"]})
    shown = answer.json()
    assert (answer.status_code, shown["status"]) == (202, "skipped")
    assert (shown["reason"]["code"], shown["reason"]["stage"]) == ("nothing_to_make", "push")
    assert api.read("/usage")["reserved"] == 0


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"titel": "x"}, ("titel", "unknown_field", "There is no field titel. Did you mean title?")),
        ({"title": 5}, ("title", "invalid", "Give text.")),
        ({"title": "x" * 501}, ("title", "max_length", "Give 500 characters at most.")),
        (
            {"url": "javascript:alert(1)"},
            ("url", "invalid_address", "Give an absolute http:// or https:// address."),
        ),
        (
            {"url": "https://exa mple.test"},
            ("url", "invalid_address", "Give an absolute http:// or https:// address."),
        ),
        (
            {"language": "english!"},
            ("language", "pattern", "Give a BCP 47 language tag, such as en or pt-BR."),
        ),
        (
            {"published_at": "2026-11-20T09:30:00"},
            (
                "published_at",
                "invalid",
                "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z.",
            ),
        ),
        (
            {"published_at": "2027-02-30T10:00:00Z"},
            ("published_at", "no_such_moment", "There is no day 2027-02-30."),
        ),
        (
            {"published_at": "2027-02-28T24:00:00Z"},
            (
                "published_at",
                "no_such_moment",
                "There is no time 24:00:00Z: hours end at 23, minutes and seconds at 59.",
            ),
        ),
        ({"metadata": []}, ("metadata", "not_an_object", "Give a JSON object.")),
        (
            {"metadata": {"x": "y" * 16_384}},
            ("metadata", "too_large", "It may have 16384 bytes of JSON at most."),
        ),
        ({"media": [{"type": "image/png"}]}, ("media[0]", "one_of", "Give url or upload, one of them.")),
        (
            {"media": [{"url": "https://example.test", "alt": "x"}]},
            (
                "media[0].alt",
                "unknown_field",
                "There is no field alt. Known are: author, licence, type, upload, url.",
            ),
        ),
        ({"variants": 4}, ("variants", "max_value", "Give 3 at most.")),
        ({"body_format": "pdf"}, ("body_format", "invalid_choice", "Give one of: text, markdown, html.")),
    ],
)
def test_push_refuses_a_wrong_field(alice, fields, detail):
    answer = alice.api.post("/raw", {**alice.content(), **fields})
    assert (answer.status_code, answer.json()) == (400, problem("invalid_request", detail))
    assert RawItem.everywhere.count() == 0


def test_push_to_a_source_or_persona_that_is_not_there(alice):
    for field, prefix in (("source", "src"), ("persona", "per")):
        answer = alice.api.post("/raw", alice.content(**{field: never_existed(prefix)}))
        assert refusal(answer) == (400, "invalid_request", [(field, f"unknown_{field}")])


def test_push_past_the_credits_is_refused_and_nothing_is_stored(alice):
    credit_account.adjust(alice.workspace, -999, "for this test", "operator")
    answer = alice.api.post("/raw", alice.content(variants=2))
    detail = answer.json()["detail"]
    assert (answer.status_code, answer.json()["error"]) == (402, "quota_exceeded")
    assert [{**one, "message": ""} for one in detail] == [
        {
            "field": None,
            "code": "quota_exceeded",
            "message": "",
            "limit": 1,
            "used": 0,
            "resets_at": alice.api.read("/usage")["resets_at"],
        }
    ]
    assert [RawItem.everywhere.count(), GeneratedItem.everywhere.count(), Event.everywhere.count()] == [
        0,
        0,
        0,
    ]


# --- The same again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identity",
    [
        {"external_id": "story"},
        {"external_id": None, "url": "https://example.test/story"},
        {"external_id": None},
    ],
)
def test_same_content_again_is_a_duplicate(alice, identity):
    content = {name: value for name, value in {**alice.content(), **identity}.items() if value is not None}
    first = alice.api.post("/raw", content)
    again = alice.api.post("/raw", content)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == {**first.json(), "duplicate": True}
    assert [RawItem.everywhere.count(), Event.everywhere.count(), alice.api.read("/usage")["reserved"]] == [
        1,
        1,
        1,
    ]


def test_push_says_which_engines_can_make_nothing_of_it(alice):
    content = alice.content(engines=["Short Post", "Blog Article"])
    message = "This item has 36 words; a Blog Article needs 100 or more."
    why = {"code": "nothing_to_make", "message": message, "stage": "push"}
    left_out = _outcome(
        "skipped", engine_output="Blog Article", reason=why, retryable=False, generated_item=None
    )
    first, again = (alice.api.post("/raw", content).json() for _ in range(2))
    assert (first["status"], normal(first["outcomes"])) == ("queued", [_outcome("pending"), left_out])
    assert (again["duplicate"], again["outcomes"]) == (True, first["outcomes"])
    told = Event.everywhere.get(type="engine.skipped")
    assert json.loads(told.body)["data"]["outcome"] == first["outcomes"][1]
    (item,) = alice.api.read(f"/raw/{first['id']}")["generated"]
    assert alice.api.read(f"/generated/{item}")["engine_output"] == "Short Post"


def test_same_address_in_another_form_is_a_duplicate(alice):
    content = alice.content(external_id="", url="https://Example.test:443/story?utm_source=x#top")
    del content["external_id"]
    first = alice.api.post("/raw", content).json()
    again = alice.api.post("/raw", {**content, "url": "https://example.test/story"})
    assert (again.status_code, again.json()["id"], again.json()["duplicate"]) == (200, first["id"], True)


def test_same_identity_with_other_content_is_its_next_version(alice):
    item = alice.ready(external_id="story")
    raw_id = item["raw_item"]
    before = alice.api.read(f"/raw/{raw_id}")
    answer = alice.api.post("/raw", alice.content(external_id="story"))
    shown = answer.json()
    assert (answer.status_code, shown["id"]) == (200, raw_id)
    assert (shown["revised"], shown["duplicate"], shown["content_version"]) == (True, False, 2)
    assert shown["version"] == before["version"] + 1
    held = alice.api.read(f"/generated/{item['id']}")
    assert (held["held"], held["status"], held["version"]) == ("source_changed", "ready", item["version"] + 1)
    assert list(RawBody.everywhere.order_by("number").values_list("number", flat=True)) == [1, 2]


def test_same_external_id_of_another_source_is_another_thing(alice):
    content = alice.content()
    first = alice.api.post("/raw", content).json()
    second = alice.api.post("/raw", {**content, "source": alice.source()["id"]})
    assert (second.status_code, second.json()["id"] == first["id"]) == (202, False)


def test_same_content_of_a_test_token_is_another_thing(alice):
    content = alice.content()
    first = alice.api.post("/raw", content).json()
    second = alice.client(is_test=True).post("/raw", content)
    assert (second.status_code, second.json()["id"] == first["id"], second.json()["test"]) == (
        202,
        False,
        True,
    )


# --- Size ------------------------------------------------------------------------------------------------------------


def _of_size(alice, size):
    content = alice.content(body="")
    return dump({**content, "body": "a" * (size - len(dump(content)))})


def test_push_of_exactly_five_mebibytes_is_taken(alice):
    data = _of_size(alice, limits.RAW_BODY_BYTES)
    assert len(data) == 5 * 1024 * 1024
    assert alice.api.call("POST", "/raw", data=data).status_code == 202


def test_push_of_one_byte_more_is_not(alice):
    data = _of_size(alice, limits.RAW_BODY_BYTES + 1)
    answer = alice.api.call("POST", "/raw", data=data)
    assert (answer.status_code, answer.json()) == (
        413,
        problem("payload_too_large", (None, "payload_too_large", "The body may have 5242880 bytes at most.")),
    )
    assert RawItem.everywhere.count() == 0


def test_other_addresses_take_one_mebibyte(alice):
    path = f"/generated/{alice.ready()['id']}/reject"
    exactly = b'{"reason": "late"' + b" " * (limits.BODY_BYTES - 18) + b"}"
    over = exactly + b" "
    answer = alice.api.call("POST", path, data=over)
    assert (answer.status_code, answer.json()) == (
        413,
        problem("payload_too_large", (None, "payload_too_large", "The body may have 1048576 bytes at most.")),
    )
    assert alice.api.call("POST", path, data=exactly).status_code == 200


# --- Batches ---------------------------------------------------------------------------------------------------------


def test_batch_answers_for_each_item(alice):
    good, short = alice.content(), alice.content(variants=3)
    credit_account.adjust(alice.workspace, -998, "for this test", "operator")
    answer = alice.api.post("/raw", {"items": [good, {"title": 5}, good, "text", short, {}]})
    assert answer.status_code == 207
    data = answer.json()["data"]
    quota = data[4].pop("detail")
    assert normal(data) == [
        {"index": 0, "status": 202, "raw_item": _shown(good, **NEW)},
        {"index": 1, "status": 400, **problem("invalid_request", ("title", "invalid", "Give text."))},
        {"index": 2, "status": 200, "raw_item": _shown(good, **NEW | {"duplicate": True})},
        {"index": 3, "status": 400, **problem("invalid_request", (None, "invalid", "Give a JSON object."))},
        {"index": 4, "status": 402, "error": "quota_exceeded"},
        {
            "index": 5,
            "status": 400,
            **problem("invalid_request", (None, "empty", "Give at least one of title, body, media.")),
        },
    ]
    assert [(one["code"], one["limit"], one["used"]) for one in quota] == [("quota_exceeded", 2, 0)]
    assert RawItem.everywhere.count() == 1


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([], "min_length"),
        ([{"title": "x"}] * 101, "max_length"),
        ({"title": "x"}, "not_a_list"),
        (None, "null"),
    ],
)
def test_batch_of_the_wrong_size(api, items, code):
    assert refusal(api.post("/raw", {"items": items})) == (400, "invalid_request", [("items", code)])
    assert RawItem.everywhere.count() == 0


def test_batch_of_a_hundred(alice, no_rate):
    answer = alice.api.post("/raw", {"items": [alice.content() for _ in range(100)]})
    assert (answer.status_code, {one["status"] for one in answer.json()["data"]}) == (207, {202})
    assert RawItem.everywhere.count() == 100


def test_batch_takes_no_fields_beside_its_items(alice):
    answer = alice.api.post("/raw", {"items": [alice.content()], "source": alice.push_source})
    assert refusal(answer) == (400, "invalid_request", [("source", "unknown_field")])


# --- GET /raw --------------------------------------------------------------------------------------------------------


def test_raw_items_are_listed_newest_first(alice):
    first, second = alice.push(), alice.push()
    for one in (first, second):
        del one["duplicate"], one["revised"]
    assert alice.api.read("/raw") == {"data": [second, first], "has_more": False, "next_cursor": None}
    assert alice.api.read("/raw?order=asc")["data"] == [first, second]


def test_raw_items_are_filtered(alice):
    source = alice.source()
    one = alice.push(source=source["id"], external_id="one")
    two = alice.push(external_id="two")
    task_runner.work_all_due("generate.run_item")
    three = alice.push()

    def found(query):
        return [row["id"] for row in alice.api.read(f"/raw?order=asc&{query}")["data"]]

    assert found(f"source={source['id']}") == [one["id"]]
    assert found("external_id=two") == [two["id"]]
    assert found("status=processed") == [one["id"], two["id"]]
    assert found("status=processed&status=queued") == [one["id"], two["id"], three["id"]]
    assert found(f"created_after={two['created_at']}&created_before={three['created_at']}")[0] == two["id"]
    assert found("created_after=2099-01-01") == []
    assert found("created_before=2020-01-01T00:00:00%2B02:00") == []


def test_raw_items_are_found_by_words_best_first(alice, charlie):
    charlie.push(title="A zeppelin of somebody else")
    source = alice.source()
    body = alice.push(title="Lands", body="The long zeppelin lands on the field behind the harbour.")
    title = alice.push(title="The zeppelin", source=source["id"])
    alice.push(title="Other")

    def found(query):
        return [row["id"] for row in alice.api.read(f"/raw?{query}")["data"]]

    assert found("q=zeppelin") == found("q=ZEPP") == [title["id"], body["id"]]
    assert found("q=zeppelin&order=asc") == [body["id"], title["id"]]
    assert found(f"q=zeppelin&source={source['id']}") == [title["id"]]
    assert found("q=zeppelin&status=failed") == []
    page = alice.api.read("/raw?q=zeppelin&limit=1")
    assert [row["id"] for row in page["data"]] == [title["id"]]
    assert found(f"q=zeppelin&limit=1&cursor={page['next_cursor']}") == [body["id"]]
    alice.api.delete(f"/raw/{title['id']}")
    assert found("q=zeppelin") == [body["id"]]
    status, error, (detail,) = refusal(alice.api.get("/raw?q=%3F"))
    assert (status, error, detail[0]) == (400, "invalid_request", "q")


def test_created_range_is_half_open(alice):
    raw = alice.push()
    RawItem.everywhere.update(created_at="2026-05-01T10:00:00.000Z")

    def found(query):
        return [row["id"] for row in alice.api.read(f"/raw?{query}")["data"]]

    assert found("created_after=2026-05-01T10:00:00Z") == [raw["id"]]
    assert found("created_before=2026-05-01T10:00:00Z") == []
    assert found("created_before=2026-05-01T10:00:00.001Z&created_after=2026-05-01") == [raw["id"]]


# --- GET /raw/:id ----------------------------------------------------------------------------------------------------


def test_raw_item_tells_what_it_led_to(alice):
    content = alice.content()
    raw = alice.api.post("/raw", content).json()
    queued = alice.api.get(f"/raw/{raw['id']}")
    ids_made = queued.json()["generated"]
    assert normal(queued.json()) == _shown(content, generated=["gen_*"], complete=False)
    task_runner.work_all_due("generate.run_item")
    done = alice.api.get(f"/raw/{raw['id']}", headers={"If-None-Match": queued["ETag"]})
    assert normal(done.json()) == _shown(
        content,
        status="processed",
        version=3,
        outcomes=[_outcome("made")],
        generated=["gen_*"],
        complete=True,
    )
    assert done.json()["generated"] == ids_made
    same = alice.api.get(f"/raw/{raw['id']}", headers={"If-None-Match": done["ETag"]})
    assert (same.status_code, same.content) == (304, b"")


# --- POST /raw/:id/retry ---------------------------------------------------------------------------------------------


def _fail(alice, monkeypatch):
    def refuse(*_, **__):
        raise Refused("The writer refuses.", code="refused")

    raw = alice.push()
    with monkeypatch.context() as patched:
        writer = type("Writer", (), {"offline": True, "brief": refuse, "draft": refuse})()
        patched.setattr(run, "writer_for", lambda *_: writer)
        task_runner.work_all_due("generate.run_item")
    failed = alice.api.read(f"/raw/{raw['id']}")
    assert (failed["status"], failed["reason"]["code"]) == ("failed", "refused")
    return failed


def test_failed_raw_item_is_made_again(alice, monkeypatch):
    failed = _fail(alice, monkeypatch)
    answer = alice.api.post(f"/raw/{failed['id']}/retry")
    shown = answer.json()
    assert (answer.status_code, shown["status"], shown["reason"]) == (202, "queued", None)
    assert shown["version"] == failed["version"] + 1
    task_runner.work_all_due("generate.run_item")
    assert alice.api.read(f"/raw/{failed['id']}")["status"] == "processed"


def test_retry_of_what_did_not_fail(alice):
    raw = alice.push()
    assert refusal(alice.api.post(f"/raw/{raw['id']}/retry"))[:2] == (409, "conflict")
    task_runner.work_all_due("generate.run_item")
    assert refusal(alice.api.post(f"/raw/{raw['id']}/retry"))[:2] == (409, "conflict")


def test_retry_without_credits(alice, monkeypatch):
    failed = _fail(alice, monkeypatch)
    credit_account.adjust(alice.workspace, -1000, "for this test", "operator")
    answer = alice.api.post(f"/raw/{failed['id']}/retry")
    assert refusal(answer) == (402, "quota_exceeded", [(None, "quota_exceeded")])
    assert alice.api.read(f"/raw/{failed['id']}") == failed


def test_retry_takes_no_fields(alice):
    answer = alice.api.post(f"/raw/{alice.push()['id']}/retry", {"engines": ["Short Post"]})
    assert refusal(answer) == (400, "invalid_request", [("engines", "unknown_field")])


# --- DELETE /raw/:id -------------------------------------------------------------------------------------------------


def test_deleted_raw_item_is_a_tombstone(alice):
    item = alice.ready(url="https://example.test/story", author="Ann", metadata={"a": 1})
    path = f"/raw/{item['raw_item']}"
    answer = alice.api.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    left = alice.api.read(path)
    assert [left[name] for name in ("title", "url", "author", "media", "metadata")] == [
        "",
        None,
        None,
        [],
        {},
    ]
    assert (normal(left["deleted_at"]), RawBody.everywhere.count()) == ("<moment>", 0)
    assert alice.api.read("/raw")["data"] == []
    assert alice.api.read(f"/generated/{item['id']}")["held"] == "source_withdrawn"
    assert alice.api.delete(path).json() == NOT_FOUND
    assert refusal(alice.api.post(f"{path}/retry"))[:2] == (409, "conflict")


def test_deleted_raw_item_is_not_taken_in_again(alice):
    content = alice.content()
    raw = alice.api.post("/raw", content).json()
    alice.api.delete(f"/raw/{raw['id']}")
    again = alice.api.post("/raw", content)
    assert (again.status_code, again.json()["id"], again.json()["duplicate"]) == (200, raw["id"], True)


def test_raw_item_that_never_existed(api):
    path = f"/raw/{never_existed('raw')}"
    for answer in (api.get(path), api.delete(path), api.post(f"{path}/retry")):
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


def test_push_of_a_delisted_workspace_is_refused(alice):
    Workspace.everywhere.update(whitelisted_at=None)
    assert refusal(alice.api.post("/raw", alice.content()))[:2] == (403, "workspace_not_whitelisted")
    assert RawItem.everywhere.count() == 0
