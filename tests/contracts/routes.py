"""Every address under /v1 with its methods; a test fails where the URL configuration has one that isn't here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import URLPattern, URLResolver, get_resolver

from accounts.api.not_found import NoSuchAddress

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Route:
    """`path` has `{id}` where an object's id of the kind `prefix` goes."""

    name: str
    method: str
    path: str
    scope: str | None
    prefix: str | None = None


DELIVERY = "ind_01jd4t5v7yf8zr3m6n2q9k0hcx"
"""The delivery that a test makes where one has to be there."""

ROUTES = (
    Route("workspace", "GET", "/workspace", None),
    Route("usage", "GET", "/usage", None),
    Route("usage-ledger", "GET", "/usage/ledger", "analytics:read"),
    Route("source-types", "GET", "/source-types", None),
    Route("sources", "GET", "/sources", "sources:read"),
    Route("sources", "POST", "/sources", "sources:write"),
    Route("source-preview", "POST", "/sources/preview", "sources:write"),
    Route("source-entries", "GET", "/sources/{id}/entries", "sources:read", "src"),
    Route("source-slots", "GET", "/sources/{id}/slots", "sources:read", "src"),
    Route("source", "GET", "/sources/{id}", "sources:read", "src"),
    Route("source", "PATCH", "/sources/{id}", "sources:write", "src"),
    Route("source", "DELETE", "/sources/{id}", "sources:write", "src"),
    Route("source-poll", "POST", "/sources/{id}/poll", "sources:write", "src"),
    Route("inbound-deliveries", "GET", "/sources/{id}/deliveries", "sources:read", "src"),
    Route(
        "inbound-delivery-replay",
        "POST",
        f"/sources/{{id}}/deliveries/{DELIVERY}/replay",
        "sources:write",
        "src",
    ),
    Route("source-dry-run", "POST", "/sources/{id}/dry-run", "sources:read", "src"),
    Route("source-rotate-secret", "POST", "/sources/{id}/rotate-secret", "sources:write", "src"),
    Route("raw", "GET", "/raw", "raw:read"),
    Route("raw", "POST", "/raw", "raw:write"),
    Route("raw-item", "GET", "/raw/{id}", "raw:read", "raw"),
    Route("raw-item", "DELETE", "/raw/{id}", "raw:delete", "raw"),
    Route("raw-retry", "POST", "/raw/{id}/retry", "raw:write", "raw"),
    Route("uploads", "POST", "/uploads", "raw:write"),
    Route("estimate", "POST", "/estimate", None),
    Route("generated", "GET", "/generated", "generated:read"),
    Route("generated-item", "GET", "/generated/{id}", "generated:read", "gen"),
    Route("generated-item", "PATCH", "/generated/{id}", "generated:write", "gen"),
    Route("generated-item", "DELETE", "/generated/{id}", "generated:write", "gen"),
    Route("generated-approve", "POST", "/generated/{id}/approve", "generated:approve", "gen"),
    Route("generated-reject", "POST", "/generated/{id}/reject", "generated:approve", "gen"),
    Route("generated-restore", "POST", "/generated/{id}/restore", "generated:approve", "gen"),
    Route("generated-retry", "POST", "/generated/{id}/retry", "generated:write", "gen"),
    Route("generated-regenerate", "POST", "/generated/{id}/regenerate", "generated:write", "gen"),
    Route("generated-publish", "POST", "/generated/{id}/publish", "generated:publish", "gen"),
    Route("generated-publish", "DELETE", "/generated/{id}/publish", "generated:publish", "gen"),
    Route("publications", "GET", "/publications", "generated:read"),
    Route("publication", "GET", "/publications/{id}", "generated:read", "pub"),
    Route("publication-attempts", "GET", "/publications/{id}/attempts", "generated:read", "pub"),
    Route("publication-reconcile", "POST", "/publications/{id}/reconcile", "generated:publish", "pub"),
    Route("publication-settle", "POST", "/publications/{id}/settle", "generated:publish", "pub"),
    Route("publication-retry", "POST", "/publications/{id}/retry", "generated:publish", "pub"),
    Route("publication-remove", "POST", "/publications/{id}/remove", "generated:publish", "pub"),
    Route("generated-storyboard", "GET", "/generated/{id}/storyboard", "generated:read", "gen"),
    Route("generated-storyboard", "PATCH", "/generated/{id}/storyboard", "generated:write", "gen"),
    Route("generated-explain", "GET", "/generated/{id}/explain", "generated:read", "gen"),
    Route("queues", "GET", "/queues", "generated:read"),
    Route("queue", "GET", "/queues/{id}", "generated:read", "que"),
    Route("hold", "GET", "/hold", "generated:read"),
    Route("hold", "POST", "/hold", "generated:publish"),
    Route("hold", "DELETE", "/hold", "generated:publish"),
    Route("plans", "POST", "/plans", "generated:publish"),
    Route("plan", "GET", "/plans/{id}", "generated:read", "pln"),
    Route("plan-undo", "POST", "/plans/{id}/undo", "generated:publish", "pln"),
    Route("series", "GET", "/series", "generated:read"),
    Route("series", "POST", "/series", "generated:write"),
    Route("one-series", "GET", "/series/{id}", "generated:read", "ser"),
    Route("one-series", "PATCH", "/series/{id}", "generated:write", "ser"),
    Route("one-series", "DELETE", "/series/{id}", "generated:write", "ser"),
    Route("series-make", "POST", "/series/{id}/make", "generated:write", "ser"),
    Route("recurrences", "GET", "/recurrences", "generated:read"),
    Route("recurrences", "POST", "/recurrences", "generated:write"),
    Route("recurrence", "GET", "/recurrences/{id}", "generated:read", "rec"),
    Route("recurrence", "PATCH", "/recurrences/{id}", "generated:write", "rec"),
    Route("outlets", "GET", "/outlets", "generated:read"),
    Route("outlet", "GET", "/outlets/{id}", "generated:read", "out"),
    Route("personas", "GET", "/personas", "generated:read"),
    Route("personas", "POST", "/personas", "sources:write"),
    Route("persona", "GET", "/personas/{id}", "generated:read", "per"),
    Route("persona", "PATCH", "/personas/{id}", "sources:write", "per"),
    Route("persona", "DELETE", "/personas/{id}", "sources:write", "per"),
    Route("topics", "GET", "/topics", "sources:read"),
    Route("topics", "POST", "/topics", "sources:write"),
    Route("topic", "GET", "/topics/{id}", "sources:read", "top"),
    Route("topic", "PATCH", "/topics/{id}", "sources:write", "top"),
    Route("topic", "DELETE", "/topics/{id}", "sources:write", "top"),
    Route("engines", "GET", "/engines", None),
    Route("events", "GET", "/events", "generated:read"),
    Route("analytics", "GET", "/analytics", "analytics:read"),
    Route("document", "GET", "/openapi.json", None),
)


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def configured() -> set[tuple[str, str]]:
    """Name and method of everything that the URL configuration serves under /v1."""
    found = set()
    for pattern in _under_v1():
        actions = getattr(pattern.callback, "actions", None)
        assert actions, f"{pattern.pattern} is no resource with actions"
        if pattern.callback.cls is NoSuchAddress:
            continue
        assert pattern.name, f"{pattern.pattern} has no name"
        found |= {(pattern.name, method.upper()) for method in actions if method != "head"}
    return found


def _under_v1() -> Iterator[URLPattern]:
    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLResolver):
            if str(pattern.pattern) == "v1/":
                yield from pattern.url_patterns
        elif "v1" in str(pattern.pattern):
            yield pattern
