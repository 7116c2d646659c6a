"""What every visual offers that fills the frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.render.video.planes import Planes


class Ground(ABC):
    """A scene's visual, ready to be drawn at any of its frames."""

    is_still = True
    """Whether every frame looks the same."""

    @abstractmethod
    def draw(self, target: Planes, progress: float) -> None:
        """Fill the frame; `progress` runs from 0 at the scene's first frame to 1 where it has gone."""
