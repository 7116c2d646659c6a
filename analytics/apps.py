"""The analytics app."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"

    def ready(self) -> None:
        from analytics import rollup  # noqa: PLC0415  models are there from now on
        from pipeline.outlets import hit_counts  # noqa: PLC0415

        hit_counts.on_write(rollup.mark_hits)
