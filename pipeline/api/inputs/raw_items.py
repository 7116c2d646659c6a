"""Bodies about raw items: push one or a batch, and estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core.api.fields import (
    BoundedListField,
    MomentField,
    PublicIdField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
)
from pipeline import limits
from pipeline.api.inputs.fields import (
    EngineNamesField,
    OpenObjectField,
    PatternField,
    PublicIdTextField,
    WebAddressField,
    persona_id_field,
    whole_number_field,
)
from pipeline.models import BodyFormat

if TYPE_CHECKING:
    from collections.abc import Mapping


class MediaInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = {"oneOf": [{"required": ["url"]}, {"required": ["upload"]}]}

    url = WebAddressField(required=False)
    upload = PublicIdTextField(
        "upl", required=False, help_text="What POST /uploads answered; its type is known."
    )
    type = StrictCharField(max_length=100, required=False, allow_blank=True, help_text="A MIME type.")
    author = StrictCharField(
        max_length=limits.CREDIT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Its author, shown on the film with it.",
    )
    licence = StrictCharField(
        max_length=limits.CREDIT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Shown next to the author.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len({"url", "upload"} & set(attrs)) != 1:
            raise serializers.ValidationError("Give url or upload, one of them.", code="one_of")
        return attrs


def _any_of(*names: str) -> dict[str, Any]:
    """Return the schema rule that at least one of these fields isn't empty."""
    minimum_rules = {
        "title": {"minLength": 1},
        "body": {"minLength": 1},
        "media": {"minItems": 1},
        "source": {},
    }
    return {"anyOf": [{"properties": {name: minimum_rules[name]}, "required": [name]} for name in names]}


class RawItemInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = _any_of("title", "body", "media")

    source = PublicIdField(  # type: ignore[assignment]  # the contract's name
        "src", required=False, help_text="Default: the workspace's own push source."
    )
    external_id = StrictCharField(
        max_length=limits.EXTERNAL_ID_CHARACTERS, required=False, help_text="Your own id of it."
    )
    url = WebAddressField(required=False, help_text="Its address. Nothing is fetched from there.")
    title = StrictCharField(
        max_length=limits.TITLE_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Default: the heading that a Markdown body begins with, or the <h1> or <title> of an HTML one.",
    )
    body = StrictCharField(required=False, allow_blank=True, help_text="Text, Markdown or HTML.")
    body_format = StrictChoiceField(
        choices=BodyFormat.values,
        required=False,
        help_text="Default: html where the body has tags, else markdown.",
    )
    language = PatternField(
        r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        max_length=35,
        required=False,
        error_messages={"pattern": "Give a BCP 47 language tag, such as en or pt-BR."},
        help_text="BCP 47, such as en or pt-BR; default: guessed from the words. What the service adds is in it.",
    )
    author = StrictCharField(max_length=200, required=False, allow_blank=True)
    published_at = MomentField(required=False, allow_null=True)
    media = BoundedListField(
        child=MediaInput(),
        max_length=limits.MEDIA_PER_ITEM,
        required=False,
        help_text="After a video its transcript.",
    )
    metadata = OpenObjectField(
        most_bytes=limits.METADATA_BYTES,
        required=False,
        help_text="Labels, not documents; returned unchanged.",
    )
    engines = EngineNamesField(required=False, help_text="Default: the source's, else the workspace's.")
    variants = whole_number_field(limits.VARIANTS, required=False, help_text="Default: the source's.")
    persona = persona_id_field()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if any(attrs.get(name) for name in ("title", "body", "media")):
            return attrs
        if attrs.get("url"):
            # Fetching would keep the transaction open while a stranger's server answers, for a batch a hundred times.
            message = (
                "An address alone isn't fetched here. Send the page's text as body, or read the address "
                "with a source of type scraper: POST /v1/sources."
            )
            raise serializers.ValidationError({"url": [serializers.ErrorDetail(message, "address_alone")]})
        message = "Give at least one of title, body, media."
        raise serializers.ValidationError(message, code="empty")


class UncheckedField(serializers.JSONField):
    """Any JSON, null too."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return data


@extend_schema_field(
    {
        "type": "array",
        "items": {"$ref": "#/components/schemas/RawItemInput"},
        "minItems": 1,
        "maxItems": limits.BATCH_ITEMS,
        "x-rules": {"items": {}},
    }
)
class RawItemsField(BoundedListField):
    """Bodies of raw items, whose checks come later, each alone."""


class RawBatchInput(StrictSerializer):
    items = RawItemsField(
        child=UncheckedField(),
        min_length=1,
        max_length=limits.BATCH_ITEMS,
        help_text="Bodies of POST /raw. Each stands alone: one that can't be used is refused in its own entry.",
    )


class EstimateInput(RawItemInput):
    """A raw item's body; or a source alone, for what one item of it would cost."""

    schema_rules: ClassVar[Mapping[str, Any]] = _any_of("title", "body", "media", "source")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("source") and not any(attrs.get(name) for name in ("title", "body", "url", "media")):
            return attrs
        return super().validate(attrs)
