"""What the property-based run found, each as one request: fast, and named for what it showed."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts import workspaces
from accounts.access import tokens
from config.core.api.jsonio import dump

STORY = {"title": "The harbour gets a crane", "body": "The harbour of Norden bought a crane on Monday."}


@pytest.fixture
def call(db):
    workspace = workspaces.create("Alice's newsroom", timezone="Europe/Berlin")
    workspaces.whitelist(workspace, "operator")
    secret = tokens.issue(workspace, name="Findings").secret
    client = Client(headers={"Authorization": f"Bearer {secret}"})

    def ask(method, path, body=None):
        answer = client.generic(method, f"/v1{path}", b"" if body is None else dump(body), "application/json")
        shown = answer.json()
        return answer.status_code, [(one["field"], one["code"]) for one in shown.get("detail", ())] or shown

    return ask


@pytest.mark.parametrize("language", ["en\n", " en", "en ", "e", "de_DE"])
def test_push_takes_no_language_with_anything_around_it(call, language):
    assert call("POST", "/raw", {**STORY, "language": language}) == (400, [("language", "pattern")])


def test_publish_takes_no_wall_clock_time_with_a_line_break(call):
    call("POST", "/raw", STORY)
    from config.core import task_runner

    task_runner.work_all_due("generate.run_item")
    item = call("GET", "/generated")[1]["data"][0]["id"]
    for written in ("2027-03-01T08:00\n", " 2027-03-01T08:00", "٢٠٢٧-03-01T08:00", "2027-13-01T08:00"):
        body = {"local_time": written}
        assert call("POST", f"/generated/{item}/publish", body) == (400, [("local_time", "pattern")])


@pytest.mark.parametrize(
    "url",
    [
        "http://harbour.example:99999/",
        "http://harbour.example:0/",
        "http://harbour.example:port/",
        "http://[::1::2]/",
        "http://[12345::]/",
        "http://harbour example/",
        "http://harbour.example/a b",
        "http:///crane",
        "http://[fe80::1%eth0]/",
        "http://harbour.example/\n",
        "http://a\u2100/",
    ],
)
def test_push_takes_no_address_that_leads_nowhere(call, url):
    assert call("POST", "/raw", {"title": "The crane", "url": url}) == (400, [("url", "invalid_address")])


@pytest.mark.parametrize(
    "url",
    [
        "HTTPS://harbour.example:65535/crane?size=7#top",
        "http://[2001:db8::7]:8080/",
        "http://[::]/",
        "http://[1:2:3:4:5:6:7:8]",
        "http://häfen.example/kräne",
        "https://harbour.example?crane=[7]",
    ],
)
def test_push_takes_every_address_that_may_lead_somewhere(call, url):
    status, shown = call("POST", "/raw", {"title": "The crane", "url": url})
    assert (status, shown["url"]) == (202, url)


def test_batch_refuses_a_null_item_in_its_own_entry(call):
    status, shown = call("POST", "/raw", {"items": [STORY, None, 7]})
    assert (status, [entry["status"] for entry in shown["data"]]) == (207, [202, 400, 400])


def test_whole_numbers_may_be_written_with_a_point(call):
    body = {"type": "webhook", "variants": 2.0, "first_poll": {"newest": 3.0}}
    status, shown = call("POST", "/sources", body)
    assert (status, shown["variants"], shown["first_poll"]) == (201, 2, {"newest": 3})
    for wrong in (2.5, True, "2"):
        assert call("POST", "/sources", {"type": "webhook", "variants": wrong}) == (
            400,
            [("variants", "invalid")],
        )
        wish = {"type": "webhook", "first_poll": {"newest": wrong}}
        assert call("POST", "/sources", wish) == (400, [("first_poll", "invalid")])


def test_nul_in_a_parameter_is_named_as_in_a_body(call):
    assert call("GET", "/generated?engine_output=a%00b") == (400, [("engine_output", "nul_character")])
    assert call("GET", "/events?after=%00") == (400, [("after", "nul_character")])
