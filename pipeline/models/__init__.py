"""The nouns of the product."""

from pipeline.models.brand_slot import BrandPick, BrandPickDecision, BrandSlot, BrandSlotStatus
from pipeline.models.event import Event, EventPosition
from pipeline.models.generated_item import (
    Angle,
    Asset,
    AssetKind,
    BodyFormat,
    Bucket,
    FlagReason,
    GeneratedItem,
    GeneratedItemStatus,
    HoldReason,
    Revision,
    made_of,
    runs_telling,
)
from pipeline.models.generation import (
    Generation,
    GenerationInput,
    GenerationQueue,
    GenerationStage,
    GenerationStatus,
)
from pipeline.models.hits import HitCount, HitKind, ShortLink
from pipeline.models.host_slot import HostSlot
from pipeline.models.inbound import InboundDelivery, InboundDeliveryStatus, InboundSecret, Verification
from pipeline.models.lease import Lease, LeaseState, Worker
from pipeline.models.mailing import (
    MailDelivery,
    MailDeliveryStatus,
    Mailing,
    MailingStatus,
    MailQueue,
    Subscriber,
    SubscriberOrigin,
    SubscriberStatus,
)
from pipeline.models.media_folder import MediaFolder
from pipeline.models.model_batch import BatchedCall, BatchedCallOutcome, ModelBatch, ModelBatchStatus
from pipeline.models.model_call import ModelCall, ModelCallMode, ModelCallOutcome, ModelCallStage
from pipeline.models.oauth import OAuthApp, OAuthAttempt
from pipeline.models.outlet import Outlet, OutletStatus
from pipeline.models.persona import Persona, PersonaVersion, Topic
from pipeline.models.persona_draft import PersonaDraft, PersonaDraftStatus
from pipeline.models.publication import (
    Attempt,
    AttemptStatus,
    GapChoice,
    LatePolicy,
    OverlapChoice,
    Publication,
    PublicationStatus,
    PublicationStep,
)
from pipeline.models.publish_queue import PublishHold, PublishQueue, SlotGapChoice
from pipeline.models.raw_item import RawBody, RawItem, RawItemStatus, RawPrint
from pipeline.models.recurrence import Recurrence, RecurrenceDecision, RecurrenceStatus, RecurrenceTurn
from pipeline.models.series import Series, SeriesIssue, SeriesIssueDecision
from pipeline.models.shared_brief import SharedBrief
from pipeline.models.simulated_post import SimulatedPost
from pipeline.models.source import Source, SourceStatus
from pipeline.models.source_entry import DecidedBy, SourceEntry, SourceEntryDecision
from pipeline.models.switch import Switch
from pipeline.models.tally import Tally
from pipeline.models.upload import Upload, UploadKind, UploadUse
from pipeline.models.websub import WebSubStatus, WebSubSubscription
from pipeline.models.week_plan import WeekPlan
from pipeline.models.workspace_defaults import WorkspaceDefaults

__all__ = [
    "Angle",
    "Asset",
    "AssetKind",
    "Attempt",
    "AttemptStatus",
    "BatchedCall",
    "BatchedCallOutcome",
    "BodyFormat",
    "BrandPick",
    "BrandPickDecision",
    "BrandSlot",
    "BrandSlotStatus",
    "Bucket",
    "DecidedBy",
    "Event",
    "EventPosition",
    "FlagReason",
    "GapChoice",
    "GeneratedItem",
    "GeneratedItemStatus",
    "Generation",
    "GenerationInput",
    "GenerationQueue",
    "GenerationStage",
    "GenerationStatus",
    "HitCount",
    "HitKind",
    "HoldReason",
    "HostSlot",
    "InboundDelivery",
    "InboundDeliveryStatus",
    "InboundSecret",
    "LatePolicy",
    "Lease",
    "LeaseState",
    "MailDelivery",
    "MailDeliveryStatus",
    "MailQueue",
    "Mailing",
    "MailingStatus",
    "MediaFolder",
    "ModelBatch",
    "ModelBatchStatus",
    "ModelCall",
    "ModelCallMode",
    "ModelCallOutcome",
    "ModelCallStage",
    "OAuthApp",
    "OAuthAttempt",
    "Outlet",
    "OutletStatus",
    "OverlapChoice",
    "Persona",
    "PersonaDraft",
    "PersonaDraftStatus",
    "PersonaVersion",
    "Publication",
    "PublicationStatus",
    "PublicationStep",
    "PublishHold",
    "PublishQueue",
    "RawBody",
    "RawItem",
    "RawItemStatus",
    "RawPrint",
    "Recurrence",
    "RecurrenceDecision",
    "RecurrenceStatus",
    "RecurrenceTurn",
    "Revision",
    "Series",
    "SeriesIssue",
    "SeriesIssueDecision",
    "SharedBrief",
    "ShortLink",
    "SimulatedPost",
    "SlotGapChoice",
    "Source",
    "SourceEntry",
    "SourceEntryDecision",
    "SourceStatus",
    "Subscriber",
    "SubscriberOrigin",
    "SubscriberStatus",
    "Switch",
    "Tally",
    "Topic",
    "Upload",
    "UploadKind",
    "UploadUse",
    "Verification",
    "WebSubStatus",
    "WebSubSubscription",
    "WeekPlan",
    "Worker",
    "WorkspaceDefaults",
    "made_of",
    "runs_telling",
]
