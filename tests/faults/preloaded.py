"""What nearly every process of the project imports from others, and what asks for no settings: loaded once, then forked.

The server of forks imports this module (`forked.py`). A module that isn't named here is imported by each step itself.
"""

# ruff: noqa: F401
from __future__ import annotations

import celery.app.amqp
import celery.app.control
import celery.app.task
import celery.backends.redis
import cryptography.hazmat.primitives.asymmetric.ec
import cryptography.hazmat.primitives.asymmetric.rsa
import django.contrib.admin.utils
import django.core.management
import django.db.backends.postgresql.psycopg_any
import django.db.migrations.autodetector
import django.db.models
import django.forms
import django.template.loader
import django.test.client
import django.urls
import django.views.generic
import dns.resolver
import feedparser
import kombu
import lxml.html
import markdown_it
import oauthlib.oauth2
import PIL.Image
import psycopg
import redis.asyncio
import regex
import requests
import rich.traceback
import structlog
