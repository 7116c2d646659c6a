"""Builds routes of a workspace's pages, and converts the public ids in paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import path, register_converter

from config.core.ids import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.http.response import HttpResponseBase
    from django.urls.resolvers import URLPattern


class PublicIdConverter:
    """A path converter: `<ws:ws>` takes a public id with that prefix and passes the UUID to the view."""

    regex = "[a-z]+_[0-9a-z]{26}"
    prefix = ""

    def to_python(self, value: str) -> UUID:
        uuid = decode(self.prefix, value)
        if uuid is None:
            # Tells Django that the URL doesn't match.
            raise ValueError
        return uuid

    def to_url(self, value: UUID) -> str:
        return encode(self.prefix, value)


def register_ids(*prefixes: str) -> None:
    """Make `<prefix:name>` usable in the pages' routes; it matches only public ids with that prefix."""
    for prefix in prefixes:
        converter = type(
            f"{prefix}Id", (PublicIdConverter,), {"prefix": prefix, "regex": f"{prefix}_[0-9a-z]{{26}}"}
        )
        register_converter(converter, prefix)


def page_path(route: str, view: Callable[..., HttpResponseBase], name: str) -> URLPattern:
    """Return the route of a page below `/w/<ws>/`; its view is decorated with `workspace_page`."""
    return path(f"w/<ws:ws>/{route}", view, name=name)
