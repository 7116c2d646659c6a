"""Defines what a platform receives and what it fits it to: texts, files, steps of fitting, lengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from pipeline.engines.base import Bucket


@dataclass(frozen=True)
class PayloadAsset:
    """A file of the item; `width` and `height` are in pixels, `duration` in seconds, or `None` if not known."""

    url: str
    mime_type: str
    role: str = ""
    alt_text: str = ""
    bytes: int = 0
    name: str = ""
    width: int | None = None
    height: int | None = None
    duration: float | None = None
    open: Callable[[], BinaryIO] | None = field(default=None, compare=False, repr=False)
    """Opens the file's bytes; a platform that fetches by `url` needs none."""

    def read(self) -> builtins.bytes:
        """Return the file's bytes. Raises `ValueError` if it has no `open`, and `OSError` if that fails."""
        if self.open is None:
            message = "This file's content isn't available."
            raise ValueError(message)
        with self.open() as file:
            return file.read()


@dataclass(frozen=True)
class Payload:
    """One revision of a generated item to send, with the outlet's overrides laid over it."""

    item: str
    revision: int
    bucket: Bucket
    title: str
    body: str
    body_format: str
    language: str = ""
    link: str = ""
    """The source's address on the web, or an empty string without one."""
    content: Mapping[str, Any] = field(default_factory=dict)
    assets: tuple[PayloadAsset, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_ai_generated: bool = False
    """Whether a model wrote the text or drew the pictures; platforms that ask for it are told."""


@dataclass(frozen=True)
class AdaptationStep:
    """One change that was made so that the post fits, for the receipt."""

    code: str
    message: str


@dataclass(frozen=True)
class Adapted:
    """A payload as it will be sent; `parts` are the posts of a thread, or the one post."""

    payload: Payload
    parts: tuple[str, ...]
    steps: tuple[AdaptationStep, ...] = ()
    disclosure: Mapping[str, Any] = field(default_factory=dict)
    """The platform's own fields that declare the use of AI, as they are sent."""


@dataclass(frozen=True)
class Length:
    """The length of a text as the platform counts; `limit` is `None` if the platform has none."""

    count: int
    limit: int | None
    unit: str
