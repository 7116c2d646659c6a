"""Broken feeds by the thousand: seeded mutations of the recorded samples, and what must hold for each.

Run as `python -m tests.sources.mutations <first> <count>`; prints a report in JSON. Nothing random is left: the number
of a feed makes it.
"""

from __future__ import annotations

import codecs
import io
import json
import random
import re
import resource
import sys
import warnings
from collections import Counter
from pathlib import Path

import feedparser

from pipeline.sources.feeds.decoding import ILLEGAL_CHARACTERS
from pipeline.sources.feeds.parser_child import answer_of

SAMPLES = Path(__file__).parent / "samples" / "rss"
URL = "https://feed.example/feed.xml"
MEMORY_BYTES = 768 * 1024 * 1024
TOKENS = (
    b"<", b">", b"&", b"&amp;", b"&nbsp;", b"&#0;", b"&#x110000;", b"&undefined;", b"<![CDATA[", b"]]>", b"<!--", b"-->",
    b"<?xml version='1.0'?>", b"<item>", b"</item>", b"<entry>", b"</entry>", b"<title>", b"</title>", b"<link/>",
    b"<guid>", b"</guid>", b"</channel>", b"</rss>", b"</feed>", b"\0", b"\x0b", b"\xff", b"\xc3\xa9", b"\xe9", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b'"', b"'", b"=", b"\n", b" ", b"<br>", b"<p>", b"xml:base='//['", b"xmlns=''", b"<script>", b"9" * 40,
)  # fmt: skip


_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def samples():
    return {path.name: path.read_bytes() for path in sorted(SAMPLES.iterdir()) if path.name != "config.json"}


def mutated(number, found):
    """The feed of that number: one sample with one to six things done to it."""
    chance = random.Random(number)
    name = chance.choice(sorted(found))
    document = bytearray(found[name])
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 6))):
        chance.choice(ACTS)(document, chance, found)
    return name, bytes(document)


def _place(document, chance):
    return chance.randrange(len(document) + 1)


def _span(document, chance):
    start = _place(document, chance)
    return start, min(len(document), start + chance.choice((1, 2, 5, 20, 100)))


def flip(document, chance, _):
    if document:
        document[chance.randrange(len(document))] ^= 1 << chance.randrange(8)


def delete(document, chance, _):
    start, end = _span(document, chance)
    del document[start:end]


def repeat(document, chance, _):
    start, end = _span(document, chance)
    document[end:end] = document[start:end] * chance.choice((1, 2, 50))


def insert(document, chance, _):
    place = _place(document, chance)
    document[place:place] = chance.choice(TOKENS)


def cut_off(document, chance, _):
    del document[_place(document, chance) :]


def splice(document, chance, found):
    other = found[chance.choice(sorted(found))]
    start, end = _span(document, chance)
    begin = chance.randrange(len(other))
    document[start:end] = other[begin : begin + chance.choice((10, 100, 1000))]


def swap_tag(document, chance, _):
    """Rename a tag, or drop its end."""
    places = [place for place, byte in enumerate(document) if byte == ord("<")]
    if places:
        place = chance.choice(places)
        end = document.find(b">", place)
        if end != -1:
            document[place : end + 1] = chance.choice((b"", b"</item>", b"<item>", b"<x>", b"<a:b>", b"</"))


ACTS = (flip, delete, repeat, insert, insert, cut_off, splice, swap_tag)


def alone(document):
    """How many different entries feedparser finds by itself that say anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = feedparser.parse(
                io.BytesIO(document), response_headers={"content-location": URL}, sanitize_html=False
            )
        except Exception:
            # Its own faults are many, and then it reads nothing.
            return 0
    seen = set()
    nameless = 0
    for entry in found["entries"]:
        link = "".join((entry.get("link") or "").split())
        # A guid that isn't an address names an entry, and leads nowhere.
        link = link if link.lower().startswith(("http://", "https://")) else ""
        texts = [
            entry.get("title"),
            entry.get("summary"),
            *(one.get("value") for one in entry.get("content", [])),
        ]
        identity = (entry.get("id") or "").strip()
        if identity:
            # Copies are one entry, whatever illegal characters are in them.
            seen.add(
                tuple(ILLEGAL_CHARACTERS.sub("", text or "") for text in (identity, link, entry.get("title")))
            )
        elif link or any((text or "").strip() for text in texts):
            nameless += 1
    # A copy whose link is broken is none of its own.
    copies = {(identity, "", title) for identity, link, title in seen if link}
    return len(seen - copies) + nameless


def judge(document):
    """The outcome as a word, and how many entries were lost that feedparser alone can read."""
    answer, *entries = [
        json.loads(line) for line in answer_of(document, url=URL, content_type="").split(b"\n")
    ]
    outcome = f"broken: {answer['error']}" if "error" in answer else answer.get("problem", "read")
    # Entities are refused on purpose; a page is none that feedparser would call a feed; JSON is nothing for it.
    is_json = document.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n")[:1] == b"{"
    if is_json or outcome == "entities" or (outcome == "html" and b"html" in document[:300].lower()):
        return outcome, 0
    lost = alone(document) - len(entries)
    if lost > 0:
        # Without what XML forbids a broken tag may be whole again, and its entry the copy of another.
        lost = alone(_FORBIDDEN.sub(b"", document)) - len(entries)
    return outcome, max(0, lost)


def run(first, count):
    found = samples()
    outcomes: Counter[str] = Counter()
    lost, crashed = [], []
    for number in range(first, first + count):
        name, document = mutated(number, found)
        try:
            outcome, missing = judge(document)
        except Exception as error:
            crashed.append([number, name, repr(error)[:300]])
            continue
        outcomes[outcome] += 1
        if missing:
            lost.append([number, name, outcome, missing])
    return {"outcomes": dict(outcomes), "lost": lost, "crashed": crashed}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.stdout.write(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
