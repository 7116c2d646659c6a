"""A client that answers from a list and remembers what it was asked."""

from __future__ import annotations

from typing import Any

from config.core.http_client import Response
from config.core.http_client.messages import Headers


class FakeHttp:
    def __init__(self, *answers: Response | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def get(self, url: str, **options: Any) -> Response:
        self.asked.append((url, options))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(
    body: bytes = b"",
    *,
    status: int = 200,
    url: str = "https://feed.example/feed.xml",
    redirects: tuple[tuple[int, str], ...] = (),
    **headers: str,
) -> Response:
    """Header names are written with underscores."""
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Response(
        status=status,
        headers=Headers(pairs),
        body=body,
        url=url,
        truncated=False,
        redirects=redirects,
    )
