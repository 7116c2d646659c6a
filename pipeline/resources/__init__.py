"""What the API and its events show: each resource is declared once, in the file of its kind."""

from pipeline.resources.events import EventList
from pipeline.resources.fields import FIRST_POLL_SCHEMA, SOURCE_TYPES
from pipeline.resources.generated_items import (
    LONG_FIELDS,
    Asset,
    Blocker,
    DryRun,
    Explanation,
    GeneratedItem,
    Length,
    PublishedItem,
)
from pipeline.resources.inbound_deliveries import InboundDelivery, InboundSecret, MappingTrial
from pipeline.resources.outlets import Engine, Outlet, SourceType, feed_addresses, feed_page_address
from pipeline.resources.personas import Persona, Topic
from pipeline.resources.publications import ERROR_CLASSES, Attempt, Publication, PublicationError
from pipeline.resources.raw_items import (
    Batch,
    EngineEstimate,
    Estimate,
    Outcome,
    PushedRawItem,
    RawItem,
    RawItemDetail,
    Upload,
)
from pipeline.resources.schedule import (
    Coming,
    Hold,
    Queue,
    QueueWithSlots,
    Recurrence,
    RecurrenceDetail,
    Series,
    SeriesDetail,
    SeriesIssue,
)
from pipeline.resources.sources import BrandSlot, Source, SourceEntry, SourcePreview

__all__ = [
    "ERROR_CLASSES",
    "FIRST_POLL_SCHEMA",
    "LONG_FIELDS",
    "SOURCE_TYPES",
    "Asset",
    "Attempt",
    "Batch",
    "Blocker",
    "BrandSlot",
    "Coming",
    "DryRun",
    "Engine",
    "EngineEstimate",
    "Estimate",
    "EventList",
    "Explanation",
    "GeneratedItem",
    "Hold",
    "InboundDelivery",
    "InboundSecret",
    "Length",
    "MappingTrial",
    "Outcome",
    "Outlet",
    "Persona",
    "Publication",
    "PublicationError",
    "PublishedItem",
    "PushedRawItem",
    "Queue",
    "QueueWithSlots",
    "RawItem",
    "RawItemDetail",
    "Recurrence",
    "RecurrenceDetail",
    "Series",
    "SeriesDetail",
    "SeriesIssue",
    "Source",
    "SourceEntry",
    "SourcePreview",
    "SourceType",
    "Topic",
    "Upload",
    "feed_addresses",
    "feed_page_address",
]
