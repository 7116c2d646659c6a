"""What is raised for a file that a storyboard names and that can't be shown."""

from __future__ import annotations

from pipeline.plugins import Refused


class UnusableAsset(Refused):
    """A file of the storyboard that can't be shown."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The file {name} can't be shown: {why}", code="unusable_asset")
