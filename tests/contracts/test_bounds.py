"""What one request can cost: an answer is never larger than its question, nor dearer than what it may hold."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest
from django.test import Client

from config.core import limits
from config.core.errors import MAX_DETAILS, Detail, error_body
from pipeline.models import Upload


def test_a_flood_of_unknown_fields_is_told_of_in_part(api):
    answer = api.post("/estimate", {"title": "A title", **{f"strange{number}": 1 for number in range(5000)}})

    assert answer.status_code == 400
    assert [one["code"] for one in answer.json()["detail"]] == ["unknown_field"] * limits.UNKNOWN_NAMES_TOLD


def test_a_list_that_is_too_long_is_counted_before_it_is_looked_at(api):
    answer = api.post("/estimate", {"title": "A title", "engines": [1] * 5000})

    assert answer.status_code == 400
    assert [(one["field"], one["code"]) for one in answer.json()["detail"]] == [("engines", "max_length")]


def test_media_are_counted_before_they_are_looked_at(api):
    answer = api.post("/raw", {"title": "A title", "media": [{"strange": 1}] * 5000})

    assert answer.status_code == 400
    assert [(one["field"], one["code"]) for one in answer.json()["detail"]] == [("media", "max_length")]


def test_an_error_tells_a_bounded_number_of_details():
    told = error_body("invalid_request", [Detail(None, "invalid", "No.")] * (MAX_DETAILS + 1))

    assert len(told["detail"]) == MAX_DETAILS


def test_a_nul_in_a_media_address_is_not_there(db):
    answer = Client().get(f"/media/{'x' * 22}/%00")

    assert answer.status_code == 404


# --- Bodies that cost more than they weigh ---------------------------------------------------------------------------


def peak_of(call):
    """Its answer, and the megabytes that it held at most."""
    tracemalloc.start()
    try:
        answer = call()
        return answer, tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


# Copied for each value the small one, too, would be 400 MB.
@pytest.mark.parametrize(
    ("letters", "values"), [(40_000, 10_000), pytest.param(400_000, 100_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "strange", [rb'"e":"\ud83d\ude00"', b'"e":[' + b"[]," * 40 + b"0]"], ids=["escape", "brackets"]
)
def test_a_long_name_above_many_values_is_not_copied_for_each(api, alice, strange, letters, values):
    """Less than a megabyte, which became a hundred gigabytes: the way to each value was spelled out."""
    body = b'{"' + b"k" * letters + b'":[' + b'"",' * values + b"0]," + strange + b"}"
    door = alice.source()["inbound_url"].removeprefix("http://127.0.0.1:8000")
    for call in (
        lambda: api.call("POST", "/raw", data=body),
        lambda: api.call("POST", "/sources", data=body),
        lambda: Client().post(door, body, content_type="application/json"),
    ):
        answer, megabytes = peak_of(call)
        assert answer.status_code == 400, answer.content[:200]
        assert megabytes < 100
        assert len(answer.content) < 5000


@pytest.mark.parametrize(
    ("coding", "status", "error"),
    [
        ("gzip", 413, "payload_too_large"),
        ("deflate", 415, "unsupported_media_type"),
        ("br", 415, "unsupported_media_type"),
        ("zstd", 415, "unsupported_media_type"),
    ],
)
def test_a_body_that_is_packed_is_unpacked_up_to_the_bound(api, alice, coding, status, error):
    """Ten million letters in 10 kB: of gzip no more is unpacked than a body may have, and of others nothing."""
    body = gzip.compress(b'{"title":"' + b"a" * 10_000_000 + b'"}')
    headers = {"Content-Encoding": coding}
    answer, megabytes = peak_of(lambda: api.call("POST", "/raw", data=body, headers=headers))
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert megabytes < 2.5 * limits.RAW_BODY_BYTES / 1_000_000
    # A sender's own address takes bytes as they are, because they are signed.
    door = alice.source()["inbound_url"].removeprefix("http://127.0.0.1:8000")
    answer, megabytes = peak_of(
        lambda: Client().post(door, body, content_type="application/json", headers=headers)
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "malformed_json")
    assert megabytes < 5


def test_a_million_streams_in_a_body_take_no_time(api):
    body = gzip.compress(b"") * 200_000
    answer = api.call("POST", "/raw", data=body, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["error"]) == (400, "malformed_json")


def test_ten_megabytes_of_one_string_are_refused_unread(api, alice):
    body = b'{"title":"' + b"a" * 10_000_000 + b'"}'
    door = alice.source()["inbound_url"].removeprefix("http://127.0.0.1:8000")
    assert api.call("POST", "/raw", data=body).status_code == 413
    assert Client().post(door, body, content_type="application/json").status_code == 413


def test_two_equal_names_in_an_object_are_refused(api):
    """A proxy may check the first one while we store the last."""
    body = b'{"title":"First","title":"Last","body":"The harbour bought cranes.","language":"en"}'
    answer = api.call("POST", "/raw", data=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "malformed_json")
    assert "The key title stands twice" in answer.json()["detail"][0]["message"]


def parts(count, name=b"f%d", file=b""):
    one = b'--x\r\nContent-Disposition: form-data; name="' + name + b'"' + file + b"\r\n\r\nv\r\n"
    return b"".join(one % number for number in range(count)) + b"--x--\r\n"


@pytest.mark.parametrize("file", [b"", b'; filename="a.txt"'], ids=["fields", "files"])
@pytest.mark.parametrize("name", [b"f%d", b"%.0dfile"], ids=["names", "one name"])
def test_a_form_of_ten_thousand_parts_is_refused(api, alice, file, name):
    body, kind = parts(10_000, name, file), "multipart/form-data; boundary=x"
    door = alice.source()["inbound_url"].removeprefix("http://127.0.0.1:8000")
    answer, megabytes = peak_of(lambda: api.call("POST", "/uploads", data=body, kind=kind))
    assert answer.status_code == 400
    assert megabytes < 60
    assert Client().post(door, body, content_type=kind).status_code == 400
    assert Client().post("/account/login/", body, content_type=kind).status_code in {400, 403}
    assert Upload.everywhere.count() == 0
