"""The project as a Django app, so that its commands and checks are found."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        from config import platform_ages as ages  # noqa: F401, PLC0415  registers its check
        from config import platform_settings as known  # noqa: F401, PLC0415  registers its check
        from config.ground import checks as of_ground  # noqa: F401, PLC0415  registers itself
        from config.ground import hands  # noqa: PLC0415  models come after apps

        hands.send_looks_with(_send_first_look)


def _send_first_look(kind: str) -> None:
    """Load the Celery app, which sends all further ones itself; most commands never send any."""
    from config import celery  # noqa: PLC0415

    celery.nudges.ask(kind)
