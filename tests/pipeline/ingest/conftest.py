"""What the tests of intake stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from pipeline.ingest import collect
from tests.sources.tiktok_server import TikTokServer
from tests.sources.youtube_server import YouTubeServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_httpserver import HTTPServer

    from accounts.models import Workspace
    from pipeline.models import Source


@pytest.fixture
def youtube(httpserver: HTTPServer, settings: Any) -> YouTubeServer:
    """The stand-in that every call to YouTube goes to."""
    server = YouTubeServer(httpserver)
    settings.SOURCE_ENVIRONMENT = {"YOUTUBE_URL": server.url, "YOUTUBE_API_URL": server.url}
    return server


@pytest.fixture
def tiktok(httpserver: HTTPServer, settings: Any) -> TikTokServer:
    """The stand-in that every call to TikTok goes to."""
    server = TikTokServer(httpserver)
    settings.SOURCE_ENVIRONMENT = {"TIKTOK_URL": server.url, "TIKTOK_SHORT_URL": server.url}
    return server


@pytest.fixture
def register(workspace: Workspace) -> Callable[..., Source]:
    """Adds a source with these settings."""

    def make(**given: Any) -> Source:
        return collect.register(workspace, collect.SourceSettings(**given), now=timezone.now())

    return make
