"""GET /generated."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import time_machine

from config.core import ids, task_runner
from pipeline.models import GeneratedItem
from tests.contracts.conftest import never_existed, normal, refusal

LONG = ("content", "claims", "checks", "provenance")


def _lean(item):
    return {name: value for name, value in item.items() if name not in LONG}


def _found(newsroom, query):
    return [item["id"] for item in newsroom.api.read(f"/generated?order=asc&{query}")["data"]]


def test_items_are_listed_newest_first_without_long_fields(alice):
    first, second = alice.ready(), alice.ready()
    answer = alice.api.get("/generated")
    assert (answer.status_code, answer.json()) == (
        200,
        {"data": [_lean(second), _lean(first)], "has_more": False, "next_cursor": None},
    )
    assert answer["ETag"].startswith('W/"')
    again = alice.api.get("/generated", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("include", [("content",), ("claims", "checks"), LONG])
def test_items_include_what_is_named(alice, include):
    item = alice.ready()
    shown = alice.api.read(f"/generated?include={','.join(include)}")["data"]
    assert shown == [{name: value for name, value in item.items() if name in include or name not in LONG}]


@pytest.mark.parametrize("include", ["contents", "content,", "", "content, claims", "CONTENT"])
def test_include_names_known_fields_only(api, include):
    assert refusal(api.get("/generated", QUERY_STRING=f"include={include}")) == (
        400,
        "invalid_request",
        [("include", "invalid")],
    )


def test_items_are_filtered_by_status(alice):
    queued = alice.generated_of(alice.push())[0]
    ready = alice.ready()
    # Making the second worked the first one too.
    assert _found(alice, "status=ready") == [queued["id"], ready["id"]]
    rejected = alice.ready()
    alice.api.post(f"/generated/{rejected['id']}/reject")
    published, scheduled = alice.published(), alice.scheduled()
    waiting = alice.generated_of(alice.push())[0]
    assert _found(alice, "status=queued") == [waiting["id"]]
    assert _found(alice, "status=rejected") == [rejected["id"]]
    assert _found(alice, "status=published") == [published["id"]]
    assert _found(alice, "status=scheduled") == [scheduled["id"]]
    assert _found(alice, "status=published&status=scheduled") == [published["id"], scheduled["id"]]
    assert _found(alice, "status=generating") == []


def test_items_are_filtered_by_what_they_came_from(alice):
    source = alice.source()
    one, two = alice.ready(source=source["id"]), alice.ready()
    assert _found(alice, f"source={source['id']}") == [one["id"]]
    assert _found(alice, f"source={alice.push_source}") == [two["id"]]
    assert _found(alice, f"raw_item={two['raw_item']}") == [two["id"]]
    assert _found(alice, f"persona={alice.persona}") == [one["id"], two["id"]]
    assert _found(alice, f"variant_group={one['variant']['group']}") == [one["id"]]
    assert _found(alice, "bucket=text") == [one["id"], two["id"]]
    assert [_found(alice, f"bucket={bucket}") for bucket in ("video", "image", "blog", "newsletter")] == [
        []
    ] * 4
    assert _found(alice, "engine_output=Short%20Post") == [one["id"], two["id"]]
    assert _found(alice, "engine_output=Quote%20Graphic") == []
    for name, prefix in (("source", "src"), ("raw_item", "raw"), ("persona", "per"), ("outlet", "out")):
        assert _found(alice, f"{name}={never_existed(prefix)}") == []
    assert _found(alice, f"variant_group={'0' * 32}") == []


def test_items_are_filtered_by_outlet(alice):
    alice.ready()
    there = alice.publish(alice.ready(), {"outlets": [alice.simulated]})
    own = alice.published()
    assert _found(alice, f"outlet={alice.simulated}") == [there["id"]]
    assert _found(alice, f"outlet={alice.feed}") == [own["id"]]


@pytest.mark.parametrize("name", ["created", "updated", "publish"])
def test_items_are_filtered_by_half_open_ranges(alice, name):
    item, other = alice.ready(), alice.ready()
    column = f"{name}_at"
    GeneratedItem.everywhere.filter(pk=ids.decode("gen", item["id"])).update(
        **{column: "2026-05-01T10:00:00Z"}
    )
    GeneratedItem.everywhere.filter(pk=ids.decode("gen", other["id"])).update(
        **{column: "2026-06-01T10:00:00Z"}
    )
    assert _found(alice, f"{name}_after=2026-05-01T10:00:00Z&{name}_before=2026-06-01T10:00:00Z") == [
        item["id"]
    ]
    assert _found(alice, f"{name}_before=2026-05-01T10:00:00Z") == []
    assert _found(alice, f"{name}_after=2026-06-01T12:00:00%2B02:00") == [other["id"]]
    assert _found(alice, f"{name}_after=2026-05-02") == [other["id"]]


@pytest.mark.parametrize(
    "query",
    [
        "bucket=txt",
        "bucket=text&bucket=image",
        "status=done",
        "created_after=2026-05-01T10:00:00",
        "created_after=yesterday",
        "created_after=2026-02-30",
        "created_after=%D9%A2%D9%A0%D9%A2%D9%A6-05-01",
        "created_after=2026-05-01T10:00:00%2B12:75",
        "created_after=0001-01-01T00:00:00%2B23:59",
        "variant_group=xyz",
        "variant_group=%7B00000000-0000-0000-0000-000000000000%7D",
        "variant_group=" + "%D9%A1" * 32,
        "source=raw_01jd4t5v7yf8zr3m6n2q9k0hcx",
        "source=src_81jd4t5v7yf8zr3m6n2q9k0hcx",
        "source=src_01JD4T5V7YF8ZR3M6N2Q9K0HCX",
        "source=",
        "engine_output=",
        "limit=0",
        "limit=101",
        "limit=1.5",
        "limit=-1",
        "limit=%D9%A1",
        "order=newest",
    ],
)
def test_items_refuse_a_wrong_filter(api, query):
    field = query.partition("=")[0]
    status, error, details = refusal(api.get("/generated", QUERY_STRING=query))
    assert (status, error, [one for one, _ in details]) == (400, "invalid_request", [field])


def test_mistyped_filter_is_named_with_the_nearest(alice):
    alice.ready()
    answer = alice.api.get("/generated?stauts=ready&buckt=text")
    assert [one["message"] for one in answer.json()["detail"]] == [
        "There is no parameter buckt. Did you mean bucket=text?",
        "There is no parameter stauts. Did you mean status=ready?",
    ]


def test_from_and_to_are_the_created_ones_as_in_analytics(alice):
    item = alice.ready()
    day = item["created_at"][:10]
    moment = item["created_at"]
    for query, expected in (
        (f"from={day}", [item["id"]]),
        (f"from={moment}&to=2099-01-01", [item["id"]]),
        (f"to={day}", []),
        (f"to={moment}", []),
        ("from=2099-01-01", []),
    ):
        assert [one["id"] for one in alice.api.read(f"/generated?{query}")["data"]] == expected, query
    answer = alice.api.get(f"/generated?from={day}&created_after={day}")
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        [{"field": "from", "code": "conflict", "message": "Give from or created_after: they mean the same."}],
    )


def test_words_that_people_bring_are_understood(alice):
    said = [
        alice.api.post("/raw", {"content": "A text."}),
        alice.api.post("/raw", {"body": "A text of its own.", "engines": ["short post"]}),
        alice.api.get("/generated?since=2026-01-01"),
        alice.api.post("/sources", {"type": "brand", "name": "x", "config": {"url": "https://x.example"}}),
    ]
    assert [answer.status_code for answer in said] == [400] * 4
    told = [answer.json()["detail"][0]["message"] for answer in said]
    assert told[:3] == [
        "There is no field content. Did you mean body?",
        "There is no engine output short post. Did you mean Short Post?",
        "There is no parameter since. Did you mean from?",
    ]
    assert told[3].startswith("There is no setting `url` here. Known are: `")


def _titled(newsroom, *titles):
    items = []
    for title in titles:
        item = newsroom.ready()
        items.append(newsroom.api.patch(f"/generated/{item['id']}", {"title": title}).json())
    return items


def test_items_are_found_by_words_best_first(alice, charlie):
    _titled(charlie, "A zeppelin of somebody else")
    body, title, _ = _titled(alice, "Lands", "The zeppelin", "Other")
    alice.api.patch(f"/generated/{body['id']}", {"body": f"{body['body']} A zeppelin."})
    assert _listed(alice, "q=zeppelin") == _listed(alice, "q=ZEPP") == [title["id"], body["id"]]
    assert _listed(alice, "q=zeppelin&order=asc") == [body["id"], title["id"]]
    assert _listed(alice, "q=zeppelin&order=desc") == [title["id"], body["id"]]
    assert _listed(alice, "q=zeppelin&status=ready&bucket=text&limit=1") == [title["id"]]
    assert _listed(alice, "q=zeppelin&status=published") == []
    alice.api.delete(f"/generated/{title['id']}")
    assert _listed(alice, "q=zeppelin") == [body["id"]]


def _listed(newsroom, query):
    return [item["id"] for item in newsroom.api.read(f"/generated?{query}")["data"]]


@pytest.mark.parametrize("narrowed", ["", "&status=ready", "&order=asc"])
def test_pages_of_a_search_lose_and_repeat_nothing(alice, narrowed):
    _titled(alice, *[f"Zeppelin {number}" for number in range(5)])
    whole = _listed(alice, f"q=zeppelin{narrowed}")
    page = alice.api.read(f"/generated?q=zeppelin&limit=2{narrowed}")
    if "order" not in narrowed:
        # It would be the first.
        _titled(alice, "Zeppelin zeppelin")
    found = [item["id"] for item in page["data"]]
    while page["has_more"]:
        page = alice.api.read(f"/generated?q=zeppelin&limit=2{narrowed}&cursor={page['next_cursor']}")
        found += [item["id"] for item in page["data"]]
    assert found == whole
    assert len(found) == 5


def test_the_cursor_of_a_search_lasts_an_hour_and_fits_no_other(alice):
    _titled(alice, "Zeppelin 1", "Zeppelin 2")
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        cursor = alice.api.read("/generated?q=zeppelin&limit=1")["next_cursor"]
        assert alice.api.get(f"/generated?q=balloon&limit=1&cursor={cursor}").status_code == 400
        clock.shift(3600)
        assert alice.api.get(f"/generated?q=zeppelin&limit=1&cursor={cursor}").status_code == 200
        clock.shift(1)
        answer = alice.api.get(f"/generated?q=zeppelin&limit=1&cursor={cursor}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_cursor")


@pytest.mark.parametrize("text", ["", "%20", "?!", "a" * 201, "%00"])
def test_a_search_needs_a_word(api, text):
    status, error, (detail,) = refusal(api.get("/generated", QUERY_STRING=f"q={text}"))
    assert (status, error, detail[0]) == (400, "invalid_request", "q")


def test_deleted_items_are_not_listed(alice):
    item = alice.ready()
    assert alice.api.delete(f"/generated/{item['id']}").status_code == 204
    assert alice.api.read("/generated")["data"] == []


def test_variants_of_one_source_share_a_group(alice):
    raw = alice.push(variants=3)
    task_runner.work_all_due("generate.run_item")
    items = alice.generated_of(raw)
    assert [item["variant"]["index"] for item in items] == [0, 1, 2]
    assert len({item["variant"]["group"] for item in items}) == 1
    assert len({item["body"] for item in items if item["status"] == "ready"}) == len(
        [item for item in items if item["status"] == "ready"]
    )
    assert normal(items[0]["variant"]["group"]) == "<hex>"
