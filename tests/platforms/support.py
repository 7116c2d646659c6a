"""A client that plays recorded answers and keeps what it was asked; how a server that is slow is asked again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from config.core.http_client import Client, OutboundError, Response
from pipeline.platforms.base import CannotTell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.platforms.base import Absent, Found


def answer(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Response:
    """A response; `body` is JSON unless it is given as bytes."""
    return Response(
        status=status,
        headers=headers or {},
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        url="https://platform.example.com/",
        truncated=False,
        redirects=(),
    )


class Recorder:
    def __init__(self, *answers: Response | OutboundError) -> None:
        self.left = list(answers)
        self.asked: list[tuple[str, str, Any]] = []

    def request(self, method: str, url: str, **options: Any) -> Response:
        self.asked.append((method, url, options.get("json")))
        following = self.left.pop(0)
        if isinstance(following, OutboundError):
            raise following
        return following

    def get(self, url: str, **options: Any) -> Response:
        return self.request("GET", url, **options)

    def post(self, url: str, **options: Any) -> Response:
        return self.request("POST", url, **options)


def client(*answers: Response | OutboundError) -> tuple[Client, Recorder]:
    recorder = Recorder(*answers)
    return cast("Client", recorder), recorder


def asked_again(reconcile: Callable[[], Found | Absent | CannotTell]) -> Found | Absent | CannotTell:
    """As the stage does by its schedule where nobody could be reached: our time-outs are short for a busy machine."""
    answer = reconcile()
    for _ in range(3):
        if not isinstance(answer, CannotTell) or "did not answer in full" not in answer.reason:
            break
        answer = reconcile()
    return answer
