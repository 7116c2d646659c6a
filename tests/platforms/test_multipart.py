from __future__ import annotations

from typing import NoReturn

import pytest

from pipeline.platforms.payload_types import PayloadAsset
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, file_of
from pipeline.plugins import TryLater
from tests.platforms.servers.base import Request
from tests.platforms.servers.forms import Part, parts_of


def read(body: bytes, content_type: str) -> list[Part]:
    return parts_of(Request("POST", "/", {}, {"content-type": content_type}, body))


def test_fields_and_files_come_back_as_they_were() -> None:
    content = bytes(range(256)) + b"\r\n--part-\r\n"

    found = read(
        *build_multipart({"text": "Zürich\r\n--🚊"}, [UploadFile("photo", "a.png", "image/png", content)])
    )

    assert found == [
        Part("text", None, "text/plain", "Zürich\r\n--🚊".encode()),
        Part("photo", "a.png", "image/png", content),
    ]


def test_a_name_begins_no_header() -> None:
    body, _ = build_multipart({}, [UploadFile("photo", 'a"\r\nX-Evil: 1', "image/png", b"x")])

    assert b'filename="a%22%0D%0AX-Evil: 1"' in body


def test_the_same_form_is_the_same_bytes_and_its_content_never_ends_it() -> None:
    first, kind = build_multipart({"a": "1"})
    boundary = kind.partition("boundary=")[2]

    assert build_multipart({"a": "1"}) == (first, kind)
    assert read(*build_multipart({"a": f"--{boundary}--"}))[0].content == f"--{boundary}--".encode()


def test_a_file_that_is_gone_is_no_lost_call() -> None:
    def missing() -> NoReturn:
        raise FileNotFoundError

    with pytest.raises(TryLater) as raised:
        file_of("photo", PayloadAsset("https://m.example.com/a", "image/png", open=missing), 0)

    assert raised.value.code == "file_unreadable"
