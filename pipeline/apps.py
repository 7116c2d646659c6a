"""Configures the pipeline app."""

from django.apps import AppConfig

from config.core import logs
from pipeline import plugins
from pipeline.platforms.base import Platform


class PipelineConfig(AppConfig):
    name = "pipeline"

    def ready(self) -> None:
        """Register the platforms' secret addresses and keys, so that logs leave them out."""
        for platform in plugins.every("platforms", Platform):
            logs.add_secrets(addresses=platform.secret_addresses, keys=platform.secret_keys)
