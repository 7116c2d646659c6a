"""Measures a picture, with fonts and caches warm.

The floor is the work that can't be avoided: to encode the finished picture, and to decode the portrait or photo at the
size in which it is drawn. Both ways decode it every time.
"""

from __future__ import annotations

import random
import statistics
import time
from datetime import date
from io import BytesIO
from typing import TYPE_CHECKING, Final

from PIL import Image

from benchmarks.table import Row
from pipeline.engines.base import Draft, PersonaCard
from pipeline.engines.carousel import Carousel
from pipeline.engines.persona_tweet import PersonaTweet
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.render.draw_layout import JPEG_QUALITY, render_layout
from pipeline.render.picture_types import AvailableMedia, Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.engines.base import Engine

BUDGET_MS: Final = {"flat": 30.0, "portrait": 80.0, "slides": 500.0}
"""The most milliseconds of a picture without a portrait or photo, of one with it, and of a set of slides."""
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


def make_portrait() -> bytes:
    """Return a JPEG of 12 million pixels with the noise of a photograph."""
    noise = Image.effect_noise((500, 667), 40).convert("RGB").resize((3000, 4000), Image.Resampling.BICUBIC)
    buffer = BytesIO()
    noise.save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def make_small_portrait() -> bytes:
    """Return the portrait in the usual size of profile pictures, 1000 by 1000 pixels."""
    buffer = BytesIO()
    with Image.open(BytesIO(make_portrait())) as large:
        large.resize((1000, 1000)).save(buffer, "JPEG", quality=88)
    return buffer.getvalue()


def median_cpu(work: Callable[[int], object], rounds: int) -> float:
    """Return the median CPU milliseconds of a call, after up to three calls that fill the process's caches."""
    for number in range(min(3, rounds)):
        work(-number)
    cpus = []
    for number in range(rounds):
        cpu = time.process_time()
        work(number)
        cpus.append((time.process_time() - cpu) * 1000)
    return statistics.median(cpus)


def encoder_cpu(finished: bytes, data: bytes | None, side: int, rounds: int) -> float:
    """Return the CPU milliseconds to encode a picture and, if there is `data`, to decode it to `side` pixels."""
    with Image.open(BytesIO(finished)) as opened:
        image = opened.convert("RGB")

    def work(_number: int) -> object:
        if data is not None:
            with Image.open(BytesIO(data)) as opened:
                opened.draft("RGB", (side, side))
                opened.load()
        buffer = BytesIO()
        image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0)
        return buffer

    return median_cpu(work, rounds)


def card_draft(text: str, language: str) -> Draft:
    return Draft("", text, "text", {"caption": text, "slides": []}, (), language)


def quotation_draft(text: str, language: str) -> Draft:
    return card_draft(f"“{text}”\n– Mayor Ellen Okafor", language)


def slides_draft(text: str, language: str) -> Draft:
    """Return a draft with six slides, as most carousels have."""
    kinds = ("hook", "point", "point", "point", "recap", "cta")
    slide_data = [{"kind": kind, "title": "The vote of Tuesday", "text": text} for kind in kinds]
    return Draft("", text, "text", {"caption": text, "slides": slide_data}, (), language)


ENGINES: Final[dict[Callable[[str, str], Draft], Engine]] = {
    card_draft: PersonaTweet(),
    quotation_draft: QuoteGraphic(),
    slides_draft: Carousel(),
}


def measure_pictures(rounds: int, names: list[str], *, is_smallest: bool) -> Iterator[Row]:
    """Yield the rows of each engine, for the texts of these names, without a picture and with several."""
    random.seed(1)
    kinds: dict[str, bytes | None] = {"flat": None}
    if not is_smallest:
        kinds |= {"portrait": make_small_portrait(), "portrait 12 MP": make_portrait()}
    for name in names:
        for kind, data in kinds.items():
            yield from measure_picture(name, card_draft, kind, data, rounds)
            yield from measure_picture(name, quotation_draft, kind, data, rounds)
            if kind in {"flat", "portrait"} and not is_smallest:
                yield from measure_picture(name, slides_draft, kind, data, rounds)
        if not is_smallest:
            yield from measure_picture(name, quotation_draft, "photo 12 MP", kinds["portrait 12 MP"], rounds)


def measure_picture(
    name: str, draft: Callable[[str, str], Draft], kind: str, data: bytes | None, rounds: int
) -> Iterator[Row]:
    """Yield the rows of one engine, language and kind of picture, in each of the engine's sizes."""
    engine = ENGINES[draft]
    portrait, photo = (None, data) if kind.startswith("photo") else (data, None)
    text = TEXTS[name]
    for size in engine.sizes:
        media = AvailableMedia(portrait is not None, size, date(2026, 11, 20), photo is not None)

        def plan(number: int, media: AvailableMedia = media) -> Layout:
            # The text differs each time, so that its layout comes from no cache.
            layout = engine.plan(draft(text.format(n=1000 + number), name[:2]), PERSONA, media)
            assert layout is not None
            return layout

        def render(number: int, plan: Callable[[int], Layout] = plan) -> object:
            return render_layout(plan(number + 5000), portrait=portrait, photo=photo)

        planning_ms, cpu_ms = median_cpu(plan, rounds), median_cpu(render, rounds)
        sample_layout = plan(0)
        side = max(size) if photo else size[0] // 4
        assets = render_layout(sample_layout, portrait=portrait, photo=photo)
        floor_ms = 0.0
        # `strict` is false because a set of slides has a PDF after its pictures.
        for picture, asset in zip(sample_layout.pictures, assets, strict=False):
            decoded = photo or (portrait if Layout((picture,)).needs_portrait else None)
            floor_ms += encoder_cpu(asset.bytes, decoded, side, rounds)
        budget = BUDGET_MS["slides" if len(sample_layout.pictures) > 1 else "portrait" if data else "flat"]
        yield Row(
            f"{engine.kind}, {name}, {size[0]}x{size[1]}, {kind}", "ms", [cpu_ms], [floor_ms], maximum=budget,
            note=f"planning {planning_ms:.1f} ms",
        )  # fmt: skip
