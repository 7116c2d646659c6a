"""Reads every setting from the environment once, grouped by subject.

`docs/settings.md` lists them for operators; a test fails if one is missing there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _
from redis.backoff import NoBackoff
from redis.retry import Retry

from config import env
from config.api_docs.spectacular_settings import spectacular_settings
from config.core import limits, logs

BASE_DIR = env.ROOT
# The release's version, which pyproject.toml holds too.
VERSION = "0.9.0"

# --- Mode and place --------------------------------------------------------------------------------------------------

MODE = env.one_of("MODE", ("development", "production"), "production")
IS_DEVELOPMENT = MODE == "development"
DEBUG = False
DATA_DIR = (BASE_DIR / env.text("DATA_DIR", "var")).resolve()
# Created here, because the database, the static files and the mails are stored in it.
DATA_DIR.mkdir(parents=True, exist_ok=True)
PORT = env.whole_number("PORT", 8000, minimum=1, maximum=65535)
PUBLIC_URL = env.web_address("PUBLIC_URL", f"http://127.0.0.1:{PORT}" if IS_DEVELOPMENT else None)
# What the pages and mails call the service.
SITE_NAME = env.text("SITE_NAME", "Content pipeline")
OPERATOR_CONTACT = env.text("OPERATOR_CONTACT", "operator@localhost" if IS_DEVELOPMENT else None)

# --- Keys ------------------------------------------------------------------------------------------------------------

SECRET_KEY_CHARACTERS = 32
SECRET_KEY = env.text("SECRET_KEY")
# `id:key` pairs: the first one encrypts, all of them decrypt.
FIELD_KEYS = env.sealing_keys("FIELD_KEYS")
if len(SECRET_KEY) < SECRET_KEY_CHARACTERS:
    message = (
        f"SECRET_KEY must have at least {SECRET_KEY_CHARACTERS} characters; it signs sessions and cursors."
    )
    raise ImproperlyConfigured(message)

# --- Web -------------------------------------------------------------------------------------------------------------

_public = urlsplit(PUBLIC_URL)
ALLOWED_HOSTS = env.comma_list(
    "ALLOWED_HOSTS",
    [_public.hostname or "localhost", *(["127.0.0.1", "localhost", "[::1]"] if IS_DEVELOPMENT else [])],
)
CSRF_TRUSTED_ORIGINS = [f"{_public.scheme}://{_public.netloc}"]
_is_https = _public.scheme == "https"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _is_https
SECURE_HSTS_SECONDS = 31_536_000 if _is_https else 0
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("BEHIND_PROXY", default=False) else None
)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# For pages only: the API answers both forms itself, and never with a redirect.
APPEND_SLASH = True
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
# A proxy on the same machine reaches it there; the container's image sets its own address.
WEB_HOST = env.text("WEB_HOST", "127.0.0.1")
WEB_THREADS = env.whole_number("WEB_THREADS", 8, minimum=1, maximum=64)
WEB_PROCESSES = env.whole_number("WEB_PROCESSES", 2, minimum=1, maximum=64)
# How many reverse proxies of the operator are before the service: the client's address is that many
# entries from the right of X-Forwarded-For.
TRUSTED_PROXIES = env.whole_number("TRUSTED_PROXIES", 0, maximum=10)

INSTALLED_APPS = [
    "config.apps.ConfigConfig",
    "accounts",
    "pipeline",
    "webhooks",
    "analytics",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "django_htmx",
    "django.contrib.humanize",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
]
MIDDLEWARE = [
    "config.core.middleware.RequestIdMiddleware",
    "accounts.access.recent_requests.RecordRequests",
    "config.core.middleware.LastResortMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # The API needs no session, CSRF token or messages: these skip its requests.
    "config.core.middleware.Csp",
    "accounts.pages.anonymous_sessions.Session",
    "config.core.middleware.Common",
    "config.core.middleware.BodyLimit",
    "config.core.middleware.Csrf",
    "config.core.middleware.Authentication",
    "config.core.middleware.Message",
    "allauth.account.middleware.AccountMiddleware",
    "accounts.pages.admin_second_factor.SecondFactor",
    "config.core.middleware.XFrameOptions",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "accounts.pages.context_processors.frame",
            ]
        },
    }
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        # blob: for the preview of a video before it is uploaded.
        "media-src": ["'self'", "blob:"],
        "style-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
    }
}
FORM_RENDERER = "accounts.pages.form_renderer.PageRenderer"
CSRF_FAILURE_VIEW = "accounts.pages.landing.csrf_failure"
# The largest body of any address; each view's own limit is checked before anything is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = limits.RAW_BODY_BYTES
FILE_UPLOAD_HANDLERS = [
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "config.core.middleware.UnnamedFiles",
]

# --- Files -----------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
# WhiteNoise warns at start if the folder is missing.
STATIC_ROOT.mkdir(exist_ok=True)
if not IS_DEVELOPMENT:
    # Names that change with the content, so that browsers keep each file for good; `collectstatic` makes them.
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "config.static_files.StaticFiles"},
    }
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = IS_DEVELOPMENT
# Else a style sheet that was edited since the start would be cut off at its former length.
WHITENOISE_AUTOREFRESH = IS_DEVELOPMENT
WHITENOISE_MAX_AGE = 0 if IS_DEVELOPMENT else 60
MEDIA_ROOT = Path(env.text("MEDIA_ROOT", str(DATA_DIR / "media")))
# Where `manage.py backup` writes when it is given no file, and where the doctor looks for the newest one.
BACKUP_DIR = env.text("BACKUP_DIR", "")

# --- Redis and workers -----------------------------------------------------------------------------------------------

# The broker, and what processes share; without it one process does everything.
REDIS_URL = env.redis_address("REDIS_URL")
CELERY_BROKER_URL = REDIS_URL or "inproc://localhost/"
# How many runs one worker with threads executes at a time, and how many posts it sends.
WORKER_THREADS = env.whole_number("WORKER_THREADS", 4, minimum=2, maximum=64)
PUBLISH_THREADS = env.whole_number("PUBLISH_THREADS", 24, minimum=2, maximum=64)
# An encoder takes two of the cores that we may use.
FILMS_AT_ONCE = max(1, len(os.sched_getaffinity(0)) // 2)
# How many tasks of each queue one worker runs at a time; fewer if its pool is smaller.
QUEUE_SLOTS = {
    "ingest": 8,
    "generate": WORKER_THREADS,
    # Only one thread computes at a time; a second one may wait for PostgreSQL meanwhile.
    "compute": 2 if REDIS_URL else 1,
    "render": min(FILMS_AT_ONCE, WORKER_THREADS // 2),
    "publish": PUBLISH_THREADS,
    "webhooks": 16,
    "mail": 6,
    "analytics": 4,
    "housekeeping": 2,
}
# The threads of a worker's pool: a slot for each of them, and two for the dispatcher.
WORKER_SLOTS = sum(QUEUE_SLOTS.values()) + 2
# How long a task has its row to itself; after it a killed task's row is due again. Longer than any one call.
LEASE_SECONDS = env.whole_number("LEASE_SECONDS", 60, minimum=1, maximum=3600)

# --- Database --------------------------------------------------------------------------------------------------------

# Connections to PostgreSQL of one web process: one per thread, and some for work beside requests.
WEB_CONNECTIONS = WEB_THREADS + 4
_database: dict[str, Any]
if env.text("DATABASE_URL", ""):
    _database = env.database("DATABASE_URL")
    # The pool covers every thread of a process that may hold a connection; starving threads would raise PoolTimeout.
    # This is the web process's size. Workers set theirs at their start: config/database_connections.py.
    _database["CONN_MAX_AGE"] = 0
    # Each connection is tested before it is handed out: otherwise, after a restart of the database, each dead one would
    # cost a request, whenever it happens to be used.
    _database["CONN_HEALTH_CHECKS"] = True
    _database["OPTIONS"] = {
        # For config/core/database/plan_cache.py: a connection keeps a statement's plan from the first time on. PostgreSQL
        # itself would plan it five times more, though planning takes longer than running.
        "prepare_threshold": 0,
        "pool": {
            "min_size": 2,
            "max_size": WEB_CONNECTIONS,
            "timeout": 10,
            # The pause between two tries doubles, and meanwhile nobody else tries: a database that is back would be
            # found a minute late. After these seconds the next one who wants a connection tries at once.
            "reconnect_timeout": 2,
        },
        "options": "-c statement_timeout=30000 -c lock_timeout=10000 "
        "-c idle_in_transaction_session_timeout=60000 -c plan_cache_mode=force_generic_plan",
    }
else:
    _database = {
        "ENGINE": "config.core.database.sqlite",
        "NAME": str(DATA_DIR / "db.sqlite3"),
        # Opening the file and setting it up takes longer than most requests' queries.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # A write transaction takes its lock at its start: with Django's default, readers that turn into
            # writers fail at once with "database is locked".
            "transaction_mode": "IMMEDIATE",
            # A starved writer under saturation has waited six seconds in trials.
            "timeout": 20,
            # NORMAL, because our backend writes every commit to the disk itself.
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA temp_store=MEMORY;"
            "PRAGMA mmap_size=134217728;PRAGMA journal_size_limit=67108864;PRAGMA cache_size=-20000;",
        },
        "TEST": {"NAME": str(DATA_DIR / "test.sqlite3")},
    }
DATABASES = {"default": _database}
IS_POSTGRES = _database["ENGINE"] == "django.db.backends.postgresql"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Caches ----------------------------------------------------------------------------------------------------------

# What guards log-ins ("default", because allauth uses that one) is stored where nothing can evict it: in the database
# for several processes, in memory for a single one.
_guards: dict[str, Any] = {
    "BACKEND": f"accounts.access.counter_caches.{'DatabaseCounterCache' if IS_POSTGRES else 'MemoryCounterCache'}"
}
if REDIS_URL:
    _redis_cache: dict[str, Any] = {
        "LOCATION": REDIS_URL,
        # No retries: the client's default of ten would hold a request up for seconds when Redis is unavailable.
        "OPTIONS": {"socket_connect_timeout": 0.3, "socket_timeout": 1, "retry": Retry(NoBackoff(), 0)},
    }
    CACHES = {
        "default": _guards,
        # For counts of bad tokens and inbound calls; the code that counts decides what to do without Redis.
        "counts": {"BACKEND": "django.core.cache.backends.redis.RedisCache", **_redis_cache},
        # Marks of submitted forms: every person makes many.
        "marks": {"BACKEND": "config.core.resilient_cache.ResilientRedisCache", **_redis_cache},
    }
else:
    CACHES = {name: {**_guards, "LOCATION": name} for name in ("default", "counts", "marks")}
RATELIMIT_USE_CACHE = "counts"

# --- People ----------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "front"
# Anybody may sign up, with a sandbox until an operator whitelists the workspace. If False, only invited people may.
SIGNUP_OPEN = env.flag("SIGNUP_OPEN", default=True)
# The admin opens only to those with a second factor.
ADMIN_REQUIRES_MFA = env.flag("ADMIN_REQUIRES_MFA", default=not IS_DEVELOPMENT)
ACCOUNT_ADAPTER = "accounts.pages.adapters.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
_CODE_SECONDS = 15 * 60
ACCOUNT_EMAIL_VERIFICATION_BY_CODE_ENABLED = True
ACCOUNT_EMAIL_VERIFICATION_BY_CODE_TIMEOUT = _CODE_SECONDS
ACCOUNT_EMAIL_VERIFICATION_SUPPORTS_RESEND = True
ACCOUNT_EMAIL_VERIFICATION_SUPPORTS_CHANGE = True
ACCOUNT_LOGIN_BY_CODE_ENABLED = True
ACCOUNT_LOGIN_BY_CODE_SUPPORTS_RESEND = True
ACCOUNT_LOGIN_BY_CODE_TIMEOUT = _CODE_SECONDS
ACCOUNT_PASSWORD_RESET_BY_CODE_ENABLED = True
ACCOUNT_PASSWORD_RESET_BY_CODE_TIMEOUT = _CODE_SECONDS
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_LOGOUT_REDIRECT_URL = "front"
ACCOUNT_SESSION_REMEMBER = True
# What needs a fresh log-in: keys, the second factor, deleting a workspace.
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60
ACCOUNT_REAUTHENTICATION_REQUIRED = True
# By the hour too, because each of these sends mail and stores something: `ip` is the caller, `key` the account.
ACCOUNT_RATE_LIMITS = {
    "login": "20/m/ip",
    "signup": "20/m/ip,60/h/ip",
    "reset_password": "20/m/ip,60/h/ip,5/m/key,20/h/key",
    "request_login_code": "20/m/ip,120/h/ip,3/m/key,20/h/key",
}
ACCOUNT_FORMS = {"signup": "accounts.pages.signup_form.SignupForm"}
MFA_ADAPTER = "accounts.pages.adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = SITE_NAME
MFA_TOTP_TOLERANCE = 1
USERSESSIONS_TRACK_ACTIVITY = False

# --- Language and time -----------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English"))]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# --- Mail ------------------------------------------------------------------------------------------------------------

# In development each mail is a file: a sign-up code is found there more easily than between lines of a log.
EMAIL_CONFIG = env.mail_settings(
    "EMAIL_URL", f"filemail://{DATA_DIR}/mails" if IS_DEVELOPMENT else "consolemail://"
)
EMAIL_BACKEND = str(EMAIL_CONFIG["EMAIL_BACKEND"])
# django-environ drops the path's first slash, and a folder relative to the current directory would be hard to find.
EMAIL_FILE_PATH = (
    f"/{EMAIL_CONFIG['EMAIL_FILE_PATH']}" if EMAIL_BACKEND.endswith("filebased.EmailBackend") else None
)
EMAIL_HOST = EMAIL_CONFIG.get("EMAIL_HOST") or ""
EMAIL_PORT = EMAIL_CONFIG.get("EMAIL_PORT") or 25
EMAIL_HOST_USER = EMAIL_CONFIG.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = EMAIL_CONFIG.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = bool(EMAIL_CONFIG.get("EMAIL_USE_TLS"))
EMAIL_USE_SSL = bool(EMAIL_CONFIG.get("EMAIL_USE_SSL"))
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("MAIL_FROM", OPERATOR_CONTACT)

# --- Outbound requests -----------------------------------------------------------------------------------------------

# A development machine's own sources and receivers live on loopback; in production they are refused.
OUTBOUND_ALLOW_LOOPBACK = env.flag("OUTBOUND_ALLOW_LOOPBACK", default=IS_DEVELOPMENT)
OUTBOUND_ALLOW_PRIVATE = env.flag("OUTBOUND_ALLOW_PRIVATE", default=False)
WEBHOOKS_ALLOW_HTTP = env.flag("WEBHOOKS_ALLOW_HTTP", default=IS_DEVELOPMENT)
# Where notices by Telegram go; another address if the operator runs a Bot API server.
TELEGRAM_API_URL = env.web_address("TELEGRAM_API_URL", "https://api.telegram.org")
USER_AGENT = f"content-pipeline/{VERSION} (+{PUBLIC_URL}; {OPERATOR_CONTACT})"

# --- Sources, platforms and voices -----------------------------------------------------------------------------------

# What the operator has taken out, as sources/tiktok, engines/clipped_short, platforms/x or voices/system.
DISABLED_KINDS: frozenset[str] = frozenset(env.comma_list("DISABLED_KINDS"))

SOURCE_ENVIRONMENT: dict[str, str] = {
    "YOUTUBE_URL": env.web_address("YOUTUBE_URL", "https://www.youtube.com"),
    "YOUTUBE_API_URL": env.web_address("YOUTUBE_API_URL", "https://www.googleapis.com"),
    "YOUTUBE_API_KEY": env.text("YOUTUBE_API_KEY", ""),
    "TIKTOK_URL": env.web_address("TIKTOK_URL", "https://www.tiktok.com"),
    "TIKTOK_SHORT_URL": env.web_address("TIKTOK_SHORT_URL", "https://vm.tiktok.com"),
    # The path of yt-dlp, which makes requests of its own; if empty, only our own client does.
    "VIDEO_TOOL": env.text("VIDEO_TOOL", ""),
    # The browser that runs the JavaScript of scraped pages; empty for what is on the path.
    "CHROMIUM_PATH": env.text("CHROMIUM_PATH", ""),
}
"""The operator's settings for kinds of sources, by their `environment`'s names; kinds have defaults for others."""

VOICE_ENVIRONMENT: dict[str, str] = {
    # The path of a text-to-speech program; if empty, the system voice is used.
    "VOICE_TOOL": env.text("VOICE_TOOL", "")
}
"""The operator's settings for voices, by the names in their `environment`."""

# Address and API version of a platform, in place of those that its plug-in names: `x=https://…,linkedin=https://…`.
PLATFORM_ADDRESSES: dict[str, str] = env.pairs("PLATFORM_ADDRESSES")
PLATFORM_VERSIONS: dict[str, str] = env.pairs("PLATFORM_VERSIONS")

# WebSub hubs that are notified when a workspace feed changes, and at which its readers can subscribe.
WEBSUB_HUBS: list[str] = env.comma_list("WEBSUB_HUBS")

# How long the simulated platform takes to answer a post: for benchmarks and demonstrations.
SIMULATED_LATENCY_MS = env.whole_number("SIMULATED_LATENCY_MS", 0, maximum=60_000)

# --- The model -------------------------------------------------------------------------------------------------------

# The operator's key, for workspaces without one of their own; without any, text is taken from the source.
ANTHROPIC_API_KEY = env.text("ANTHROPIC_API_KEY", "")
ANTHROPIC_BASE_URL = env.text("ANTHROPIC_BASE_URL", "")
MODEL_BRIEF = env.text("MODEL_BRIEF", "claude-haiku-5-5")
MODEL_DRAFT = env.text("MODEL_DRAFT", "claude-haiku-5-5")
MODEL_OTHER = env.text("MODEL_OTHER", "claude-sonnet-5-5")
# Whole US dollars per day that the operator's key may cost; 0 for no cap.
MODEL_DAILY_CAP_USD = env.whole_number("MODEL_DAILY_CAP_USD", 0)

# --- API -------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.access.authentication.BearerToken"],
    # In the order that `docs/api/README.md` promises: token, whitelist, rate, route, scope.
    "DEFAULT_PERMISSION_CLASSES": [
        "accounts.access.permissions.HasToken",
        "accounts.access.permissions.WorkspaceIsWhitelisted",
        "accounts.access.permissions.RateAllows",
        "accounts.access.permissions.TokenHasScope",
    ],
    "DEFAULT_RENDERER_CLASSES": ["config.core.api.jsonio.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.core.api.jsonio.StrictJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "config.core.api.negotiation.JsonOnly",
    "DEFAULT_SCHEMA_CLASS": "config.api_docs.openapi.OperationSchema",
    "EXCEPTION_HANDLER": "config.core.api.jsonio.exception_handler",
    "DEFAULT_PAGINATION_CLASS": None,
    "DEFAULT_METADATA_CLASS": None,
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = spectacular_settings(VERSION, PUBLIC_URL)
DOCS_ARE_PUBLIC = env.flag("DOCS_ARE_PUBLIC", default=True)

# --- The wiring between apps -----------------------------------------------------------------------------------------

# Set up a new workspace; each is called with the workspace and its language, inside the transaction that creates it.
WORKSPACE_FURNISHERS = [
    "pipeline.workspace.provision.furnish",
    "accounts.notices.open_digest",
    "analytics.reports.send_monthly_summary.open_summary",
]
# Collect a workspace's export; each is called with the workspace and gives names and rows.
WORKSPACE_EXPORTERS = [
    "accounts.export.collect_parts",
    "pipeline.workspace.export.collect_parts",
    "webhooks.export_and_erase.collect_parts",
    "analytics.export_and_erase.collect_parts",
]
# Erase a workspace, readers first; each is called with its id and a number of rows until it says that nothing is left.
WORKSPACE_ERASERS = [
    "analytics.export_and_erase.erase",
    "webhooks.export_and_erase.erase",
    "pipeline.workspace.purge.erase",
    "accounts.workspace_deletion.erase",
]
# Remove a workspace's sample data, readers first, called as those above. The last one removes nothing itself.
SAMPLE_REMOVERS = [
    "analytics.export_and_erase.remove_samples",
    "webhooks.export_and_erase.remove_samples",
    "pipeline.workspace.remove_samples.remove",
    "accounts.samples.remove_members",
    "analytics.export_and_erase.add_up_again",
]
# Modules that register their jobs, the kinds of due rows, when they are imported.
JOB_MODULES = [
    "pipeline.tasks",
    "webhooks.tasks",
    "analytics.tasks",
    "accounts.tasks",
    "config.operations.retention",
]

# --- Monitoring ------------------------------------------------------------------------------------------------------

# The token with which Prometheus may read /metrics; without one only staff may.
METRICS_TOKEN = env.text("METRICS_TOKEN", "")

# --- Logs ------------------------------------------------------------------------------------------------------------

LOG_FORMAT = env.one_of("LOG_FORMAT", ("json", "console"), "console" if IS_DEVELOPMENT else "json")
LOG_LEVEL = env.one_of("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")
LOGGING_CONFIG = None
logs.configure(level=LOG_LEVEL, as_json=LOG_FORMAT == "json")

# --- System checks ---------------------------------------------------------------------------------------------------

SILENCED_SYSTEM_CHECKS = [
    # django-ratelimit knows only some shared cache backends by name; the memory cache is used by one process alone.
    "django_ratelimit.E003",
    "django_ratelimit.W001",
    # The admin's own checks look for the stock middleware by name; ours are subclasses of authentication (E408),
    # messages (E409) and sessions (E410).
    "admin.E408",
    "admin.E409",
    "admin.E410",
    # HSTS (W004) and cookies for https alone (W012, W016) follow PUBLIC_URL: a service on http can have neither.
    "security.W004",
    "security.W012",
    "security.W016",
    # The service speaks http; the proxy that terminates TLS decides whether http redirects to https.
    "security.W008",
    # Only a domain's owner can decide to put it onto the browsers' HSTS list, which can't be undone quickly.
    "security.W021",
]
