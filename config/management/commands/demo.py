"""demo: creates a development instance's sample workspace and its source, and prints what to open."""

from __future__ import annotations

import json
import os
import secrets
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

import requests
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts import samples, users, workspaces
from accounts.access import tokens
from accounts.models import ApiToken, User, Workspace
from config.core import clock
from config.core.clock import utc_now
from config.core.ids import encode
from config.demo import history
from config.demo import views as demo_views
from pipeline.ingest import collect
from pipeline.media import media_root_id
from pipeline.models import GeneratedItem, GeneratedItemStatus, Outlet, Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.core.management.base import CommandParser

ACTOR: Final = "manage.py demo"
WORKSPACE: Final = "Demo"
OWNER: Final = "owner@demo.example"
SOURCE: Final = "Sample feed"
ENGINES: Final = ("Short Post", "Quote Graphic")
"""Engine outputs that take seconds, so that the first item is ready soon."""
READY_SECONDS: Final = 60.0
"""The longest wait for the service."""
FIRST_ITEM_SECONDS: Final = 60.0
"""The longest wait for the first item."""


class Command(BaseCommand):
    help = "Make the demo workspace if it isn't there, wait for its first item and print what to open."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-wait", action="store_true", help="only make the workspace; don't wait for the service"
        )
        parser.add_argument(
            "--prepare",
            action="store_true",
            help="only make the workspace and its four weeks of sample data, before the service starts",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the command. Raises `CommandError` outside of development, and if a wait ends in vain."""
        if not settings.IS_DEVELOPMENT:
            message = (
                "The demo workspace is for development only; make one with: manage.py issue_token --create."
            )
            raise CommandError(message)
        if options["prepare"]:
            # While both are empty: files that are replaced or not yet named would make it unclear whose folder it is.
            media_root_id.claim_folder()
            history.fill(_make_workspace(), webhook_url=_address(demo_views.RECEIVER_PATH))
            return
        try:
            self._fill(waits=not options["no_wait"])
        except KeyboardInterrupt:
            # Ctrl-C stops the whole group of processes, and the service itself says so.
            sys.exit(130)

    def _fill(self, *, waits: bool) -> None:
        """Create the workspace's log-in and source, and print the guide; with `waits` once an item is ready."""
        if waits:
            # The source is polled as soon as it exists, so the service must be there to answer.
            _wait_until(
                _is_service_ready, READY_SECONDS, "The service did not become ready; its log says why."
            )
        workspace = _make_workspace()
        password, token = _create_log_in(workspace)
        _make_source(workspace)
        item = None
        if waits:
            timeout_message = "No item became ready in time; the service's log says why."
            _wait_until(
                lambda: _ready_item(workspace) is not None or not _expects_items(workspace),
                FIRST_ITEM_SECONDS,
                timeout_message,
            )
            item = _ready_item(workspace)
        self.stdout.write(_guide(workspace, password=password, token=token, item=item))


def _address(path: str) -> str:
    return f"http://127.0.0.1:{settings.PORT}{path}"


def _make_workspace() -> Workspace:
    """Return the workspace, created if there is none, as old as its history; its owner can't log in yet."""
    with transaction.atomic(), clock.frozen_at(utc_now() - history.WORKSPACE_AGE):
        owner = User.objects.filter(email=OWNER).first()
        if owner is None:
            owner = User(email=OWNER, name="Demo owner", is_staff=True, is_superuser=True)
            owner.set_unusable_password()
            users.save_user(owner, ["email", "is_staff", "is_superuser", "name"], ACTOR)
            owner.mark_email_verified()
        existing: Workspace | None = (
            Workspace.everywhere.filter(name=WORKSPACE, deleted_at=None).order_by("created_at").first()
        )
        if existing is not None:
            return existing
        workspace = workspaces.create(WORKSPACE, owner=owner, actor=ACTOR)
        workspaces.whitelist(workspace, actor=ACTOR)
        history.begin(workspace)
    return workspace


def _create_log_in(workspace: Workspace) -> tuple[str | None, str | None]:
    """Create the owner's password and an API key if there are none; return each, or `None` if it existed."""
    password = token = None
    with transaction.atomic():
        owner = User.objects.select_for_update().get(email=OWNER)
        if not owner.has_usable_password():
            password = secrets.token_urlsafe(12)
            owner.set_password(password)
            owner.save(update_fields=["password"])
        if not ApiToken.everywhere.filter(workspace=workspace).exists():
            name = "Printed by the first start"
            token = tokens.issue(workspace, name=name, created_by=owner, actor=ACTOR).secret
    return password, token


def _make_source(workspace: Workspace) -> None:
    """Add the source of the sample feed unless the sample data were removed, or update its address."""
    config = {"url": _address(demo_views.PATH)}
    source = Source.everywhere.filter(workspace=workspace, name=SOURCE, type="rss", deleted_at=None).first()
    if source is None:
        if not samples.has_samples(workspace):
            return
        source_settings = collect.SourceSettings(
            type="rss", name=SOURCE, config=config, engines=ENGINES, poll_interval_minutes=60
        )
        source = collect.register(workspace, source_settings)
        Source.everywhere.filter(pk=source.pk).update(is_sample=True)
    elif source.config.get("url") != config["url"]:
        # The service moved to another port.
        collect.change(source, {"config": config}, workspace=workspace, now=utc_now())


def _items(workspace: Workspace) -> Any:
    return GeneratedItem.everywhere.filter(workspace=workspace, test=False, deleted_at=None)


def _ready_item(workspace: Workspace) -> GeneratedItem | None:
    item: GeneratedItem | None = (
        _items(workspace).filter(status=GeneratedItemStatus.READY).order_by("id").first()
    )
    return item


def _expects_items(workspace: Workspace) -> bool:
    """Return whether an item may still become ready; on a later start all may be published already."""
    is_new: bool = samples.has_samples(workspace) and not _items(workspace).exists()
    return is_new or _items(workspace).in_making().exists()


def _is_service_ready() -> bool:
    with requests.Session() as session:
        # A proxy set in the environment must not be used for loopback.
        session.trust_env = False
        try:
            return session.get(f"http://127.0.0.1:{settings.PORT}/readyz", timeout=5).ok
        except requests.RequestException:
            return False


def _wait_until(is_done: Callable[[], bool], seconds: float, timeout_message: str) -> None:
    """Wait until `is_done` returns True. Raises `CommandError` after `seconds`; exits if the service is gone."""
    deadline, parent = monotonic() + seconds, os.getppid()
    while not is_done():
        if os.getppid() != parent:
            # The service that started this is gone.
            sys.exit(1)
        if monotonic() > deadline:
            raise CommandError(timeout_message)
        sleep(0.2)


def _guide(
    workspace: Workspace, *, password: str | None, token: str | None, item: GeneratedItem | None
) -> str:
    """Return the text that says what to open and try, with the password and key if they are new."""
    url = settings.PUBLIC_URL
    feed = (
        Outlet.everywhere.filter(workspace=workspace, platform="feed", deleted_at=None).order_by("id").first()
    )
    lines = ["", "─" * 78, f"The demo workspace runs at {url}", ""]
    lines += [f"  Log in          {url}/", f"  API documents   {url}/docs", f"  Admin           {url}/admin/"]
    if settings.EMAIL_FILE_PATH:
        lines.append(
            f"  Mails           {settings.EMAIL_FILE_PATH}/ (a sign-up's code is in the newest file)"
        )
    log = settings.DATA_DIR / "log" / "service.log"
    if log.exists():
        lines.append(f"  Log             {log}")
    if feed is not None:
        lines.append(f"  Workspace feed  {url}/feeds/{feed.secret}.atom")
    lines.append("")
    if password is None:
        lines.append(
            f"  Log in as {OWNER} with the password of the first start (or: manage.py changepassword {OWNER})."
        )
    else:
        lines.append(f"  Log in as       {OWNER}")
        lines.append(f"  Password        {password}   (shown only now)")
    if token is None:
        lines += [
            "  Use the API key that the first start printed, or make another one for the lines below:",
            "",
        ]
        lines += [f"TOKEN=$(make -s token{_data_dir_argument()})", ""]
        bearer = "$TOKEN"
    else:
        lines += [f"  API key         {token}   (shown only now)", ""]
        bearer = token
    lines += _curl_lines(url, bearer, item)
    lines += ["", "Ctrl-C stops everything; the data stays.", "─" * 78]
    return "\n".join(lines)


def _data_dir_argument() -> str:
    default = settings.BASE_DIR / "var"
    return "" if default == settings.DATA_DIR else f" DATA_DIR={settings.DATA_DIR}"


def _curl_lines(url: str, bearer: str, item: GeneratedItem | None) -> list[str]:
    """Return calls of the API to try; without an item, the one that publishes lists events instead."""
    head = f'curl -sS -H "Authorization: Bearer {bearer}"'
    post = f"{head} -H 'Content-Type: application/json'"
    # The text differs on each run, because the same one again would be a duplicate.
    pushed = {
        "title": "A note from the command line",
        "body": f"The harbour ferry {secrets.token_hex(3)} leaves at seven from now on, twenty minutes earlier than "
        "before. The first boat of the day takes bicycles free of charge until the end of March. Tickets are sold "
        "on board and at the kiosk beside pier four.",
    }
    publish = (
        f"{head} '{url}/v1/events?limit=5'"
        if item is None
        else f"{post} -d '{{}}' {url}/v1/generated/{encode('gen', item.pk)}/publish"
    )
    return [
        f"{head} '{url}/v1/generated?limit=5'",
        f"{post} -d '{json.dumps(pushed)}' {url}/v1/raw",
        publish,
        f"{head} '{url}/v1/publications?limit=5'",
        f"{head} {url}/v1/analytics",
    ]
