"""Message batches as the service keeps them: gathered requests, a standing, results in an order of their own."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST = 100_000
PATH = "/v1/messages/batches"


@dataclass
class Batch:
    id: str
    requests: list[Mapping[str, Any]]
    created_at: datetime
    status: str = "in_progress"
    is_cancelled: bool = False
    results: list[Mapping[str, Any]] = field(default_factory=list)


class Batches:
    """`answer` makes a request's `result`; a batch ends when the test says so, or at once with `ends_at_once`."""

    def __init__(self, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.made: list[Batch] = []
        self.calls: list[tuple[str, str]] = []
        self.ends_at_once = False
        self.loses_answers = 0
        """So many batches are taken in and their senders hear nothing of it."""
        self._answer = answer
        self._lock = threading.Lock()

    def end(self, *, only: Callable[[str], bool] = lambda _id: True, otherwise: str = "expired") -> None:
        """Work every batch to its end; requests that `only` leaves out end as `otherwise`."""
        for batch in self.made:
            if batch.status == "ended":
                continue
            rows = [
                {
                    "custom_id": one["custom_id"],
                    "result": self._answer(one) if only(one["custom_id"]) else {"type": otherwise},
                }
                for one in batch.requests
            ]
            # In any order but the one in which they were sent.
            batch.results = rows[::-1]
            batch.status = "ended"

    def handle(self, method: str, target: str, body: Any) -> tuple[int, str]:
        with self._lock:
            return self._handle(method, target, body)

    def _handle(self, method: str, target: str, body: Any) -> tuple[int, str]:
        self.calls.append((method, target))
        path, asked = urlsplit(target).path, parse_qs(urlsplit(target).query)
        rest = path.removeprefix(PATH).strip("/").split("/")
        if method == "POST" and rest == [""]:
            return self._create(body)
        if method == "GET" and rest == [""]:
            return self._list(int(asked.get("limit", ["20"])[0]), asked.get("after_id", [""])[0])
        batch = next((one for one in self.made if one.id == rest[0]), None)
        if batch is None:
            return 404, _error("not_found_error")
        if method == "GET" and len(rest) == 1:
            return 200, json.dumps(_shown(batch))
        if method == "POST" and rest[1:] == ["cancel"]:
            batch.is_cancelled = True
            batch.status = "canceling"
            return 200, json.dumps(_shown(batch))
        if method == "GET" and rest[1:] == ["results"]:
            if batch.status != "ended":
                return 404, _error("not_found_error")
            return 200, "".join(f"{json.dumps(row)}\n" for row in batch.results)
        return 404, _error("not_found_error")

    def _create(self, body: Any) -> tuple[int, str]:
        requests = body.get("requests") or []
        ids = [one.get("custom_id", "") for one in requests]
        is_sound = 0 < len(ids) <= _MOST and all(_ID.fullmatch(one) for one in ids)
        if not is_sound or len(set(ids)) != len(ids) or any(one["params"].get("stream") for one in requests):
            return 400, _error("invalid_request_error")
        batch = Batch(f"msgbatch_{len(self.made) + 1}", requests, datetime.now(UTC))
        self.made.append(batch)
        if self.ends_at_once:
            self.end()
        if self.loses_answers:
            self.loses_answers -= 1
            return 0, ""
        return 200, json.dumps(_shown(batch))

    def _list(self, limit: int, after: str) -> tuple[int, str]:
        newest = self.made[::-1]
        ids = [one.id for one in newest]
        start = ids.index(after) + 1 if after in ids else 0
        page = newest[start : start + limit]
        return 200, json.dumps(
            {
                "data": [_shown(one) for one in page],
                "has_more": start + limit < len(newest),
                "first_id": page[0].id if page else None,
                "last_id": page[-1].id if page else None,
            }
        )


def succeeded(message: str) -> Mapping[str, Any]:
    """`message` is the body of a live answer."""
    return {"type": "succeeded", "message": json.loads(message)}


def errored(kind: str) -> Mapping[str, Any]:
    return {"type": "errored", "error": json.loads(_error(kind))}


def _error(kind: str) -> str:
    return json.dumps(
        {"type": "error", "error": {"type": kind, "message": "Said by the server.", "details": None}}
    )


def _shown(batch: Batch) -> dict[str, Any]:
    kinds = [row["result"]["type"] for row in batch.results]
    names = ("succeeded", "errored", "canceled", "expired")
    counts = {name: kinds.count(name) for name in names}
    # Counted as processing until all of it has ended, as the service does.
    counts["processing"] = 0 if batch.status == "ended" else len(batch.requests)
    ended = batch.created_at if batch.status == "ended" else None
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": batch.status,
        "request_counts": counts,
        "created_at": _z(batch.created_at),
        "expires_at": _z(batch.created_at + timedelta(hours=24)),
        "ended_at": _z(ended) if ended else None,
        "cancel_initiated_at": _z(batch.created_at) if batch.is_cancelled else None,
        "archived_at": None,
        "results_url": f"https://elsewhere.example{PATH}/{batch.id}/results" if ended else None,
    }


def _z(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
