"""The admin alone, with accounts' pages."""

from django.contrib import admin
from django.http import HttpResponse
from django.urls import path

urlpatterns = [
    # The wiring's page: accounts only links to it.
    path(
        "admin/workspaces/<public_id>/", lambda request, public_id: HttpResponse(), name="workspace_overview"
    ),
    path("admin/", admin.site.urls),
]
