"""Words as long as a slot lets them be fit into it, whatever they are written with: a film never fails at its title."""

from __future__ import annotations

import random

import pytest

from pipeline.render.typography.text_layout import layout
from pipeline.render.video.templates import points, telling
from pipeline.render.video.templates.parts import TITLE

WORDS = {
    "ar": "المدينة وافقت على خط الترام الجديد مساء الاثنين بعد ست ساعات من النقاش حول المسؤولية الاستثمارية",
    "he": "העירייה אישרה את קו הרכבת הקלה החדש ביום שני בערב לאחר שש שעות של דיון ארוך ומתוקשר",
    "hi": "नगर परिषद ने सोमवार शाम छह घंटे की बहस के बाद नई ट्राम लाइन को मंजूरी दी विश्वविद्यालय",
    "th": "สภาเมือง อนุมัติ เส้นทางรถราง สายใหม่ เมื่อวันจันทร์ ตอนเย็น",
    "de": "Donaudampfschifffahrt Wärmewendebeschleunigungsgesetz Stadtrat beschließt Straßenbahnlinie",
    "ru": "Городской совет утвердил новую трамвайную линию ШИРОКОМАСШТАБНАЯ ЭЛЕКТРИФИКАЦИЯ",
    "en": "WOMEN WORKING WITH MAMMOTH MACHINERY MMMMMMMMMMMM WWWWWWWW",
}
SLOTS = {
    f"{film}: {name}": slot
    for film, slots in (("telling", telling.SLOTS), ("points", points.SLOTS))
    for name, slot in slots.items()
    # A passage is set line by line.
    if slot.largest
}


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("name", SLOTS)
def test_the_longest_words_fit(name, language):
    slot = SLOTS[name]
    for seed in range(12):
        layout(
            of_length(slot.characters, WORDS[language].split(), random.Random(seed)),
            (slot.width, slot.height),
            TITLE,
            largest=slot.largest,
            smallest=slot.smallest,
            language=language,
            direction="rtl" if language in {"ar", "he"} else "ltr",
        )


def of_length(characters, words, chance):
    text = chance.choice(words)
    while len(longer := f"{text} {chance.choice(words)}") <= characters:
        text = longer
    return text
