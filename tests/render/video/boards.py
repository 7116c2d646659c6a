"""Storyboards that the tests film."""

from __future__ import annotations

from pipeline.render.picture_types import Disc, DrawnText, Panel
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from pipeline.render.video.storyboard import (
    Caption,
    Crop,
    Meta,
    Motion,
    Overlay,
    Scene,
    Storyboard,
    Transition,
    Visual,
    Word,
    Zoom,
)

SMALL = (270, 480)


def board() -> Storyboard:
    """Two seconds with something of everything that needs no files."""
    title = layout(
        "Harbour ferry fleet goes electric", (810, 260), Style(weight=800), largest=96, smallest=56
    )
    return Storyboard(
        scenes=(
            Scene(0.0, 1.0, Visual("colour", colour="#1f3a5f", colour_to="#10203a")),
            Scene(1.0, 2.0, Visual("colour", colour="#d9663b"), Transition("wipe", 0.4)),
        ),
        overlays=(
            Overlay(
                0.0,
                1.0,
                (DrawnText(90.0, 300.0, title, "#ffffff", "#ffd23f"),),
                leave=Motion("fade", 0.2),
                name="title",
            ),
            Overlay(
                1.2,
                2.0,
                (Panel(90, 600, 810, 300, 44, "#ffffff"), Disc(120, 630, 96, "#1f3a5f")),
                enter=Motion("rise", 0.4, 60.0),
                name="card",
            ),
        ),
        captions=(
            Caption((Word("Forty-two", 0.2, 0.6), Word("boats", 0.6, 0.9)), 0.2, 0.95),
            Caption((Word("run", 1.0, 1.3), Word("clean", 1.3, 1.8)), 1.0, 2.0),
        ),
        meta=Meta(title="Ferries", alt_text="Ferries", language="en"),
    )


def zooming(*, seconds: float = 2.0, asset: str = "dot.png") -> Storyboard:
    """A still that comes nearer, as slowly as a short's does."""
    visual = Visual("picture", asset=asset, crop=Crop(0.0, 0.0, 1.0, 1.0), zoom=Zoom(1.0, 1.08))
    return Storyboard(scenes=(Scene(0.0, seconds, visual),))
