"""Strict input: what isn't known, or isn't what it should be, is refused and named."""

from __future__ import annotations

import io

import pytest

from pipeline.models import RawItem
from tests.contracts.conftest import problem, refusal
from tests.contracts.routes import ROUTES, name_of


def _nested(levels):
    """A raw item whose metadata makes the whole body that many levels deep."""
    inner = b"1"
    for _ in range(levels - 1):
        inner = b'{"a": ' + inner + b"}"
    return b'{"title": "A title of several words", "metadata": ' + inner + b"}"


def _push(api, data, **more):
    return api.call("POST", "/raw", data=data, **more)


@pytest.mark.parametrize(
    ("data", "error", "detail"),
    [
        (b"{", "malformed_json", (None, "malformed_json")),
        (b"not json", "malformed_json", (None, "malformed_json")),
        (b"   ", "malformed_json", (None, "malformed_json")),
        (b'{"title": "x",}', "malformed_json", (None, "malformed_json")),
        (b"{'title': 'x'}", "malformed_json", (None, "malformed_json")),
        (b'{"title": "x"} {}', "malformed_json", (None, "malformed_json")),
        (b'{"title": "\xff"}', "malformed_json", (None, "malformed_json")),
        (b'{"title": "\xed\xa0\x80"}', "malformed_json", (None, "malformed_json")),
        ('{"title": "x"}'.encode("utf-16"), "malformed_json", (None, "malformed_json")),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"title": "x"}', "malformed_json", (None, "malformed_json")),
        (b'{"title": "x", "title": "y"}', "malformed_json", (None, "malformed_json")),
        (b'{"metadata": {"a": {"b": 1, "c": 2, "b": 1}}}', "malformed_json", (None, "malformed_json")),
        (b'{"title": "a\nb"}', "malformed_json", (None, "malformed_json")),
        (b'{"metadata": {"a": NaN}}', "malformed_json", (None, "malformed_json")),
        (b'{"metadata": {"a": -Infinity}}', "malformed_json", (None, "malformed_json")),
        (b'{"metadata": {"a": 1e999}}', "invalid_request", (None, "number_too_large")),
        (b'{"metadata": {"a": -1e999}}', "invalid_request", (None, "number_too_large")),
        (b'{"metadata": {"a": ' + b"9" * 5000 + b"}}", "invalid_request", (None, "number_too_large")),
        (b'{"title": "a\\u0000b"}', "invalid_request", ("title", "nul_character")),
        (b'{"metadata": {"a\\u0000": 1}}', "invalid_request", ("metadata", "nul_character")),
        (b'{"title": "\\ud83d"}', "invalid_request", ("title", "lone_surrogate")),
        (b'{"title": "\\uDE00\\uD83D"}', "invalid_request", ("title", "lone_surrogate")),
        (
            b'{"metadata": {"a": ["x", {"b": "\\udfff"}]}}',
            "invalid_request",
            ("metadata.a[1].b", "lone_surrogate"),
        ),
        (b'{"items": [{"title": "\\u0000"}]}', "invalid_request", ("items[0].title", "nul_character")),
        (b"[" * 100_000, "invalid_request", (None, "too_deep")),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "invalid_request", (None, "too_deep")),
        (b"[]", "invalid_request", (None, "not_an_object")),
        (b'[{"title": "x"}]', "invalid_request", (None, "not_an_object")),
        (b'"title"', "invalid_request", (None, "not_an_object")),
        (b"5", "invalid_request", (None, "not_an_object")),
        (b"null", "invalid_request", (None, "not_an_object")),
        (b"true", "invalid_request", (None, "not_an_object")),
        (b"{}", "invalid_request", (None, "empty")),
        (b"", "invalid_request", (None, "empty")),
    ],
)
def test_body_that_can_not_be_used(api, data, error, detail):
    assert refusal(_push(api, data)) == (400, error, [detail])
    assert RawItem.everywhere.count() == 0


def test_depth_of_32_is_taken_and_33_is_not(api):
    # The body itself is one level, each object in it one more.
    assert _push(api, _nested(32)).status_code == 202
    answer = _push(api, _nested(33))
    message = "JSON may be nested 32 levels deep at most."
    assert (answer.status_code, answer.json()) == (
        400,
        problem("invalid_request", (None, "too_deep", message)),
    )


def test_brackets_in_text_are_no_depth(api):
    assert api.post("/raw", {"title": "A title of several words", "body": "[{" * 500}).status_code == 202


def test_whole_surrogate_pairs_and_other_scripts_are_text(api):
    answer = _push(api, '{"title": "\\ud83d\\ude00 \\u00e9 naïve 東京"}'.encode())
    assert (answer.status_code, answer.json()["title"]) == (202, "😀 é naïve 東京")


@pytest.mark.parametrize("number", [b"1e308", b"-0.0", b"12345678901234567890123", b"0.1", b"1E-400"])
def test_numbers_that_json_can_hold_are_kept(api, number):
    answer = _push(api, b'{"title": "A title of several words", "metadata": {"a": ' + number + b"}}")
    assert (answer.status_code, answer.json()["metadata"]) == (
        202,
        {"a": float(number) if b"." in number or b"e" in number.lower() else int(number)},
    )
    kept = api.read(f"/raw/{answer.json()['id']}")["metadata"]["a"]
    # PostgreSQL keeps decimals: it writes 1e308 as a one and 308 noughts.
    assert float(kept) == float(answer.json()["metadata"]["a"])


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "",
        "application/jsonp",
        "application/json-patch+json",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/raw"),
        ("POST", "/sources"),
        ("POST", "/estimate"),
        ("PATCH", "/sources/{id}"),
        ("DELETE", "/sources/{id}"),
        ("POST", "/sources/{id}/poll"),
    ],
)
def test_body_in_another_form(alice, kind, method, path):
    answer = alice.api.call(method, path.format(id=alice.push_source), data=b'{"title": "x"}', kind=kind)
    assert (answer.status_code, answer.json()) == (
        415,
        problem(
            "unsupported_media_type", (None, "unsupported_media_type", "Send the body as application/json.")
        ),
    )


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"],
)
def test_ways_to_write_the_media_type(alice, kind):
    from config.core.api.jsonio import dump

    assert _push(alice.api, dump(alice.content()), kind=kind).status_code == 202


def test_media_type_of_nothing_does_not_matter(alice):
    answer = alice.api.call("POST", f"/generated/{alice.ready()['id']}/approve", data=b"", kind="text/plain")
    assert answer.status_code == 200


def test_body_in_chunks_is_read_or_refused(alice):
    """Taken for empty, it would publish at once what was meant as a dry run."""
    item = alice.ready()
    path = f"/generated/{item['id']}/publish"
    body = b'{"dry_run": true}'

    def ask(data, **more):
        return alice.api.call(
            "POST", path, data=b"", headers={"Transfer-Encoding": "chunked"}, CONTENT_LENGTH="",
            CONTENT_TYPE="application/json", **{"wsgi.input": io.BytesIO(data), **more},
        )  # fmt: skip

    refused = ask(body)
    assert refusal(refused) == (400, "invalid_request", [(None, "length_required")])
    read = ask(body, **{"wsgi.input_terminated": True})
    assert (read.status_code, read.json()["dry_run"]) == (200, True)
    large = ask(b" " * (1024 * 1024 + 1), **{"wsgi.input_terminated": True})
    assert refusal(large)[:2] == (413, "payload_too_large")
    assert alice.api.read(f"/generated/{item['id']}")["status"] == "ready"


@pytest.mark.usefixtures("no_rate")
def test_every_route_refuses_unknown_parameters(alice):
    item = alice.published()
    keys = {
        "src": alice.push_source,
        "raw": item["raw_item"],
        "gen": item["id"],
        "pub": item["publications"][0]["id"],
        "out": alice.feed,
        "per": alice.persona,
        "que": alice.api.read("/queues")["data"][0]["id"],
        "top": alice.api.post("/topics", {"title": "Rye"}).json()["id"],
        "pln": alice.planned()["id"],
        "ser": alice.series()["id"],
        "rec": alice.recurrence()["id"],
    }
    alice.delivery(alice.push_source)
    before = [alice.api.read(f"/{path}")["data"] for path in ("sources", "raw", "generated", "publications")]
    for route in ROUTES:
        path = route.path.format(id=keys.get(route.prefix))
        answer = alice.api.call(route.method, f"{path}?zzz=1")
        status, error, details = refusal(answer)
        assert (status, error, details) == (400, "invalid_request", [("zzz", "unknown_parameter")]), name_of(
            route
        )
    assert [
        alice.api.read(f"/{path}")["data"] for path in ("sources", "raw", "generated", "publications")
    ] == before


@pytest.mark.usefixtures("no_rate")
def test_every_route_with_a_body_refuses_unknown_fields(alice):
    item = alice.published()
    keys = {
        "src": alice.push_source,
        "raw": item["raw_item"],
        "gen": item["id"],
        "pub": item["publications"][0]["id"],
        "top": alice.api.post("/topics", {"title": "Winter in the harbour"}).json()["id"],
        "per": alice.persona,
        "pln": alice.planned()["id"],
        "ser": alice.series()["id"],
        "rec": alice.recurrence()["id"],
    }
    alice.delivery(alice.push_source)
    for route in ROUTES:
        if route.method not in {"POST", "PATCH", "DELETE"} or route.name == "uploads":
            # An upload is a form, not JSON: tests/contracts/test_uploads.py.
            continue
        answer = alice.api.call(
            route.method, route.path.format(id=keys.get(route.prefix)), {"zzz": 1, "0": 1}
        )
        status, error, details = refusal(answer)
        assert (status, error) == (400, "invalid_request"), name_of(route)
        assert {("zzz", "unknown_field"), ("0", "unknown_field")} <= set(details), name_of(route)


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("limit=1&limit=2", ("limit", "repeated")),
        ("external_id=a&external_id=b", ("external_id", "repeated")),
        ("source=raw_01jd4t5v7yf8zr3m6n2q9k0hcx", ("source", "invalid")),
        ("external_id=%00", ("external_id", "nul_character")),
        ("external_id=" + "x" * 513, ("external_id", "invalid")),
        ("limit=", ("limit", "invalid")),
        ("limit=%2B5", ("limit", "invalid")),
        ("limit=5_0", ("limit", "invalid")),
        ("limit= 5", ("limit", "invalid")),
        ("created_after=", ("created_after", "invalid")),
        ("created_after=2026-11-20T09:30:00", ("created_after", "invalid")),
        ("created_after=2026-11-20 09:30 02:00", ("created_after", "invalid")),
        ("created_after=1763629800", ("created_after", "invalid")),
        ("Limit=5", ("Limit", "unknown_parameter")),
        ("limt", ("limt", "unknown_parameter")),
        ("limit[]=5", ("limit[]", "unknown_parameter")),
        ("%00=5", ("\x00", "unknown_parameter")),
    ],
)
def test_query_that_can_not_be_used(api, query, detail):
    assert refusal(api.get("/raw", QUERY_STRING=query)) == (400, "invalid_request", [detail])


@pytest.mark.parametrize("count", [1001, 5000])
def test_thousands_of_parameters(api, count):
    answer = api.get("/raw", QUERY_STRING="&".join(f"a{number}=1" for number in range(count)))
    assert refusal(answer)[:2] == (400, "invalid_request")


def test_every_problem_is_named_at_once(alice):
    answer = alice.api.post(
        "/raw", {"titel": "x", "variants": True, "media": [{"url": "x"}, {}], "persona": "gen_x"}
    )
    assert refusal(answer) == (
        400,
        "invalid_request",
        [
            ("titel", "unknown_field"),
            ("media[0].url", "invalid_address"),
            ("media[1]", "one_of"),
            ("variants", "invalid"),
            ("persona", "invalid_id"),
        ],
    )


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("variants", True, "invalid"),
        ("variants", "2", "invalid"),
        ("variants", 2.5, "invalid"),
        ("variants", 10**30, "max_value"),
        ("variants", -(10**30), "min_value"),
        ("variants", None, "null"),
        ("variants", [], "invalid"),
        ("title", True, "invalid"),
        ("title", 1.5, "invalid"),
        ("title", None, "null"),
        ("title", ["x"], "invalid"),
        ("body", {"text": "x"}, "invalid"),
        ("metadata", "x", "not_an_object"),
        ("media", {"url": "https://example.test"}, "not_a_list"),
        ("media", [{"url": "https://example.test"}] * 21, "max_length"),
        ("engines", "Short Post", "not_a_list"),
        ("engines", ["Short Post"] * 21, "max_length"),
        ("external_id", "", "blank"),
        ("external_id", "x" * 513, "max_length"),
        ("url", "https://example.test/" + "x" * 2048, "max_length"),
        ("url", "//example.test/x", "invalid_address"),
        ("url", "https://", "invalid_address"),
        ("url", "http://[::1", "invalid_address"),
        ("language", 5, "invalid"),
        ("published_at", 5, "invalid"),
        ("published_at", "2026-13-01T00:00:00Z", "no_such_moment"),
        ("published_at", "2026-11-20T09:30:00", "invalid"),
        ("published_at", "0001-01-01T00:00:00+23:59", "invalid"),
        ("published_at", "٢٠٢٦-11-20T09:30:00Z", "invalid"),
        ("source", "raw_01jd4t5v7yf8zr3m6n2q9k0hcx", "invalid_id"),
        ("source", "src_01JD4T5V7YF8ZR3M6N2Q9K0HCX", "invalid_id"),
        ("source", "src_91jd4t5v7yf8zr3m6n2q9k0hcx", "invalid_id"),
        ("source", "src_01jd4t5v7yf8zr3m6n2q9k0hcl", "invalid_id"),
        ("source", "01jd4t5v-7yf8-zr3m", "invalid_id"),
        ("source", 5, "invalid_id"),
        ("source", None, "null"),
        ("source", "", "blank"),
    ],
)
def test_value_of_the_wrong_kind(alice, field, value, code):
    status, error, details = refusal(alice.api.post("/raw", {**alice.content(), field: value}))
    assert (status, error, [(name.partition("[")[0], one) for name, one in details]) == (
        400,
        "invalid_request",
        [(field, code)],
    )
    assert RawItem.everywhere.count() == 0


@pytest.mark.parametrize(
    "key",
    [
        "x",
        "gen_",
        "gen_01jd4t5v7yf8zr3m6n2q9k0hcx0",
        "raw_01jd4t5v7yf8zr3m6n2q9k0hcx",
        "GEN_01jd4t5v7yf8zr3m6n2q9k0hcx",
        "gen_01JD4T5V7YF8ZR3M6N2Q9K0HCX",
        "gen_z1jd4t5v7yf8zr3m6n2q9k0hcx",
        "%00",
        "%FF%FE",
        "gen_%D9%A11jd4t5v7yf8zr3m6n2q9k0hc",
        "x" * 2000,
        "..",
        "%2e%2e",
        "%0A",
    ],
)
def test_path_that_holds_no_id(api, key):
    answer = api.get(f"/generated/{key}")
    assert refusal(answer) == (404, "not_found", [(None, "not_found")])


def test_id_in_capitals_is_another_text(alice):
    """Ids are compared as exact text, so that one object has one address."""
    item = alice.ready()
    assert alice.api.get(f"/generated/{item['id'].upper()}").status_code == 404


def test_a_setting_of_a_source_that_stands_beside_config_is_told_where_it_belongs(api):
    answer = api.call("POST", "/sources", data=b'{"type": "rss", "url": "https://example.com/feed"}')
    assert answer.json()["detail"][0]["message"] == (
        'There is no field url. Put it into config: {"type": "rss", "config": {"url": "https://example.com/feed"}}.'
    )


@pytest.mark.parametrize(
    ("path", "query", "meant"),
    [
        ("/analytics", "granularity=day", "Did you mean interval=day?"),
        ("/analytics", "date_bucket=week", "Did you mean interval=week?"),
        ("/analytics", "bucket=day", "Did you mean interval=day?"),
        ("/analytics", "bucket=video", "Did you mean content_type=video?"),
        ("/analytics", "group=day", "Did you mean interval=day?"),
        ("/analytics", "group=outlet", "Did you mean group_by?"),
        (
            "/analytics",
            "period=30d",
            "Give from and to, as dates; to is the first day that is no longer in the range.",
        ),
        ("/analytics", "timezone=Europe/Berlin", "Did you mean tz?"),
        ("/analytics", "limit=10", "This answer has no pages"),
        ("/generated", "date=2026-11-20", "For one day give from with that day and to with the next one."),
        ("/generated", "sort=-created_at", "order=desc (the default) or order=asc"),
        ("/generated", "published_from=2026-11-20", "Did you mean publish_after?"),
        ("/generated", "source=rss", "GET /v1/sources lists them"),
        ("/analytics", "since=2026-11-02", "Did you mean from?"),
        ("/analytics", "until=2026-11-02", "Did you mean to?"),
        ("/analytics", "start=2026-11-02", "Did you mean from?"),
        ("/analytics", "after=2026-11-02", "Did you mean from?"),
        ("/analytics", "page=2", "This answer has no pages: it holds everything that is asked for."),
        ("/generated", "page=2", "give cursor, with the next_cursor of the previous page."),
        ("/generated", "per_page=50", "Did you mean limit?"),
        ("/generated", "before=2026-11-02", "Did you mean to?"),
        ("/generated", "type=video", "Did you mean bucket=video?"),
        ("/generated", "content_type=image", "Did you mean bucket=image?"),
        ("/generated", "state=ready", "Did you mean status=ready?"),
        ("/raw", "from=2026-11-02", "Did you mean created_after?"),
        ("/raw", "before=2026-11-02", "Did you mean created_before?"),
        ("/sources", "kind=rss", "Did you mean type=rss?"),
        ("/analytics", "group_by=week", "Group by date, and give interval=week."),
        ("/analytics", "from=2026-11-02&to=2026-11-02", "for one day give the next one"),
        ("/generated", "from=2026-11-02&to=2026-11-02", "for one day give the next one"),
    ],
)
def test_what_integrators_try_first_is_told_what_to_do(api, path, query, meant):
    answer = api.call("GET", f"{path}?{query}")
    assert (answer.status_code, meant in answer.json()["detail"][0]["message"]) == (400, True)
