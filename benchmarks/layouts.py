"""How each layout of the service is started, as docs/running.md says: the only part that follows a change of it."""

from __future__ import annotations

import sys
from typing import Final

_WAITING: Final = "dispatch,ingest,generate,publish,webhooks,mail,analytics,housekeeping"
"""Queues whose tasks mostly wait for others."""
_CELERY: Final = [sys.executable, "-m", "celery", "-A", "config"]
PUBLISH_SLOTS: Final = 24
"""Calls to platforms that one worker makes at a time, with the settings' own defaults."""
WEBHOOK_SLOTS: Final = 12
"""The same of deliveries to healthy endpoints."""


def processes(layout: str, *, workers: int = 1) -> dict[str, list[str]]:
    """The commands of a layout by their role, in the order in which they are started."""
    if layout == "embedded":
        return {"serve": [sys.executable, "manage.py", "serve"]}
    return {
        "web": [sys.executable, "-m", "gunicorn", "config.wsgi"],
        **{
            f"worker{number}": [
                *_CELERY,
                "worker",
                "-P",
                "threads",
                "-n",
                f"worker{number}@%h",
                "-Q",
                _WAITING,
            ]
            for number in range(workers)
        },
        "computing": [
            *_CELERY,
            "worker",
            "-P",
            "prefork",
            "-c",
            "2",
            "-n",
            "computing@%h",
            "-Q",
            "compute,render",
        ],
        "beat": [*_CELERY, "beat"],
    }
