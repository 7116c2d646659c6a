"""Register sources and poll them: every entry is taken in once, or kept with the reason why not."""

from pipeline.ingest.collect.crud import (
    CHANGEABLE,
    SourceSettings,
    add,
    change,
    checked,
    checked_changes,
    delete,
    poll_now,
    register,
    restore,
)
from pipeline.ingest.collect.entry_log import forget as forget_entries
from pipeline.ingest.collect.poll_source import DELISTED_WAIT, MESSAGE_CHARACTERS, give_up, interval_of, poll
from pipeline.ingest.collect.source_preview import Previewed, SourcePreview, preview
from pipeline.ingest.collect.source_validation import (
    SourcesExceeded,
    as_meant,
    check_interval,
    check_references,
    clean_config,
    kind_of,
    written,
)
from pipeline.outlets.outlets_by_id import check_outlets
from pipeline.switches.host_lock import forget as forget_hosts

__all__ = [
    "CHANGEABLE",
    "DELISTED_WAIT",
    "MESSAGE_CHARACTERS",
    "Previewed",
    "SourcePreview",
    "SourceSettings",
    "SourcesExceeded",
    "add",
    "as_meant",
    "change",
    "check_interval",
    "check_outlets",
    "check_references",
    "checked",
    "checked_changes",
    "clean_config",
    "delete",
    "forget_entries",
    "forget_hosts",
    "give_up",
    "interval_of",
    "kind_of",
    "poll",
    "poll_now",
    "preview",
    "register",
    "restore",
    "written",
]
