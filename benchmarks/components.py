"""Parts of generation by themselves: the proof of a draft, a picture, a film. CPU time, which other work hardly changes.

- Grounding: all that proves one draft of the hand-made cases: numbers, quotations, names and sums. "First" is the first draft
  of a source, which has to be read; "further" is every other draft of it, as variants and engines ask for them.
- Pictures, fonts and caches warm. The floor is what nobody gets round: to encode the finished picture, and to decode the
  portrait or photo at the size in which it is drawn; each is decoded anew.
- A film of thirty seconds of 1080 × 1920: five stills under a slow camera, captions that mark each word, a chip. The floor is
  x264 with the same settings on the very same frames, read from a file; what the reading costs is taken off.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

import cv2
import numpy as np
from PIL import Image

from benchmarks.table import Row, percentile
from pipeline.engines.base import Draft, PersonaCard
from pipeline.engines.carousel import Carousel
from pipeline.engines.persona_tweet import PersonaTweet
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.grounding import misquoted, names, recompute, strange_names, strange_numbers
from pipeline.grounding.claims import passage_around
from pipeline.grounding.quantities import forget as forget_numbers
from pipeline.render.image import QUALITY, render
from pipeline.render.picture_plan import AvailableMedia, DrawnText, Layout, Panel
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
from pipeline.render.video.ycbcr import Planes, blank, copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.service import Session
    from pipeline.engines.base import Engine

ON: Final = ("sqlite",)
"""They ask no database."""
SIZES: Final = {
    # Of each draft, and how many of the cases.
    "proofs": (5, 1),
    "cases": (100_000, 3),
    # Of each picture; languages of its words.
    "pictures": (40, 1),
    "languages": (4, 1),
    # Films, and seconds of each.
    "films": (3, 1),
    "film_seconds": (30.0, 0.4),
    "stills": (5, 1),
}


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    yield from proofs(size.proofs, size.cases)
    yield from pictures(size.pictures, list(TEXTS)[: size.languages], is_smallest=session.is_smallest)
    yield from films(size.films, Film(size.film_seconds, size.stills), is_smallest=session.is_smallest)


# --- Grounding -------------------------------------------------------------------------------------------------------

CASES: Final = Path(__file__).parents[1] / "tests" / "grounding" / "cases" / "blind.json"
PROOF_MOST_MS: Final = 2.0


def prove(case: dict[str, Any], source: str) -> None:
    language = case["language"]
    declared = {
        value
        for one in case["derived"]
        for outcome in recompute(f"{one['written']} = {one['sum']}", source, language=language)
        for value in outcome.values
    }
    strange_numbers(case["draft"], source, language=language, declared=declared)
    misquoted(case["draft"], source)
    strange_names(case["draft"], [source], language=language)
    passage_around(source, 10, 90)


def milliseconds(case: dict[str, Any], source: str, rounds: int) -> tuple[float, float]:
    """Of the first draft of a source, and of a further one: the least of some rounds."""
    first, further = [], []
    for _ in range(rounds):
        forget_numbers()
        names._known.cache_clear()  # noqa: SLF001  a draft whose source was never read
        begun = thread_time()
        prove(case, source)
        first.append(thread_time() - begun)
        other = {**case, "draft": f"{case['draft']} "}
        begun = thread_time()
        prove(other, source)
        further.append(thread_time() - begun)
    return min(first) * 1000, min(further) * 1000


def proofs(rounds: int, most: int) -> Iterator[Row]:
    cases = json.loads(CASES.read_text(encoding="utf-8"))[:most]
    english = [case for case in cases if case["language"] == "en"]
    article = " ".join(dict.fromkeys(case["source"] for case in english))[:7_000]
    kinds = {
        "the cases": [milliseconds(case, case["source"], rounds) for case in cases],
        f"beside an article of {len(article.split())} words": [
            milliseconds(case, f"{case['source']} {article}"[:7_000], rounds) for case in english
        ],
    }
    for name, times in kinds.items():
        for place, which in enumerate(("first", "further")):
            taken = [one[place] for one in times]
            is_bound = which == "further" or name == "the cases"
            yield Row(
                f"proof of a draft, {name}, {which}: p95", "ms", [percentile(taken, 0.95)],
                most=PROOF_MOST_MS if is_bound else None,
                note=f"median {percentile(taken, 0.5):.2f} ms, longest {max(taken, default=0):.2f} ms",
            )  # fmt: skip


# --- Pictures --------------------------------------------------------------------------------------------------------

BUDGET: Final = {"flat": 30.0, "portrait": 80.0, "slides": 500.0}
PERSONA = PersonaCard("Ann Whitfield", "annwhitfield", brand={"primary": "#1d3557", "accent": "#e63946"})

TEXTS = {
    "en": (
        "The council voted {n} to 9 for the tram, and retailers in Mill Street fear for their sales. “We have waited "
        "long enough,” said the mayor; the first line opens in 2029."
    ),
    "de": (
        "Das Gericht bestätigt nach {n} Tagen die Geschwindigkeitsbegrenzung auf der Bundesautobahn, und die "
        "Donaudampfschifffahrtsgesellschaft darf ihre Verordnung behalten."
    ),
    "ar": "قرر المجلس في {n} نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون.",
    "emoji": "{n} launches, one outage 🔥, zero excuses: fewer dashboards, louder alarms 🚨 and sleep 😴 #oncall",
}


def portrait() -> bytes:
    """A JPEG of 12 million pixels with the noise of a photograph."""
    noise = Image.effect_noise((500, 667), 40).convert("RGB").resize((3000, 4000), Image.Resampling.BICUBIC)
    out = BytesIO()
    noise.save(out, "JPEG", quality=85)
    return out.getvalue()


def small_portrait() -> bytes:
    """The same as profile pictures are usually kept: 1000 by 1000."""
    out = BytesIO()
    with Image.open(BytesIO(portrait())) as large:
        large.resize((1000, 1000)).save(out, "JPEG", quality=88)
    return out.getvalue()


def medians(work: Callable[[int], object], rounds: int) -> float:
    """CPU milliseconds of one call; the first calls warm what is cached for a process."""
    for place in range(min(3, rounds)):
        work(-place)
    cpus = []
    for place in range(rounds):
        cpu = time.process_time()
        work(place)
        cpus.append((time.process_time() - cpu) * 1000)
    return statistics.median(cpus)


def encoder(finished: bytes, data: bytes | None, side: int, rounds: int) -> float:
    """CPU milliseconds of the encoder, and of the decoder to so many pixels where there is a picture, by themselves."""
    with Image.open(BytesIO(finished)) as opened:
        drawn = opened.convert("RGB")

    def work(_place: int) -> object:
        if data is not None:
            with Image.open(BytesIO(data)) as opened:
                opened.draft("RGB", (side, side))
                opened.load()
        out = BytesIO()
        drawn.save(out, "JPEG", quality=QUALITY, subsampling=0)
        return out

    return medians(work, rounds)


def card(words: str, language: str) -> Draft:
    return Draft("", words, "text", {"caption": words, "slides": []}, (), language)


def quotation(words: str, language: str) -> Draft:
    return card(f"“{words}”\n– Mayor Ellen Okafor", language)


def slides(words: str, language: str) -> Draft:
    """Six, as most carousels have."""
    kinds = ("hook", "point", "point", "point", "recap", "cta")
    made = [{"kind": kind, "title": "The vote of Tuesday", "text": words} for kind in kinds]
    return Draft("", words, "text", {"caption": words, "slides": made}, (), language)


ENGINES: Final[dict[Callable[[str, str], Draft], Engine]] = {
    card: PersonaTweet(),
    quotation: QuoteGraphic(),
    slides: Carousel(),
}


def pictures(rounds: int, names: list[str], *, is_smallest: bool) -> Iterator[Row]:
    random.seed(1)
    kinds: dict[str, bytes | None] = {"flat": None}
    if not is_smallest:
        kinds |= {"portrait": small_portrait(), "portrait 12 MP": portrait()}
    for name in names:
        for what, data in kinds.items():
            yield from picture(name, card, what, data, rounds)
            yield from picture(name, quotation, what, data, rounds)
            if what in {"flat", "portrait"} and not is_smallest:
                yield from picture(name, slides, what, data, rounds)
        if not is_smallest:
            yield from picture(name, quotation, "photo 12 MP", kinds["portrait 12 MP"], rounds)


def picture(
    name: str, draft: Callable[[str, str], Draft], what: str, data: bytes | None, rounds: int
) -> Iterator[Row]:
    """The rows of one engine, words and kind of picture, in each of its sizes."""
    engine = ENGINES[draft]
    portrait, photo = (None, data) if what.startswith("photo") else (data, None)
    text = TEXTS[name]
    for size in engine.sizes:
        media = AvailableMedia(portrait is not None, size, date(2026, 11, 20), photo is not None)

        def plan(place: int, media: AvailableMedia = media) -> Layout:
            # Other words each time: their layout is not to come from a cache.
            layout = engine.plan(draft(text.format(n=1000 + place), name[:2]), PERSONA, media)
            assert layout is not None
            return layout

        def whole(place: int, plan: Callable[[int], Layout] = plan) -> object:
            return render(plan(place + 5000), portrait=portrait, photo=photo)

        planned, cpu = medians(plan, rounds), medians(whole, rounds)
        drawn = plan(0)
        side = max(size) if photo else size[0] // 4
        least = sum(
            encoder(one.bytes, photo or (portrait if Layout((each,)).needs_portrait else None), side, rounds)
            for each, one in zip(drawn.pictures, render(drawn, portrait=portrait, photo=photo), strict=False)
        )
        budget = BUDGET["slides" if len(drawn.pictures) > 1 else "portrait" if data else "flat"]
        yield Row(
            f"{engine.kind}, {name}, {size[0]}x{size[1]}, {what}", "ms", [cpu], [least], most=budget,
            note=f"planning {planned:.1f} ms",
        )  # fmt: skip


# --- Films -----------------------------------------------------------------------------------------------------------

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
    target = blank(*composer.size)
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

    target, cpu = blank(*size), spent()
    for number in range(one.frames):
        draw(target, number)
    read = spent() - cpu
    path, cpu = folder / "floor.mp4", spent()
    encode(path, draw, frames=one.frames, size=size, fps=one.fps, quality=FINAL)
    return {"cpu": spent() - cpu - read, "read": read, "bytes": path.stat().st_size}


def in_child(part: str, folder: Path, film: Film) -> dict[str, Any]:
    """A process of its own, so that its time and memory are its own too."""
    command = [sys.executable, "-m", "benchmarks.components", part, str(folder)]
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
