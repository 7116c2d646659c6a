"""Media that stand elsewhere: limits of size, kind and time, through the guarded client."""

from __future__ import annotations

import pytest

from config.core.http_client import shared
from pipeline import limits
from pipeline.media import files
from pipeline.media.remote_files import fetch_media
from pipeline.models import Upload
from pipeline.plugins import Refused, TryLater
from pipeline.render.video import job as jobs
from tests.contracts.test_uploads import MP4, picture
from tests.pipeline.steps import NOON


@pytest.fixture
def fetch(workspace, settings, tmp_path, httpserver):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.OUTBOUND_ALLOW_LOOPBACK = True
    shared.client.cache_clear()

    def ask(data=b"", *, status=200, **more):
        httpserver.clear()
        httpserver.expect_request("/a/tram.png").respond_with_data(
            data, status=status, content_type="text/html"
        )
        url = httpserver.url_for("/a/tram.png?x=1")
        return fetch_media(workspace, url, shared.client(), test=False, now=NOON, **more)

    yield ask
    shared.client.cache_clear()


def test_a_picture_is_kept_by_its_bytes(fetch, workspace):
    kept = fetch(picture())
    assert (kept.kind, kept.mime_type, kept.name) == ("image", "image/png", "tram.png")
    assert kept.expires_at == NOON + limits.UPLOADS_KEPT
    assert files.path_of(kept.path).read_bytes() == picture()


def test_other_kinds_are_refused(fetch):
    for data, kinds in ((MP4, ("image",)), (b"Words.", ("image", "video"))):
        with pytest.raises(Refused) as refused:
            fetch(data, kinds=kinds)
        assert refused.value.code == "other_kind"
    with pytest.raises(Refused) as refused:
        fetch(b"%PDF-1.7")
    assert refused.value.code == "unusable_media"
    assert Upload.everywhere.count() == 0


def test_too_many_bytes_are_refused(fetch, monkeypatch):
    monkeypatch.setattr(limits, "MEDIA_FETCH_BYTES", 100)
    with pytest.raises(Refused) as refused:
        fetch(b"x" * 101)
    assert refused.value.code == "media_too_large"


@pytest.mark.parametrize(
    ("status", "error"), [(404, Refused), (410, Refused), (403, Refused), (429, TryLater), (503, TryLater)]
)
def test_what_the_server_says(fetch, status, error):
    with pytest.raises(error) as raised:
        fetch(status=status)
    assert raised.value.code == "media_unavailable"


def test_private_addresses_are_refused(workspace, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = False
    shared.client.cache_clear()
    with pytest.raises(Refused) as refused:
        fetch_media(workspace, "http://127.0.0.1/x.png", shared.client(), test=False, now=NOON)
    assert refused.value.field == "media"
    shared.client.cache_clear()


def test_nobody_there_is_tried_later(workspace, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = True
    shared.client.cache_clear()
    with pytest.raises(TryLater):
        fetch_media(workspace, "http://127.0.0.1:9/x.png", shared.client(), test=False, now=NOON)
    shared.client.cache_clear()


def test_a_busy_machine_is_no_fault_of_the_file(fetch, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    with jobs.slot(tmp_path / "probes", 1), jobs.slot(tmp_path / "probes", 2), pytest.raises(TryLater):
        fetch(MP4)
    assert Upload.everywhere.count() == 0
