"""Addresses of this app under /v1; each answers the same with a trailing slash."""

from django.urls import re_path

from analytics.api.analytics import AnalyticsView

urlpatterns = [re_path(r"^analytics/?$", AnalyticsView.as_view({"get": "list"}), name="analytics")]
