#!/usr/bin/env python
"""Runs Django's command line; `manage.py help` lists the commands."""

import gc
import os
import sys


def main() -> None:
    """Run the command; settings or a database that can't be used end it with a sentence, not a traceback."""
    # Imports leave hardly any garbage; to look for it as often as usual takes a tenth of a short command's time.
    gc.set_threshold(10_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.conf import settings  # noqa: PLC0415  the settings must be named first
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    try:
        # Django's own command line would go on without settings for some commands, and show a traceback for others.
        settings.INSTALLED_APPS  # noqa: B018
    except ImproperlyConfigured as error:
        sys.exit(f"The settings can't be used: {error}")
    from django.db import DatabaseError, connection  # noqa: PLC0415

    try:
        execute_from_command_line(sys.argv)
    except DatabaseError as error:
        from config.operations import unmigrated_database  # noqa: PLC0415

        reason = unmigrated_database.explain_error(connection, error)
        if reason is None:
            raise
        sys.exit(reason)


if __name__ == "__main__":
    main()
