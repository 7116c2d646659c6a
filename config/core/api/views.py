"""Reads the bodies and query parameters of the API's requests strictly, for every view.

`accounts.api.base` adds authentication, rate limits and idempotency.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.viewsets import ViewSet

from config.core import limits
from config.core.api.fields import NoFields
from config.core.api.jsonio import refuse_unless_json, unpacked_body
from config.core.api.negotiation import refuse_unless_acceptable
from config.core.api.query_params import read_query
from config.core.errors import Invalid

if TYPE_CHECKING:
    from rest_framework import serializers
    from rest_framework.request import Request


@cache
def _shared_instance(serializer: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """Return one instance for all requests: creating one copies its fields, and validation stores nothing."""
    return serializer()


class Resource(ViewSet):
    """The base of every view under `/v1`: it gives the validated body and refuses unexpected input."""

    body_limit: ClassVar[int] = limits.BODY_BYTES
    http_method_names: ClassVar[list[str]] = ["get", "post", "patch", "delete", "head"]  # type: ignore[misc]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Without an action the answer is 405, or that of OPTIONS.
        if self.action not in {None, "metadata"}:
            self.refuse_format(request)

    def refuse_format(self, request: Request) -> None:
        """Raise `NotAcceptable` (406) if the view has no format that `Accept` names."""
        refuse_unless_acceptable(request)

    def read_body(self, request: Request, serializer: type[serializers.Serializer[Any]]) -> Any:
        """Return the validated body; an empty body counts as `{}`.

        Call it after the object was loaded, so that 404 comes first. The errors come in the order that
        `docs/api/README.md` promises: 413 for a body that is too large, 415 for another content type, 400 for any
        query parameter, for a body that isn't a JSON object, and for what the serializer refuses.
        """
        body = unpacked_body(request, max_bytes=self.body_limit)
        refuse_unless_json(request)
        read_query(request, {})
        data = request.data if body else {}
        if not isinstance(data, dict):
            raise Invalid.one(None, "not_an_object", "Send a JSON object.")
        return _shared_instance(serializer).run_validation(data)

    def refuse_input(self, request: Request) -> None:
        """Refuse any query parameter and a body with fields, which the action would otherwise ignore."""
        self.read_body(request, NoFields)
