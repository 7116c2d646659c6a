"""Words are fitted by declared steps: shortened at a sentence, joined, linked; the receipt names each."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.platforms.fitting import ELLIPSIS, FITTING_SETTINGS, fit_text, shorten_text
from pipeline.platforms.payload_types import AdaptationStep, Payload, PayloadAsset
from pipeline.platforms.rules import BucketRule, MediaRule, graphemes
from pipeline.text.links import find_links

LINK = "https://news.example/tram"
RULE = BucketRule(60, graphemes, "graphemes", text_max_bytes=240)


def payload(body: str, **changes: object) -> Payload:
    given = {"body_format": "text", "link": LINK, **changes}
    return Payload("gen_1", 1, "text", "Title", body, **given)  # type: ignore[arg-type]


def test_what_fits_is_sent_as_it_is() -> None:
    fitted = fit_text(payload("Trams run from April."), RULE, {"too_long": "shorten"})

    assert (fitted.parts, fitted.steps) == (("Trams run from April.",), ())
    assert fitted.payload.body == "Trams run from April."


def test_too_long_is_left_for_a_person_unless_told_otherwise() -> None:
    long = "Trams run from April. " * 5

    assert fit_text(payload(long), RULE, {}).parts == (long.strip(),)
    assert FITTING_SETTINGS[0].default == "refuse"


def test_shortened_at_the_last_sentence_that_fits() -> None:
    body = "Trams run from April. The depot opens in May. Rents along the route have risen for years now."
    fitted = fit_text(payload(body), RULE, {"too_long": "shorten"})

    assert fitted.parts == ("Trams run from April. The depot opens in May.",)
    assert fitted.steps == (AdaptationStep("shortened", "93 graphemes became 45."),)


def test_shortened_at_a_word_where_no_sentence_fits() -> None:
    body = "Construction of the northern depot begins in April and will employ about 340 people."
    fitted = fit_text(payload(body), RULE, {"too_long": "shorten"})

    assert fitted.parts == ("Construction of the northern depot begins in April and will…",)
    assert graphemes(fitted.parts[0]) == 60


def test_link_is_added_once_and_kept_when_the_words_give_way() -> None:
    config = {"too_long": "shorten", "link": "end"}
    body = "Trams run. The depot opens in May, says the council of the city."
    fitted = fit_text(payload(body), RULE, config)

    assert fitted.parts == (f"Trams run. The depot opens in…\n\n{LINK}",)
    assert [step.code for step in fitted.steps] == ["link_added", "shortened"]
    assert fit_text(payload(f"See {LINK} for more."), RULE, config).steps == ()
    assert fit_text(payload("Trams run.", link=""), RULE, config).parts == ("Trams run.",)


def test_markup_becomes_plain_words() -> None:
    fitted = fit_text(payload("**Trams** run.", body_format="markdown"), RULE, {})

    assert (fitted.parts, fitted.payload.body_format) == (("Trams run.",), "text")
    assert [step.code for step in fitted.steps] == ["plain_text"]


def test_parts_stay_a_thread_only_where_the_platform_has_threads() -> None:
    two = payload("One.\n\nTwo.", content={"parts": ["One.", "Two."]})
    threaded = BucketRule(60, graphemes, "graphemes", parts_most=5)

    assert fit_text(two, threaded, {}).parts == ("One.", "Two.")
    joined = fit_text(two, RULE, {})
    assert joined.parts == ("One.\n\nTwo.",)
    assert joined.steps == (AdaptationStep("joined", "The 2 parts became one post."),)


def test_words_of_the_outlet_go_before_the_items_parts() -> None:
    own = payload("Something else.", content={"parts": ["One.", "Two."]})
    threaded = BucketRule(60, graphemes, "graphemes", parts_most=5)

    assert fit_text(own, threaded, {}).parts == ("Something else.",)


def test_bytes_are_a_limit_too() -> None:
    family = "👨‍👩‍👧‍👦"
    body = f"{family * 5}. {family * 5}."
    fitted = fit_text(payload(body), RULE, {"too_long": "shorten"})

    assert fitted.parts == (f"{family * 5}.",)


@pytest.mark.parametrize("text", ["word" * 40, "https://news.example/" + "a" * 80])
def test_what_can_not_be_cut_is_left_for_the_rules_to_refuse(text: str) -> None:
    assert fit_text(payload(text), RULE, {"too_long": "shorten"}).parts == (text,)


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(1, 120))
def test_shortened_is_a_beginning_that_fits(text: str, most: int) -> None:
    def fits(words: str) -> bool:
        return graphemes(words) <= most

    short = shorten_text(text, fits)

    assert short == "" or fits(short)
    cut = len(short.removesuffix(ELLIPSIS).removesuffix(" ") if not text.startswith(short) else short)
    assert text.startswith(short[:cut])
    if short.endswith(ELLIPSIS) and not text.startswith(short):
        assert not [link for link in find_links(text) if link.start < cut < link.end]


@pytest.mark.parametrize(
    ("body", "most", "expected"),
    [
        ("Mr. Smith has opened the new northern depot today.", 30, "Mr. Smith has opened the new…"),
        ("The U.S. government has opened a new depot.", 31, "The U.S. government has opened…"),
        ("1. Get up before six. 2. Take the tram to work.", 30, "1. Get up before six."),
        ("1. Get up before six o'clock in the morning.", 20, "1. Get up before…"),
        ("Wow! The northern depot opens in April already.", 30, "Wow! The northern depot opens…"),
        ("Trams\n\nThe northern depot opens in April already.", 30, "Trams\n\nThe northern depot…"),
        ("The depot opens in April.\n\nRents rise.", 30, "The depot opens in April."),
        ("The depot opens in April\n\nRents along the route rise.", 30, "The depot opens in April"),
        ("北部车库将于四月开放。沿线租金多年来一直在上涨。", 15, "北部车库将于四月开放。"),
        ("北部车库将于四月开放并将雇用约三百四十人。", 10, "北部车库将于四月开…"),
        ("路面電車は四月から走り始めます", 8, "路面電車は四月…"),
        ("รถรางจะเริ่มวิ่งในเดือนเมษายน", 8, "รถรางจะ…"),
        ("See https://news.example/tram, it says more of trams.", 32, "See https://news.example/tram …"),
        ("See https://news.example/tram- , and more of trams.", 32, "See https://news.example/tram- …"),
    ],
)
def test_what_a_long_text_becomes(body: str, most: int, expected: str) -> None:
    assert shorten_text(body, lambda words: graphemes(words) <= most) == expected


@pytest.mark.parametrize("unit", ["Trams run again https://news.example/tram today. ", "word ", "字", "x"])
def test_a_long_text_is_not_looked_through(unit: str) -> None:
    looked: list[int] = []

    def fits(words: str) -> bool:
        looked.append(len(words))
        return len(words) <= 300

    short = shorten_text(unit * (200_000 // len(unit)), fits)

    assert (len(short) > 250) is (unit != "x")
    assert (len(looked) < 30, sum(looked) < 300 * 60) == (True, True)


@pytest.mark.parametrize(
    ("body", "is_there"),
    [
        (f"See {LINK}.", True),
        (f"See {LINK}-depot for the depot.", False),
        ("See news.example/tram there.", False),
        ("See HTTPS://NEWS.example/tram there.", True),
    ],
)
def test_link_counts_as_there_only_where_the_same_address_is(body: str, *, is_there: bool) -> None:
    fitted = fit_text(payload(body), RULE, {"link": "end"})

    assert [step.code for step in fitted.steps] == ([] if is_there else ["link_added"])


def test_link_is_the_same_however_it_is_escaped() -> None:
    given = payload("See https://news.example/%C3%BCber.", link="https://news.example/über")

    assert fit_text(given, RULE, {"link": "end"}).steps == ()


def test_link_in_any_part_of_a_thread_is_not_added_again() -> None:
    threaded = BucketRule(60, graphemes, "graphemes", parts_most=5)
    first = f"One: {LINK}"
    given = payload(f"{first}\n\nTwo.", content={"parts": [first, "Two."]})

    assert fit_text(given, threaded, {"link": "end"}).parts == (first, "Two.")


def test_parts_of_a_thread_become_plain_words_too() -> None:
    threaded = BucketRule(60, graphemes, "graphemes", parts_most=5)
    given = payload("**One.**\n\n_Two._", body_format="markdown", content={"parts": ["**One.**", "_Two._"]})
    fitted = fit_text(given, threaded, {})

    assert fitted.parts == ("One.", "Two.")
    assert fitted.payload.body == "One.\n\nTwo."
    assert [step.code for step in fitted.steps] == ["plain_text"]


def test_files_that_the_post_does_not_show_are_named() -> None:
    picture = PayloadAsset("https://m.example/a.png", "image/png")
    sound = PayloadAsset("https://m.example/a.mp3", "audio/mpeg")
    shows = replace(RULE, images=MediaRule(("image/png",), 4, 1000))
    why = "left out, because posts of this kind here show none of that type."

    two = fit_text(payload("Trams run.", assets=(picture, sound)), RULE, {})
    assert two.steps == (AdaptationStep("files_left_out", f"2 files were {why}"),)
    one = fit_text(payload("Trams run.", assets=(picture, sound)), shows, {})
    assert one.steps == (AdaptationStep("files_left_out", f"1 file was {why}"),)
    assert fit_text(payload("Trams run.", assets=(picture,)), shows, {}).steps == ()
