"""Registers sources and polls them: each entry is taken in once, or logged with the reason why not."""

from pipeline.ingest.collect.crud import (
    CHANGEABLE,
    SourceSettings,
    add,
    change,
    delete,
    poll_now,
    register,
    restore,
    validate_changes,
    validate_source,
)
from pipeline.ingest.collect.entry_log import forget as forget_entries
from pipeline.ingest.collect.poll_source import DELISTED_WAIT, MESSAGE_CHARACTERS, give_up, interval_of, poll
from pipeline.ingest.collect.source_preview import PreviewedEntry, SourcePreview, preview
from pipeline.ingest.collect.source_validation import (
    SourcesExceeded,
    check_interval,
    check_references,
    clean_config,
    guess_settings,
    kind_of,
    settings_as_text,
)
from pipeline.outlets.outlets_by_id import check_outlets
from pipeline.switches.host_lock import forget as forget_hosts

__all__ = [
    "CHANGEABLE",
    "DELISTED_WAIT",
    "MESSAGE_CHARACTERS",
    "PreviewedEntry",
    "SourcePreview",
    "SourceSettings",
    "SourcesExceeded",
    "add",
    "change",
    "check_interval",
    "check_outlets",
    "check_references",
    "clean_config",
    "delete",
    "forget_entries",
    "forget_hosts",
    "give_up",
    "guess_settings",
    "interval_of",
    "kind_of",
    "poll",
    "poll_now",
    "preview",
    "register",
    "restore",
    "settings_as_text",
    "validate_changes",
    "validate_source",
]
