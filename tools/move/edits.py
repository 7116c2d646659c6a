"""What no table can say: texts that change in one place, packages' docstrings, prefixes of templates, and the contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = {
    "config.core": "What imports no app.",
    "config.core.api": "What every view of the API stands on: strict JSON in and out, pages, entity tags.",
    "config.core.database": "What SQLite and PostgreSQL do differently, and statements that are compiled once.",
    "config.operations": "What operators run and watch: backup and restore, doctor, health, metrics, retention.",
    "config.admin_site": "The operators' pages besides Django's own.",
    "config.api_docs": "The OpenAPI document and the guides as pages.",
    "accounts.access": "Who may call what: tokens, log-in by token, permissions, roles, the rate limit, idempotency.",
    "pipeline.workspace": "What a workspace starts with, its defaults, digest, export and end.",
    "pipeline.schedule": "When things go out: queues, plans of a week, series, recurring items, bulk recovery.",
    "pipeline.review": "What people decide on items: approve, reject, edit, undo, variants, storyboards.",
    "pipeline.ingest": "How content comes in: polled, pushed, sent by webhooks, told by hubs; once each.",
    "pipeline.generate.autopilot": "Items that are published without a person, and what they must pass for it.",
    "pipeline.generate.model": "Asking a model: the client, whose account pays, batches, costs.",
    "pipeline.generate.topics": "Runs without a source document: which topic is taken, and what is said of it.",
    "pipeline.holds": "What happens to items whose source changes or is withdrawn.",
    "pipeline.dashboard": "How a workspace is doing, counted for the first page and the digest.",
    "pipeline.publish.timing": "When a publication goes out: slots, caps, late rules, time zones.",
    "pipeline.media": "Files as they are stored: uploads, footage, pictures, films, speech.",
    "pipeline.switches": "What is stopped or can't run here: kill switches, availability, host slots.",
    "pipeline.text": "Pure functions over texts: normalization, links, markup, sentences, similarity.",
    "pipeline.sources.feeds": "Reading feeds, for every kind of source that has one.",
    "pipeline.sources.web_pages": "Reading web pages, for every kind of source that visits some.",
    "pipeline.engines.checks": "Checks that drafts of several engines must pass.",
    "pipeline.engines.shared": "Words and pictures that several engines use.",
    "pipeline.render.audio": "Sound: decoded, measured, mixed, and speech with the times of its words.",
    "pipeline.render.typography": "Text laid out: fonts, scripts, lines, boxes.",
    "pipeline.render.video.templates": "What films look like: each template lays out a storyboard.",
    "analytics.reports": "What pages and mails say of a period.",
}

TEMPLATES = [
    ("calendar", "calendar", "page"),
    ("failures", "failures", "page"),
    ("invitation", "invitation", "page"),
    ("item", "items", "detail"),
    ("items", "items", "list"),
    ("key", "keys", "detail"),
    ("keys", "keys", "list"),
    ("lane", "sources", None),
    ("made", "new", None),
    ("member", "members", "detail"),
    ("members", "members", "list"),
    ("new", "new", "page"),
    ("newsletter", "newsletters", "detail"),
    ("subscribers", "newsletters", None),
    ("notices", "notices", "page"),
    ("outlet", "outlets", "detail"),
    ("outlets", "outlets", "list"),
    ("persona", "personas", "detail"),
    ("personas", "personas", "list"),
    ("pipeline", "pipeline", "page"),
    ("queue", "queues", "detail"),
    ("queues", "queues", "list"),
    ("review", "review", "page"),
    ("series", "series", "list"),
    ("source", "sources", "detail"),
    ("sources", "sources", "list"),
    ("topic", "topics", "detail"),
    ("topics", "topics", "list"),
    ("webhook", "webhooks", "detail"),
    ("webhooks", "webhooks", "list"),
    ("workspace", "workspace", "page"),
]
"""Prefix of a template's name, its folder, and what the template of just that name is called; None: all keep theirs."""

EDITS: list[tuple[str, str, str]] = [
    # Only a kind's entry is imported; what several kinds share are modules, and packages without a kind.
    (
        "pipeline/plugins.py",
        """A plug-in is one file in `sources`, `engines`, `writers`, `platforms` or `voices`: the file's name is its kind, and
being there registers it.""",
        """A plug-in is a folder in `sources`, `engines`, `writers`, `platforms` or `voices`: the folder's name is its kind, and
being there registers it. Its entry, `__init__.py`, is the only module that is imported for that.""",
    ),
    (
        "pipeline/plugins.py",
        """        if module_info.name == "base":
            continue
""",
        """        if not module_info.ispkg:
            continue
""",
    ),
    (
        "pipeline/plugins.py",
        """pipeline/{family}/{module_info.name}.py names""",
        """pipeline/{family}/{module_info.name} names""",
    ),
    (
        "pipeline/plugins.py",
        """No plug-in file of that name""",
        """No plug-in of that name""",
    ),
    (
        "tests/architecture/test_crash_points.py",
        r"""\bcrash\.POINTS\b|from config\.ground\.crash import""",
        r"""\bcrash_points\.POINTS\b|from config\.core\.crash_points import""",
    ),
    (
        "docs/plugins.md",
        "A plug-in is one file: its name is its kind, and being there registers it. It holds one object named `PLUGIN`.",
        "A plug-in is a folder: its name is its kind, and being there registers it. Its `__init__.py` holds one object named"
        " `PLUGIN`, and is the only module that is imported for that.",
    ),
    ("docs/plugins.md", "Write `pipeline/<family>/<kind>.py`:", "Write `pipeline/<family>/<kind>/__init__.py`:"),
    ("docs/plugins.md", "limits stand in that file.", "limits stand in that folder."),
    (
        "CONTRIBUTING.md",
        "a platform or a voice is one file, found because it is there:",
        "a platform or a voice is a folder, found because it is there:",
    ),
    ("CONTRIBUTING.md", "1. `pipeline/<family>/<kind>.py`:", "1. `pipeline/<family>/<kind>/__init__.py`:"),
    ("README.md", "or a platform of your own is one file:", "or a platform of your own is a folder:"),
    ("tests/architecture/test_imports.py", """{"__init__", "ground"}""", """{"__init__", "core"}"""),
]


# The lists of tools/mutants.py stand below tests/.
_OF_MUTANTS = {
    "stages/test_publish*.py": "pipeline/publish/test_p*.py",
    "stages/test_queues.py": "pipeline/publish/test_queue_slots.py",
    "stages/test_pace.py": "pipeline/publish/test_rate_caps.py",
    "stages/test_remove.py": "pipeline/publish/test_removal.py",
    "stages/test_explain.py": "pipeline/review/test_explanation.py",
    "stages/test_handing_over.py": "pipeline/publish/test_manual_publish.py",
    "stages/test_short_links.py": "pipeline/outlets/test_short_links.py",
    "stages/test_stopping.py": "pipeline/switches/test_kill_switch.py",
    "stages/test_review.py": "pipeline/review/test_decisions.py",
    "stages/test_simulation.py": "pipeline/outlets/test_simulation.py",
    "stages/planning": "pipeline/schedule/planning",
    "stages/recurring": "pipeline/schedule/recurring",
    "stages/mailing": "pipeline/mailing",
    "pages/test_handoff.py": "pages/test_manual_publish.py",
    "stages/test_generate*.py": "pipeline/generate/test_generate*.py",
    "stages/test_gates.py": "pipeline/generate/test_autopilot_checks.py",
    "stages/test_repetition.py": "pipeline/generate/test_repetition.py",
    "stages/test_shared_brief.py": "pipeline/generate/test_shared_brief.py",
    "stages/test_model_failures.py": "pipeline/generate/test_model_failures.py",
    "stages/test_long_words.py": "pipeline/generate/test_long_words.py",
    "stages/test_pictures.py": "pipeline/generate/test_pictures.py",
    "stages/test_storyboards.py": "pipeline/review/test_storyboards.py",
    "stages/test_push.py": "pipeline/ingest/test_push.py",
    "stages/test_videos.py": "pipeline/generate/test_videos.py",
    "stages/test_voicing.py": "pipeline/generate/test_narration.py",
    "stages/test_paid_once.py": "pipeline/generate/test_paid_once.py",
    "stages/test_composites.py": "pipeline/generate/test_composites.py",
    "stages/test_clips.py": "pipeline/generate/test_clips.py",
    "stages/brand/test_lane*.py": "pipeline/personas/test_lane*.py",
    "stages/brand/test_picking.py": "pipeline/personas/test_select_topic.py",
    "stages/batches": "pipeline/generate/batches",
    "stages/series": "pipeline/schedule/series",
    "pages/test_making.py": "pages/test_new.py",
}
EDITS += [("tools/mutants.py", old, new) for old, new in _OF_MUTANTS.items()]


def contracts(root: Path) -> None:
    path = root / "pyproject.toml"
    text = path.read_text()
    start = text.index("[tool.importlinter]")
    path.write_text(text[:start] + (root / "tools/move/importlinter.toml").read_text())


def layout(root: Path) -> None:
    path = root / "docs/architecture.md"
    text = path.read_text()
    start, end = text.index("## Layout\n\n") + len("## Layout\n\n"), text.index("## Decisions")
    path.write_text(text[:start] + (root / "tools/move/layout.txt").read_text() + text[end:])


AFTER = [contracts, layout]
