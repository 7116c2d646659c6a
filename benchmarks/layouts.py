"""Holds the commands that start each layout of the service, by docs/running.md, and the slots of their workers."""

from __future__ import annotations

import sys
from typing import Final

_WAITING_QUEUES: Final = "dispatch,ingest,generate,publish,webhooks,mail,analytics,housekeeping"
"""The queues whose tasks mostly wait for other servers."""
_CELERY: Final = [sys.executable, "-m", "celery", "-A", "config"]
_WORKER: Final = [*_CELERY, "worker"]
PUBLISH_SLOTS: Final = 24
"""The number of calls to platforms that one worker makes at once, by the settings' defaults."""
WEBHOOK_SLOTS: Final = 12
"""The number of deliveries to healthy endpoints that one worker makes at once, by the settings' defaults."""


def process_commands(layout: str, *, workers: int = 1) -> dict[str, list[str]]:
    """Return the commands of a layout by role, in the order in which they are started."""
    if layout == "embedded":
        return {"serve": [sys.executable, "manage.py", "serve"]}
    return {
        "web": [sys.executable, "-m", "gunicorn", "config.wsgi"],
        **{
            f"worker{number}": [*_WORKER, "-P", "threads", "-n", f"worker{number}@%h", "-Q", _WAITING_QUEUES]
            for number in range(workers)
        },
        "computing": [*_WORKER, "-P", "prefork", "-c", "2", "-n", "computing@%h", "-Q", "compute,render"],
        "beat": [*_CELERY, "beat"],
    }
