"""JSON as answers, errors and events have it: compact, UTF-8, whole numbers of any size, nothing that isn't JSON."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import pytest
from django.db.models import TextChoices
from django.utils.safestring import mark_safe

from config.core.json_encoding import dump


class Colour(TextChoices):
    RED = "red"


class Pair(NamedTuple):
    left: int
    right: int


@dataclass
class Shape:
    sides: int


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"ä": ["❤", None, True, 1, 0.5]}, '{"ä":["❤",null,true,1,0.5]}'),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ('\u2028</script>\x00\x1f\x7f"\\\n', '"\u2028</script>\\u0000\\u001f\x7f\\"\\\\\\n"'),
        ([2**63, 2**64 - 1, -(2**63)], "[9223372036854775808,18446744073709551615,-9223372036854775808]"),
        ({"n": 2**64, "ä": -(10**30)}, '{"n":18446744073709551616,"ä":-1000000000000000000000000000000}'),
        ([1e300, 1e-7, -0.0, 0.1 + 0.2], "[1e+300,1e-7,-0.0,0.30000000000000004]"),
        ({1: "a", "b": (1, 2)}, '{"1":"a","b":[1,2]}'),
        ([Colour.RED, mark_safe("<b>"), Pair(1, 2)], '["red","<b>",[1,2]]'),
        (float("nan"), "null"),
    ],
)
def test_data_are_encoded(data, text):
    assert dump(data).decode() == text
    assert json.loads(text) == json.loads(dump(data))


@pytest.mark.parametrize(
    "mistake",
    [dt.datetime(2026, 11, 30, tzinfo=dt.UTC), dt.date(2026, 11, 30), Decimal(1), Shape(3), b"x", {1, 2}],
)
def test_what_has_no_form_in_json_is_a_mistake(mistake):
    with pytest.raises(TypeError):
        dump({"value": mistake})


@pytest.mark.parametrize("mistake", ["\ud83d", [2**64, float("nan")]])
def test_what_is_no_valid_json_is_never_sent(mistake):
    with pytest.raises(ValueError, match=r"."):
        dump([mistake])
