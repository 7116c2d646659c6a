"""The addresses of accounts, and a thing whose POSTs have an effect that can be counted."""

from typing import ClassVar

from django.http import HttpResponse
from django.urls import include, path, re_path
from rest_framework.response import Response

from accounts import audit
from accounts.api.base import WorkspaceResource
from config.core.errors import Conflict


class ThingView(WorkspaceResource):
    scopes: ClassVar = {
        "list": "raw:read",
        "create": "raw:write",
        "preview": None,
        "fail": None,
        "plain": None,
    }
    without_effect = frozenset({"preview"})

    def list(self, request):
        return Response({"data": []})

    def create(self, request):
        entry = audit.note("thing.made", workspace=self.caller.workspace, actor=self.caller.actor)
        name = request.data.get("name", "") if request.data else ""
        return Response(
            {"id": str(entry.pk), "name": name}, status=201, headers={"Location": f"/v1/things/{entry.pk}"}
        )

    def preview(self, request):
        audit.note("thing.previewed", actor=self.caller.actor)
        return Response({"ok": True})

    def fail(self, request):
        audit.note("thing.made", workspace=self.caller.workspace, actor=self.caller.actor)
        raise Conflict.because("busy", "It is busy.")

    def plain(self, request):
        return HttpResponse(status=204)


class ForgetfulView(WorkspaceResource):
    """Doesn't say which scope it needs."""

    def list(self, request):
        return Response({"data": ["secret"]})


urlpatterns = [
    path("v1/", include("accounts.api.urls")),
    re_path(r"^v1/things/?$", ThingView.as_view({"get": "list", "post": "create"})),
    re_path(r"^v1/things/preview/?$", ThingView.as_view({"post": "preview"})),
    re_path(r"^v1/things/fail/?$", ThingView.as_view({"post": "fail"})),
    re_path(r"^v1/things/plain/?$", ThingView.as_view({"post": "plain"})),
    re_path(r"^v1/forgetful/?$", ForgetfulView.as_view({"get": "list"})),
]
