"""The analytics app."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"

    def ready(self) -> None:
        from analytics import rollup  # noqa: PLC0415  models are there from now on
        from pipeline.stages import hits  # noqa: PLC0415

        hits.tell(rollup.mark_hits)
