"""What the docs take from the code: each block stands between two marks and is written by the test."""

from __future__ import annotations

import ast
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.urls import URLPattern, URLResolver, get_resolver

from accounts import limits as account_limits
from accounts.api.not_found import NoSuchAddress
from analytics import limits as analytics_limits
from config.api_docs import views as documents
from config.core import crash_points, errors, ids, jobs, states
from config.core import limits as core_limits
from config.operations import retention
from pipeline import events, plugins
from pipeline import limits as pipeline_limits
from pipeline.engines.base import Engine
from pipeline.platforms.base import Platform
from pipeline.sources.base import Source
from pipeline.voices.base import Voice
from pipeline.writers.base import Writer
from tests.pipeline.generate.model_answers import ROWS
from webhooks import deliver
from webhooks import limits as webhook_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipeline.plugins import Evidence


def table(*heading: str, rows: list[tuple[str, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def said(span: timedelta) -> str:
    """A span as people say it: `2 h`, `75 h 35 min`."""
    seconds = int(span.total_seconds())
    if seconds and seconds % 86_400 == 0 and seconds > 86_400:
        return f"{seconds // 86_400} days"
    parts = [(seconds // 3600, "h"), (seconds % 3600 // 60, "min"), (seconds % 60, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "at once"


METHODS = ("GET", "POST", "PATCH", "DELETE")

# --- The API ---------------------------------------------------------------------------------------------------------


def routes() -> list[tuple[str, str, str | None]]:
    """Method, address and scope of everything under /v1, in the order of the addresses."""
    found = []
    for pattern, callback in _patterns(get_resolver(), ""):
        actions = getattr(callback, "actions", None)
        if not pattern.startswith("v1/") or actions is None or callback.cls is NoSuchAddress:
            continue
        address = "/" + re.sub(r"\(\?P<(\w+)>[^)]*\)", r":\1", pattern).replace("/?", "").replace("\\", "")
        found += [
            (method.upper(), address, callback.cls.scopes[action])
            for method, action in actions.items()
            # DRF answers HEAD by itself wherever there is a GET.
            if method.upper() in METHODS
        ]
    return sorted(found, key=lambda route: (route[1], METHODS.index(route[0])))


def _patterns(resolver: URLResolver, before: str) -> Iterator[tuple[str, Any]]:
    for one in resolver.url_patterns:
        here = before + str(one.pattern).removeprefix("(?s)").lstrip("^").rstrip("$")
        if isinstance(one, URLResolver):
            yield from _patterns(one, here)
        elif isinstance(one, URLPattern):
            yield here, one.callback


PAGE_OF_ADDRESSES: Final = {
    "/v1/openapi.json": "README",
    "/v1/workspace": "workspace",
    "/v1/usage": "workspace",
    "/v1/engines": "workspace",
    "/v1/estimate": "workspace",
    "/v1/sources": "sources",
    "/v1/source-types": "sources",
    "/v1/sources/:id/deliveries": "inbound-deliveries",
    "/v1/sources/:id/dry-run": "inbound-deliveries",
    "/v1/sources/:id/rotate-secret": "inbound-deliveries",
    "/v1/uploads": "uploads",
    "/v1/raw": "raw-items",
    "/v1/generated": "generated-items",
    "/v1/generated/:id/publish": "publishing",
    "/v1/generated/:id/explain": "publishing",
    "/v1/publications": "publishing",
    "/v1/hold": "publishing",
    "/v1/queues": "schedule",
    "/v1/plans": "schedule",
    "/v1/series": "schedule",
    "/v1/recurrences": "schedule",
    "/v1/outlets": "outlets",
    "/v1/personas": "personas",
    "/v1/topics": "personas",
    "/v1/analytics": "analytics",
    "/v1/events": "events",
}
"""The page of `docs/api` that lists the addresses that begin so; the longest beginning decides."""


def _page_of(address: str) -> str:
    begins = [begin for begin in PAGE_OF_ADDRESSES if address == begin or address.startswith(f"{begin}/")]
    return PAGE_OF_ADDRESSES[max(begins, key=len)]


def _routes(page: str) -> Callable[[], str]:
    """The addresses of a page with the scope of each method."""

    def written() -> str:
        by_address: dict[str, list[str]] = {}
        for method, address, scope in routes():
            if _page_of(address) == page:
                by_address.setdefault(address, []).append(f"{method} {f'`{scope}`' if scope else 'any'}")
        return "".join(f"- `{address}`: {', '.join(calls)}\n" for address, calls in by_address.items())

    return written


def _jobs() -> str:
    """Each Celery task: what it works, and for how long a killed one keeps its row."""
    rows = []
    for name, job in sorted(jobs.jobs().items()):
        if isinstance(job, jobs.RowJob):
            share = str(job.per_workspace or ("all slots" if job.computes else "¾ of the slots"))
            works = f"a row of `{job.model._meta.db_table}`"
            rows.append((f"`{name}`", works, said(job.lease), str(job.max_attempts), share))
        elif isinstance(job, jobs.HolderJob):
            works = (
                f"due rows of `{job.model._meta.db_table}` of one endpoint, for {deliver.TASK_SECONDS:.0f} s"
            )
            rows.append(
                (f"`{name}`", works, said(deliver.LEASE), str(deliver.MAX_ATTEMPTS), "¾ of its slots")
            )
        else:
            pace = f", at most every {job.every_seconds:g} s" if job.every_seconds else ""
            rows.append((f"`{name}`", f"what is left, one task at a time{pace}", "—", "—", "—"))
    return table("Task", "Works", "Lease", "Tries", "Of one workspace at once", rows=rows)


def _retention() -> str:
    spans = [
        kept.how_long if isinstance(kept.how_long, str) else said(kept.how_long) for kept in retention.RULES
    ]
    return table(
        "What",
        "How long",
        rows=[(kept.what, span) for kept, span in zip(retention.RULES, spans, strict=True)],
    )


def _errors() -> str:
    rows = [(f"`{code}`", str(known.status), known.message) for code, known in errors.CODES.items()]
    return table("`error`", "Status", "When", rows=rows)


def _prefixes() -> str:
    return ", ".join(f"`{prefix}_` {what.replace('_', ' ')}" for what, prefix in ids.PREFIXES.items()) + ".\n"


def _moves(label: str) -> Callable[[], str]:
    def written() -> str:
        jobs.jobs()
        rows = [
            (f"`{status}`", ", ".join(f"`{target}`" for target in sorted(targets)) or "—")
            for status, targets in states.tables()[label].items()
        ]
        return table("Status", "Can be moved to", rows=rows)

    return written


# --- Webhooks --------------------------------------------------------------------------------------------------------


def _schedule() -> str:
    rows, total = [], timedelta(0)
    for number, wait in enumerate(webhook_limits.WEBHOOK_SCHEDULE, start=1):
        total += wait
        rows.append((str(number), said(wait), said(total)))
    return table("Attempt", "Wait before it", "Since the event, at least", rows=rows)


def _events() -> str:
    told = documents.build_openapi()["webhooks"]
    rows = [
        (f"`{event_type}`", "yes" if is_default else "on request", told[event_type]["post"]["summary"])
        for event_type, is_default in events.TYPES.items()
    ]
    return table("Type", "Sent by default", "When", rows=rows)


# --- The rest --------------------------------------------------------------------------------------------------------


LIMITS: Final = (core_limits, account_limits, pipeline_limits, webhook_limits, analytics_limits)


def constants() -> list[tuple[str, Any, str]]:
    """Name, value and docstring of every constant of each app's `limits.py`."""
    found = []
    for app in LIMITS:
        body = ast.parse(Path(str(app.__file__)).read_text()).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                is_told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                found.append(
                    (node.target.id, getattr(app, node.target.id), after.value.value if is_told else "")
                )
    return found


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_value(one) for one in value)
    if isinstance(value, timedelta):
        return said(value)
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def _limits() -> str:
    rows = [(f"`{name}`", _value(value), " ".join(told.split())) for name, value, told in constants()]
    return table("Name", "Value", "What it is", rows=rows)


def _sources() -> str:
    rows = [
        (
            f"`{one.kind}`",
            one.label,
            "yes" if one.fetches else "no",
            ", ".join(f"`{key}`" for key in _keys(one)),
            _evidence(one.evidence),
        )
        for one in plugins.every("sources", Source)
    ]
    return table("Kind", "Label", "Fetched", "Keys of `config`", "Tested against", rows=rows)


def _evidence(evidence: Evidence) -> str:
    return {
        "server": f"a real server, {_against(evidence)} (`{evidence.test}`)",
        "software": f"a stand-in, and {_against(evidence)} (`{evidence.test}`)",
        "documents": f"a stand-in from documents of {_against(evidence)} (`{evidence.test}`)",
        "none": "nothing to ask",
    }[evidence.level]


def _against(evidence: Evidence) -> str:
    return evidence.against + (f"; {evidence.gap} by a stand-in" if evidence.gap else "")


def _platforms_and_sources() -> str:
    """One line that a reader of the first screen finds a platform in."""
    publishes, reads = (
        ", ".join(
            sorted(
                (one.label for one in plugins.every(family, of) if one.evidence.level != "none"),
                key=str.casefold,
            )
        )
        for family, of in (("platforms", Platform), ("sources", Source))
    )
    tested = "[How each was tested](#what-works-and-how-that-is-known)"
    return f"**Publishes to** {publishes}, and anywhere by hand. **Reads** {reads}. {tested}.\n"


def _what_works() -> str:
    """Platforms and sources by what shows that they work, the strongest first."""
    families = [plugins.every("platforms", Platform), plugins.every("sources", Source)]
    levels = {
        "server": "**Real server**, in `make test-real`",
        "software": "**A stand-in server, and other projects' software**",
        "documents": "**A stand-in server only**, written from the vendor's documents",
        "none": "**No other server involved**",
    }
    rows = [
        (heading, *(_named([one for one in family if one.evidence.level == level]) for family in families))
        for level, heading in levels.items()
    ]
    return table("Tested against", "Publishes to", "Reads", rows=rows)


def _named(family: Iterable[Platform | Source]) -> str:
    """The labels, those that are tested against the same beside each other."""
    groups: dict[str, list[str]] = {}
    for one in family:
        groups.setdefault(_against(one.evidence).removeprefix(f"{one.label} "), []).append(one.label)
    return ", ".join(
        ", ".join(labels) + (f" ({against})" if against else "") for against, labels in groups.items()
    )


def _keys(source: Source) -> list[str]:
    schema = source.config_schema
    return list(
        schema.get("properties") or {key: 1 for one in schema.get("oneOf", ()) for key in one["properties"]}
    )


def _engines() -> str:
    rows = [
        (f"`{one.kind}`", one.name, one.bucket, str(one.credits), ", ".join(one.made_from))
        for one in plugins.every("engines", Engine)
    ]
    return table("Kind", "Engine output", "Bucket", "Credits", "Made from", rows=rows)


def _writers() -> str:
    rows = [
        (f"`{one.kind}`", one.label, "yes" if one.offline else "no", f"`{one.prompt_version}`")
        for one in plugins.every("writers", Writer)
    ]
    return table("Kind", "Label", "Offline", "Prompt version", rows=rows)


def _voices() -> str:
    rows = [
        (f"`{one.kind}`", one.label, ", ".join(f"`{name}`" for name in one.environment) or "none")
        for one in plugins.every("voices", Voice)
    ]
    return table("Kind", "Label", "Set by the operator", rows=rows)


_KEEPS_ONE: Final = {
    "none": "nothing",
    "server_key": "a key that it remembers",
    "client_id": "an id that we choose",
    "draft_flip": "a draft that is made public",
    "resumable": "one session of an upload",
    "ours": "our own database",
}


def _platforms() -> str:
    rows = [
        (
            f"`{one.kind}`",
            one.label,
            _text_limits(one),
            _KEEPS_ONE[one.idempotency],
            "yes" if one.can_reconcile else "no",
            "yes" if one.can_remove else "no",
            ", ".join(one.metrics_given) or "none",
            f"{one.api.version or 'unversioned'}, {one.api.reviewed_on}" if one.api else "",
            _evidence(one.evidence),
        )
        for one in plugins.every("platforms", Platform)
    ]
    return table(
        "Kind",
        "Label",
        "Takes, and how long a text",
        "Keeps one post from being two",
        "Can be asked",
        "Can be removed",
        "Metrics",
        "API, read on",
        "Tested against",
        rows=rows,
    )


def _text_limits(platform: Platform) -> str:
    """Each bucket with its limit; those that share one stand together."""
    by_limit: dict[str, list[str]] = {}
    for bucket in platform.buckets:
        rule = platform.rules.get(bucket)
        most = rule.text_max if rule else platform.text_limit
        unit = rule.unit if rule else platform.text_unit
        by_limit.setdefault(f"{most} {unit}" if most else "any length", []).append(bucket)
    return "; ".join(f"{', '.join(buckets)}: {limit}" for limit, buckets in by_limit.items())


def _crash_points() -> str:
    order = {
        stage: place
        for place, stage in enumerate(("push", "collect", "generate", "publish", "dispatch", "deliver"))
    }
    points = sorted(crash_points.POINTS, key=lambda point: (order.get(point.partition(".")[0], 9), point))
    return "".join(f"- `{point}`\n" for point in points)


def _publish_waits() -> str:
    *waits, last = [said(span) for span in pipeline_limits.PUBLISH_RETRIES]
    return (
        "**Failures.** A failed call that may succeed later is tried again after "
        f"{', '.join(waits)} and {last}, or when the platform says.\n"
    )


def _model_answers() -> str:
    rows = []
    for row in ROWS:
        is_taken = "reading" in row.warns
        becomes = f"failed, `{row.error}`" if row.error else "ready, without AI" if is_taken else "ready"
        warns = ", ".join(f"warning `{code}`" for code in row.warns)
        rows.append((row.model, becomes, ": ".join(one for one in (warns, row.message) if one) or "–"))
    return table("The model answers", "The item", "What it says", rows=rows)


BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    ("README.md", "platforms"): _platforms_and_sources,
    ("README.md", "what works"): _what_works,
    **{(f"api/{page}.md", "routes"): _routes(page) for page in sorted(set(PAGE_OF_ADDRESSES.values()))},
    ("api/README.md", "errors"): _errors,
    ("api/README.md", "prefixes"): _prefixes,
    ("api/sources.md", "moves of a source"): _moves("pipeline.Source"),
    ("api/raw-items.md", "moves of a raw item"): _moves("pipeline.RawItem"),
    ("api/publishing.md", "moves of a publication"): _moves("pipeline.Publication"),
    ("api/publishing.md", "waits"): _publish_waits,
    ("webhooks.md", "schedule"): _schedule,
    ("webhooks.md", "events"): _events,
    ("webhooks.md", "moves of an endpoint"): _moves("webhooks.Endpoint"),
    ("limits.md", "limits"): _limits,
    ("running.md", "retention"): _retention,
    ("plugins.md", "sources"): _sources,
    ("plugins.md", "engines"): _engines,
    ("plugins.md", "writers"): _writers,
    ("plugins.md", "model answers"): _model_answers,
    ("plugins.md", "voices"): _voices,
    ("plugins.md", "platforms"): _platforms,
    ("config/core/README.md", "crash points"): _crash_points,
    ("running.md", "tasks"): _jobs,
}
