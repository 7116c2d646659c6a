"""Registers the project as a Django app, so that its commands and checks are found."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config.core import dispatcher  # noqa: PLC0415  models come after apps
        from config.core import settings_checks as of_ground  # noqa: F401, PLC0415  registers itself
        from config.operations import plugin_checks  # noqa: F401, PLC0415  registers its checks

        dispatcher.set_waker(_wake_first)


def _wake_first() -> None:
    """Load the Celery app, which then replaces this function; most commands never wake the dispatcher."""
    from config import celery  # noqa: PLC0415

    celery.broker.wake()
