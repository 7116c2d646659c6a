"""What a picture costs, with fonts and caches warm.

The floor is what nobody gets round: to encode the finished picture, and to decode the portrait or photo at the size in
which it is drawn; each is decoded anew.
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
from pipeline.render.picture_plan import AvailableMedia, Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.engines.base import Engine

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
        drawn.save(out, "JPEG", quality=JPEG_QUALITY, subsampling=0)
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
            return render_layout(plan(place + 5000), portrait=portrait, photo=photo)

        planned, cpu = medians(plan, rounds), medians(whole, rounds)
        drawn = plan(0)
        side = max(size) if photo else size[0] // 4
        least = sum(
            encoder(one.bytes, photo or (portrait if Layout((each,)).needs_portrait else None), side, rounds)
            for each, one in zip(
                drawn.pictures, render_layout(drawn, portrait=portrait, photo=photo), strict=False
            )
        )
        budget = BUDGET["slides" if len(drawn.pictures) > 1 else "portrait" if data else "flat"]
        yield Row(
            f"{engine.kind}, {name}, {size[0]}x{size[1]}, {what}", "ms", [cpu], [least], most=budget,
            note=f"planning {planned:.1f} ms",
        )  # fmt: skip
