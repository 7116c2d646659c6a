"""What one request can cost: an answer is never larger than its question, nor dearer than what it may hold."""

from __future__ import annotations

from django.test import Client

from config.ground import limits
from config.ground.errors import DETAILS_TOLD, Detail, body


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
    told = body("invalid_request", [Detail(None, "invalid", "No.")] * (DETAILS_TOLD + 1))

    assert len(told["detail"]) == DETAILS_TOLD


def test_a_nul_in_a_media_address_is_not_there(db):
    answer = Client().get(f"/media/{'x' * 22}/%00")

    assert answer.status_code == 404
