"""Kills the process at named crash points, so that a test can check that nothing is lost or done twice.

With `CRASH_AT=<name>` the process dies there as by kill -9, with `CRASH_AT=<name>#3` when it passes the third
time. Without the variable a crash point costs one comparison and an empty loop.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_AT, _, _NTH = os.environ.get("CRASH_AT", "").partition("#")
_passed: Final = {"times": 0}
listeners: Final[list[Callable[[str], None]]] = []
"""The functions that are called with the name of each point, for a simulation that runs all in one process."""

# fmt: off
POINTS: Final[frozenset[str]] = frozenset({
    "generate.filmed", "generate.looked", "generate.spoken", "generate.claimed",
    "generate.asking", "generate.answered", "generate.briefed", "generate.drafted",
    "generate.handed_on", "generate.rendered", "generate.written", "generate.committed",
    "uploads.written",
    "push.stored", "push.committed",
    "collect.claimed", "collect.fetched", "collect.stored", "collect.committed", "collect.ingested",
    "series.claimed", "series.made", "series.committed",
    "recurring.claimed", "recurring.made", "recurring.committed",
    "websub.claimed", "websub.armed", "websub.sent", "websub.verified", "websub.woken",
    "inbound.stored", "inbound.taken",
    "brand.claimed", "brand.picked", "brand.committed", "brand.discarded",
    "drafts.claimed", "drafts.read", "drafts.drafted",
    "batches.claimed", "batches.armed", "batches.sent",
    "batches.recorded", "batches.read", "batches.answered",
    "rewrite.claimed", "rewrite.answered", "rewrite.drafted", "rewrite.written", "rewrite.committed",
    "outlets.claimed", "outlets.renewed",
    "publish.claimed", "publish.prepared", "publish.armed", "publish.sent",
    "publish.recorded", "publish.reconciled", "publish.finished", "publish.removed",
    "mailing.spread", "mailing.sending", "mailing.sent",
    "dispatch.queued",
    "task.begun", "task.worked",
    "fan_out.claimed", "fan_out.written",
    "deliver.claimed", "deliver.sent", "deliver.recorded",
    "recover.claimed", "recover.queued", "recover.committed",
    "count.claimed", "count.written",
    "measure.claimed", "measure.read", "measure.written",
    "rollup.claimed", "rollup.written",
    "idempotency.stored",
    "backup.dumped", "backup.written",
    "restore.unpacked", "restore.named", "restore.loaded",
    "restore.cleared", "restore.migrated", "restore.ended",
    "retention.forgotten", "retention.returning", "retention.trashed",
    "retention.trashing", "retention.unlinked",
    "erase.begun", "erase.erased", "erase.batch", "erase.ended",
    "notices.spread", "notices.sent", "notices.recorded", "notices.gathered",
    "monthly.recorded",
})
# fmt: on
"""The names of all points, those of a job or command together."""


def crash_point(name: str) -> None:
    """Kill this process if `CRASH_AT` names the point and it is passed often enough; else call the listeners."""
    if name == _AT:
        _passed["times"] += 1
        if _passed["times"] >= int(_NTH or 1):
            os.kill(os.getpid(), signal.SIGKILL)
    for listener in listeners:
        listener(name)
