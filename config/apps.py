"""Registers the project as a Django app, so that its commands and checks are found."""

from django.apps import AppConfig
from django.conf import settings


class ConfigConfig(AppConfig):
    """The project as an app."""

    name = "config"

    def ready(self) -> None:
        # The models can be imported only now; the two modules of checks register them.
        from config.core import dispatcher, settings_checks  # noqa: F401, PLC0415
        from config.core.database import postgres_moments  # noqa: PLC0415
        from config.operations import plugin_checks  # noqa: F401, PLC0415

        if settings.IS_POSTGRES:
            postgres_moments.register_loader()

        dispatcher.set_waker(_wake_first)


def _wake_first() -> None:
    """Load the Celery app, which replaces this function, and wake; most commands never get here."""
    from config import celery  # noqa: PLC0415

    celery.broker.wake()
