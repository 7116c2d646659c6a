"""What every kind of source promises; a new kind fails here until it has recorded samples."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import plugins
from pipeline.plugins import ConfigInvalid
from pipeline.sources.base import Source
from pipeline.sources.webhook.expressions import ExpressionUnreadable, compile_expression

SAMPLES = Path(__file__).parent / "samples"
SOURCES = plugins.every("sources", Source)

every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.kind)

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


def samples_of(source):
    return json.loads((SAMPLES / source.kind / "config.json").read_text(encoding="utf-8"))


# What a pattern can't say: a schema names it, and whoever checks by the schema has to know the language.
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("jmespath", raises=ExpressionUnreadable)
def is_jmespath(value):
    return not isinstance(value, str) or bool(compile_expression(value.strip()))


def is_valid_by_schema(source, config):
    return jsonschema.Draft202012Validator(source.config_schema, format_checker=FORMATS).is_valid(config)


def accepts(source, config):
    try:
        source.clean_config(config)
    except ConfigInvalid:
        return False
    return True


@every_source
def test_source_has_recorded_samples(source):
    samples = samples_of(source)
    assert sorted(samples) == ["invalid", "valid"]
    assert len(samples["valid"]) >= 1
    assert len(samples["invalid"]) >= 1


@every_source
def test_source_names_itself(source):
    assert source.label != ""
    assert source.default_interval_minutes > 0
    assert source.fetches == (type(source).fetch is not Source.fetch)


@every_source
def test_valid_samples_are_stored_as_recorded(source):
    for sample in samples_of(source)["valid"]:
        assert source.clean_config(sample["config"]) == sample["stored"]
        assert source.clean_config(sample["stored"]) == sample["stored"]


@every_source
def test_invalid_samples_name_every_problem(source):
    for sample in samples_of(source)["invalid"]:
        with pytest.raises(ConfigInvalid) as caught:
            source.clean_config(sample["config"])
        assert [[problem.field, problem.code] for problem in caught.value.problems] == sample["problems"]
        for problem in caught.value.problems:
            assert problem.message.endswith((".", "?", "/"))


@every_source
def test_schema_agrees_with_the_samples(source):
    jsonschema.Draft202012Validator.check_schema(source.config_schema)
    samples = samples_of(source)
    assert [is_valid_by_schema(source, each["config"]) for each in samples["valid"]] == [True] * len(
        samples["valid"]
    )
    assert [is_valid_by_schema(source, each["config"]) for each in samples["invalid"]] == [False] * len(
        samples["invalid"]
    )


@every_source
@pytest.mark.parametrize("config", [None, [], "text", 3, True])
def test_what_is_not_an_object_is_refused(source, config):
    with pytest.raises(ConfigInvalid) as caught:
        source.clean_config(config)
    assert [(problem.field, problem.code) for problem in caught.value.problems] == [
        ("config", "invalid_type")
    ]


@every_source
def test_unknown_key_is_answered_with_the_nearest_known(source):
    known = min(source.config_schema["properties"])
    with pytest.raises(ConfigInvalid) as caught:
        source.clean_config({f"{known}x": "value"})
    unknown = [problem for problem in caught.value.problems if problem.code == "unknown_field"]
    assert [problem.field for problem in unknown] == [f"config.{known}x"]
    assert unknown[0].message == f"There is no setting `{known}x` here. Did you mean `{known}`?"


@every_source
def test_a_flood_of_unknown_keys_is_cut(source):
    with pytest.raises(ConfigInvalid) as caught:
        source.clean_config({f"{number}" * 100: 1 for number in range(1000)})
    assert len([problem for problem in caught.value.problems if problem.code == "unknown_field"]) == 20


@every_source
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_json_is_accepted_exactly_when_the_schema_accepts_it(source, data):
    known = st.fixed_dictionaries({}, optional=dict.fromkeys(source.config_schema["properties"], JSON))
    config = data.draw(known | JSON)
    assert accepts(source, config) == is_valid_by_schema(source, config)


@every_source
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_one_mutated_value_is_accepted_exactly_when_the_schema_accepts_it(source, data):
    config = dict(data.draw(st.sampled_from([each["config"] for each in samples_of(source)["valid"]])))
    key = data.draw(st.sampled_from(sorted(source.config_schema["properties"])))
    value = config.get(key)
    if isinstance(value, str):
        at = data.draw(st.integers(0, len(value)))
        # No JSON holds half a surrogate pair, so the schema need not name them.
        config[key] = value[:at] + data.draw(st.characters(exclude_categories=["Cs"])) + value[at:]
    else:
        config[key] = data.draw(JSON)
    assert accepts(source, config) == is_valid_by_schema(source, config)


@every_source
def test_defaults_are_not_shared_between_configs(source):
    sample = samples_of(source)["valid"][0]["config"]
    first = source.clean_config(sample)
    for value in first.values():
        if isinstance(value, dict):
            value["changed"] = True
    assert source.clean_config(sample) == samples_of(source)["valid"][0]["stored"]
