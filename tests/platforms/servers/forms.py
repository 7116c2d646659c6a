"""Reads forms with files as a server does."""

from __future__ import annotations

from dataclasses import dataclass
from email import message_from_bytes, policy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.platforms.servers.base import Request


@dataclass(frozen=True)
class Part:
    name: str
    file_name: str | None
    mime_type: str
    content: bytes


def parts_of(request: Request) -> list[Part]:
    """Raises AssertionError where the body isn't the form that its content type says."""
    kind = request.headers.get("content-type", "")
    assert kind.startswith("multipart/form-data; boundary="), kind
    head = f"Content-Type: {kind}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    assert not message.defects, message.defects
    found = []
    for one in message.iter_parts():
        content = one.get_payload(decode=True)
        assert isinstance(content, bytes)
        name = one.get_param("name", header="content-disposition")
        assert isinstance(name, str)
        found.append(Part(name, one.get_filename(), one.get_content_type(), content))
    return found


def fields_of(request: Request) -> dict[str, str]:
    if request.headers.get("content-type") == "application/x-www-form-urlencoded":
        return request.form()
    return {one.name: one.content.decode() for one in parts_of(request) if one.file_name is None}


def files_of(request: Request) -> dict[str, Part]:
    if request.headers.get("content-type") == "application/x-www-form-urlencoded":
        return {}
    return {one.name: one for one in parts_of(request) if one.file_name is not None}
