"""/v1/generated/:id/storyboard: a video as data, to read and to render again after changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers

from accounts.api.base import openapi_responses
from config.core import ids
from config.core.api.etags import conditions_on, respond_with_tag, strong_tag
from config.core.api.fields import PublicIdField, StrictSerializer
from config.core.api.query_params import read_query
from config.core.api.row_serializers import ObjectField
from config.core.clock import utc_now
from config.core.errors import NotFound
from pipeline import limits, resources
from pipeline.api.base import IF_MATCH, PipelineResource, path_id
from pipeline.api.generated_items.serialize import item_response
from pipeline.api.inputs.fields import OpenObjectField
from pipeline.models import GeneratedItem
from pipeline.render.video import storyboard_edits, storyboard_json, storyboard_rearrange
from pipeline.review import storyboards

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request
    from rest_framework.response import Response


class StoryboardInput(StrictSerializer):
    storyboard = OpenObjectField(
        most_bytes=limits.STORYBOARD_BYTES,
        help_text="The whole of it, as it was read, with other words, times or scenes.",
    )


class SceneText(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="What it is in the film's template, such as `title`.")
    words = serializers.CharField()
    overlays = serializers.ListField(
        child=serializers.IntegerField(), help_text="Which of the storyboard's overlays show it."
    )


class SceneShown(serializers.Serializer[Any]):
    start = serializers.FloatField()
    end = serializers.FloatField()
    frame = serializers.CharField(allow_null=True, help_text="The address of a small picture of it.")
    texts = SceneText(many=True)


class StoryboardShown(serializers.Serializer[Any]):
    generated_item = PublicIdField("gen")
    version = serializers.IntegerField(help_text="Of the generated item.")
    revision = serializers.IntegerField()
    duration = serializers.FloatField()
    scenes = SceneShown(many=True)
    fixed = serializers.CharField(
        allow_null=True, help_text="Why scenes keep their lengths and order; null where they need not."
    )
    storyboard = ObjectField()


class StoryboardView(PipelineResource):
    """The storyboard of an item."""

    scopes: ClassVar[Mapping[str, str | None]] = {
        "retrieve": "generated:read",
        "partial_update": "generated:write",
    }

    def _find(self, id: str) -> GeneratedItem:
        item: GeneratedItem = self.find(self.rows(GeneratedItem).filter(deleted_at=None), "gen", id)
        return item

    @extend_schema(
        operation_id="generated_storyboard_retrieve",
        summary="Read a film's storyboard",
        parameters=[path_id("gen")],
        responses=openapi_responses(
            {200: StoryboardShown, 304: OpenApiResponse(description="Unchanged.")}, 404
        ),
    )
    def retrieve(self, request: Request, id: str) -> Response:
        """404 for an item that is no film, or isn't filmed yet."""
        row = self._find(id)
        read_query(request, {})
        stored = storyboards.stored_storyboard(row)
        if stored is None:
            raise NotFound
        return respond_with_tag(request, _serialize_storyboard(row, stored), tag=strong_tag(row.version))

    @extend_schema(
        operation_id="generated_storyboard_update",
        summary="Render the film again from a changed storyboard",
        parameters=[path_id("gen"), IF_MATCH],
        request=StoryboardInput,
        responses=openapi_responses({202: resources.GeneratedItem}, 404, 409, 412, 413, 415),
    )
    def partial_update(self, request: Request, id: str) -> Response:
        """The item is `generating` meanwhile; no model is asked, and it costs no credits."""
        row = self._find(id)
        storyboard = self.read_body(request, StoryboardInput)["storyboard"]
        with conditions_on(row, request) as expected_version:
            changed = storyboards.edit(
                row,
                storyboards.read_board(storyboard),
                by=self.caller.actor,
                now=utc_now(),
                expected_version=expected_version,
            )
        return item_response(changed, 202)


_FRAME_URL: Final = "{}/media/{}/{}"


def _serialize_storyboard(row: GeneratedItem, stored: storyboards.StoredStoryboard) -> dict[str, Any]:
    """Return a storyboard, with the frame and the editable texts of each scene."""
    board = stored.board
    texts = storyboard_edits.editable_texts(board)
    frames = [_FRAME_URL.format(settings.PUBLIC_URL, part.secret, part.name) for part in stored.frames]
    return {
        "generated_item": ids.encode("gen", row.pk),
        "version": row.version,
        "revision": row.revision,
        "duration": board.duration,
        "scenes": [
            {
                "start": scene.start,
                "end": scene.end,
                "frame": frames[index] if index < len(frames) else None,
                "texts": [
                    {
                        "name": part.name,
                        "words": storyboard_edits.normalize_text(part.words),
                        "overlays": list(part.overlays),
                    }
                    for part in texts
                    if part.scene == index
                ],
            }
            for index, scene in enumerate(board.scenes)
        ],
        "fixed": storyboard_rearrange.fixed_scenes_reason(board) or None,
        "storyboard": storyboard_json.as_json(board),
    }
