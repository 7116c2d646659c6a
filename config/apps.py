"""The project as a Django app, so that its commands and checks are found."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import celery  # noqa: F401, PLC0415  the app must exist before the first nudge
        from config import platform_ages as ages  # noqa: F401, PLC0415  registers its check
        from config import platform_settings as known  # noqa: F401, PLC0415  registers its check
        from config.ground import checks  # noqa: F401, PLC0415  registers itself
