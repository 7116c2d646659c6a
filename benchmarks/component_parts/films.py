"""What a film of thirty seconds of 1080 × 1920 costs: five stills under a slow camera, captions that mark each word, a chip.

The floor is x264 with the same settings on the very same frames, read from a file; what the reading costs is taken off.
`python -m benchmarks.component_parts.films PART FOLDER SECONDS STILLS` is one process of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np
from PIL import Image

from benchmarks.table import Row
from pipeline.render.picture_plan import DrawnText, Panel
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from pipeline.render.video.encode import FINAL, encode
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.storyboard import (
    Caption,
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
from pipeline.render.video.verify import film_faults, probe_film
from pipeline.render.video.ycbcr import Planes, copy, new_planes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILM_MOST_RATIO: Final = 1.5
FILM_MOST_MB: Final = 400.0
SAID: Final = (
    "The harbour ferries of Lindholm run on batteries from Monday on. Forty-two boats will carry nine million "
    "people a year without a litre of diesel. The city paid two hundred and fourteen million for them, a third of it "
    "from the state. Each boat charges for six minutes at the quay, while its passengers change. The old engines go "
    "to a museum, and their fumes are gone from the old town. Fishermen say that the water is quieter now than it "
    "has been for eighty years."
)


def still(seed: int) -> bytes:
    """A JPEG with the detail of a photograph at every size: noise in octaves, and some edges."""
    random = np.random.default_rng(seed)
    picture = np.zeros((2400, 1350, 3), np.float32)
    for octave in range(2, 10):
        small = random.normal(0, 1, (2**octave, 2**octave, 3)).astype(np.float32)
        detail = cv2.resize(small, (1350, 2400), interpolation=cv2.INTER_CUBIC).astype(np.float32)
        picture += detail * np.float32(150 / 1.75**octave)
    for _ in range(40):
        x, y = random.integers(0, 1350), random.integers(0, 2400)
        colour = tuple(float(one) for one in random.normal(0, 45, 3))
        cv2.rectangle(picture, (int(x), int(y)), (int(x + 200), int(y + 260)), colour, -1)
    out = BytesIO()
    Image.fromarray(np.clip(picture + 118, 0, 255).astype(np.uint8)).save(out, "JPEG", quality=92)
    return out.getvalue()


@dataclass(frozen=True)
class Film:
    seconds: float
    stills: int


def board(film: Film) -> Storyboard:
    seconds = film.seconds
    length = seconds / film.stills
    scenes = tuple(
        Scene(
            place * length,
            (place + 1) * length,
            Visual(
                "picture", asset=f"{place}.jpg", zoom=Zoom(1.0, 1.12) if place % 2 == 0 else Zoom(1.12, 1.0)
            ),
            Transition("fade", min(0.3, length / 2)) if place else Transition(),
        )
        for place in range(film.stills)
    )
    words = SAID.split()
    step = seconds * 0.98 / len(words)
    cards = []
    for first in range(0, len(words), 3):
        spoken = [
            Word(word, round((first + place) * step, 3), round((first + place + 1) * step, 3))
            for place, word in enumerate(words[first : first + 3])
        ]
        cards.append(Caption(tuple(spoken), spoken[0].start, spoken[-1].end))
    name = layout("@lindholm", (200, 60), Style(weight=600), largest=40, smallest=28)
    chip = Overlay(
        0.0,
        seconds,
        (Panel(90, 270, 240, 80, 38, "#10203a"), DrawnText(112.0, 284.0, name, "#ffffff", "#ffffff")),
    )
    title = layout("The ferries go electric", (760, 240), Style(weight=800), largest=96, smallest=60)
    hook = Overlay(
        0.0,
        min(3.0, seconds),
        (DrawnText(90.0, 380.0, title, "#ffffff", "#ffffff"),),
        leave=Motion("rise", min(0.3, seconds / 10), 40.0),
    )
    return Storyboard(
        scenes=scenes,
        overlays=(chip, hook),
        captions=tuple(cards),
        meta=Meta(title="Ferries", language="en"),
    )


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ours(folder: Path, film: Film) -> dict[str, Any]:
    """Film it as the product does; everything from the storyboard to the file counts."""
    one = board(film)
    cpu, wall = spent(), time.perf_counter()
    composer = Composer(one, lambda name: (folder / name).read_bytes())
    path = folder / "ours.mp4"
    encode(
        path,
        composer.draw,
        frames=one.frames,
        size=composer.size,
        fps=one.fps,
        quality=FINAL,
    )
    told = {"cpu": spent() - cpu, "wall": time.perf_counter() - wall, "bytes": path.stat().st_size}
    found = film_faults(probe_film(path), frames=one.frames, fps=one.fps, size=composer.size)
    return {**told, "faults": found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def dump(folder: Path, film: Film) -> dict[str, Any]:
    """The very same frames into a file."""
    one = board(film)
    composer = Composer(one, lambda name: (folder / name).read_bytes())
    target = new_planes(*composer.size)
    cpu = spent()
    with (folder / "frames.raw").open("wb") as file:
        for number in range(one.frames):
            composer.draw(target, number)
            for plane in target:
                file.write(plane.tobytes())
    return {"cpu": spent() - cpu}


def film_floor(folder: Path, film: Film) -> dict[str, Any]:
    """The encoder alone on those frames, with what reading them costs taken off."""
    one = board(film)
    size = (one.width, one.height)
    frames = np.memmap(folder / "frames.raw", np.uint8, "r").reshape(one.frames, -1)
    pixels, quarter = size[0] * size[1], size[0] * size[1] // 4

    def draw(target: Planes, number: int) -> None:
        y, u, v = np.split(frames[number], [pixels, pixels + quarter])
        half = (size[1] // 2, size[0] // 2)
        copy(target, Planes(y.reshape(size[1], size[0]), u.reshape(half), v.reshape(half)))

    target, cpu = new_planes(*size), spent()
    for number in range(one.frames):
        draw(target, number)
    read = spent() - cpu
    path, cpu = folder / "floor.mp4", spent()
    encode(path, draw, frames=one.frames, size=size, fps=one.fps, quality=FINAL)
    return {"cpu": spent() - cpu - read, "read": read, "bytes": path.stat().st_size}


def in_child(part: str, folder: Path, film: Film) -> dict[str, Any]:
    """A process of its own, so that its time and memory are its own too."""
    command = [sys.executable, "-m", "benchmarks.component_parts.films", part, str(folder)]
    command += [str(film.seconds), str(film.stills)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return report


def here(part: str, folder: Path, film: Film) -> dict[str, Any]:
    return PARTS[part](folder, film)


def films(rounds: int, film: Film, *, is_smallest: bool) -> Iterator[Row]:
    run = here if is_smallest else in_child
    with tempfile.TemporaryDirectory(prefix="benchmark-film-") as made:
        folder = Path(made)
        for place in range(film.stills):
            (folder / f"{place}.jpg").write_bytes(still(place))
        run("dump", folder, film)
        told: dict[str, list[dict[str, Any]]] = {"floor": [], "ours": []}
        for _ in range(rounds):
            for part, reports in told.items():
                reports.append(run(part, folder, film))
    found = [fault for one in told["ours"] for fault in one["faults"]]
    whole = told["ours"]
    what = f"a film of {film.seconds:g} s"
    yield Row(
        f"{what}: CPU (floor: x264)", "s", [one["cpu"] for one in whole], [one["cpu"] for one in told["floor"]],
        most_ratio=FILM_MOST_RATIO, unsound="; ".join(map(str, found)), note=f"{FINAL.preset}, crf {FINAL.crf}",
    )  # fmt: skip
    yield Row(f"{what}: peak memory", "MB", [one["peak"] for one in whole], most=FILM_MOST_MB)


PARTS: Final[dict[str, Callable[[Path, Film], dict[str, Any]]]] = {
    "dump": dump,
    "floor": film_floor,
    "ours": ours,
}

if __name__ == "__main__":
    cv2.setNumThreads(1)
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]), Film(float(sys.argv[3]), int(sys.argv[4])))))
