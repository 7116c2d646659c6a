"""What a short costs: `python -m benchmarks video` films one and compares it with the encoder alone.

Thirty seconds of 1080 × 1920: five stills under a slow camera, captions that mark each word, a chip. The floor is x264
with the same settings on the very same frames, read from a file in the same run; what the reading costs is taken off.
CPU time of the whole process counts, because other work on the machine doesn't change it much.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from PIL import Image

from pipeline.render.blocks import Style
from pipeline.render.plan import Panel, Words
from pipeline.render.text import layout
from pipeline.render.video.compose import Composer
from pipeline.render.video.encode import FINAL, Quality, encode
from pipeline.render.video.job import Job, as_preview
from pipeline.render.video.planes import Planes, blank, copy
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
from pipeline.render.video.verify import faults, look

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 30
PHOTOS = 5
MOST_RATIO = 1.5
MOST_MEGABYTES = 400
MOST_PREVIEW = 3.0

SAID = (
    "The harbour ferries of Lindholm run on batteries from Monday on. Forty-two boats will carry nine million "
    "people a year without a litre of diesel. The city paid two hundred and fourteen million for them, a third of it "
    "from the state. Each boat charges for six minutes at the quay, while its passengers change. The old engines go "
    "to a museum, and their fumes are gone from the old town. Fishermen say that the water is quieter now than it "
    "has been for eighty years."
)


def photo(seed: int) -> bytes:
    """A JPEG with the detail of a photograph at every size: noise in octaves, and some edges."""
    random = np.random.default_rng(seed)
    picture = np.zeros((2400, 1350, 3), np.float32)
    for octave in range(2, 10):
        small = random.normal(0, 1, (2**octave, 2**octave, 3)).astype(np.float32)
        picture += cv2.resize(small, (1350, 2400), interpolation=cv2.INTER_CUBIC) * 150 / 1.75**octave
    for _ in range(40):
        x, y = random.integers(0, 1350), random.integers(0, 2400)
        colour = tuple(float(one) for one in random.normal(0, 45, 3))
        cv2.rectangle(picture, (int(x), int(y)), (int(x + 200), int(y + 260)), colour, -1)
    out = BytesIO()
    Image.fromarray(np.clip(picture + 118, 0, 255).astype(np.uint8)).save(out, "JPEG", quality=92)
    return out.getvalue()


def board() -> Storyboard:
    length = SECONDS / PHOTOS
    scenes = tuple(
        Scene(
            place * length,
            (place + 1) * length,
            Visual(
                "picture", asset=f"{place}.jpg", zoom=Zoom(1.0, 1.12) if place % 2 == 0 else Zoom(1.12, 1.0)
            ),
            Transition("fade", 0.3) if place else Transition(),
        )
        for place in range(PHOTOS)
    )
    words = SAID.split()
    step = (SECONDS - 0.5) / len(words)
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
        SECONDS,
        (Panel(90, 270, 240, 80, 38, "#10203a"), Words(112.0, 284.0, name, "#ffffff", "#ffffff")),
    )
    title = layout("The ferries go electric", (760, 240), Style(weight=800), largest=96, smallest=60)
    hook = Overlay(
        0.0, 3.0, (Words(90.0, 380.0, title, "#ffffff", "#ffffff"),), leave=Motion("rise", 0.3, 40.0)
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


def ours(folder: Path, *, is_preview: bool) -> dict[str, Any]:
    """Film it as the product does; everything from the storyboard to the file counts."""
    job = as_preview(Job(board())) if is_preview else Job(board())
    one, asked = job.board, dict[str, Any](preset=job.preset, crf=job.crf)
    cpu, wall = spent(), time.perf_counter()
    composer = Composer(one, lambda name: (folder / name).read_bytes(), shrink=job.shrink)
    path = folder / f"ours-{job.shrink}.mp4"
    encode(
        path,
        composer.draw,
        frames=one.frames,
        size=composer.size,
        fps=one.fps,
        quality=Quality(**asked),
    )
    told = {"cpu": spent() - cpu, "wall": time.perf_counter() - wall, "bytes": path.stat().st_size}
    found = faults(look(path), frames=one.frames, fps=one.fps, size=composer.size, is_final=not is_preview)
    return {**told, "faults": found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def dump(folder: Path) -> dict[str, Any]:
    """The very same frames into a file."""
    one = board()
    composer = Composer(one, lambda name: (folder / name).read_bytes())
    target = blank(*composer.size)
    cpu = spent()
    with (folder / "frames.raw").open("wb") as file:
        for number in range(one.frames):
            composer.draw(target, number)
            for plane in target:
                file.write(plane.tobytes())
    return {"cpu": spent() - cpu}


def floor(folder: Path) -> dict[str, Any]:
    """The encoder alone on those frames, with what reading them costs taken off."""
    one = board()
    size = (one.width, one.height)
    frames = np.memmap(folder / "frames.raw", np.uint8, "r").reshape(one.frames, -1)
    pixels, quarter = size[0] * size[1], size[0] * size[1] // 4

    def draw(target: Planes, number: int) -> None:
        y, u, v = np.split(frames[number], [pixels, pixels + quarter])
        half = (size[1] // 2, size[0] // 2)
        copy(target, Planes(y.reshape(size[1], size[0]), u.reshape(half), v.reshape(half)))

    target, cpu = blank(*size), spent()
    for number in range(one.frames):
        draw(target, number)
    read = spent() - cpu
    path, cpu = folder / "floor.mp4", spent()
    encode(path, draw, frames=one.frames, size=size, fps=one.fps, quality=FINAL)
    return {"cpu": spent() - cpu - read, "read": read, "bytes": path.stat().st_size}


def in_child(part: str, folder: Path) -> dict[str, Any]:
    """A process of its own, so that its time and memory are its own too."""
    command = [sys.executable, "-m", "benchmarks.video", part, str(folder)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    report: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return report


def main(arguments: list[str]) -> int:
    rounds = 1 if "--quick" in arguments else 3
    print(
        f"{SECONDS} s of 1080 × 1920 at {FINAL.preset} crf {FINAL.crf}, load {os.getloadavg()[0]:.1f} at the start"
    )
    with tempfile.TemporaryDirectory(prefix="benchmark-video-") as made:
        folder = Path(made)
        for place in range(PHOTOS):
            (folder / f"{place}.jpg").write_bytes(photo(place))
        in_child("dump", folder)
        ratios, peaks, previews = [], [], []
        for _ in range(rounds):
            least, film, preview = (in_child(part, folder) for part in ("floor", "ours", "preview"))
            ratios.append(film["cpu"] / least["cpu"])
            peaks.append(film["peak"])
            previews.append(preview["wall"])
            print(
                f"  ours {film['cpu']:.1f} CPU s ({film['wall']:.1f} s), x264 alone {least['cpu']:.1f} CPU s: "
                f"{ratios[-1]:.2f}; {film['peak']:.0f} MB; {film['bytes'] / 1e6:.1f} MB of file; "
                f"preview {preview['cpu']:.1f} CPU s ({preview['wall']:.1f} s)"
            )
            for fault in (*film["faults"], *preview["faults"]):
                print(f"  {fault}")
                return 1
    verdicts = [
        (f"CPU over the floor: {min(ratios):.2f}, at most {MOST_RATIO}", min(ratios) <= MOST_RATIO),
        (f"Peak memory: {max(peaks):.0f} MB, at most {MOST_MEGABYTES}", max(peaks) <= MOST_MEGABYTES),
        (f"Preview: {min(previews):.1f} s, at most {MOST_PREVIEW:.0f}", min(previews) <= MOST_PREVIEW),
    ]
    for text, is_good in verdicts:
        print(f"{text}: {'ok' if is_good else 'MISSED'}")
    return 0 if all(is_good for _, is_good in verdicts) else 1


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "dump": dump,
    "floor": floor,
    "ours": lambda folder: ours(folder, is_preview=False),
    "preview": lambda folder: ours(folder, is_preview=True),
}

if __name__ == "__main__":
    cv2.setNumThreads(1)
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]))))
