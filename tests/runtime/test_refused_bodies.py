"""A body that is refused by its length is read all the same, or a proxy answers in our place."""

from io import BytesIO

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse

from config.core import limits
from config.core.middleware import RequestIdMiddleware


def request_with(body):
    return WSGIRequest(
        {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/v1/raw",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
    )


@pytest.mark.parametrize(
    ("status", "length", "left"),
    [
        (413, limits.RAW_BODY_BYTES + 1, 0),
        (413, limits.REFUSED_BODY_READ_BYTES + 10, limits.REFUSED_BODY_READ_BYTES + 10),
        (400, 10, 10),
    ],
)
def test_what_is_left_of_it_is_read_up_to_a_bound(status, length, left):
    request = request_with(b"x" * length)
    RequestIdMiddleware(lambda _: HttpResponse(status=status))(request)
    assert len(request.environ["wsgi.input"].read()) == left


def test_body_that_was_read_already_is_no_hindrance():
    request = request_with(b"x" * 100)
    assert len(request.body) == 100
    answer = RequestIdMiddleware(lambda _: HttpResponse(status=413))(request)
    assert answer.status_code == 413
