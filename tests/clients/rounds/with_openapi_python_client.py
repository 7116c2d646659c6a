"""The round of a client that openapi-python-client made, as package `client_package`."""

import json
import os
import time
from http import HTTPStatus
from typing import Any

from client_package import AuthenticatedClient
from client_package.api.analytics import get_analytics
from client_package.api.events import events_list
from client_package.api.generated import (
    generated_list,
    generated_publish,
    generated_restore,
    generated_retrieve,
    generated_update,
)
from client_package.api.outlets import outlets_list
from client_package.api.raw import raw_list, raw_push
from client_package.api.sources import sources_create, sources_retrieve
from client_package.api.workspace import get_workspace
from client_package.models import (
    Analytics,
    ErrorAnswer,
    EventList,
    GeneratedItem,
    GeneratedItemChanges,
    GeneratedItemList,
    GeneratedListStatusItem,
    OutletList,
    PublishedItem,
    PublishInput,
    PushedRawItem,
    RawItem,
    RawItemInput,
    RawItemList,
    Source,
    TextContent,
    WebhookSourceInput,
)
from client_package.types import UNSET, Response, Unset

URL, BODY = os.environ["URL"], os.environ["STORY"]


def client_of(token: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=URL, token=token, timeout=None)


def code(response: Response[Any]) -> str:
    """The parsed error, by its code."""
    assert isinstance(response.parsed, ErrorAnswer), response
    assert response.parsed.detail[0].message
    return response.parsed.error


def live() -> dict[str, Any]:
    client = client_of(os.environ["TOKEN"])
    source = sources_create.sync(client=client, body=WebhookSourceInput(type_="webhook", name="Bridge"))
    assert isinstance(source, Source)
    pushed = [
        raw_push.sync(
            client=client, body=RawItemInput(title=f"Story {number}", body=BODY, engines=["Short Post"])
        )
        for number in range(3)
    ]
    assert all(isinstance(one, PushedRawItem) for one in pushed)
    rows: list[RawItem] = []
    cursor: str | Unset = UNSET
    while True:
        page = raw_list.sync(client=client, limit=2, cursor=cursor)
        assert isinstance(page, RawItemList)
        rows += page.data
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    items: list[GeneratedItem] = []
    while not items:
        time.sleep(0.3)
        found = generated_list.sync(
            client=client,
            include="content",
            status=[GeneratedListStatusItem.READY, GeneratedListStatusItem.FAILED],
        )
        assert isinstance(found, GeneratedItemList)
        items = found.data
    item = items[0]
    assert isinstance(item.content, TextContent)
    published = generated_publish.sync(item.id, client=client, body=PublishInput())
    assert isinstance(published, PublishedItem), published
    analytics = get_analytics.sync(client=client)
    assert isinstance(analytics, Analytics)
    errors = {
        "400": code(generated_list.sync_detailed(client=client, cursor="nonsense")),
        "401": code(get_workspace.sync_detailed(client=client_of("cpk_live_nonsense"))),
        "402": code(
            raw_push.sync_detailed(
                client=client_of(os.environ["POOR"]), body=RawItemInput(title="Poor", body=BODY)
            )
        ),
        "404": code(sources_retrieve.sync_detailed(os.environ["UNKNOWN_ID"], client=client)),
        "409": code(generated_restore.sync_detailed(item.id, client=client)),
        "412": code(
            generated_update.sync_detailed(
                item.id, client=client, if_match='"v9999"', body=GeneratedItemChanges(title="New")
            )
        ),
    }
    last: Response[Any] = get_workspace.sync_detailed(client=client)
    while last.status_code == HTTPStatus.OK:
        last = get_workspace.sync_detailed(client=client)
    errors["429"] = code(last)
    return {
        "source": source.type_,
        "rows": len({row.id for row in rows}),
        "parts": len(item.content.parts),
        "publications": len(published.publications),
        "metrics": "published" in analytics.totals.metrics.to_dict(),
        "errors": errors,
    }


def unknown() -> dict[str, Any]:
    client = client_of("cpk_live_any")
    outlets = outlets_list.sync(client=client)
    events = events_list.sync(client=client)
    source = sources_retrieve.sync("src_01mtgcg400e008000000000001", client=client)
    item = generated_retrieve.sync("gen_01mtgcg400e008000000000001", client=client)
    assert isinstance(outlets, OutletList)
    assert isinstance(events, EventList)
    assert isinstance(source, Source)
    assert isinstance(item, GeneratedItem)
    return {
        "platform": outlets.data[0].platform,
        "event": events.data[0].type_,
        "source": source.type_,
        "engine": item.engine_output,
        "held": item.held,
        "error": code(get_workspace.sync_detailed(client=client)),
    }


print(json.dumps(live() if os.environ["KIND"] == "live" else unknown()))  # noqa: T201
