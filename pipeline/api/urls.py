"""The URLs of this app under /v1; each also works with a trailing slash."""

from typing import Any, Final

from django.urls import re_path

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

_ID = r"(?P<id>[^/]+)"
_ITEM_ACTIONS: Final[dict[str, Any]] = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}

urlpatterns = [
    re_path(r"^sources/?$", SourceView.as_view({"get": "list", "post": "create"}), name="sources"),
    re_path(r"^sources/preview/?$", SourceView.as_view({"post": "preview"}), name="source-preview"),
    re_path(rf"^sources/{_ID}/entries/?$", SourceView.as_view({"get": "entries"}), name="source-entries"),
    re_path(rf"^sources/{_ID}/slots/?$", SourceView.as_view({"get": "slots"}), name="source-slots"),
    re_path(rf"^sources/{_ID}/?$", SourceView.as_view(_ITEM_ACTIONS), name="source"),
    re_path(rf"^sources/{_ID}/poll/?$", SourceView.as_view({"post": "poll"}), name="source-poll"),
    re_path(
        rf"^sources/{_ID}/deliveries/?$",
        InboundDeliveryView.as_view({"get": "list"}),
        name="inbound-deliveries",
    ),
    re_path(
        rf"^sources/{_ID}/deliveries/(?P<delivery>[^/]+)/replay/?$",
        InboundDeliveryView.as_view({"post": "replay"}),
        name="inbound-delivery-replay",
    ),
    re_path(
        rf"^sources/{_ID}/dry-run/?$",
        InboundDeliveryView.as_view({"post": "dry_run"}),
        name="source-dry-run",
    ),
    re_path(
        rf"^sources/{_ID}/rotate-secret/?$",
        InboundDeliveryView.as_view({"post": "rotate"}),
        name="source-rotate-secret",
    ),
    re_path(r"^raw/?$", RawItemView.as_view({"get": "list", "post": "create"}), name="raw"),
    re_path(
        rf"^raw/{_ID}/?$", RawItemView.as_view({"get": "retrieve", "delete": "destroy"}), name="raw-item"
    ),
    re_path(rf"^raw/{_ID}/retry/?$", RawItemView.as_view({"post": "retry"}), name="raw-retry"),
    re_path(r"^uploads/?$", UploadView.as_view({"post": "create"}), name="uploads"),
    re_path(r"^estimate/?$", EstimateView.as_view({"post": "create"}), name="estimate"),
    re_path(r"^generated/?$", GeneratedItemView.as_view({"get": "list"}), name="generated"),
    re_path(rf"^generated/{_ID}/?$", GeneratedItemView.as_view(_ITEM_ACTIONS), name="generated-item"),
    *(
        re_path(
            rf"^generated/{_ID}/{act}/?$", GeneratedItemView.as_view({"post": act}), name=f"generated-{act}"
        )
        for act in ("approve", "reject", "restore", "retry", "regenerate")
    ),
    re_path(
        rf"^generated/{_ID}/publish/?$",
        GeneratedItemView.as_view({"post": "publish", "delete": "cancel"}),
        name="generated-publish",
    ),
    re_path(
        rf"^generated/{_ID}/explain/?$",
        GeneratedItemView.as_view({"get": "explain"}),
        name="generated-explain",
    ),
    re_path(
        rf"^generated/{_ID}/storyboard/?$",
        StoryboardView.as_view({"get": "retrieve", "patch": "partial_update"}),
        name="generated-storyboard",
    ),
    re_path(r"^queues/?$", QueueView.as_view({"get": "list"}), name="queues"),
    re_path(rf"^queues/{_ID}/?$", QueueView.as_view({"get": "retrieve"}), name="queue"),
    re_path(r"^plans/?$", PlanView.as_view({"post": "create"}), name="plans"),
    re_path(rf"^plans/{_ID}/?$", PlanView.as_view({"get": "retrieve"}), name="plan"),
    re_path(rf"^plans/{_ID}/undo/?$", PlanView.as_view({"post": "undo"}), name="plan-undo"),
    re_path(r"^series/?$", SeriesView.as_view({"get": "list", "post": "create"}), name="series"),
    re_path(rf"^series/{_ID}/?$", SeriesView.as_view(_ITEM_ACTIONS), name="one-series"),
    re_path(rf"^series/{_ID}/make/?$", SeriesView.as_view({"post": "make"}), name="series-make"),
    re_path(
        r"^recurrences/?$", RecurrenceView.as_view({"get": "list", "post": "create"}), name="recurrences"
    ),
    re_path(
        rf"^recurrences/{_ID}/?$",
        RecurrenceView.as_view({"get": "retrieve", "patch": "partial_update"}),
        name="recurrence",
    ),
    re_path(
        r"^hold/?$",
        HoldView.as_view({"get": "retrieve", "post": "create", "delete": "destroy"}),
        name="hold",
    ),
    re_path(r"^publications/?$", PublicationView.as_view({"get": "list"}), name="publications"),
    re_path(
        rf"^publications/{_ID}/attempts/?$",
        PublicationView.as_view({"get": "attempts"}),
        name="publication-attempts",
    ),
    re_path(rf"^publications/{_ID}/?$", PublicationView.as_view({"get": "retrieve"}), name="publication"),
    *(
        re_path(
            rf"^publications/{_ID}/{act}/?$",
            PublicationView.as_view({"post": act}),
            name=f"publication-{act}",
        )
        for act in ("reconcile", "retry", "remove", "settle")
    ),
    re_path(r"^outlets/?$", OutletView.as_view({"get": "list"}), name="outlets"),
    re_path(rf"^outlets/{_ID}/?$", OutletView.as_view({"get": "retrieve"}), name="outlet"),
    re_path(r"^personas/?$", PersonaView.as_view({"get": "list", "post": "create"}), name="personas"),
    re_path(rf"^personas/{_ID}/?$", PersonaView.as_view(_ITEM_ACTIONS), name="persona"),
    re_path(r"^topics/?$", TopicView.as_view({"get": "list", "post": "create"}), name="topics"),
    re_path(rf"^topics/{_ID}/?$", TopicView.as_view(_ITEM_ACTIONS), name="topic"),
    re_path(r"^source-types/?$", SourceTypeView.as_view({"get": "list"}), name="source-types"),
    re_path(r"^engines/?$", EngineView.as_view({"get": "list"}), name="engines"),
    re_path(r"^events/?$", EventView.as_view({"get": "list"}), name="events"),
]
