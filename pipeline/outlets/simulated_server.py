"""Simulates a platform's server: answers the connector's HTTP calls from the database, without idempotency.

Every call of `POST /posts` that waits for the latency is a row, committed before the answer, so that an item
that was published twice is visible. `pipeline.platforms.simulated` describes the protocol.
"""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

from django.conf import settings

from config.core import ids
from config.core.clock import utc_now
from config.core.database.insert import insert
from config.core.http_client import Client, Policy, Response, TimedOut
from pipeline.models import SimulatedPost
from pipeline.platforms.simulated import MAX_TEXT_CHARACTERS, made_up_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

SLOW_SECONDS = 2.0


class SimulatedServer(Client):
    """Replaces the guarded HTTP client, and reaches only one workspace's simulated posts."""

    def __init__(self, workspace_id: UUID, *, clock: Callable[[], datetime] = utc_now) -> None:
        super().__init__(Policy(user_agent="simulated"))
        self.workspace_id = workspace_id
        self.clock = clock

    def request(self, method: str, url: str, **options: Any) -> Response:
        """Return the answer to a call of the simulated platform's protocol.

        Raises `TimedOut` if a post's latency or script says so.
        """
        address = urlsplit(url)
        if method == "POST" and address.path == "/posts":
            return self._post(options.get("json") or {}, url, options.get("timeout", math.inf))
        query = parse_qs(address.query)
        if method == "GET" and address.path == "/posts":
            return self._find(query.get("ref", [""])[0], url)
        if method == "DELETE" and address.path.startswith("/posts/"):
            return self._remove(unquote(address.path.removeprefix("/posts/")), url)
        if method == "GET" and address.path == "/metrics":
            return self._metrics(query.get("ids", [""])[0], url)
        return _response(404, {"error": "There is nothing at this address."}, url)

    def _post(self, post: Mapping[str, Any], url: str, timeout: float) -> Response:
        """Record a post and answer as its script says. Raises `TimedOut` after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        _wait(settings.SIMULATED_LATENCY_MS / 1000, deadline)
        outcome = self._choose_outcome(post)
        row = self._record_post(post, outcome)
        if outcome == "slow":
            _wait(SLOW_SECONDS, deadline)
        return _answer_post(row, outcome, url)

    def _choose_outcome(self, post: Mapping[str, Any]) -> str:
        """Return the script's next outcome, `ok` after its end, or `reject` if the text is too long."""
        script, call_count = list(post.get("script") or []), 0
        if script:
            ref = str(post.get("ref", ""))
            call_count = SimulatedPost.everywhere.filter(workspace_id=self.workspace_id, ref=ref).count()
        if len(str(post.get("body", ""))) > MAX_TEXT_CHARACTERS:
            return "reject"
        return str(script[call_count]) if call_count < len(script) else "ok"

    def _record_post(self, post: Mapping[str, Any], outcome: str) -> SimulatedPost:
        """Store the call as a row, whether its post is accepted or not, and return the row."""
        row = SimulatedPost(
            workspace_id=self.workspace_id,
            outlet_id=ids.decode("out", str(post.get("outlet", ""))) or UUID(int=0),
            ref=str(post.get("ref", "")),
            answer=outcome,
            is_accepted=outcome in {"ok", "slow", "timeout_after_accept", "silence"},
            title=str(post.get("title", ""))[:500],
            body=str(post.get("body", "")),
            created_at=self.clock(),
        )
        insert([row])
        return row

    def _find(self, ref: str, url: str) -> Response:
        rows = SimulatedPost.everywhere.filter(
            workspace_id=self.workspace_id, ref=ref, is_accepted=True, removed_at=None
        )
        posts = list(rows.order_by("id"))
        if any(row.answer == "silence" for row in posts):
            return _response(503, {"error": "The platform can't look that up."}, url)
        return _response(200, {"data": [_post_json(row) for row in posts]}, url)

    def _remove(self, public_id: str, url: str) -> Response:
        post_id = ids.decode("sim", public_id)
        rows = SimulatedPost.everywhere.filter(workspace_id=self.workspace_id, pk=post_id, removed_at=None)
        rows.update(removed_at=self.clock())
        return _response(204, None, url)

    def _metrics(self, id_list: str, url: str) -> Response:
        """Answer with the counts of the listed posts, except unknown, refused and removed ones."""
        posts = {}
        for text in id_list.split(","):
            post_id = ids.decode("sim", unquote(text))
            if post_id is not None:
                posts[post_id] = unquote(text)
        rows = SimulatedPost.everywhere.filter(
            workspace_id=self.workspace_id, pk__in=posts, is_accepted=True, removed_at=None
        )
        now = self.clock()
        return _response(
            200,
            {"data": {posts[row.pk]: made_up_metrics(posts[row.pk], row.created_at, now) for row in rows}},
            url,
        )


def _wait(seconds: float, deadline: float) -> None:
    """Sleep until the seconds or the caller's deadline are over. Raises `TimedOut` if the deadline comes first."""
    if not seconds:
        return
    remaining = deadline - time.monotonic()
    time.sleep(max(0.0, min(seconds, remaining)))
    if seconds > remaining:
        message = "The simulated platform didn't answer in time."
        raise TimedOut(message, may_have_reached=True)


def _answer_post(row: SimulatedPost, outcome: str, url: str) -> Response:
    """Return the answer to a recorded post. Raises `TimedOut` if the outcome is that none arrives."""
    if outcome in {"timeout_after_accept", "silence"}:
        message = "The simulated platform took the post and never answered."
        raise TimedOut(message, may_have_reached=True)
    if outcome == "timeout_before_accept":
        message = "The simulated platform could not be reached."
        raise TimedOut(message, may_have_reached=False)
    refusals: dict[str, tuple[int, dict[str, Any], dict[str, str]]] = {
        "429": (429, {"error": "Too many posts; slow down."}, {"Retry-After": "1"}),
        "reject": (422, {"error": "Texts like this one are not allowed here.", "field": "body"}, {}),
        "expired": (401, {"error": "The account's permission has expired."}, {}),
        "error": (500, {"error": "The platform failed."}, {}),
    }
    if outcome in refusals:
        status, body, headers = refusals[outcome]
        return _response(status, body, url, headers)
    return _response(201, _post_json(row), url)


def _post_json(row: SimulatedPost) -> dict[str, str]:
    post_id = ids.encode("sim", row.pk)
    return {"id": post_id, "url": f"https://simulated.invalid/posts/{post_id}"}


def _response(status: int, body: Any, url: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        status=status,
        headers={"content-type": "application/json", **{k.lower(): v for k, v in (headers or {}).items()}},
        body=json.dumps(body).encode(),
        url=url,
        truncated=False,
        redirects=(),
    )
