"""The analytics app."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
