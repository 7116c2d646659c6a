"""What follows once a post is public, such as a thumbnail: its failure never touches the post."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import structlog

from config.core import limits
from config.core.crash_points import crash_point
from pipeline.outlets.outlet_client import connect
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import Sent
from pipeline.plugins import PluginError
from pipeline.publish.payload import key_of, post_for
from pipeline.publish.results import LEASE
from pipeline.publish.validation import why_closed
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from pipeline.models import Publication

log = structlog.get_logger(__name__)

TRIES: Final = 4
WAIT: Final = timedelta(minutes=5)


def finish(row: Publication, now: datetime) -> None:
    """Ask the platform for what is left to do; given up after some tries, and told in the log alone."""
    is_gone = row.outlet.deleted_at is not None or row.item.deleted_at is not None
    if is_gone or not row.external_id:
        # Nothing is left to add to, or nobody knows which post it is: a person only said that it was sent.
        row.sleep_until(None, attempts=0, step="done")
        return
    is_stopped = kill_switch.stopped("publishing", platform=row.platform, workspace_id=row.workspace_id)
    if is_stopped is not None or why_closed(row.outlet) is not None:
        row.sleep_until(now + WAIT, attempts=0)
        return
    sent = Sent(external_id=row.external_id, url=row.url, details=row.details)
    tries = int(row.step_state.get("finish_tries", 0)) + 1
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
        row.renew_lease(LEASE)
        details = connection.platform.finish(
            connection.account, post_for(row, connection), sent, http=connection.http, now=now
        )
    except PluginError as error:
        log.info("finish_failed", publication=key_of(row), code=error.code, tries=tries)
        is_over = tries >= TRIES
        row.sleep_until(
            None if is_over else now + WAIT,
            attempts=0,
            step="done" if is_over else "finish",
            step_state={**row.step_state, "finish_tries": tries},
        )
        return
    crash_point("publish.finished")
    kept = {**row.details, **(details or {})}
    url = str(kept.pop("url", "") or row.url)[: limits.URL_CHARACTERS]
    row.sleep_until(None, attempts=0, step="done", details=kept, url=url)
