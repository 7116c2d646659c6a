"""A body of a change is the body that creates, of which any field may be left out."""

from __future__ import annotations

import pytest
from rest_framework.serializers import ValidationError

from config.core.api.fields import BoundedListField, Changes, StrictCharField, StrictSerializer


class SlotInput(StrictSerializer):
    time = StrictCharField()


class QueueInput(StrictSerializer):
    kind = StrictCharField()
    name = StrictCharField()
    slots = BoundedListField(child=SlotInput())


class QueueChanges(Changes, QueueInput):
    kind = None  # type: ignore[assignment]  # left out
    status = StrictCharField()


def test_every_field_may_be_left_out():
    assert QueueChanges().run_validation({}) == {}
    assert QueueChanges().run_validation({"status": "a"}) == {"status": "a"}
    with pytest.raises(ValidationError) as refused:
        QueueInput().run_validation({})
    assert set(refused.value.detail) == {"kind", "name", "slots"}


def test_what_only_creates_is_unknown():
    with pytest.raises(ValidationError) as refused:
        QueueChanges().run_validation({"kind": "a"})
    assert [error.code for error in refused.value.detail["kind"]] == ["unknown_field"]


def test_objects_within_stay_whole():
    with pytest.raises(ValidationError) as refused:
        QueueChanges().run_validation({"slots": [{}]})
    assert refused.value.detail == {"slots": {0: {"time": ["This field is required."]}}}
