"""Erases the pipeline's part of a workspace: its content, its settings, and the files.

Files are deleted at once, also from the trash, where the media sweep would leave them for a week.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.workspace_deletion import ErasureBlocked
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

# Rows are deleted before what they refer to. Attempts, revisions, assets, bodies, versions and picks are
# deleted with the rows that they belong to, which are found by an index that begins with the workspace. The
# cost of model calls stays.
_ERASED_MODELS: Final[tuple[type[Any], ...]] = (
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
    """Delete at most `rows` rows of the first model that has any, with what depends on them.

    Returns their number, or 0 if no model has rows. Raises `ErasureBlocked` if the rows name files and the
    media folder belongs to another database, because nobody would find the files without the rows.
    """
    for model in _ERASED_MODELS:
        ids = list(model.everywhere.filter(workspace_id=workspace_id).values_list("pk", flat=True)[:rows])
        if ids:
            if model in {GeneratedItem, Upload}:
                _refuse_foreign_media_folder()
            if model is GeneratedItem:
                files.erase_files_of_items(ids)
            if model is Upload:
                uploads.remove_files(Upload.everywhere.filter(pk__in=ids).values_list("path", flat=True))
            model.everywhere.filter(pk__in=ids).delete()
            return len(ids)
    return 0


def _refuse_foreign_media_folder() -> None:
    try:
        media_root_id.refuse_foreign_folder()
    except media_root_id.ForeignMediaFolder as error:
        raise ErasureBlocked(str(error)) from error
