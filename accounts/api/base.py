"""Provides the base of the views under /v1: authentication, scopes, rate headers, idempotent POSTs, OpenAPI."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.http import HttpResponse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.response import Response

from accounts import limits
from accounts.access import idempotency, permissions
from config.core.api.jsonio import MalformedJson, PayloadTooLarge, UnsupportedMediaType, unpacked_body
from config.core.api.views import Resource
from config.core.errors import CODES
from config.core.json_encoding import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drf_spectacular.openapi import AutoSchema
    from rest_framework.request import Request

    from accounts.access.authentication import Caller
    from config.core.api.query_params import Parameter


class WorkspaceResource(Resource):
    """The base of a resource: `scopes` names the scope that each action needs, None for any token.

    A POST with an Idempotency-Key runs in one transaction with the row that keeps its answer, so an action
    that calls out, or takes long, and stores nothing is named in `without_effect`: its key is read and then
    ignored.
    """

    scopes: ClassVar[Mapping[str, str | None]] = {}
    without_effect: ClassVar[frozenset[str]] = frozenset()

    def request_fingerprint(self, request: Request) -> bytes:
        """Return the bytes that tell requests with one key apart. Raises what `unpacked_body` does."""
        return unpacked_body(request, max_bytes=self.body_limit)

    @property
    def caller(self) -> Caller:
        return permissions.caller(self.request)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        key = request.META.get("HTTP_IDEMPOTENCY_KEY")
        if request.method != "POST" or self.action is None or key is None:
            return
        if self.action in self.without_effect:
            idempotency.read_key(key)
            return
        # A viewset's handlers are attributes of the instance, which serves one request.
        handler: Callable[..., Any] = self.post  # type: ignore[has-type]
        self.post = partial(self._answer_once, handler, key)

    def _answer_once(
        self, handler: Callable[..., HttpResponse], key: str, request: Request, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Run the handler, or replay the answer that the Idempotency-Key has already."""
        try:
            body = self.request_fingerprint(request)
        except (PayloadTooLarge, UnsupportedMediaType, MalformedJson):
            # It can't succeed, so no answer would be stored; the handler decides which error comes first, a
            # 404 or this.
            return handler(request, *args, **kwargs)
        digest = idempotency.request_digest("POST", request.path, body)
        answer, is_replay = idempotency.run_once(
            self.caller, key, digest, lambda: _as_stored(handler(request, *args, **kwargs))
        )
        response = HttpResponse(
            answer.body, status=answer.status, headers=dict(answer.headers), content_type="application/json"
        )
        if not answer.body:
            del response["Content-Type"]
        if is_replay:
            response["Idempotency-Replayed"] = "true"
        return response

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        final: Response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in permissions.rate_headers(request).items():
            final.headers.setdefault(name, value)
        return final


def _as_stored(response: HttpResponse) -> idempotency.StoredAnswer:
    """Return the response as it is stored for a replay."""
    headers = {name: value for name, value in response.headers.items() if name != "Content-Type"}
    if isinstance(response, Response):
        body = b"" if response.data is None else dump(response.data)
    else:
        body = response.content
    is_secret = getattr(response, "is_secret", False)
    return idempotency.StoredAnswer(response.status_code, body, headers, is_secret=is_secret)


def secret_answer(response: Response) -> Response:
    """Mark an answer that contains a secret: its copy for replays is stored encrypted."""
    vars(response)["is_secret"] = True
    return response


# --- Documents -------------------------------------------------------------------------------------------------------


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.access.authentication.BearerToken"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        del auto_schema
        return {"type": "http", "scheme": "bearer", "bearerFormat": "cpk_live_… or cpk_test_…"}


class ErrorDetailSerializer(serializers.Serializer[Any]):
    field = serializers.CharField(allow_null=True, help_text="Dotted (`a.b[0]`); null for the whole request.")
    code = serializers.CharField()
    message = serializers.CharField(help_text="One sentence that says what to do.")
    limit = serializers.IntegerField(required=False, help_text="Of a quota.")
    used = serializers.IntegerField(required=False, help_text="Of a quota.")
    resets_at = serializers.CharField(required=False, allow_null=True, help_text="Of a quota.")


class ErrorSerializer(serializers.Serializer[Any]):
    """What every error answers; clients must take codes that they don't know."""

    error = serializers.CharField(help_text=f"One of {', '.join(sorted(CODES))}; there may be more.")
    detail = ErrorDetailSerializer(many=True)


_COMMON_ERRORS: Final = (400, 401, 403, 429, 503)


def openapi_responses(successes: Mapping[int, Any], *errors: int) -> dict[int, Any]:
    """Return an operation's responses for `extend_schema(responses=…)`: its own and those that all have."""
    return {**successes, **dict.fromkeys((*_COMMON_ERRORS, *errors), ErrorSerializer)}


def openapi_parameters(parameters: Mapping[str, Parameter]) -> list[OpenApiParameter]:
    """Return query parameters for `extend_schema(parameters=…)`, from those that `read_query` reads."""
    return [
        OpenApiParameter(
            name,
            parameter.schema,
            OpenApiParameter.QUERY,
            description=parameter.description,
            explode=True if parameter.is_repeatable else None,
        )
        for name, parameter in parameters.items()
    ]


_MAX_KEY_CHARACTERS: Final = limits.IDEMPOTENCY_KEY_CHARACTERS
_KEY_OR_QUOTED_KEY: Final = rf'^([!#-~]([ -~]{{0,{_MAX_KEY_CHARACTERS - 2}}}[!-~])?|"([ !#-\[\]-~]|\\["\\]){{1,{_MAX_KEY_CHARACTERS}}}")$'
IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": _KEY_OR_QUOTED_KEY},
    OpenApiParameter.HEADER,
    description=(
        f"1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters. The first 2xx answer is kept for "
        "48 hours and replayed to the same request."
    ),
)
