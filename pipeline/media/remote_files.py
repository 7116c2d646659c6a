"""Media of raw items that stand elsewhere: fetched through the guarded client, judged and kept as an upload is."""

from __future__ import annotations

from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final

from config.core.errors import AppError
from config.core.http_client import AddressRefused, OutboundError, ResponseTooLarge
from pipeline import limits
from pipeline.media import uploads
from pipeline.media.uploads import file_types
from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from accounts.models import Workspace
    from config.core.http_client import Client, Response
    from pipeline.models import Upload

_FIELD: Final = "media"
_LATER: Final = frozenset({408, 425, 429})


def fetch_media(
    workspace: Workspace,
    url: str,
    http: Client,
    *,
    test: bool,
    now: datetime,
    kinds: Collection[str] = ("image", "audio", "video"),
) -> Upload:
    """Fetch one file and keep it for as long as an upload that nothing uses; `uploads.use` keeps it longer.

    At most `MEDIA_FETCH_BYTES` within `MEDIA_FETCH_SECONDS`, of one of `kinds` by its bytes, whatever the server says.
    Raises `Refused` where it can never be had from there, `TryLater` where it may later. No transaction may be open.
    """
    response = _ask(url, http)
    given = uploads.ReceivedFile(
        BytesIO(response.body), len(response.body), url.rsplit("/", 1)[-1].partition("?")[0]
    )
    try:
        kind = uploads.kind_of(given)
        if kind not in kinds:
            message = f"At {url} there is {kind}, not {' or '.join(kinds)}."
            raise Refused(message, code="other_kind", field=_FIELD)
        return uploads.store_upload(workspace, given, test=test, actor="system", now=now)
    except file_types.UploadBusy as busy:
        message = f"The file at {url} was not looked at: {busy}"
        raise TryLater(message, code="machine_busy") from busy
    except AppError as error:
        message = f"The file at {url} can't be used: {error}"
        raise Refused(message, code="unusable_media", field=_FIELD) from error


def _ask(url: str, http: Client) -> Response:
    try:
        response = http.request(
            "GET", url, timeout=limits.MEDIA_FETCH_SECONDS, max_bytes=limits.MEDIA_FETCH_BYTES
        )
    except AddressRefused as error:
        raise Refused(str(error), code=error.code, field=_FIELD) from error
    except ResponseTooLarge as error:
        message = f"The file at {url} is larger than {limits.MEDIA_FETCH_BYTES // 2**20} MiB."
        raise Refused(message, code="media_too_large", field=_FIELD) from error
    except OutboundError as error:
        message = f"The file could not be fetched: {error}"
        raise TryLater(message, code=error.code) from error
    if response.status == HTTPStatus.OK:
        return response
    message = f"The server answered {response.status} for {url}."
    if response.status >= 500 or response.status in _LATER:
        raise TryLater(message, code="media_unavailable")
    raise Refused(message, code="media_unavailable", field=_FIELD)
