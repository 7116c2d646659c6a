"""No secret of an account stands in what is told, in whatever form a platform sends it back."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, quote_plus

import pytest

from pipeline.outlets.outlet_client import OutletConnection, platform_of
from pipeline.platforms.base import Account

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "p/ss w+rd=ä-4711"


def told(text: str, **credentials: Any) -> str:
    account = Account("out_1", credentials=credentials)
    return OutletConnection(platform_of("simulated"), account, cast("Any", None)).redact(text)


@pytest.mark.parametrize("order", [("abcdefgh", "abcdefgh-ijkl"), ("abcdefgh-ijkl", "abcdefgh")])
def test_a_secret_that_holds_another_goes_whole(order: tuple[str, str]) -> None:
    one, other = order
    assert (
        told("It was abcdefgh-ijkl, not abcdefgh!", one=one, other=other) == "It was [secret], not [secret]!"
    )


def test_values_are_found_however_deep_they_lie() -> None:
    assert told("first-one, second-one", keys={"a": [{"b": ("first-one",)}], "c": "second-one"}) == (
        "[secret], [secret]"
    )


@pytest.mark.parametrize("escape", [quote, quote_plus, lambda text: quote(text, safe="")])
def test_escaped_as_in_an_address_in_either_case(escape: Callable[[str], str]) -> None:
    sent = escape(SECRET)
    lower = re.sub("%..", lambda match: match.group().lower(), sent)

    assert sent != lower
    for form in (sent, lower):
        assert told(f"/x?key={form}&y", token=SECRET) == "/x?key=[secret]&y"


def test_inside_of_basic_credentials() -> None:
    header = b64encode(f"someone:{SECRET}".encode()).decode()
    said = told(f"Basic {header} isn't known", password=SECRET)

    assert "[secret]" in said
    assert b64encode(SECRET.encode()).decode()[4:-4] not in said


def test_a_lone_surrogate_is_no_obstacle() -> None:
    assert told("It was abc\ud800def.", token="abc\ud800def") == "It was [secret]."
