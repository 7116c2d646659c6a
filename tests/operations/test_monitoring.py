"""The alert rules and the dashboard in deploy/: well formed, and of metrics that are really exported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "content-pipeline-alerts.yml"
SCRAPE = DEPLOY / "prometheus" / "prometheus.yml"
DASHBOARD = DEPLOY / "grafana" / "content-pipeline.json"
NAME = re.compile(r"\b(?:pipeline|process)_[a-z_]+\b|\bup\b")
SELECTED = re.compile(r"([a-z_]+)(?:\{([^}]*)\})")
DURATION = "^[0-9]+(ms|s|m|h|d|w|y)$"

# What Prometheus 2 takes in a file of rules, as its documentation says; it refuses members that it doesn't know.
RULES_SCHEMA = {
    "type": "object",
    "required": ["groups"],
    "additionalProperties": False,
    "properties": {
        "groups": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "rules"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string"},
                    "interval": {"type": "string", "pattern": DURATION},
                    "rules": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["alert", "expr", "labels", "annotations"],
                            "additionalProperties": False,
                            "properties": {
                                "alert": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                                "expr": {"type": "string", "minLength": 1},
                                "for": {"type": "string", "pattern": DURATION},
                                "labels": {
                                    "type": "object",
                                    "required": ["severity"],
                                    "properties": {"severity": {"enum": ["page", "ticket"]}},
                                    "additionalProperties": {"type": "string"},
                                },
                                "annotations": {
                                    "type": "object",
                                    "required": ["summary", "action"],
                                    "additionalProperties": {"type": "string"},
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}
DASHBOARD_SCHEMA = {
    "type": "object",
    "required": ["title", "uid", "schemaVersion", "panels", "templating", "time"],
    "properties": {
        "uid": {"type": "string", "maxLength": 40},
        "schemaVersion": {"type": "integer", "minimum": 36},
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["id", "type", "title", "gridPos", "targets", "datasource", "fieldConfig"],
                "properties": {
                    "type": {"enum": ["timeseries", "stat"]},
                    "gridPos": {
                        "type": "object",
                        "required": ["x", "y", "w", "h"],
                        "properties": {
                            "x": {"type": "integer", "minimum": 0, "maximum": 23},
                            "w": {"type": "integer", "minimum": 1, "maximum": 24},
                        },
                    },
                    "targets": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["refId", "expr", "legendFormat"],
                            "properties": {"expr": {"type": "string", "minLength": 1}},
                        },
                    },
                },
            },
        },
    },
}


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions():
    return [rule["expr"] for rule in rules()] + [
        target["expr"] for panel in panels() for target in panel["targets"]
    ]


@pytest.fixture
def exported(client, db, settings):
    """Each series that /metrics gives, with the labels that it has."""
    settings.METRICS_TOKEN = "m" * 32
    settings.REDIS_URL = ""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {'m' * 32}"})
    found: dict[str, set[tuple[str, str]]] = {}
    for line in answer.content.decode().splitlines():
        if not line.startswith("#"):
            name, labels = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? \S+", line).groups()
            found.setdefault(name, set()).update(re.findall(r'(\w+)="([^"]*)"', labels or ""))
    # Prometheus itself says whether it could scrape.
    return found | {"up": set()}


def test_rules_are_what_prometheus_takes():
    jsonschema.validate(yaml.safe_load(RULES.read_text()), RULES_SCHEMA)
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))


def test_scrape_configuration_names_the_rules_and_the_address():
    given = yaml.safe_load(SCRAPE.read_text())
    assert given["rule_files"] == [RULES.name]
    [job] = given["scrape_configs"]
    assert (job["job_name"], job["metrics_path"], job["authorization"]["type"]) == (
        "content-pipeline",
        "/metrics",
        "Bearer",
    )


def test_dashboard_is_what_grafana_takes():
    jsonschema.validate(json.loads(DASHBOARD.read_text()), DASHBOARD_SCHEMA)
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))


def test_no_panel_lies_on_another():
    cells = set()
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & own, panel["title"]
        cells |= own


def test_every_metric_that_is_named_is_exported(exported):
    named = {name for expression in expressions() for name in NAME.findall(expression)}
    assert named - exported.keys() == set()


def test_every_label_that_is_asked_for_is_there(exported):
    for expression in expressions():
        for name, asked in SELECTED.findall(expression):
            for label, value in re.findall(r'(\w+)="([^"]*)"', asked):
                # Prometheus adds the job.
                assert label == "job" or (label, value) in exported[name], expression


def test_sums_by_labels_that_exist(exported):
    labels = {label for found in exported.values() for label, _ in found} | {"instance", "job"}
    for expression in expressions():
        for by in re.findall(r"\bby \(([^)]*)\)", expression):
            assert {one.strip() for one in by.split(",")} <= labels, expression


def test_parentheses_and_brackets_close():
    for expression in expressions():
        open_ones = []
        for character in expression:
            if character in "([{":
                open_ones.append({"(": ")", "[": "]", "{": "}"}[character])
            elif character in ")]}":
                assert open_ones[-1:] == [character], expression
                open_ones.pop()
        assert not open_ones, expression


def test_every_metric_of_ours_is_on_the_dashboard(exported):
    shown = {
        name for panel in panels() for target in panel["targets"] for name in NAME.findall(target["expr"])
    }
    missing = {name for name in exported if name.startswith("pipeline_")} - shown
    assert missing == set(), "Put them on a panel of deploy/grafana/content-pipeline.json"


def test_neither_a_receiver_that_is_dead_nor_a_line_of_films_wakes_anybody():
    """What waits for those is told, and not at night."""
    told = {
        (rule["labels"]["severity"], expression)
        for rule in rules()
        for expression in re.findall(r"pipeline_oldest_due_seconds(\{[^}]*\})?", rule["expr"])
    }
    assert told == {
        ("page", '{kind!~"webhooks.deliver_to_endpoint|render.render_film"}'),
        ("ticket", '{kind="webhooks.deliver_to_endpoint"}'),
        ("ticket", '{kind="render.render_film"}'),
    }
