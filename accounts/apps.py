"""Configures the accounts app."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from accounts import states  # noqa: F401, PLC0415  its table registers itself
