"""The base of every view of the API: bodies and parameters are read strictly.

What is about tokens, rates and idempotency stands in `accounts.api.base`, one floor up.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from rest_framework.viewsets import ViewSet

from config.core import limits
from config.core.api.fields import NoFields
from config.core.api.jsonio import raw_body, refuse_unless_json
from config.core.api.query_params import read_query
from config.core.errors import Invalid

if TYPE_CHECKING:
    from rest_framework import serializers
    from rest_framework.request import Request


@cache
def _shared(serializer: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """One for all requests: making a serializer copies all its fields, and validating keeps nothing in it."""
    return serializer()


class Resource(ViewSet):
    """The base of every view under `/v1`. A view translates, makes one call, translates back."""

    body_limit: ClassVar[int] = limits.BODY_BYTES
    http_method_names: ClassVar[list[str]] = ["get", "post", "patch", "delete", "head"]  # type: ignore[misc]

    def read_body(self, request: Request, serializer: type[serializers.Serializer[Any]]) -> Any:
        """The validated body; an empty one counts as `{}`. Call it after the object was found: 404 comes first.

        No address that takes a body takes query parameters. The order is the contract's: 413, 415, 400.
        """
        body = raw_body(request, most=self.body_limit)
        refuse_unless_json(request)
        read_query(request, {})
        data = request.data if body else {}
        if not isinstance(data, dict):
            raise Invalid.one(None, "not_an_object", "Send a JSON object.")
        return _shared(serializer).run_validation(data)

    def read_nothing(self, request: Request) -> None:
        """For an act without any field: a body or a parameter would be a wish that nobody hears."""
        self.read_body(request, NoFields)
