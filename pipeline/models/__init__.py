"""The nouns of the product."""

from pipeline.models.brand_slot import BrandPick, BrandSlot
from pipeline.models.event import Event, EventPosition
from pipeline.models.generated_item import Asset, GeneratedItem, Revision, made_of, runs_telling
from pipeline.models.generation import Generation, GenerationInput
from pipeline.models.hits import HitCount, ShortLink
from pipeline.models.host_slot import HostSlot
from pipeline.models.inbound import InboundDelivery, InboundSecret
from pipeline.models.mailing import MailDelivery, Mailing, MailQueue, Subscriber
from pipeline.models.model_batch import BatchedCall, ModelBatch
from pipeline.models.model_call import ModelCall
from pipeline.models.oauth import OAuthApp, OAuthAttempt
from pipeline.models.outlet import Outlet
from pipeline.models.persona import Persona, PersonaVersion, Topic
from pipeline.models.persona_draft import PersonaDraft
from pipeline.models.publication import Attempt, Publication
from pipeline.models.publish_queue import PublishHold, PublishQueue
from pipeline.models.raw_item import RawBody, RawItem, RawPrint
from pipeline.models.recurrence import Recurrence, RecurrenceTurn
from pipeline.models.series import Series, SeriesIssue
from pipeline.models.shared_brief import SharedBrief
from pipeline.models.simulated_post import SimulatedPost
from pipeline.models.source import Source
from pipeline.models.source_entry import SourceEntry
from pipeline.models.switch import Switch
from pipeline.models.tally import Tally
from pipeline.models.upload import Upload, UploadUse
from pipeline.models.websub import WebSubSubscription
from pipeline.models.week_plan import WeekPlan
from pipeline.models.workspace_defaults import WorkspaceDefaults

__all__ = [
    "Asset",
    "Attempt",
    "BatchedCall",
    "BrandPick",
    "BrandSlot",
    "Event",
    "EventPosition",
    "GeneratedItem",
    "Generation",
    "GenerationInput",
    "HitCount",
    "HostSlot",
    "InboundDelivery",
    "InboundSecret",
    "MailDelivery",
    "MailQueue",
    "Mailing",
    "ModelBatch",
    "ModelCall",
    "OAuthApp",
    "OAuthAttempt",
    "Outlet",
    "Persona",
    "PersonaDraft",
    "PersonaVersion",
    "Publication",
    "PublishHold",
    "PublishQueue",
    "RawBody",
    "RawItem",
    "RawPrint",
    "Recurrence",
    "RecurrenceTurn",
    "Revision",
    "Series",
    "SeriesIssue",
    "SharedBrief",
    "ShortLink",
    "SimulatedPost",
    "Source",
    "SourceEntry",
    "Subscriber",
    "Switch",
    "Tally",
    "Topic",
    "Upload",
    "UploadUse",
    "WebSubSubscription",
    "WeekPlan",
    "WorkspaceDefaults",
    "made_of",
    "runs_telling",
]
