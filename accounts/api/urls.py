"""Addresses of this app under /v1; each answers the same with a trailing slash."""

from django.urls import re_path

from accounts.api.usage import LedgerView, UsageView
from accounts.api.workspace import WorkspaceView

urlpatterns = [
    re_path(r"^workspace/?$", WorkspaceView.as_view({"get": "retrieve"}), name="workspace"),
    re_path(r"^usage/?$", UsageView.as_view({"get": "retrieve"}), name="usage"),
    re_path(r"^usage/ledger/?$", LedgerView.as_view({"get": "list"}), name="usage-ledger"),
]
