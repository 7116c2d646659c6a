"""The stand-in for X against X's public OpenAPI document, by the client and the models that X generates from it."""

from __future__ import annotations

import inspect
import types
import typing
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import pytest
import requests

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Pending
from pipeline.platforms.x import PLUGIN
from tests.platforms.servers import x as stand_in
from tests.platforms.servers.x import TOKEN, USER, account, form_of, payload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from xdk import Client as TheirClient

    from pipeline.platforms.base import Sent
    from pipeline.platforms.payload_types import Payload
    from tests.platforms.servers.base import Answer, Request

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))


@cache
def operations() -> dict[str, tuple[Any, type[BaseModel] | None, type[BaseModel]]]:
    """What an operation of the document takes and answers; its parameters are those of the generated method."""
    from xdk import schemas
    from xdk.media.client import MediaClient
    from xdk.posts.client import PostsClient
    from xdk.users.client import UsersClient

    return {
        "GET /2/users/me": (UsersClient.get_me, None, schemas.GetUsersMeResponse),
        "GET /2/users/{id}/tweets": (UsersClient.get_posts, None, schemas.GetUsersPostsResponse),
        "POST /2/tweets": (PostsClient.create, schemas.CreatePostsRequest, schemas.CreatePostsResponse),
        "GET /2/tweets": (PostsClient.get_by_ids, None, schemas.GetPostsByIdsResponse),
        "DELETE /2/tweets/{id}": (PostsClient.delete, None, schemas.DeletePostsResponse),
        "POST /2/media/upload": (MediaClient.upload, schemas.MediaUploadRequest, schemas.MediaUploadResponse),
        "GET /2/media/upload": (MediaClient.get_upload_status, None, schemas.GetMediaUploadStatusResponse),
        "POST /2/media/metadata": (
            MediaClient.create_metadata,
            schemas.CreateMediaMetadataRequest,
            schemas.CreateMediaMetadataResponse,
        ),
        "POST /2/media/upload/initialize": (
            MediaClient.initialize_upload,
            schemas.InitializeMediaUploadRequest,
            schemas.InitializeMediaUploadResponse,
        ),
        "POST /2/media/upload/{id}/append": (
            MediaClient.append_upload,
            schemas.AppendMediaUploadRequest,
            schemas.AppendMediaUploadResponse,
        ),
        "POST /2/media/upload/{id}/finalize": (
            MediaClient.finalize_upload,
            None,
            schemas.FinalizeMediaUploadResponse,
        ),
    }


class Watched(stand_in.Server):
    """The same server; what was asked and answered is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.exchanges: list[tuple[Request, Answer]] = []

    def handle(self, request: Request) -> Answer:
        answer = super().handle(request)
        self.exchanges.append((request, answer))
        return answer


@pytest.fixture
def server() -> Iterator[Watched]:
    with Watched() as there:
        yield there


@pytest.fixture
def theirs(server: Watched) -> TheirClient:
    return client(server, TOKEN)


def client(server: Watched, token: str) -> TheirClient:
    from xdk import Client

    return Client(base_url=server.url, access_token=token)


def post(text: str, **more: Any) -> BaseModel:
    from xdk import schemas

    return schemas.CreatePostsRequest(text=text, **more)


def operation_of(request: Request) -> str:
    words = [
        "{id}" if word.isdigit() and index > 1 else word for index, word in enumerate(request.path.split("/"))
    ]
    return f"{request.method} {'/'.join(words)}"


def strangers(value: object, where: str = "") -> list[str]:
    """The members that a model doesn't name, at any depth."""
    if isinstance(value, list):
        return [name for one in value for name in strangers(one, where)]
    if not hasattr(value, "model_extra"):
        return []
    found = [f"{where}.{name}" for name in value.model_extra or {}]
    for name in type(value).model_fields:
        found += strangers(getattr(value, name), f"{where}.{name}")
    return found


def hint_of(method: Any, parameter: str) -> object:
    """A parameter's type; the generated modules leave the names of types out where nothing runs them."""
    from xdk import schemas

    holder = types.SimpleNamespace(__annotations__={"it": inspect.get_annotations(method)[parameter]})
    return typing.get_type_hints(holder, vars(typing) | {"schemas": schemas})["it"]


def words_allowed(hint: object) -> set[str] | None:
    """The values of a parameter that takes one of a list, else None."""
    if typing.get_origin(hint) is Literal:
        return set(map(str, typing.get_args(hint)))
    if typing.get_origin(hint) in {typing.Union, types.UnionType, list}:
        found = [words for one in typing.get_args(hint) if (words := words_allowed(one)) is not None]
        return set().union(*found) if found else None
    return None


def publish(server: Watched, post: Payload) -> Sent:
    """Through every step of the connector, as the stage goes through them."""
    there = account(server)
    adapted = PLUGIN.adapt(there, post)
    state: dict[str, Any] = {}
    is_done = False
    while not is_done:
        prepared = PLUGIN.prepare(there, adapted, state, http=HTTP, key="k", now=NOW)
        state, is_done = dict(prepared.state), prepared.is_done
    while isinstance(PLUGIN.poll(there, adapted, state, http=HTTP, now=NOW), Pending):
        pass
    return PLUGIN.commit(there, adapted, state, http=HTTP, key="k", now=NOW)


@pytest.fixture
def exchanges(server: Watched) -> list[tuple[Request, Answer]]:
    """All that the connector ever asks of X."""
    there = account(server)
    PLUGIN.check_account(there, http=HTTP, now=NOW)
    words = payload("text", "The council & the tram: 14 to 9 https://example.com/tram")
    sent = [
        publish(server, words),
        publish(server, payload("image", "A red square.", stand_in.picture())),
        publish(server, payload("video", "It moves.", stand_in.film())),
    ]
    state = {"since": NOW.isoformat(), "tried": NOW.isoformat(), "files": []}
    PLUGIN.reconcile(there, PLUGIN.adapt(there, words), state, http=HTTP, key="k", now=NOW)
    PLUGIN.metrics(there, [(one, NOW) for one in sent], http=HTTP, now=NOW)
    PLUGIN.remove(there, sent[0], http=HTTP, now=NOW)
    return server.exchanges


def test_the_connector_asks_for_nothing_that_is_not_in_the_document(exchanges) -> None:
    asked = {operation_of(request) for request, _ in exchanges}

    assert asked == set(operations())
    for request, _ in exchanges:
        method, model, _ = operations()[operation_of(request)]
        if request.headers.get("content-type", "").startswith("multipart/"):
            body: dict[str, Any] = {name: value.decode("latin-1") for name, value in form_of(request).items()}
        else:
            body = request.json() if request.body else {}
        if model is None:
            assert body == {}
        else:
            assert strangers(model.model_validate(body), operation_of(request)) == []
        for name, values in request.query.items():
            parameter = name.replace(".", "_")
            assert parameter in inspect.signature(method).parameters, f"{operation_of(request)}?{name}"
            allowed = words_allowed(hint_of(method, parameter))
            assert allowed is None or set(values[0].split(",")) <= allowed, f"{name}={values[0]}"


def test_the_stand_in_answers_as_the_document_says(exchanges) -> None:
    for request, answer in exchanges:
        name = operation_of(request)
        assert 200 <= answer.status < 300, name
        model = operations()[name][2].model_validate(answer.body)
        assert strangers(model, name) == []


def test_the_generated_client_posts_lists_and_deletes(server: Watched, theirs: TheirClient) -> None:
    made = theirs.posts.create(post("One post.", made_with_ai=True))
    listed = next(
        iter(theirs.users.get_posts(USER["id"], max_results=10, post_fields=["created_at", "entities"]))
    )
    counted = theirs.posts.get_by_ids([made.data.id], post_fields=["public_metrics"])

    assert [one["id"] for one in server.posts] == [made.data.id]
    assert [one.id for one in listed.data] == [made.data.id]
    assert counted.data[0].public_metrics.repost_count == 2
    assert theirs.users.get_me().data.username == USER["username"]
    assert theirs.posts.delete(made.data.id).data.deleted is True
    assert server.posts == []


def test_the_generated_client_is_turned_away(server: Watched, theirs: TheirClient) -> None:
    theirs.posts.create(post("The same words."))
    with pytest.raises(requests.HTTPError) as refused:
        theirs.posts.create(post("The same words."))

    assert refused.value.response.status_code == 403
    with pytest.raises(requests.HTTPError) as unknown:
        client(server, "another").users.get_me()
    assert unknown.value.response.status_code == 401
