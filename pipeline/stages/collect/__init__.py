"""Register sources and poll them: every entry is taken in once, or kept with the reason why not."""

from pipeline.stages.collect.checking import (
    SourcesExceeded,
    as_meant,
    check_interval,
    check_references,
    clean_config,
    kind_of,
    written,
)
from pipeline.stages.collect.hosts import forget as forget_hosts
from pipeline.stages.collect.journal import forget as forget_entries
from pipeline.stages.collect.polling import DELISTED_WAIT, MESSAGE_CHARACTERS, give_up, interval_of, poll
from pipeline.stages.collect.previewing import Preview, Previewed, preview
from pipeline.stages.collect.registering import (
    CHANGEABLE,
    POLLED,
    SourceSettings,
    change,
    checked,
    delete,
    poll_now,
    register,
    restore,
)
from pipeline.stages.outlet_references import check_outlets

__all__ = [
    "CHANGEABLE",
    "DELISTED_WAIT",
    "MESSAGE_CHARACTERS",
    "POLLED",
    "Preview",
    "Previewed",
    "SourceSettings",
    "SourcesExceeded",
    "as_meant",
    "change",
    "check_interval",
    "check_outlets",
    "check_references",
    "checked",
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
