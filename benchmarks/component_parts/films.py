"""Measures a film of thirty seconds of 1080 × 1920: five stills under a slow camera, word-marked captions, a handle.

The floor is x264 with the same settings on the frames that the composer drew for the film, read from a file; the cost of
reading is subtracted. `python -m benchmarks.component_parts.films PART FOLDER SECONDS STILLS` is one process of the benchmark.
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
from pipeline.render.picture_types import DrawnText, Panel
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

MAX_FILM_RATIO: Final = 1.5
MAX_FILM_MIB: Final = 400.0
"""The most memory, in MiB, that the process of a film may have at once."""
SPOKEN_TEXT: Final = (
    "The harbour ferries of Lindholm run on batteries from Monday on. Forty-two boats will carry nine million "
    "people a year without a litre of diesel. The city paid two hundred and fourteen million for them, a third of it "
    "from the state. Each boat charges for six minutes at the quay, while its passengers change. The old engines go "
    "to a museum, and their fumes are gone from the old town. Fishermen say that the water is quieter now than it "
    "has been for eighty years."
)


def make_still(seed: int) -> bytes:
    """Return a JPEG with the detail of a photograph at every size: noise in octaves, and some edges."""
    random = np.random.default_rng(seed)
    picture = np.zeros((2400, 1350, 3), np.float32)
    for octave in range(2, 10):
        small = random.normal(0, 1, (2**octave, 2**octave, 3)).astype(np.float32)
        detail = cv2.resize(small, (1350, 2400), interpolation=cv2.INTER_CUBIC).astype(np.float32)
        picture += detail * np.float32(150 / 1.75**octave)
    for _ in range(40):
        x, y = random.integers(0, 1350), random.integers(0, 2400)
        colour = tuple(float(value) for value in random.normal(0, 45, 3))
        cv2.rectangle(picture, (int(x), int(y)), (int(x + 200), int(y + 260)), colour, -1)
    buffer = BytesIO()
    Image.fromarray(np.clip(picture + 118, 0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


@dataclass(frozen=True)
class FilmSize:
    """The size of a measured film: its length in seconds, and its number of stills."""

    seconds: float
    stills: int


def make_board(film: FilmSize) -> Storyboard:
    """Return the storyboard of the measured film: stills with a fade between them, captions, a handle and a title."""
    seconds = film.seconds
    length = seconds / film.stills
    scenes = tuple(
        Scene(
            index * length,
            (index + 1) * length,
            Visual(
                "picture", asset=f"{index}.jpg", zoom=Zoom(1.0, 1.12) if index % 2 == 0 else Zoom(1.12, 1.0)
            ),
            Transition("fade", min(0.3, length / 2)) if index else Transition(),
        )
        for index in range(film.stills)
    )
    words = SPOKEN_TEXT.split()
    step = seconds * 0.98 / len(words)
    cards = []
    for first in range(0, len(words), 3):
        spoken = [
            Word(word, round((first + index) * step, 3), round((first + index + 1) * step, 3))
            for index, word in enumerate(words[first : first + 3])
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
        scenes=scenes, overlays=(chip, hook), captions=tuple(cards), meta=Meta(title="Ferries", language="en")
    )


def cpu_seconds() -> float:
    """Return the CPU seconds that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run_ours(folder: Path, film: FilmSize) -> dict[str, Any]:
    """Make the film as the product does, and return what that used, and the film's faults.

    `cpu` and `wall` are seconds from the storyboard to the file; `peak` is the process's memory in MiB.
    """
    storyboard = make_board(film)
    cpu_before, started = cpu_seconds(), time.perf_counter()
    composer = Composer(storyboard, lambda name: (folder / name).read_bytes())
    path = folder / "ours.mp4"
    encode(
        path, composer.draw, frames=storyboard.frames, size=composer.size, fps=storyboard.fps, quality=FINAL
    )
    usage = {
        "cpu": cpu_seconds() - cpu_before,
        "wall": time.perf_counter() - started,
        "bytes": path.stat().st_size,
    }
    faults = film_faults(probe_film(path), frames=storyboard.frames, fps=storyboard.fps, size=composer.size)
    return {**usage, "faults": faults, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def dump_frames(folder: Path, film: FilmSize) -> dict[str, Any]:
    """Write the frames that the composer draws for the film into a file, for the floor."""
    storyboard = make_board(film)
    composer = Composer(storyboard, lambda name: (folder / name).read_bytes())
    target = new_planes(*composer.size)
    cpu_before = cpu_seconds()
    with (folder / "frames.raw").open("wb") as file:
        for number in range(storyboard.frames):
            composer.draw(target, number)
            for plane in target:
                file.write(plane.tobytes())
    return {"cpu": cpu_seconds() - cpu_before}


def run_floor(folder: Path, film: FilmSize) -> dict[str, Any]:
    """Run the encoder alone on the frames of `dump_frames`, and subtract the cost of reading them."""
    storyboard = make_board(film)
    size = (storyboard.width, storyboard.height)
    frames = np.memmap(folder / "frames.raw", np.uint8, "r").reshape(storyboard.frames, -1)
    pixels, quarter = size[0] * size[1], size[0] * size[1] // 4

    def draw(target: Planes, number: int) -> None:
        y, u, v = np.split(frames[number], [pixels, pixels + quarter])
        half = (size[1] // 2, size[0] // 2)
        copy(target, Planes(y.reshape(size[1], size[0]), u.reshape(half), v.reshape(half)))

    target, cpu_before = new_planes(*size), cpu_seconds()
    for number in range(storyboard.frames):
        draw(target, number)
    read_cpu = cpu_seconds() - cpu_before
    path, cpu_before = folder / "floor.mp4", cpu_seconds()
    encode(path, draw, frames=storyboard.frames, size=size, fps=storyboard.fps, quality=FINAL)
    return {"cpu": cpu_seconds() - cpu_before - read_cpu, "read": read_cpu, "bytes": path.stat().st_size}


def run_in_child(part: str, folder: Path, film: FilmSize) -> dict[str, Any]:
    """Run a part in a new process, so that its time and memory are measured alone."""
    command = [sys.executable, "-m", "benchmarks.component_parts.films", part, str(folder)]
    command += [str(film.seconds), str(film.stills)]
    completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return report


def run_here(part: str, folder: Path, film: FilmSize) -> dict[str, Any]:
    """Run a part in this process, which is enough to test that it runs."""
    return PARTS[part](folder, film)


def measure_films(rounds: int, film: FilmSize, *, is_smallest: bool) -> Iterator[Row]:
    """Yield the CPU time of a film against its floor, and the memory of its process."""
    run = run_here if is_smallest else run_in_child
    with tempfile.TemporaryDirectory(prefix="benchmark-film-") as folder_name:
        folder = Path(folder_name)
        for index in range(film.stills):
            (folder / f"{index}.jpg").write_bytes(make_still(index))
        run("dump", folder, film)
        reports_by_part: dict[str, list[dict[str, Any]]] = {"floor": [], "ours": []}
        for _ in range(rounds):
            for part, reports in reports_by_part.items():
                reports.append(run(part, folder, film))
    own_reports, floor_reports = reports_by_part["ours"], reports_by_part["floor"]
    faults = [fault for report in own_reports for fault in report["faults"]]
    label = f"a film of {film.seconds:g} s"
    yield Row(
        f"{label}: CPU (floor: x264)", "s", [report["cpu"] for report in own_reports],
        [report["cpu"] for report in floor_reports],
        max_ratio=MAX_FILM_RATIO, unsound="; ".join(map(str, faults)), note=f"{FINAL.preset}, crf {FINAL.crf}",
    )  # fmt: skip
    yield Row(
        f"{label}: peak memory", "MiB", [report["peak"] for report in own_reports], maximum=MAX_FILM_MIB
    )


PARTS: Final[dict[str, Callable[[Path, FilmSize], dict[str, Any]]]] = {
    "dump": dump_frames,
    "floor": run_floor,
    "ours": run_ours,
}

if __name__ == "__main__":
    cv2.setNumThreads(1)
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]), FilmSize(float(sys.argv[3]), int(sys.argv[4])))))
