"""/v1/personas: their facts, voice and rules, and the lines that may be published word for word."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework.response import Response

from accounts.api.base import openapi_parameters, openapi_responses
from config.core import limits as core_limits
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag
from config.core.api.fields import BoundedListField, Changes, StrictCharField, StrictSerializer
from config.core.api.pagination import PAGING, page
from config.core.api.query_params import read_query
from config.core.api.row_serializers import listing
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from pipeline import limits, resources
from pipeline.api.base import IF_MATCH, NO_CONTENT, POST_PARAMETERS, PipelineResource, path_id
from pipeline.api.inputs.fields import JsonObjectField, PatternField, WebAddressField
from pipeline.engines.checks.persona_rules import KINDS
from pipeline.models import Persona
from pipeline.models.persona import SECTIONS
from pipeline.personas import crud
from pipeline.personas.validation import MAX_STRUCTURE_VALUE
from pipeline.voices.base import MAX_RATE, MIN_RATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.db.models import QuerySet
    from rest_framework.request import Request

_NON_BLANK: Final = r"[\s\S]*\S[\s\S]*"
# Null and an empty text remove a value.
_BRAND_TYPE: Final = ["string", "null"]
_OPTIONAL_COLOUR: Final[Mapping[str, Any]] = {"type": _BRAND_TYPE, "pattern": "^(#[0-9A-Fa-f]{6})?$"}
_OPTIONAL_LINE: Final[Mapping[str, Any]] = {"type": _BRAND_TYPE, "maxLength": 200}
_STRUCTURE_VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    "most": {"type": "integer", "minimum": 0, "maximum": MAX_STRUCTURE_VALUE},
    "text": {"type": "string", "minLength": 1, "maxLength": limits.STRUCTURE_CHARACTERS, "pattern": r"\S"},
}


def _structure_schema(kind: str, takes: str | None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"kind": {"const": kind}, **({takes: _STRUCTURE_VALUES[takes]} if takes else {})},
        "required": ["kind", takes] if takes else ["kind"],
        "additionalProperties": False,
    }


@extend_schema_field({"oneOf": [_structure_schema(name, kind.takes) for name, kind in KINDS.items()]})
class StructureField(JsonObjectField):
    """What every draft has to show, such as `{"kind": "max_hashtags", "most": 1}`; the stage checks it."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "primary": _OPTIONAL_COLOUR,
            "accent": _OPTIONAL_COLOUR,
            "font": _OPTIONAL_LINE,
            "portrait": _OPTIONAL_LINE,
            "logo": _OPTIONAL_LINE,
            "voice_rate": {
                "type": _BRAND_TYPE,
                "pattern": "^([89][0-9]|[12][0-9]{2}|300)?$",
                "description": f"Words a minute, {MIN_RATE} to {MAX_RATE}.",
            },
            "voice_pitch": {
                "type": _BRAND_TYPE,
                "pattern": "^([1-9]?[0-9]|100)?$",
                "description": "0 to 100.",
            },
        },
        "additionalProperties": False,
    }
)
class BrandField(JsonObjectField):
    """The brand kit; the stage checks it."""


class SectionsInput(StrictSerializer):
    who_you_are = StrictCharField(
        max_length=limits.PERSONA_TEXT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Facts about you, and whom you speak to; they may be said.",
    )
    voice = StrictCharField(
        max_length=limits.PERSONA_TEXT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="How it sounds.",
    )
    banned_words = BoundedListField(
        child=StrictCharField(max_length=limits.BANNED_WORD_CHARACTERS),
        max_length=limits.BANNED_WORDS,
        required=False,
    )
    required_structures = BoundedListField(
        child=StructureField(most_bytes=limits.METADATA_BYTES),
        max_length=limits.REQUIRED_STRUCTURES,
        required=False,
    )
    reference_posts = BoundedListField(
        child=StrictCharField(max_length=limits.REFERENCE_POST_CHARACTERS),
        max_length=limits.REFERENCE_POSTS,
        required=False,
        help_text="Posts that sound as you do; nothing in them is a fact.",
    )


class PersonaInput(StrictSerializer):
    name = PatternField(_NON_BLANK, max_length=core_limits.NAME_CHARACTERS)
    handle = PatternField(
        r"^@?[A-Za-z0-9_][A-Za-z0-9_.\-]{0,50}(@[A-Za-z0-9_\-]+(\.[A-Za-z0-9_\-]+)+)?$",
        max_length=60,
        required=False,
        allow_null=True,
        error_messages={"pattern": "Give an account's name, such as @newsroom."},
    )
    language = PatternField(
        r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        max_length=35,
        required=False,
        error_messages={"pattern": "Give a BCP 47 language tag, such as en or pt-BR."},
    )
    links = BoundedListField(child=WebAddressField(), max_length=limits.PERSONA_LINKS, required=False)
    brand = BrandField(most_bytes=limits.METADATA_BYTES, required=False)
    sections = SectionsInput(required=False, help_text="Those that are named; the others stay.")
    approved_lines = BoundedListField(
        child=StrictCharField(max_length=limits.APPROVED_LINE_CHARACTERS),
        max_length=limits.APPROVED_LINES,
        required=False,
        help_text="May be published word for word, without a model. All of them: what isn't among them is taken out.",
    )


class PersonaChanges(Changes, PersonaInput):
    pass


class PersonaView(PipelineResource):
    """The workspace's personas."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "list": "generated:read",
        "retrieve": "generated:read",
        "create": "sources:write",
        "partial_update": "sources:write",
        "destroy": "sources:write",
    }

    def _rows(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = Persona.objects.of(self.caller.workspace).filter(deleted_at=None)
        return rows

    @extend_schema(
        operation_id="personas_list",
        summary="List personas",
        parameters=openapi_parameters(PAGING),
        responses=openapi_responses(
            {
                200: listing(resources.Persona),
                304: OpenApiResponse(description="Unchanged."),
            }
        ),
    )
    def list(self, request: Request) -> Response:
        query = read_query(request, PAGING)
        default_id = self.defaults().persona_id
        persona_page = page(request, self._rows().values(*resources.Persona.columns()), query)
        return persona_page.respond(
            request,
            [
                resources.Persona.serialize(row, is_default=row["id"] == default_id)
                for row in persona_page.rows
            ],
        )

    @extend_schema(
        operation_id="personas_create",
        summary="Add a persona",
        parameters=POST_PARAMETERS,
        request=PersonaInput,
        responses=openapi_responses({201: resources.Persona}, 409, 413, 415, 422),
    )
    def create(self, request: Request) -> Response:
        values = self.read_body(request, PersonaInput)
        self._refuse_test()
        with _locate_errors():
            row = crud.create(self.caller.workspace, _as_content(values), by=self.caller.actor, now=utc_now())
        body = self._serialize(row)
        headers = {"Location": f"/v1/personas/{body['id']}", "ETag": self._tag(row)}
        return Response(body, status=201, headers=headers)

    @extend_schema(
        operation_id="personas_retrieve",
        summary="Read a persona",
        parameters=[path_id("per")],
        responses=openapi_responses(
            {200: resources.Persona, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "per", id)
        read_query(request, {})
        return respond_with_tag(request, self._serialize(row), tag=self._tag(row))

    @extend_schema(
        operation_id="personas_update",
        summary="Change a persona; each change is a version",
        parameters=[path_id("per"), IF_MATCH],
        request=PersonaChanges,
        responses=openapi_responses({200: resources.Persona}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "per", id)
        values = self.read_body(request, PersonaChanges)
        self._refuse_test()
        with conditions_on(row, request) as expected_version, _locate_errors():
            changed = crud.change(
                row,
                _as_content(values),
                by=self.caller.actor,
                now=utc_now(),
                expected_version=expected_version,
            )
        return Response(self._serialize(changed), headers={"ETag": self._tag(changed)})

    @extend_schema(
        operation_id="personas_delete",
        summary="Delete a persona; what was made with it stays",
        parameters=[path_id("per"), IF_MATCH],
        responses=openapi_responses({204: NO_CONTENT}, 404, 409, 412),
    )
    def destroy(self, request: Request, id: str) -> Response:
        row = self.find(self._rows(), "per", id)
        self.refuse_input(request)
        self._refuse_test()
        with conditions_on(row, request) as expected_version:
            crud.delete(row, by=self.caller.actor, now=utc_now(), expected_version=expected_version)
        return Response(status=204)

    def _refuse_test(self) -> None:
        """Refuse test tokens: personas have no test mode, so a test token would change what live items say."""
        if self.caller.test:
            message = "Live items speak with the workspace's personas too; change them with a live key."
            raise Conflict.because("live_only", message, field=None)

    def _serialize(self, row: Persona) -> dict[str, Any]:
        return resources.Persona.serialize(row, is_default=row.pk == self.defaults().persona_id)

    def _tag(self, row: Persona) -> str:
        return strong_tag(row.version, int(row.pk == self.defaults().persona_id))


@contextmanager
def _locate_errors() -> Iterator[None]:
    """Rename the fields of an `Invalid` error to their paths in this API, which nests the sections."""
    try:
        yield
    except Invalid as error:
        raise Invalid(
            *(
                Detail(_api_field(detail.field), detail.code, detail.message, detail.extra)
                for detail in error.detail
            )
        ) from error


def _api_field(field: str | None) -> str | None:
    """Return the field's path in this API."""
    name = (field or "").partition("[")[0].partition(".")[0]
    return f"sections.{field}" if name in SECTIONS else field


def _as_content(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by the model's names, with the sections next to the other values."""
    content = {name: value for name, value in values.items() if name != "sections"}
    if content.get("handle", "") is None:
        content["handle"] = ""
    return {**content, **values.get("sections", {})}
