"""What a log line never holds."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from config.ground.logs import redacted

GOOGLE = "AIza-the-operators-own-key-000"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"key {GOOGLE} refused", "key AIza[redacted] refused"),
        ({"X-Goog-Api-Key": GOOGLE}, {"X-Goog-Api-Key": "[redacted]"}),
        ({"YOUTUBE_API_KEY": "short"}, {"YOUTUBE_API_KEY": "[redacted]"}),
        (["AIza"], ["AIza"]),
    ],
)
def test_googles_keys_are_cut_out(written, kept):
    assert redacted(written) == kept


def test_address_of_a_door_is_cut_out_of_a_request_that_is_logged():
    request = RequestFactory().post(f"/hooks/{'t' * 32}")
    assert redacted({"request": request}) == {"request": "<WSGIRequest: POST '/hooks/[redacted]'>"}
    harmless = RequestFactory().get("/v1/me")
    assert redacted([harmless]) == [harmless]
