"""Tell people and programs that a source fails or is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from accounts import notices
from config.core.datetimes import as_z
from pipeline import events, payloads
from pipeline.models import SourceStatus

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import Source


def tell_failing(source: Source, now: datetime) -> None:
    events.record(
        "source.failing",
        workspace_id=source.workspace_id,
        test=source.test,
        data={"source": payloads.source(payloads.row_of(source))},
        source_id=source.pk,
        request=source.request_id,
        now=now,
    )
    if source.test:
        return
    is_gone = source.status == SourceStatus.GONE
    title = _("The source %(name)s is gone") if is_gone else _("The source %(name)s fails")
    advice = (
        _("It is not polled again until somebody switches it on.")
        if is_gone
        else _("It is polled again by itself, with longer waits.")
    )
    notices.record(
        "source_failing",
        workspace_id=source.workspace_id,
        key=f"{source.pk.hex}:{source.status}:{as_z(source.failing_since or now)}",
        title=title % {"name": source.name},
        text=f"{(source.last_error or {}).get('message', '')}\n{advice}",
        path="#sources",
        now=now,
    )
