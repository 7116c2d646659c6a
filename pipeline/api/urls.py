"""The URLs of this app under /v1; each also works with a trailing slash."""

import re
from typing import Any, Final

from django.urls import URLPattern, re_path
from rest_framework.viewsets import ViewSet

from pipeline.api.catalogue import EngineView, OutletView, SourceTypeView
from pipeline.api.events import EventView
from pipeline.api.generated_items.views import GeneratedItemView
from pipeline.api.inbound_deliveries import InboundDeliveryView
from pipeline.api.personas import PersonaView
from pipeline.api.publications import PublicationView
from pipeline.api.queues import HoldView, QueueView
from pipeline.api.raw_items import EstimateView, RawItemView
from pipeline.api.recurrences import RecurrenceView
from pipeline.api.series import SeriesView
from pipeline.api.sources import SourceView
from pipeline.api.storyboards import StoryboardView
from pipeline.api.topics import TopicView
from pipeline.api.uploads import UploadView
from pipeline.api.week_plans import PlanView

_ITEM_ACTIONS: Final = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}


def _route(path: str, view: type[ViewSet], name: str, **actions: Any) -> URLPattern:
    """Return the pattern of a path, in which `:id` stands for one part; `actions` are by method."""
    pattern = re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path)
    return re_path(f"^{pattern}/?$", view.as_view(actions), name=name)


urlpatterns = [
    _route("sources", SourceView, "sources", get="list", post="create"),
    _route("sources/preview", SourceView, "source-preview", post="preview"),
    _route("sources/:id/entries", SourceView, "source-entries", get="entries"),
    _route("sources/:id/slots", SourceView, "source-slots", get="slots"),
    _route("sources/:id", SourceView, "source", **_ITEM_ACTIONS),
    _route("sources/:id/poll", SourceView, "source-poll", post="poll"),
    _route("sources/:id/deliveries", InboundDeliveryView, "inbound-deliveries", get="list"),
    _route(
        "sources/:id/deliveries/:delivery/replay",
        InboundDeliveryView,
        "inbound-delivery-replay",
        post="replay",
    ),
    _route("sources/:id/dry-run", InboundDeliveryView, "source-dry-run", post="dry_run"),
    _route("sources/:id/rotate-secret", InboundDeliveryView, "source-rotate-secret", post="rotate"),
    _route("raw", RawItemView, "raw", get="list", post="create"),
    _route("raw/:id", RawItemView, "raw-item", get="retrieve", delete="destroy"),
    _route("raw/:id/retry", RawItemView, "raw-retry", post="retry"),
    _route("uploads", UploadView, "uploads", post="create"),
    _route("estimate", EstimateView, "estimate", post="create"),
    _route("generated", GeneratedItemView, "generated", get="list"),
    _route("generated/:id", GeneratedItemView, "generated-item", **_ITEM_ACTIONS),
    _route("generated/:id/approve", GeneratedItemView, "generated-approve", post="approve"),
    _route("generated/:id/reject", GeneratedItemView, "generated-reject", post="reject"),
    _route("generated/:id/restore", GeneratedItemView, "generated-restore", post="restore"),
    _route("generated/:id/retry", GeneratedItemView, "generated-retry", post="retry"),
    _route("generated/:id/regenerate", GeneratedItemView, "generated-regenerate", post="regenerate"),
    _route("generated/:id/publish", GeneratedItemView, "generated-publish", post="publish", delete="cancel"),
    _route("generated/:id/explain", GeneratedItemView, "generated-explain", get="explain"),
    _route(
        "generated/:id/storyboard",
        StoryboardView,
        "generated-storyboard",
        get="retrieve",
        patch="partial_update",
    ),
    _route("queues", QueueView, "queues", get="list"),
    _route("queues/:id", QueueView, "queue", get="retrieve"),
    _route("plans", PlanView, "plans", post="create"),
    _route("plans/:id", PlanView, "plan", get="retrieve"),
    _route("plans/:id/undo", PlanView, "plan-undo", post="undo"),
    _route("series", SeriesView, "series", get="list", post="create"),
    _route("series/:id", SeriesView, "one-series", **_ITEM_ACTIONS),
    _route("series/:id/make", SeriesView, "series-make", post="make"),
    _route("recurrences", RecurrenceView, "recurrences", get="list", post="create"),
    _route("recurrences/:id", RecurrenceView, "recurrence", get="retrieve", patch="partial_update"),
    _route("hold", HoldView, "hold", get="retrieve", post="create", delete="destroy"),
    _route("publications", PublicationView, "publications", get="list"),
    _route("publications/:id/attempts", PublicationView, "publication-attempts", get="attempts"),
    _route("publications/:id", PublicationView, "publication", get="retrieve"),
    _route("publications/:id/reconcile", PublicationView, "publication-reconcile", post="reconcile"),
    _route("publications/:id/retry", PublicationView, "publication-retry", post="retry"),
    _route("publications/:id/remove", PublicationView, "publication-remove", post="remove"),
    _route("publications/:id/settle", PublicationView, "publication-settle", post="settle"),
    _route("outlets", OutletView, "outlets", get="list"),
    _route("outlets/:id", OutletView, "outlet", get="retrieve"),
    _route("personas", PersonaView, "personas", get="list", post="create"),
    _route("personas/:id", PersonaView, "persona", **_ITEM_ACTIONS),
    _route("topics", TopicView, "topics", get="list", post="create"),
    _route("topics/:id", TopicView, "topic", **_ITEM_ACTIONS),
    _route("source-types", SourceTypeView, "source-types", get="list"),
    _route("engines", EngineView, "engines", get="list"),
    _route("events", EventView, "events", get="list"),
]
