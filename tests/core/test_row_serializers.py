"""Resources are declared once: columns, JSON and OpenAPI follow from the class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import Answer, RowSerializer, TextOrNull, computed, given
from config.core.ids import encode

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = UUID("0193a3f0-0000-7000-8000-000000000001")


class Season(Answer):
    from_ = serializers.CharField()


class Part(RowSerializer):
    name = serializers.CharField(source="label")  # type: ignore[assignment]
    late = computed(serializers.BooleanField(), lambda due_at, *, now: due_at < now, "due_at")


class Place(RowSerializer):
    city = TextOrNull()
    since = MomentField(source="moved_at", allow_null=True)


class Thing(RowSerializer):
    id = PublicIdField("gen")
    owner = PublicIdField("per", source="owner_id", allow_null=True)
    made_at = MomentField()
    place = Place(source="*")
    season = Season(allow_null=True)
    parts = given(Part(many=True), default=())
    first = Part(source="first_part", allow_null=True)
    is_shown = given(serializers.BooleanField())
    secret = given(serializers.CharField(required=False))
    words = serializers.CharField(required=False)
    size = computed(serializers.IntegerField(required=False), len, "words")


def row(**changes: Any) -> dict[str, Any]:
    return {
        "id": KEY,
        "owner_id": None,
        "made_at": NOON,
        "city": "",
        "moved_at": None,
        "season": None,
        "first_part": None,
        "words": "",
        **changes,
    }


EMPTY = {
    "id": encode("gen", KEY),
    "owner": None,
    "made_at": "2026-01-01T12:00:00.000Z",
    "place": {"city": None, "since": None},
    "season": None,
    "parts": [],
    "first": None,
    "is_shown": True,
    "words": "",
    "size": 0,
}


def test_nothing_is_null_or_empty_as_its_field_says():
    assert Thing.serialize(row(), is_shown=True, now=NOON) == EMPTY


def test_everything_is_shown_in_the_order_of_the_fields():
    part = {"label": "A", "due_at": NOON - timedelta(seconds=1)}
    shown = Thing.serialize(
        row(owner_id=KEY, city="Oslo", moved_at=NOON, season={"from": "01-02"}, words="abc", first_part=part),
        parts=[part, {"label": "B", "due_at": NOON}],
        is_shown=False,
        secret="s",
        now=NOON,
    )
    assert shown == {
        **EMPTY,
        "owner": encode("per", KEY),
        "place": {"city": "Oslo", "since": "2026-01-01T12:00:00.000Z"},
        "season": {"from": "01-02"},
        "parts": [{"name": "A", "late": True}, {"name": "B", "late": False}],
        "first": {"name": "A", "late": True},
        "is_shown": False,
        "secret": "s",
        "words": "abc",
        "size": 3,
    }
    assert list(shown) == list(Thing().fields)


def test_an_object_is_read_by_its_attributes():
    assert Thing.serialize(SimpleNamespace(**row()), is_shown=True, now=NOON) == EMPTY


def test_columns_are_those_that_are_read_each_once():
    assert Thing.columns() == (
        "id", "owner_id", "made_at", "city", "moved_at", "season", "first_part", "words",
    )  # fmt: skip
    assert "words" not in Thing.columns(include=())
    assert Thing.columns(include=["size"])[-1] == "words"


def test_what_is_not_required_is_shown_if_it_is_included():
    without = Thing.serialize(row(), include=(), is_shown=True, now=NOON)
    assert without == {name: value for name, value in EMPTY.items() if name not in {"words", "size"}}
    assert Thing.serialize(row(), include=["size"], is_shown=True, now=NOON) == {**without, "size": 0}


def test_what_the_declaration_asks_for_is_given_and_nothing_else():
    with pytest.raises(TypeError, match="now"):
        Thing.serialize(row(), is_shown=True)
    with pytest.raises(TypeError, match="later"):
        Thing.serialize(row(), is_shown=True, now=NOON, later=NOON)


def test_a_subclass_has_the_fields_of_its_base_and_its_own():
    class Named(Place):
        street = serializers.CharField()

    assert Named.columns() == ("city", "moved_at", "street")
    assert Named.serialize({"city": "", "moved_at": None, "street": "A"}) == {
        "city": None,
        "since": None,
        "street": "A",
    }


def test_a_dataclass_is_a_row_too():
    @dataclass
    class Moved:
        city: str
        moved_at: datetime

    assert Place.serialize(Moved("Oslo", NOON)) == {"city": "Oslo", "since": "2026-01-01T12:00:00.000Z"}
