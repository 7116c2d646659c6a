"""The PDS is a real one: what a connector asks of it, asked by hand."""

from __future__ import annotations

from io import BytesIO

import pytest
import requests
from PIL import Image

# The first test of a machine installs the server, which takes a minute or two.
pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

POSTS = "app.bsky.feed.post"
# Posts have keys that are moments of time, and the server looks.
KEY = "3jzfcijpj2z2a"
RECORD = {
    "$type": POSTS,
    "text": "Wörds of example.com",
    "createdAt": "2026-11-22T05:00:00.000Z",
    "facets": [
        {
            "index": {"byteStart": 10, "byteEnd": 21},
            "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "https://example.com/"}],
        }
    ],
}


@pytest.fixture
def client(pds):
    with requests.Session() as session:
        session.trust_env = False
        yield Client(pds, session)


class Client:
    def __init__(self, pds, session):
        self._url = f"{pds.url}/xrpc"
        self._session = session
        self.account = pds.new_account()
        self.began = self.call(
            "com.atproto.server.createSession",
            json={"identifier": self.account.handle, "password": self.account.app_password},
        ).json()
        session.headers["Authorization"] = f"Bearer {self.began['accessJwt']}"

    def call(self, method, **given):
        return self._session.post(f"{self._url}/{method}", timeout=60, **given)

    def put(self, record, key=KEY):
        return self.call("com.atproto.repo.putRecord", json=self._place(key) | {"record": record})

    def get(self, key=KEY):
        return self._session.get(
            f"{self._url}/com.atproto.repo.getRecord", params=self._place(key), timeout=60
        )

    def delete(self, key=KEY):
        return self.call("com.atproto.repo.deleteRecord", json=self._place(key))

    def _place(self, key):
        return {"repo": self.account.did, "collection": POSTS, "rkey": key}


def test_a_session_tells_where_its_account_lives(pds, client):
    assert (client.began["did"], client.began["handle"]) == (client.account.did, client.account.handle)
    assert [place["serviceEndpoint"] for place in client.began["didDoc"]["service"]] == [pds.url]


def test_a_record_is_put_twice_read_and_deleted(client):
    first, again = client.put(RECORD).json(), client.put(RECORD).json()
    assert first["uri"] == f"at://{client.account.did}/{POSTS}/{KEY}"
    assert (again["uri"], again["cid"]) == (first["uri"], first["cid"])
    # Only the first of them changed anything.
    assert ("commit" in first, "commit" in again) == (True, False)
    read = client.get().json()
    assert (read["cid"], read["value"]) == (first["cid"], RECORD)

    assert client.delete().status_code == 200
    gone = client.get()
    assert (gone.status_code, gone.json()["error"]) == (400, "RecordNotFound")
    assert client.delete().json() == {}


def test_a_post_with_a_picture_is_there_with_it(pds, client):
    out = BytesIO()
    Image.new("RGB", (300, 200), "#c2410c").save(out, "PNG")
    sent = client.call(
        "com.atproto.repo.uploadBlob", data=out.getvalue(), headers={"Content-Type": "image/png"}
    )
    blob = sent.json()["blob"]
    assert (blob["mimeType"], blob["size"]) == ("image/png", len(out.getvalue()))

    record = RECORD | {
        "embed": {"$type": "app.bsky.embed.images", "images": [{"alt": "A red field", "image": blob}]}
    }
    assert client.put(record).status_code == 200
    # Packages of the server that don't belong together store such a record and then don't find it.
    assert client.get().json()["value"] == record
    kept = requests.get(
        f"{pds.url}/xrpc/com.atproto.sync.getBlob",
        params={"did": client.account.did, "cid": blob["ref"]["$link"]},
        timeout=60,
    )
    assert (kept.status_code, kept.content) == (200, out.getvalue())


def test_a_token_ends_and_is_renewed(pds, client):
    def renew(token):
        return client.call("com.atproto.server.refreshSession", headers={"Authorization": f"Bearer {token}"})

    access, refresh = client.began["accessJwt"], client.began["refreshJwt"]
    late = client.call(
        "com.atproto.repo.putRecord", json={}, headers={"Authorization": f"Bearer {pds.expired(access)}"}
    )
    assert (late.status_code, late.json()["error"]) == (400, "ExpiredToken")
    assert renew(pds.expired(refresh)).json()["error"] == "ExpiredToken"
    renewed = renew(refresh)
    assert (renewed.status_code, renewed.json()["did"]) == (200, client.account.did)


def test_an_account_that_was_taken_down_posts_nothing(pds, client):
    pds.take_down(client.account)
    refused = client.put(RECORD)
    assert (refused.status_code, refused.json()["error"]) == (401, "AccountTakedown")
    pds.take_down(client.account, applied=False)
    assert client.put(RECORD).status_code == 200
