"""The stand-in for a Mastodon server, asked by a client that others wrote: it is no mirror of our own connector."""

from __future__ import annotations

import io

import pytest
from mastodon import Mastodon, MastodonUnauthorizedError
from PIL import Image

from tests.platforms.servers.mastodon import ACCOUNT, TOKEN, Server


@pytest.fixture
def client(server: Server) -> Mastodon:
    return Mastodon(access_token=TOKEN, api_base_url=server.url)


def png() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), "#c2410c").save(content, "PNG")
    return content.getvalue()


def test_a_token_tells_whose_it_is(client: Mastodon) -> None:
    person = client.account_verify_credentials()

    assert (str(person.id), person.acct, person.bot) == (ACCOUNT, "writer", True)


def test_a_wrong_token_is_turned_away(server: Server) -> None:
    with pytest.raises(MastodonUnauthorizedError):
        Mastodon(access_token="wrong", api_base_url=server.url).account_verify_credentials()


def test_an_instance_tells_its_limits(client: Mastodon) -> None:
    instance = client.instance_v2()

    assert instance.version == "4.4.3"
    assert instance.configuration.statuses.max_characters == 500
    assert instance.configuration.media_attachments.image_size_limit == 16_777_216


def test_a_key_makes_one_post_of_two_calls(server: Server, client: Mastodon) -> None:
    first = client.status_post("Words", idempotency_key="k-1", visibility="unlisted", language="en")
    again = client.status_post("Words", idempotency_key="k-1", visibility="unlisted", language="en")
    other = client.status_post("Words", idempotency_key="k-2")

    assert first.id == again.id != other.id
    assert [one["id"] for one in server.posts] == [str(first.id), str(other.id)]
    assert (first.visibility, first.language, first.content) == ("unlisted", "en", "<p>Words</p>")


def test_a_file_comes_with_its_words(server: Server, client: Mastodon) -> None:
    server.working = 1
    file = client.media_post(png(), mime_type="image/png", description="A red field.", synchronous=True)
    post = client.status_post("A picture", media_ids=file)

    (shown,) = post.media_attachments
    assert (shown.id, shown.description, shown.url) == (
        file.id,
        "A red field.",
        f"{server.url}/media/{file.id}",
    )


def test_an_answer_follows_its_post_and_is_deleted(server: Server, client: Mastodon) -> None:
    first = client.status_post("One")
    second = client.status_post("Two", in_reply_to_id=first)
    listed = client.account_statuses(ACCOUNT, min_id=first, limit=40)

    assert [(one.id, str(one.in_reply_to_id)) for one in listed] == [(second.id, str(first.id))]
    assert client.status_source(second).text == "Two"
    client.status_delete(second)
    assert [one["id"] for one in server.posts] == [str(first.id)]
