"""What a platform is handed, and what it becomes there: words, pictures, steps of fitting, lengths."""

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
    """A file of the item. `width` and `height` in pixels, `duration` in seconds, None where it has none."""

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
    """Gives the file's bytes; a platform that fetches by `url` needs none."""

    def read(self) -> builtins.bytes:
        if self.open is None:
            message = "This file has no bytes at hand."
            raise ValueError(message)
        with self.open() as file:
            return file.read()


@dataclass(frozen=True)
class Payload:
    """What is to be sent: one revision of a generated item with the outlet's overrides laid over it."""

    item: str
    revision: int
    bucket: Bucket
    title: str
    body: str
    body_format: str
    language: str = ""
    link: str = ""
    """Where the source stands on the web; empty without one."""
    content: Mapping[str, Any] = field(default_factory=dict)
    assets: tuple[PayloadAsset, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_ai_generated: bool = False
    """A model wrote the words or drew the pictures: platforms that ask for it are told."""


@dataclass(frozen=True)
class AdaptationStep:
    """One thing that was done to the words so that they fit, for the receipt."""

    code: str
    message: str


@dataclass(frozen=True)
class Adapted:
    """A payload as it will be sent; `parts` are the posts of a thread, one where it is none."""

    payload: Payload
    parts: tuple[str, ...]
    steps: tuple[AdaptationStep, ...] = ()
    disclosure: Mapping[str, Any] = field(default_factory=dict)
    """The platform's own fields that tell of the machine's hand, as they are sent."""


@dataclass(frozen=True)
class Length:
    """How long the words are as this platform counts them; `limit` None where it has none."""

    count: int
    limit: int | None
    unit: str
