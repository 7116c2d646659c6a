"""The pipeline's part of erasing a workspace: all that it took in, made and published, with the files.

What is erased goes at once and for good, out of the trash too: no week's rest, as for what the sweep takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.workspace_deletion import Waits
from pipeline.media import files, media_root_id, uploads
from pipeline.models import (
    BrandSlot,
    Event,
    EventPosition,
    GeneratedItem,
    Generation,
    HitCount,
    InboundDelivery,
    MailDelivery,
    Mailing,
    MailQueue,
    ModelBatch,
    OAuthAttempt,
    Outlet,
    Persona,
    PersonaDraft,
    Publication,
    PublishHold,
    PublishQueue,
    RawItem,
    RawPrint,
    Recurrence,
    SavedView,
    Series,
    ShortLink,
    SimulatedPost,
    Source,
    SourceEntry,
    Subscriber,
    Switch,
    Topic,
    Upload,
    WeekPlan,
    WorkspaceDefaults,
)

if TYPE_CHECKING:
    from uuid import UUID

# What refers to others goes before them. Attempts, revisions, assets, bodies, versions and picks go with what they
# belong to, whose rows are found by an index that leads with the workspace. What calls to a model cost stays.
_PARTS: Final[tuple[type[Any], ...]] = (
    InboundDelivery,
    MailDelivery,
    Mailing,
    Subscriber,
    MailQueue,
    ShortLink,
    HitCount,
    WeekPlan,
    SavedView,
    Publication,
    Series,
    Recurrence,
    GeneratedItem,
    SourceEntry,
    RawPrint,
    ModelBatch,
    RawItem,
    Generation,
    Event,
    EventPosition,
    WorkspaceDefaults,
    BrandSlot,
    Topic,
    PersonaDraft,
    Persona,
    Upload,
    OAuthAttempt,
    Outlet,
    PublishQueue,
    PublishHold,
    Source,
    SimulatedPost,
    Switch,
)


def erase(workspace_id: UUID, rows: int) -> int:
    """At most so many rows of one kind, and what hangs on them; 0 when nothing is left.

    Raises `Waits` where rows name files and the media folder is another database's: without the rows nobody would find
    the files again.
    """
    for model in _PARTS:
        some = list(model.everywhere.filter(workspace_id=workspace_id).values_list("pk", flat=True)[:rows])
        if some:
            if model in {GeneratedItem, Upload}:
                _refuse_other_folder()
            if model is GeneratedItem:
                files.erase_of_items(some)
            if model is Upload:
                uploads.remove_files(Upload.everywhere.filter(pk__in=some).values_list("path", flat=True))
            model.everywhere.filter(pk__in=some).delete()
            return len(some)
    return 0


def _refuse_other_folder() -> None:
    try:
        media_root_id.refuse_unless_ours()
    except media_root_id.NotOurs as error:
        raise Waits(str(error)) from error
