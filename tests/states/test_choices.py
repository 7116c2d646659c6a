"""The choices of models, beside the lists of plug-ins, which import no model."""

from __future__ import annotations

from typing import get_args

import pytest
from django.apps import apps
from django.db.models import CharField

from accounts.models import NoticeKind
from accounts.notices import KINDS
from analytics.models import Attribution
from analytics.rollup import ATTRIBUTIONS
from pipeline.engines import base
from pipeline.models import Angle, BodyFormat, Bucket, ModelCallMode, Verification, bucket_choices
from pipeline.sources.webhook import signatures
from pipeline.text import body_html
from pipeline.writers.prices import Mode

PLUG_INS = {
    "buckets": (Bucket, base.BUCKETS),
    "angles": (Angle, base.ANGLES),
    "formats of bodies": (BodyFormat, body_html.BODY_FORMATS),
    "verifications": (Verification, signatures.KINDS),
    "modes of a model call": (ModelCallMode, get_args(Mode)),
    "attributions": (Attribution, tuple(ATTRIBUTIONS)),
}


@pytest.mark.parametrize("name", PLUG_INS)
def test_choices_are_those_of_the_plug_ins(name):
    choices, known = PLUG_INS[name]
    assert tuple(choices.values) == known


def test_a_notice_is_of_a_kind_that_people_choose_or_goes_to_one_person():
    assert set(NoticeKind.values) == {*KINDS, NoticeKind.DIGEST, NoticeKind.TEST}


def test_defaults_are_choices():
    wrong = [
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, CharField)
        and field.choices
        and field.has_default()
        and field.default not in {"", *(value for value, _ in field.flatchoices)}
    ]
    assert wrong == []


def test_a_new_bucket_needs_no_migration():
    """A migration holds a column's choices, unless it names the function that returns them."""
    choices = [
        field.deconstruct()[3]["choices"]
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, CharField) and [value for value, _ in field.flatchoices] == Bucket.values
    ]
    assert choices == [bucket_choices] * 6
