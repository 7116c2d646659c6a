"""The round of a client that OpenAPI Generator made for Python, as package `client_package`."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

from client_package import ApiClient, Configuration
from client_package.api.analytics_api import AnalyticsApi
from client_package.api.events_api import EventsApi
from client_package.api.generated_api import GeneratedApi
from client_package.api.outlets_api import OutletsApi
from client_package.api.raw_api import RawApi
from client_package.api.sources_api import SourcesApi
from client_package.api.workspace_api import WorkspaceApi
from client_package.exceptions import ApiException
from client_package.models.error_answer import ErrorAnswer
from client_package.models.generated_item_changes import GeneratedItemChanges
from client_package.models.publish_input import PublishInput
from client_package.models.published_item import PublishedItem
from client_package.models.raw_item_input import RawItemInput
from client_package.models.raw_push import RawPush
from client_package.models.source_input import SourceInput
from client_package.models.text_content import TextContent
from client_package.models.webhook_source_input import WebhookSourceInput

URL, BODY = os.environ["URL"], os.environ["STORY"]


def client_of(token: str) -> ApiClient:
    # By default it waits as long as Retry-After says and asks again, so that nobody would see a 429.
    return ApiClient(Configuration(host=URL, access_token=token, retries=0))


def code(call: Callable[[], object]) -> str:
    """The parsed error of a call, by its code."""
    try:
        call()
    except ApiException as error:
        answer = error.data
    else:
        answer = None
    assert isinstance(answer, ErrorAnswer), answer
    assert answer.detail[0].message
    return answer.error


def push(client: ApiClient, title: str) -> object:
    item = RawItemInput(title=title, body=BODY, engines=["Short Post"])
    return RawApi(client).raw_push(RawPush(item))


def live() -> dict[str, Any]:
    client = client_of(os.environ["TOKEN"])
    generated, raw, sources = GeneratedApi(client), RawApi(client), SourcesApi(client)
    source = sources.sources_create(SourceInput(WebhookSourceInput(type="webhook", name="Bridge")))
    for number in range(3):
        push(client, f"Story {number}")
    rows, cursor = [], None
    while True:
        page = raw.raw_list(limit=2, cursor=cursor)
        rows += page.data
        cursor = page.next_cursor
        if cursor is None:
            break
    while not (items := generated.generated_list(include="content", status=["ready", "failed"]).data):
        time.sleep(0.3)
    item = items[0]
    content = item.content and item.content.actual_instance
    assert isinstance(content, TextContent)
    # It is annotated with the first of its two answers; the other one is made all the same.
    published: object = generated.generated_publish(item.id, publish_input=PublishInput())
    assert isinstance(published, PublishedItem)
    analytics = AnalyticsApi(client).get_analytics()

    def ask_for_ever() -> None:
        while True:
            WorkspaceApi(client).get_workspace()

    errors = {
        "400": code(lambda: generated.generated_list(cursor="nonsense")),
        "401": code(lambda: WorkspaceApi(client_of("cpk_live_nonsense")).get_workspace()),
        "402": code(lambda: push(client_of(os.environ["POOR"]), "Poor")),
        "404": code(lambda: sources.sources_retrieve(os.environ["UNKNOWN_ID"])),
        "409": code(lambda: generated.generated_restore(item.id)),
        "412": code(
            lambda: generated.generated_update(
                item.id, if_match='"v9999"', generated_item_changes=GeneratedItemChanges(title="New")
            )
        ),
        "429": code(ask_for_ever),
    }
    return {
        "source": source.type,
        "rows": len({row.id for row in rows}),
        "parts": len(content.parts),
        "publications": len(published.publications),
        "metrics": "published" in analytics.totals.metrics.to_dict(),
        "errors": errors,
    }


def unknown() -> dict[str, Any]:
    client = client_of("cpk_live_any")
    known_form = "01mtgcg400e008000000000001"
    item = GeneratedApi(client).generated_retrieve(f"gen_{known_form}")
    return {
        "platform": OutletsApi(client).outlets_list().data[0].platform,
        "event": EventsApi(client).events_list().data[0].type,
        "source": SourcesApi(client).sources_retrieve(f"src_{known_form}").type,
        "engine": item.engine_output,
        "held": item.held,
        "error": code(lambda: WorkspaceApi(client).get_workspace()),
    }


print(json.dumps(live() if os.environ["KIND"] == "live" else unknown()))  # noqa: T201
