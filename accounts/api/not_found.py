"""Every other address under /v1 is answered here: 404, but only to a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from accounts.api.base import WorkspaceResource
from config.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response


class NoSuchAddress(WorkspaceResource):
    """Under /v1 even "there is nothing here" is only said to a token."""

    scopes: ClassVar[Mapping[str, str | None]] = {"any": None}
    schema = None

    def any(self, request: Request, path: str = "") -> Response:
        del request, path
        raise NotFound

    def http_method_not_allowed(  # type: ignore[override]  # DRF hands in its own request
        self, request: Request, *args: Any, **kwargs: Any
    ) -> Response:
        """There is nothing here for any method, so none is named as allowed."""
        del request, args, kwargs
        raise NotFound


ANY_METHOD: dict[str, Any] = dict.fromkeys(("get", "post", "patch", "delete", "put", "options"), "any")
"""What each method of such an address is answered by."""
