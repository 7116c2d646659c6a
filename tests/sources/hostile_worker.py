"""Polls hostile feeds one after the other as a worker would, and tells what came of each and of its memory.

Run as `python -m tests.sources.hostile_worker '<JSON: [[name, address, polls], …]>'`.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from config.core.http_client import Client, Policy
from pipeline.plugins import PluginError
from pipeline.sources import rss

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# A drip of bytes is broken off sooner than in earnest, by the same deadline.
rss.TIMEOUT_SECONDS = 4


def peak_kilobytes():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def poll(url, times):
    http = Client(Policy(allow_loopback=True, user_agent="content-pipeline-test"))
    state, told = {}, []
    for _ in range(times):
        try:
            found = rss.PLUGIN.fetch({"url": url}, state, http=http, now=NOW, environment={})
        except PluginError as error:
            told.append({"error": error.code, "message": error.message})
            continue
        state = json.loads(json.dumps(found.state))
        told.append(
            {
                "entries": len(found.entries),
                "first": [
                    [
                        entry.external_id,
                        entry.url,
                        entry.title,
                        entry.published_at and entry.published_at.isoformat(),
                    ]
                    for entry in found.entries[:3]
                ],
                "ids": sorted({entry.external_id or "" for entry in found.entries})[:20],
                "malformed": found.malformed,
                "not_modified": found.not_modified,
            }
        )
    return told


def main(wanted):
    # What the libraries take is there before, as it is in a worker.
    poll(wanted[0][1], 1)
    before = peak_kilobytes()
    told = {name: poll(url, times) for name, url, times in wanted}
    return {"told": told, "grown_kilobytes": peak_kilobytes() - before}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(json.loads(sys.argv[1]))))
