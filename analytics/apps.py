"""Configures the analytics app."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"

    def ready(self) -> None:
        from analytics import rollup  # noqa: PLC0415  models can't be imported earlier
        from pipeline.outlets import hit_counts  # noqa: PLC0415

        hit_counts.add_write_listener(rollup.mark_hits)
