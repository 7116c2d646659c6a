"""How long a picture takes: `python -m benchmarks.render` prints a table of medians, fonts and caches warm.

The floor, measured in the same run, is what nobody gets round: to encode the finished picture, and to decode the
portrait at the size in which it is drawn. The ratio is CPU time over the floor's. CPU time stands beside the wall
clock's, for a machine that others use too. A flat picture has to stay under 30 ms, one with a portrait or a photo under
80 ms, a carousel of six slides and its PDF under 500 ms; each portrait and each photo is decoded anew.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING

from PIL import Image, features

from pipeline.engines.base import Draft, PersonaCard
from pipeline.engines.carousel import Carousel
from pipeline.engines.persona_tweet import PersonaTweet
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.render.image import QUALITY, render
from pipeline.render.plan import Layout, Media

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.engines.base import Engine

ROUNDS = 40
BUDGET = {"flat": 30.0, "portrait": 80.0, "slides": 500.0}
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


def medians(work: Callable[[int], object]) -> tuple[float, float]:
    """Wall and CPU milliseconds of one call; the first calls warm what is cached for a process."""
    for place in range(3):
        work(-place)
    walls, cpus = [], []
    for place in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        work(place)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return statistics.median(walls), statistics.median(cpus)


def floor(finished: bytes, data: bytes | None, side: int) -> float:
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

    return medians(work)[1]


def card(words: str, language: str) -> Draft:
    return Draft("", words, "text", {"caption": words, "slides": []}, (), language)


def quotation(words: str, language: str) -> Draft:
    return card(f"“{words}”\n– Mayor Ellen Okafor", language)


def slides(words: str, language: str) -> Draft:
    """Six, as most carousels have."""
    kinds = ("hook", "point", "point", "point", "recap", "cta")
    made = [{"kind": kind, "title": "The vote of Tuesday", "text": words} for kind in kinds]
    return Draft("", words, "text", {"caption": words, "slides": made}, (), language)


def report(
    name: str, engine: Engine, draft: Callable[[str, str], Draft], what: str, data: bytes | None
) -> None:
    """The rows of one engine, texts and kind of picture, in each of its sizes."""
    portrait, photo = (None, data) if what.startswith("photo") else (data, None)
    text = TEXTS[name]
    for size in engine.sizes:
        media = Media(portrait is not None, size, date(2026, 11, 20), photo is not None)

        def plan(place: int, media: Media = media) -> Layout:
            # Other words each time: their layout is not to come from a cache.
            layout = engine.plan(draft(text.format(n=1000 + place), name[:2]), PERSONA, media)
            assert layout is not None
            return layout

        def whole(place: int, plan: Callable[[int], Layout] = plan) -> object:
            return render(plan(place + 5000), portrait=portrait, photo=photo)

        _, planned = medians(plan)
        wall, cpu = medians(whole)
        layout = plan(0)
        side = max(size) if photo else size[0] // 4
        least = sum(
            floor(one.bytes, photo or (portrait if Layout((picture,)).needs_portrait else None), side)
            for picture, one in zip(
                layout.pictures, render(layout, portrait=portrait, photo=photo), strict=False
            )
        )
        budget = BUDGET["slides" if len(layout.pictures) > 1 else "portrait" if data else "flat"]
        verdict = "ok" if cpu <= budget else "over"
        print(
            f"{engine.kind:14}{name:7}{f'{size[0]}x{size[1]}':11}{what:16}{planned:8.1f}{cpu - planned:9.1f}{wall:9.1f}"
            f"{cpu:9.1f}{least:8.1f}{cpu / least:7.1f}{f'{budget:.0f} {verdict}':>10}"
        )


def main() -> None:
    random.seed(1)
    kinds: dict[str, bytes | None] = {
        "flat": None,
        "portrait": small_portrait(),
        "portrait 12 MP": portrait(),
    }
    print(f"Pillow with libjpeg-turbo {features.version('libjpeg_turbo')}, raqm {features.version('raqm')}")
    print(
        f"{'engine':14}{'words':7}{'size':11}{'picture':16}{'plan':>8}{'render':>9}{'wall ms':>9}{'CPU ms':>9}{'floor':>8}"
        f"{'ratio':>7}{'budget':>10}"
    )
    for name in TEXTS:
        for what, data in kinds.items():
            report(name, PersonaTweet(), card, what, data)
            report(name, QuoteGraphic(), quotation, what, data)
    for name in TEXTS:
        report(name, QuoteGraphic(), quotation, "photo 12 MP", kinds["portrait 12 MP"])
        for what in ("flat", "portrait"):
            report(name, Carousel(), slides, f"6 slides, {what}"[:16], kinds[what])


if __name__ == "__main__":
    main()
