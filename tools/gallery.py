"""Writes samples of every engine that draws, and an index of them, with `python -m tools.gallery <folder>`.

They contain what often breaks a picture: long and short words, long compounds, other writing directions, emoji, light,
dark and grey brands, with and without portrait and handle.
"""

from __future__ import annotations

import html
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from PIL import Image, ImageDraw

from pipeline import plugins
from pipeline.engines.base import Draft, Engine, PersonaCard
from pipeline.render.draw_layout import render_layout
from pipeline.render.picture_types import AvailableMedia
from pipeline.render.video.film import to_jpeg
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.ycbcr import new_planes, to_rgb
from tools import gallery_footage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.render.rendered_asset import RenderedAsset


class Sample(NamedTuple):
    """One example: an engine's `kind`, a persona, and the content that is drawn."""

    name: str
    kind: str
    persona: PersonaCard
    language: str
    body: str
    slides: tuple[tuple[str, str, str], ...] = ()
    """The kind, title and text of each slide."""
    has_portrait: bool = True
    clips: tuple[Mapping[str, Any], ...] = ()
    """The parts of the harbour's footage that a film shows."""


ANN = PersonaCard("Ann Whitfield", "annwhitfield", brand={"primary": "#1d3557", "accent": "#e63946"})
STUDIO = PersonaCard(
    "Studio Okafor & Partners International",
    "okafor.partners",
    brand={"primary": "#f4f1de", "accent": "#e07a5f"},
)
NOTES = PersonaCard("DevNotes", brand={"primary": "#111111", "accent": "#ffd60a"})
WEEKLY = PersonaCard("Bright Side Weekly", "brightside", brand={"primary": "#ffd60a", "accent": "#003566"})
GREY = PersonaCard("Ines Duarte", "ines", brand={"primary": "#808080", "accent": "#808080"})
JOERG = PersonaCard("Jörg Müller-Lüdenscheidt", "jmuelu", "de", brand={"primary": "#2d6a4f"})
LAYLA = PersonaCard("ليلى حداد", "layla", "ar", brand={"primary": "#5f0f40", "accent": "#ff9e00"})
NOA = PersonaCard("נועה לוי", "noa", "he", brand={"primary": "#e9ecef", "accent": "#3a86ff"})
PLAIN = PersonaCard("Harrow Herald", "herald")

LONG = (
    "The forecasts were cautious, and every single one of them was beaten within a year: in Dijon the trams were full "
    "before the second line had even been drawn on paper, and nobody there asks for the car park back"
)
GERMAN = (
    "Die Donaudampfschifffahrtsgesellschaft darf ihre Kapitänsmützenverordnung behalten, und das "
    "Bundesverfassungsgericht bestätigt es."
)
ARABIC = "قرر المجلس في 12 نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون."
HEBREW = "המועצה אישרה ב-12 בנובמבר 2026 את פרויקט Tram 2030."
TRAM = (
    ("hook", "Harrow gets its tram. Mill Street pays first.", ""),
    ("point", "The vote: 14 to 9", "After almost eleven years the council decided to build it."),
    ("point", "What it costs", "£214 million, of which the government pays £92 million."),
    ("point", "", "Retailers in Mill Street expect sales to fall by a third while the street is closed."),
    (
        "recap",
        "In short",
        "Approved 14 to 9\n£214 million, open in March 2029\nMill Street closed for 18 months",
    ),
    ("cta", "Would you close your street for it?", "news.example.org\nFollow @annwhitfield"),
)
RIGHT_TO_LEFT = (
    ("hook", "المجلس يوافق على مشروع الترام", ""),
    ("point", "التكلفة", ARABIC),
    ("recap", "باختصار", "يبدأ العمل في الربيع المقبل\nيستمر ثلاث سنوات"),
    ("cta", "اقرأ القصة كاملة", "example.org\nتابعوا @layla"),
)
COMPOUNDS = (
    ("hook", "Geschwindigkeitsbegrenzung bestätigt: Was das Bundesverfassungsgericht entschied", ""),
    ("point", "", GERMAN),
    ("recap", "Kurz gesagt", "Tempolimit gilt\nMütze bleibt"),
    ("cta", "Die ganze Geschichte lesen", "recht.example.de"),
)

SAMPLES = (
    Sample("short", "quote_graphic", ANN, "en", "“We have waited long enough for this”\n– Mayor Ellen Okafor"),
    Sample("long", "quote_graphic", STUDIO, "en", f"“{LONG}”\n– Dr. Miriam Castle", has_portrait=False),
    Sample("dark", "quote_graphic", NOTES, "en", f"“{LONG}”\n– news.example.org", has_portrait=False),
    Sample("yellow", "quote_graphic", WEEKLY, "en", "“Eight stops are planned, and trams are to run every seven minutes.”\n– Northline Transit"),
    Sample("grey", "quote_graphic", GREY, "en", "“One outage 🔥, louder alarms 🚨 and, at last, a night of sleep 😴”\n– Ines Duarte", has_portrait=False),
    Sample("german", "quote_graphic", JOERG, "de", f"„{GERMAN}“\n– Bürgermeisterin Anna Schmidt"),
    Sample("arabic", "quote_graphic", LAYLA, "ar", f"“{ARABIC}”\n– رئيسة البلدية"),
    Sample("hebrew", "quote_graphic", NOA, "he", f"“{HEBREW}”\n– example.co.il", has_portrait=False),
    Sample("no-brand", "quote_graphic", PLAIN, "en", "“Nobody has told us how customers are supposed to reach the door”\n– Paul Hirsch"),
    Sample("tram", "carousel", ANN, "en", "Harrow gets its tram.", TRAM),
    Sample("yellow", "carousel", WEEKLY, "en", "Harrow gets its tram.", TRAM, has_portrait=False),
    Sample("dark", "carousel", NOTES, "en", "Harrow gets its tram.", TRAM, has_portrait=False),
    Sample("german", "carousel", JOERG, "de", "Tempolimit gilt.", COMPOUNDS),
    Sample("arabic", "carousel", LAYLA, "ar", "المجلس يوافق", RIGHT_TO_LEFT),
    Sample("short", "persona_tweet", ANN, "en", "The council voted 14 to 9 for the tram."),
    Sample("german", "persona_tweet", JOERG, "de", GERMAN),
    Sample("arabic", "persona_tweet", LAYLA, "ar", ARABIC, has_portrait=False),
)  # fmt: skip

FERRIES = """\
Harbour ferries go electric
Forty-two boats carry 9 million people a year. The city paid 214 million crowns for them, and nobody asks for the old ones back.
Each boat charges for 6 minutes at the quay. Fishermen say that the water is quieter than it has been for 80 years.
The old engines go to a museum in the old town, where children may start one and everybody may hear how loud it was.
Would you ride one?
Source: lindholm-times.example"""
TRAM_FILM = """\
المجلس يوافق على خط الترام
ستبلغ التكلفة 214 مليون، وتدفع الحكومة منها 92 مليون، ويبدأ البناء في الربيع القادم في شارع الميناء.
سيكون سعر التذكرة زهيدا كما في الحافلات، وتسير العربات كل سبع دقائق في ساعات الذروة من الميناء إلى الجامعة.
المصدر: news.example"""

FILMS = (
    Sample("ferries", "persona_short", ANN, "en", FERRIES),
    Sample("yellow", "persona_short", WEEKLY, "en", FERRIES, has_portrait=False),
    Sample("arabic", "persona_short", LAYLA, "ar", TRAM_FILM, has_portrait=False),
    Sample("points", "template_short", ANN, "en", "Harbour ferries go electric\nForty-two boats carry nine million people a year.\nThe city paid 214 million crowns for them.\nEach boat charges for six minutes at the quay.\nSource: lindholm-times.example"),
    Sample("cutaways", "composite_short", ANN, "en", FERRIES, clips=(
        {"upload": gallery_footage.VIDEO, "start": 0.5, "end": 6.1},
        {"upload": gallery_footage.PICTURE},
        {"upload": gallery_footage.VIDEO, "start": 8.0, "end": 13.6},
        {"upload": gallery_footage.VIDEO, "start": 16.0, "end": 21.6},
    )),
    Sample("clip", "clipped_short", ANN, "en", gallery_footage.SPOKEN_TEXT, clips=(
        {"upload": gallery_footage.VIDEO, "start": 0.85, "end": 18.0},
    )),
)  # fmt: skip
"""Films without a voice; the gallery has a frame of each scene."""
_SHRINK = 2
"""The divisor of a frame's width and height."""


def draw_portrait() -> bytes:
    """Draw a portrait of nobody, as a PNG."""
    image = Image.new("RGB", (600, 600), "#c9a27e")
    pen = ImageDraw.Draw(image)
    pen.ellipse((165, 90, 435, 405), fill="#f0cfae")
    pen.ellipse((90, 390, 510, 840), fill="#2c3e50")
    pen.pieslice((157, 60, 443, 390), 180, 360, fill="#3b2a1e")
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def render_sample(sample: Sample, portrait_bytes: bytes) -> Iterator[RenderedAsset]:
    """Yield all files of a sample, in each of its engine's sizes."""
    engine = plugins.get("engines", sample.kind, Engine)
    slides: list[dict[str, Any]] = [
        dict(zip(("kind", "title", "text"), slide, strict=True)) for slide in sample.slides
    ]
    content = {"caption": sample.body, "slides": slides}
    draft = Draft("Sample", sample.body, "text", content, (), sample.language)
    for size in engine.sizes:
        layout = engine.plan(draft, sample.persona, AvailableMedia(sample.has_portrait, size))
        if layout is not None:
            yield from render_layout(layout, portrait=portrait_bytes if sample.has_portrait else None)


def render_frames(sample: Sample, portrait_bytes: bytes) -> Iterator[bytes]:
    """Yield a frame of each scene of a film as JPEG, half a second before its end, when everything is visible."""
    engine = plugins.get("engines", sample.kind, Engine)
    title = sample.body.splitlines()[0][:60].rpartition(" ")[0] if sample.clips else "Sample"
    draft = Draft(title, sample.body, "text", {"clips": list(sample.clips)}, (), sample.language)
    media = AvailableMedia(
        sample.has_portrait,
        engine.sizes[0],
        material=gallery_footage.material() if sample.clips else None,
    )
    board = engine.film(draft, sample.persona, media)
    if board is None:
        return
    files = gallery_footage.files() if sample.clips else {}
    composer = Composer(
        board,
        files.__getitem__,
        shrink=_SHRINK,
        portrait=portrait_bytes if sample.has_portrait else None,
        watch=lambda name: BytesIO(files[name]),
    )
    for scene in board.scenes:
        target = new_planes(*composer.size)
        composer.draw(target, max(board.frame_at(scene.start), board.frame_at(scene.end) - board.fps // 2))
        yield to_jpeg(Image.fromarray(to_rgb(target)))
    composer.close()


def write_gallery(folder: Path) -> int:
    """Write the samples and the index, and return the number of files without the index."""
    folder.mkdir(parents=True, exist_ok=True)
    portrait_bytes = draw_portrait()
    rows = []
    count = 0
    for sample in SAMPLES:
        links = []
        for asset in render_sample(sample, portrait_bytes):
            name = f"{sample.kind}-{sample.name}-{asset.name}"
            (folder / name).write_bytes(asset.bytes)
            count += 1
            alt = html.escape(asset.alt_text)
            is_picture = asset.mime_type.startswith("image/")
            content = f'<img src="{name}" alt="{alt}" height="480">' if is_picture else asset.name
            links.append(f'<a href="{name}">{content}</a>')
        rows.append(f"<h2>{sample.kind}: {sample.name}</h2><p>{' '.join(links)}</p>")
    for sample in FILMS:
        links = []
        for number, picture in enumerate(render_frames(sample, portrait_bytes), start=1):
            name = f"{sample.kind}-{sample.name}-scene-{number}.jpg"
            (folder / name).write_bytes(picture)
            count += 1
            links.append(f'<a href="{name}"><img src="{name}" alt="Scene {number}" height="480"></a>')
        rows.append(f"<h2>{sample.kind}: {sample.name}</h2><p>{' '.join(links)}</p>")
    page = f'<!doctype html><meta charset="utf-8"><title>Samples</title>{"".join(rows)}'
    (folder / "index.html").write_text(page, encoding="utf-8")
    return count


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the folder into which the samples are written.")
    print(f"{write_gallery(Path(sys.argv[1]))} files")
