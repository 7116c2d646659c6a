"""GET|POST /sources, GET|PATCH|DELETE /sources/:id, its poll, preview and entries."""

from __future__ import annotations

import json

import pytest

from accounts.models import Workspace
from config.core import ids, task_runner
from pipeline import plugins
from pipeline.api.inputs.sources import SourceInput
from pipeline.engines.base import Engine
from pipeline.ingest import collect
from pipeline.ingest.collect.source_validation import FIELDS_OUTSIDE_CONFIG
from pipeline.models import HostSlot, RawItem, Source, SourceEntry
from pipeline.sources.base import Source as SourceKind
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, problem, refusal

KNOWN = ", ".join(sorted(one.name for one in plugins.every("engines", Engine)))

TOPIC = {
    "title": "cranes",
    "notes": "The harbour has had three cranes since 1974.\nEach of them lifts forty tonnes over the quay.",
}
GOOD = {
    "rss": ({"url": "https://example.test/feed"}, {"url": "https://example.test/feed"}),
    "scraper": (
        {"url": "https://example.test/news", "item_selector": "article a", "max_pages": 3},
        {"url": "https://example.test/news", "item_selector": "article a", "max_pages": 3, "render": False},
    ),
    "youtube": ({"handle": "@example"}, {"handle": "@example"}),
    "tiktok": (
        {"links": ["https://www.tiktok.com/@example/video/1"]},
        {"links": ["https://www.tiktok.com/@example/video/1"]},
    ),
    "webhook": (
        {"mapping": {"title": "data.headline"}, "verification": {"type": "address"}},
        {"mapping": {"title": "data.headline"}, "verification": {"type": "address"}},
    ),
    "brand": (
        {"topics": [TOPIC, "docks"], "cadence": {"every_hours": 12}},
        {"topics": [TOPIC, "docks"], "cadence": {"every_hours": 12}},
    ),
}
NOTHING_REQUIRED = {"webhook": {}, "brand": {"cadence": {"every_hours": 24}}}
MISSING = {
    "rss": ("config.url", "Give the address of an RSS, Atom or JSON feed, or of a web page that has one."),
    "scraper": ("config.url", "Give the address of the page that lists the articles."),
    "youtube": (
        "config.url",
        "Give one of `url`, `channel`, `playlist`, `handle`, `video`, `user` or `custom`.",
    ),
    "tiktok": ("config.username", "Give one of `username`, `hashtag` or `links`."),
}


def _shown(source_type, config, **changes):
    is_fetched = plugins.get("sources", source_type, SourceKind).fetches
    is_awaited = is_fetched or source_type == "brand"
    return {
        "id": "src_*",
        "name": "Harbour",
        "type": source_type,
        "config": config,
        "status": "active",
        "last_error": None,
        "engines": [],
        "variants": 1,
        "persona": None,
        "outlets": [],
        "poll_interval_minutes": None,
        "autopilot": False,
        "first_poll": None,
        "max_age_days": None,
        "max_burst": None,
        "inbound_url": "http://127.0.0.1:8000/hooks/*" if source_type == "webhook" else None,
        "last_polled_at": None,
        "next_poll_at": "<moment>" if is_awaited else None,
        "health": {
            "last_success_at": None,
            "last_new_at": None,
            "next_poll_at": "<moment>" if is_awaited else None,
            "interval_minutes": None,
            "consecutive_failures": 0,
            "failing_since": None,
            "error": None,
            "notes": [],
        },
        "test": False,
        "version": 1,
        "created_at": "<moment>",
        "updated_at": "<moment>",
        **changes,
    }


# --- POST /sources ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source_type", GOOD)
def test_source_of_each_type_is_registered(api, source_type):
    given, kept = GOOD[source_type]
    answer = api.post("/sources", {"type": source_type, "name": "Harbour", "config": given})
    assert (answer.status_code, normal(answer.json())) == (201, _shown(source_type, kept))
    assert answer["Location"] == f"/v1/sources/{answer.json()['id']}"
    again = api.get(answer["Location"].removeprefix("/v1"))
    assert (again.status_code, again.json(), again["ETag"]) == (200, answer.json(), answer["ETag"])


@pytest.mark.parametrize("source_type", NOTHING_REQUIRED)
def test_source_that_requires_no_setting(api, source_type):
    api.post("/topics", TOPIC)
    answer = api.post("/sources", {"type": source_type, "name": "Harbour"})
    kept = NOTHING_REQUIRED[source_type]
    assert (answer.status_code, normal(answer.json())) == (201, _shown(source_type, kept))


@pytest.mark.parametrize("source_type", MISSING)
def test_source_without_its_required_setting(api, source_type):
    answer = api.post("/sources", {"type": source_type})
    field, message = MISSING[source_type]
    assert (answer.status_code, answer.json()) == (
        400,
        problem("invalid_request", (field, "required", message)),
    )
    assert Source.everywhere.filter(is_push=False).count() == 0


@pytest.mark.parametrize("source_type", GOOD)
def test_source_refuses_an_unknown_setting(api, source_type):
    answer = api.post("/sources", {"type": source_type, "config": {**GOOD[source_type][0], "urll": "x"}})
    assert answer.status_code == 400
    assert [(one["field"], one["code"]) for one in answer.json()["detail"]] == [
        ("config.urll", "unknown_field")
    ]


@pytest.mark.parametrize(
    ("source_type", "config", "field"),
    [
        ("rss", {"url": "ftp://example.test/feed"}, "config.url"),
        ("rss", {"url": "not an address"}, "config.url"),
        ("rss", {"url": 5}, "config.url"),
        ("rss", {"url": ""}, "config.url"),
        ("rss", {"url": None}, "config.url"),
        ("scraper", {"url": "https://example.test", "max_pages": 0}, "config.max_pages"),
        ("scraper", {"url": "https://example.test", "max_pages": True}, "config.max_pages"),
        ("youtube", {"channel": "not-a-channel"}, "config.channel"),
        ("youtube", {"handle": "@example", "playlist": "PL0123456789"}, "config.handle"),
        ("tiktok", {"username": "a b"}, "config.username"),
        ("tiktok", {"links": ["https://example.test/video"]}, "config.links[0]"),
        ("webhook", {"mapping": {}}, "config.mapping"),
        ("webhook", {"mapping": {"title": "a..b"}}, "config.mapping.title"),
        ("webhook", {"verification": {"type": "none"}}, "config.verification.type"),
        ("webhook", {"verification": {"type": "github", "secret": "short"}}, "config.verification.secret"),
        ("webhook", {"only_if": "type == "}, "config.only_if"),
        ("brand", {"cadence": {"every_hours": 0}}, "config.cadence.every_hours"),
        ("brand", {"topics": "cranes"}, "config.topics"),
    ],
)
def test_source_refuses_a_wrong_setting(api, source_type, config, field):
    answer = api.post("/sources", {"type": source_type, "config": config})
    body = answer.json()
    assert (answer.status_code, body["error"]) == (400, "invalid_request")
    assert {one["field"] for one in body["detail"]} == {field}
    assert all(set(one) == {"field", "code", "message"} for one in body["detail"])


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({}, ("type", "required", "Give one of: brand, rss, scraper, tiktok, webhook, youtube.")),
        (
            {"type": "rs"},
            ("type", "invalid_choice", "Give one of: brand, rss, scraper, tiktok, webhook, youtube."),
        ),
        ({"type": "webhook", "variants": 4}, ("variants", "max_value", "Give 3 at most.")),
        ({"type": "webhook", "variants": 0}, ("variants", "min_value", "Give 1 at least.")),
        ({"type": "webhook", "variants": True}, ("variants", "invalid", "Give a whole number.")),
        ({"type": "webhook", "autopilot": "yes"}, ("autopilot", "invalid", "Give true or false.")),
        ({"type": "webhook", "name": 5}, ("name", "invalid", "Give text.")),
        (
            {"type": "webhook", "name": ""},
            ("name", "blank", "Give at least one character, or leave the field out."),
        ),
        (
            {"type": "webhook", "engines": ["Shrt Post"]},
            ("engines", "unknown_engine", "There is no engine output Shrt Post. Did you mean Short Post?"),
        ),
        ({"type": "webhook", "engines": []}, ("engines", "empty", "Give one entry at least.")),
        (
            {"type": "webhook", "first_poll": {"newest": 0}},
            ("first_poll", "invalid", 'Give {"newest": n} with n from 1 to 200, "none" or "all".'),
        ),
        (
            {"type": "webhook", "persona": "src_01jd4t5v7yf8zr3m6n2q9k0hcx"},
            ("persona", "invalid_id", "Give the id of a persona, per_ and 26 characters: GET /v1/personas lists them, POST /v1/personas makes one."),
        ),
        (
            {"type": "webhook", "outlets": ["nonsense"]},
            ("outlets[0]", "invalid_id", "This is not an id of the form out_ and 26 characters; GET /v1/outlets lists them."),
        ),
        (
            {"type": "webhook", "poll_interval_minutes": 14},
            ("poll_interval_minutes", "below_plan", "The workspace's plan polls at most every 15 minutes."),
        ),
        ({"type": "webhook", "config": []}, ("config", "not_an_object", "Give a JSON object.")),
        (
            {"type": "webhook", "nme": "x"},
            ("nme", "unknown_field", "There is no field nme. Did you mean name?"),
        ),
    ],
)  # fmt: skip
def test_source_refuses_a_wrong_field(api, fields, detail):
    answer = api.post("/sources", fields)
    assert (answer.status_code, answer.json()) == (400, problem("invalid_request", detail))


def test_every_engine_that_isnt_known_is_named(api):
    given = {"type": "webhook", "engines": ["Thread", "short post", "Carousell", "short post", "Poem"]}
    detail = api.post("/sources", given).json()["detail"]
    assert {(one["field"], one["code"]) for one in detail} == {("engines", "unknown_engine")}
    assert [one["message"].partition(" Known are")[0] for one in detail] == [
        "There is no engine output short post. Did you mean Short Post?",
        "There is no engine output Carousell. Did you mean Carousel?",
        "There is no engine output Poem.",
    ]


@pytest.mark.parametrize("first_poll", [{"newest": 3}, "none", "all", None])
def test_source_keeps_everything_that_was_given(alice, first_poll):
    given = {
        "engines": ["Short Post"],
        "variants": 2,
        "persona": alice.persona,
        "outlets": [alice.feed, alice.simulated],
        "poll_interval_minutes": 30,
        "autopilot": True,
        "first_poll": first_poll,
        "max_age_days": 7,
        "max_burst": 5,
    }
    source = alice.source(name="Harbour", **given)
    assert {name: source[name] for name in given} == given


def test_source_past_the_plan_is_refused_with_the_numbers(alice):
    alice.workspace.active_sources_most = 1
    Workspace.everywhere.filter(pk=alice.workspace.pk).update(active_sources_most=1)
    alice.source()
    answer = alice.api.post("/sources", {"type": "webhook"})
    assert (answer.status_code, answer.json()) == (
        402,
        {
            "error": "quota_exceeded",
            "detail": [
                {
                    "field": "type",
                    "code": "active_sources",
                    "message": "The plan has 1 active source; pause or delete one, or ask for more.",
                    "limit": 1,
                    "used": 1,
                    "resets_at": None,
                }
            ],
        },
    )


# --- GET /sources ----------------------------------------------------------------------------------------------------


def test_sources_are_listed_newest_first_with_the_push_source(alice):
    first = alice.source(name="First")
    second = alice.source(name="Second")
    answer = alice.api.read("/sources")
    assert answer["data"][:2] == [second, first]
    assert [(one["name"], one["inbound_url"]) for one in answer["data"][2:]] == [
        ("Pushed through the API", None)
    ]
    assert (answer["has_more"], answer["next_cursor"]) == (False, None)


def test_sources_are_filtered_by_type_and_status(alice):
    feed = alice.source(type="rss", config={"url": "https://example.test/feed"})
    paused = alice.source()
    alice.api.patch(f"/sources/{paused['id']}", {"status": "paused"})

    def found(query):
        return [one["id"] for one in alice.api.read(f"/sources?{query}")["data"]]

    assert found("type=rss") == [feed["id"]]
    assert found("status=paused") == [paused["id"]]
    assert found("status=active&status=paused") == [paused["id"], feed["id"], alice.push_source]
    assert found("type=rss&status=paused") == []


def test_sources_are_found_by_name_and_address(alice, charlie):
    charlie.source(name="Harbour of somebody else")
    feed = alice.source(name="Old paper", type="rss", config={"url": "https://harbour.example.test/feed"})
    named = alice.source(name="Harbour news")
    alice.source(name="Other")

    def found(query):
        return [one["id"] for one in alice.api.read(f"/sources?{query}")["data"]]

    assert found("q=harbour") == found("q=HARB") == [named["id"], feed["id"]]
    assert found("q=harbour&order=asc") == [feed["id"], named["id"]]
    assert found("q=harbour&type=rss") == [feed["id"]]
    page = alice.api.read("/sources?q=harbour&limit=1")
    assert found(f"q=harbour&limit=1&cursor={page['next_cursor']}") == [feed["id"]]
    assert found("q=zeppelin") == []


def test_sources_refuse_a_wrong_filter(api):
    answer = api.get("/sources?type=rs&status=actve")
    assert (answer.status_code, answer.json()) == (
        400,
        problem(
            "invalid_request",
            ("type", "invalid", "Give one of: brand, rss, scraper, tiktok, webhook, youtube."),
            ("status", "invalid", "Give one of: active, paused, failing, gone."),
        ),
    )


# --- PATCH /sources/:id ----------------------------------------------------------------------------------------------


def test_source_is_changed(alice):
    source = alice.source()
    answer = alice.api.patch(
        f"/sources/{source['id']}", {"name": "Other", "variants": 3, "persona": alice.persona}
    )
    changed = answer.json()
    expected = {**source, "name": "Other", "variants": 3, "persona": alice.persona, "version": 2}
    assert (answer.status_code, {**changed, "updated_at": ""}) == (200, {**expected, "updated_at": ""})
    again = alice.api.get(f"/sources/{source['id']}")
    assert (again.json(), again["ETag"]) == (changed, answer["ETag"])
    assert alice.api.patch(f"/sources/{source['id']}", {"persona": None}).json()["persona"] is None


def test_source_is_paused_and_resumed(alice):
    source = alice.source(type="rss", config={"url": "https://example.test/feed"})
    paused = alice.api.patch(f"/sources/{source['id']}", {"status": "paused"}).json()
    assert (paused["status"], paused["next_poll_at"]) == ("paused", None)
    resumed = alice.api.patch(f"/sources/{source['id']}", {"status": "active"}).json()
    assert (resumed["status"], normal(resumed["next_poll_at"])) == ("active", "<moment>")


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"type": "rss"}, ("type", "unknown_field")),
        ({"status": "failing"}, ("status", "invalid_choice")),
        ({"name": None}, ("name", "null")),
        ({"config": {"url": "x"}}, ("config.url", "unknown_field")),
        ({"poll_interval_minutes": 1}, ("poll_interval_minutes", "below_plan")),
    ],
)
def test_source_refuses_a_wrong_change(alice, change, detail):
    source = alice.source()
    answer = alice.api.patch(f"/sources/{source['id']}", change)
    assert answer.status_code == 400
    assert [(one["field"], one["code"]) for one in answer.json()["detail"]] == [detail]
    assert alice.api.read(f"/sources/{source['id']}") == source


def test_source_changes_only_the_version_that_was_read(alice):
    path = f"/sources/{alice.source()['id']}"
    tag = alice.api.get(path)["ETag"]
    assert alice.api.patch(path, {"name": "Mine"}, headers={"If-Match": tag}).status_code == 200
    late = alice.api.patch(path, {"name": "Late"}, headers={"If-Match": tag})
    message = "It has changed: it is at version 2 now. Read it again."
    assert late["ETag"] == '"v2"'
    assert (late.status_code, late.json()) == (
        412,
        problem("version_conflict", (None, "version_conflict", message)),
    )
    assert alice.api.read(path)["name"] == "Mine"
    assert alice.api.patch(path, {"name": "Any"}, headers={"If-Match": "*"}).status_code == 200


def details(answer):
    assert answer.status_code == 400, answer.json()
    return [(one["field"], one["code"], one["message"]) for one in answer.json()["detail"]]


def test_a_refused_change_says_all_that_is_wrong_and_the_body_that_would_be_taken(alice):
    address, other = "https://example.test/feed", "https://example.test/other"
    source = alice.source(type="rss", config={"url": address, "batch_hours": 6})
    path = f"/sources/{source['id']}"
    nobody = never_existed("per")

    wrong = {"config": {"batch_hours": 12, "lang": "de"}, "poll_interval_minutes": 1, "persona": nobody}
    told = details(alice.api.patch(path, wrong))
    assert [(field, code) for field, code, _ in told] == [
        ("config.lang", "unknown_field"),
        ("config.url", "required"),
        ("persona", "unknown_persona"),
        ("poll_interval_minutes", "below_plan"),
    ]
    assert told[0][2].endswith(f' Send {{"config": {{"url": "{address}", "batch_hours": 12}}}}.')

    told = details(alice.api.patch(path, {"url": other, "variants": 0, "persona": nobody}))
    assert [(field, code) for field, code, _ in told] == [
        ("url", "unknown_field"),
        ("variants", "min_value"),
        ("persona", "unknown_persona"),
    ]
    form = {"config": {"url": other, "batch_hours": 6}}
    assert told[0][2] == f"There is no field url. Put it into config: {json.dumps(form)}."
    assert alice.api.read(path) == source

    assert alice.api.patch(path, form).json()["config"] == form["config"]


def test_change_between_our_look_and_the_lock_is_a_version_conflict(alice, monkeypatch):
    path = f"/sources/{alice.source()['id']}"
    tag = alice.api.get(path)["ETag"]
    change = collect.change

    def overtaken(row, *args, **kwargs):
        Source.everywhere.filter(pk=row.pk).update(version=50)
        return change(row, *args, **kwargs)

    monkeypatch.setattr(collect, "change", overtaken)
    answer = alice.api.patch(path, {"name": "Late"}, headers={"If-Match": tag})
    assert refusal(answer) == (412, "version_conflict", [(None, "version_conflict")])


def test_change_of_nothing_keeps_the_version(alice):
    source = alice.source()
    path = f"/sources/{source['id']}"
    tag = alice.api.get(path)["ETag"]
    answer = alice.api.patch(path, {}, headers={"If-Match": tag})
    assert (answer.status_code, answer.json(), answer["ETag"]) == (200, source, tag)


def test_source_that_was_polled_meanwhile_can_still_be_changed(alice):
    """A poll changes what is shown and the tag, but nothing that a person set."""
    source = alice.source()
    path = f"/sources/{source['id']}"
    tag = alice.api.get(path)["ETag"]
    from django.utils import timezone

    Source.everywhere.filter(pk=ids.decode("src", source["id"])).update(last_polled_at=timezone.now())
    assert alice.api.get(path, headers={"If-None-Match": tag}).status_code == 200
    assert alice.api.patch(path, {"name": "Mine"}, headers={"If-Match": tag}).json()["name"] == "Mine"


# --- DELETE /sources/:id ---------------------------------------------------------------------------------------------


def test_deleted_source_leaves_what_was_made(alice):
    source = alice.source()
    item = alice.ready(source=source["id"])
    answer = alice.api.delete(f"/sources/{source['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    gone = alice.api.get(f"/sources/{source['id']}")
    assert (gone.status_code, gone.json()) == (404, NOT_FOUND)
    assert source["id"] not in [one["id"] for one in alice.api.read("/sources")["data"]]
    assert alice.api.read(f"/generated/{item['id']}")["source"] == source["id"]
    assert alice.api.delete(f"/sources/{source['id']}").json() == NOT_FOUND


def test_push_source_is_not_deleted(alice):
    answer = alice.api.delete(f"/sources/{alice.push_source}")
    message = "The workspace's own push source can't be deleted: POST /v1/raw needs it."
    assert (answer.status_code, answer.json()) == (409, problem("conflict", (None, "push_source", message)))


def test_delete_takes_no_body_and_no_parameters(alice):
    path = f"/sources/{alice.source()['id']}"
    for answer in (alice.api.delete(f"{path}?force=true"), alice.api.call("DELETE", path, {"force": True})):
        assert answer.status_code == 400
        assert [one["field"] for one in answer.json()["detail"]] == ["force"]
    assert alice.api.get(path).status_code == 200


# --- POST /sources/:id/poll ------------------------------------------------------------------------------------------


def test_poll_wakes_the_source(alice):
    source = alice.source(type="rss", config={"url": "https://example.test/feed"})
    answer = alice.api.post(f"/sources/{source['id']}/poll")
    later = {
        "next_poll_at": answer.json()["next_poll_at"],
        "health": {**source["health"], "next_poll_at": answer.json()["next_poll_at"]},
    }
    assert (answer.status_code, answer.json()) == (202, {**source, **later})
    assert answer.json()["next_poll_at"] >= source["next_poll_at"]


def test_poll_of_what_is_not_fetched(alice):
    answer = alice.api.post(f"/sources/{alice.source()['id']}/poll")
    message = "Sources of type webhook are not fetched; push to them with POST /v1/raw."
    assert (answer.status_code, answer.json()) == (409, problem("conflict", ("type", "not_fetched", message)))


def test_poll_of_a_paused_source(alice):
    source = alice.source(type="rss", config={"url": "https://example.test/feed"})
    alice.api.patch(f"/sources/{source['id']}", {"status": "paused"})
    answer = alice.api.post(f"/sources/{source['id']}/poll")
    message = "The source is paused; PATCH its status to active, which polls it at once."
    assert (answer.status_code, answer.json()) == (
        409,
        problem("conflict", ("status", "not_active", message)),
    )


def test_source_that_never_existed(api):
    path = f"/sources/{never_existed('src')}"
    for answer in (api.get(path), api.patch(path, {}), api.delete(path), api.post(f"{path}/poll")):
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert RawItem.everywhere.count() == 0


# --- POST /sources/preview, GET /sources/:id/entries -----------------------------------------------------------------

FEED = """<rss version="2.0"><channel><title>Harbour</title>
<item><guid isPermaLink="false">2</guid><title>Cranes</title><link>https://h.example/2</link>
<description>&lt;p&gt;Two cranes arrive on Monday.&lt;/p&gt;</description></item>
<item><guid isPermaLink="false">1</guid><title>Ferry</title><link>https://h.example/1</link></item>
</channel></rss>"""


@pytest.fixture
def feed(httpserver, loopback):
    httpserver.expect_request("/feed").respond_with_data(FEED, content_type="application/rss+xml")
    return httpserver.url_for("/feed")


def test_preview_tells_each_entry_and_creates_nothing(alice, feed):
    wish = {"type": "rss", "config": {"url": feed}, "first_poll": {"newest": 1}, "engines": ["Short Post"]}
    answer = alice.api.post("/sources/preview", wish)
    shared = {"published_at": None, "decided_by": "external_id"}
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "title": "Harbour",
            "entries": [
                {
                    **shared,
                    "external_id": "2",
                    "url": "https://h.example/2",
                    "title": "Cranes",
                    "excerpt": "Two cranes arrive on Monday.",
                    "decision": "new",
                    "code": "new",
                    "message": "",
                },
                {
                    **shared,
                    "external_id": "1",
                    "url": "https://h.example/1",
                    "title": "Ferry",
                    "excerpt": "",
                    "decision": "before_first_poll",
                    "code": "before_first_poll",
                    "message": "It was there before the first poll, which took the newest 1.",
                },
            ],
            "notes": [],
            "moved_to": None,
            "price_in_credits": 1,
        },
    )
    assert (Source.everywhere.filter(is_push=False).count(), RawItem.everywhere.count()) == (0, 0)


def test_preview_of_what_the_workspace_has_already(alice, feed):
    alice.api.post("/raw", {"url": "https://h.example/2", "title": "Cranes", "body": "Two cranes."})
    answer = alice.api.post("/sources/preview", {"type": "rss", "config": {"url": feed}})
    assert [(one["decision"], one["decided_by"], one["code"]) for one in answer.json()["entries"]] == [
        ("duplicate", "url", "other_source"),
        ("new", "external_id", "new"),
    ]


def test_preview_of_an_address_without_a_feed(alice, feed, httpserver):
    answer = alice.api.post(
        "/sources/preview", {"type": "rss", "config": {"url": httpserver.url_for("/none")}}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    (detail,) = answer.json()["detail"]
    assert set(detail) == {"field", "code", "message"}
    assert detail["field"].startswith("config")


def test_preview_of_a_type_that_is_not_fetched_says_what_comes_of_it(alice):
    answer = alice.api.post("/sources/preview", {"type": "webhook"})
    assert (answer.status_code, answer.json()["entries"], answer.json()["price_in_credits"]) == (200, [], 0)
    (note,) = answer.json()["notes"]
    assert (note["code"], "sent to the source's own address" in note["message"]) == ("not_fetched", True)
    lane = alice.api.post("/sources/preview", {"type": "brand", "config": {"topics": [TOPIC]}})
    assert (lane.status_code, lane.json()["entries"], lane.json()["price_in_credits"]) == (200, [], 1)
    assert lane.json()["notes"][0]["message"].startswith(
        "Nothing is fetched: the lane makes Short Post of one of its topics, next at 20"
    )
    assert not Source.everywhere.filter(type="brand").exists()


def test_entries_are_the_log_of_one_source(alice, feed):
    wish = {"type": "rss", "config": {"url": feed}, "first_poll": {"newest": 1}, "engines": ["Short Post"]}
    source = alice.api.post("/sources", wish).json()
    task_runner.work_all_due("ingest.poll_source")
    path = f"/sources/{source['id']}/entries"
    found = alice.api.get(path).json()
    assert [(one["external_id"], one["decision"], one["decided_by"]) for one in found["data"]] == [
        ("2", "new", "external_id"),
        ("1", "before_first_poll", "external_id"),
    ]
    raw = RawItem.everywhere.get(external_id="2")
    assert normal(found["data"][0]) == {
        "id": "ent_*",
        "source": "src_*",
        "external_id": "2",
        "url": "https://h.example/2",
        "title": "Cranes",
        "published_at": None,
        "decision": "new",
        "decided_by": "external_id",
        "code": "new",
        "message": "",
        "raw_item": "raw_*",
        "first_seen_at": "<moment>",
        "decided_at": "<moment>",
    }
    assert found["data"][0]["raw_item"] == ids.encode("raw", raw.pk)
    only = alice.api.get(f"{path}?decision=before_first_poll&decision=filtered").json()
    assert [one["external_id"] for one in only["data"]] == ["1"]
    first = alice.api.get(f"{path}?limit=1").json()
    rest = alice.api.get(f"{path}?limit=1&cursor={first['next_cursor']}").json()
    assert [one["external_id"] for page in (first, rest) for one in page["data"]] == ["2", "1"]
    assert alice.api.get(f"{path}?decision=nonsense").status_code == 400


def test_entries_of_another_source_stay_its_own(alice, feed):
    wish = {"type": "rss", "config": {"url": feed}}
    alice.api.post("/sources", wish)
    task_runner.work_all_due("ingest.poll_source")
    other = alice.source()
    assert SourceEntry.everywhere.count() == 2
    assert alice.api.get(f"/sources/{other['id']}/entries").json()["data"] == []


def test_health_says_how_a_source_does(alice, feed, httpserver):
    good = alice.api.post("/sources", {"type": "rss", "config": {"url": feed}}).json()
    task_runner.work_all_due("ingest.poll_source")
    health = alice.api.get(f"/sources/{good['id']}").json()["health"]
    assert normal(health) == {
        "last_success_at": "<moment>",
        "last_new_at": "<moment>",
        "next_poll_at": "<moment>",
        "interval_minutes": 60,
        "consecutive_failures": 0,
        "failing_since": None,
        "error": None,
        "notes": [],
    }
    httpserver.expect_request("/broken").respond_with_data("no", status=500)
    bad = alice.api.post("/sources", {"type": "rss", "config": {"url": httpserver.url_for("/broken")}}).json()
    HostSlot.everywhere.all().delete()
    task_runner.work_all_due("ingest.poll_source")
    health = alice.api.get(f"/sources/{bad['id']}").json()["health"]
    assert (health["consecutive_failures"], health["error"]["code"]) == (1, "server_error")
    assert (health["last_success_at"], normal(health["failing_since"])) == (None, "<moment>")


# --- Brand lanes -----------------------------------------------------------------------------------------------------


def test_slots_are_the_log_of_a_lane(alice):
    topic = alice.api.post("/topics", {**TOPIC, "title": "Rye", "angles": ["a myth"]}).json()["id"]
    source = alice.api.post("/sources", {"type": "brand", "engines": ["Short Post"]}).json()["id"]
    (slot,) = alice.api.get(f"/sources/{source}/slots").json()["data"]
    assert (slot["status"], slot["picks"], slot["ended_at"]) == ("waiting", [], None)
    alice.api.post(f"/sources/{source}/poll")
    task_runner.work_all_due("ingest.fill_brand_slot")
    waiting, picked = alice.api.get(f"/sources/{source}/slots").json()["data"]
    assert (waiting["status"], picked["status"], picked["eligible"], picked["id"]) == (
        "waiting", "picked", 1, slot["id"],
    )  # fmt: skip
    assert picked["note"]["code"] == "few_topics"
    assert picked["picks"] == [
        {
            "topic": topic,
            "title": "Rye",
            "angle": "a myth",
            "decision": "taken",
            "reason": None,
            "discarded": None,
            "generated_item": None,
            "decided_at": None,
        }
    ]
    assert alice.api.get(f"/sources/{source}/entries").json()["data"] == []
    oldest = alice.api.get(f"/sources/{source}/slots?limit=1&order=asc").json()
    assert ([one["id"] for one in oldest["data"]], oldest["has_more"]) == ([slot["id"]], True)


def test_slots_of_another_source_stay_its_own(alice, charlie):
    alice.api.post("/topics", TOPIC)
    mine = alice.api.post("/sources", {"type": "brand"}).json()["id"]
    other = alice.api.post("/sources", {"type": "webhook"}).json()["id"]
    assert len(alice.api.get(f"/sources/{mine}/slots").json()["data"]) == 1
    assert alice.api.get(f"/sources/{other}/slots").json()["data"] == []
    assert charlie.api.get(f"/sources/{mine}/slots").status_code == 404


def test_pool_of_a_lane_names_topics_of_the_workspace(alice, charlie):
    def made(person):
        return person.api.post("/topics", TOPIC).json()["id"]

    mine, theirs = made(alice), made(charlie)
    body = {"type": "brand", "config": {"pool": [mine]}}
    source = alice.api.post("/sources", body)
    assert (source.status_code, source.json()["config"]["pool"]) == (201, [mine])
    refused = alice.api.post("/sources", {"type": "brand", "config": {"pool": [mine, theirs]}})
    assert refused.status_code == 400
    assert [(one["field"], one["code"]) for one in refused.json()["detail"]] == [
        ("config.pool[1]", "unknown_topic")
    ]
    changed = alice.api.patch(f"/sources/{source.json()['id']}", {"config": {"pool": [theirs]}})
    assert (changed.status_code, changed.json()["detail"][0]["field"]) == (400, "config.pool[0]")


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (
            {"type": "rss", "url": "https://example.test/feed", "name": "Feed"},
            {"type": "rss", "name": "Feed", "config": {"url": "https://example.test/feed"}},
        ),
        (
            {"type": "RSS", "url": "https://example.test/feed"},
            {"type": "rss", "config": {"url": "https://example.test/feed"}},
        ),
        (
            {"kind": "rss", "url": "https://example.test/feed"},
            {"type": "rss", "config": {"url": "https://example.test/feed"}},
        ),
        (
            {"type": "rss", "config": {"url": "https://example.test/feed", "interval": 60}},
            {"type": "rss", "poll_interval_minutes": 60, "config": {"url": "https://example.test/feed"}},
        ),
        (
            {"type": "youtube", "url": "UC_x5XG1OV2P6uZZ5FSM9Ttw"},
            {"type": "youtube", "config": {"channel": "UC_x5XG1OV2P6uZZ5FSM9Ttw"}},
        ),
        (
            {"type": "youtube", "username": "GoogleDevelopers"},
            {"type": "youtube", "config": {"handle": "GoogleDevelopers"}},
        ),
    ],
)
def test_the_form_that_is_told_keeps_all_that_was_given_and_is_taken(alice, body, form):
    refused = alice.api.post("/sources", body)
    assert refused.status_code == 400
    messages = " ".join(one["message"] for one in refused.json()["detail"])
    assert json.dumps(form) in messages
    assert alice.api.post("/sources", form).status_code == 201


def test_topics_beside_config_are_not_told_a_form_that_would_be_refused(alice):
    """Without a model a lane says only what people wrote; its own list of bare topics is nothing to say."""
    alice.api.post(
        "/topics", {"title": "Storm stories", "notes": "The storm of 2019 took the roof off the bandstand."}
    )
    unknown, unavailable = details(alice.api.post("/sources", {"type": "brand", "topics": ["Bread baking"]}))
    assert unknown[:2] == ("topics", "unknown_field")
    assert "Put it into config, with what is said below of config: {" in unknown[2]
    assert unavailable[:2] == ("config.topics", "source_unavailable")
    assert "leave `topics` out" in unavailable[2]
    assert alice.api.post("/sources", {"type": "brand"}).status_code == 201


def test_the_fields_that_stand_beside_config_are_those_of_the_body():
    assert set(SourceInput().fields) - {"type", "config"} == FIELDS_OUTSIDE_CONFIG
