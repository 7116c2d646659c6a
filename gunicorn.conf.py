"""Sets gunicorn up for `gunicorn config.wsgi`; `manage.py serve` doesn't read this file."""

import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
try:
    django.setup()
except ImproperlyConfigured as error:
    sys.exit(f"The settings can't be used: {error}")

from django.conf import settings

from config import server
from config.operations import unfinished_restore

try:
    unfinished_restore.refuse_to_start(before_fork=True)
except unfinished_restore.HalfRestored as error:
    sys.exit(str(error))

# With SQLite there is one process, because the counts that guard log-ins are in its memory.
workers = settings.WEB_PROCESSES if settings.IS_POSTGRES else 1
globals().update(server.options(host=settings.WEB_HOST, workers=workers))
