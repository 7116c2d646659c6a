"""Answers every unknown path under /v1 with 404, but only to a valid token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from accounts.api.base import WorkspaceResource
from config.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response


class NoSuchAddress(WorkspaceResource):
    """Answers 404; without a valid token not even that a path doesn't exist is told."""

    scopes: ClassVar[Mapping[str, str | None]] = {"any": None}
    schema = None

    def refuse_format(self, request: Request) -> None:
        """Refuse none: 404 comes first."""

    def any(self, request: Request, path: str = "") -> Response:
        del request, path
        raise NotFound

    def http_method_not_allowed(  # type: ignore[override]  # DRF hands in its own request
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Response:
        """Raise `NotFound`: a path that doesn't exist has no allowed methods to name."""
        del request, args, kwargs
        raise NotFound


ANY_METHOD: dict[str, Any] = dict.fromkeys(("get", "post", "patch", "delete", "put", "options"), "any")
"""The action of each HTTP method for `as_view`."""
