"""Which email addresses, telephone numbers and codes a draft may name."""

from __future__ import annotations

from time import process_time

import pytest

from pipeline.engines.base import Brief, Check, Fact, PersonaCard
from pipeline.engines.checks.allowed_contacts import check_contacts, check_suspicion, unlisted_contacts

QUOTE = "Write to press@harrow.example or call 020 7946 0958 (ask for Ann) and name HARROW24; 12,000,000 people did."
BRIEF = Brief("Harrow", "en", "https://harrow.example/x", (Fact("f1", QUOTE, QUOTE, 0, len(QUOTE)),))
PERSONA = PersonaCard("Ann", who_you_are="Our desk: desk@ann.example, +49 30 901820, code ANN-10.")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "A day in March 2029 with 14 to 9 votes and £214 million.",
        "Name HARROW24 at the door.",
        "Ask desk@ann.example, or +49 30 901820.",
        "Our code ANN-10 is good.",
        "12 000 000 people did.",
        "See https://harrow.example/x?ref=ABC12345&n=0207946000.",
        "987654321",
        "The code was cracked by NASA and the code is open.",
    ],
)
def test_what_is_listed_may_be_named(words: str) -> None:
    assert unlisted_contacts(words, BRIEF, PERSONA) == ()


@pytest.mark.parametrize(
    ("words", "strange"),
    [
        ("Write to sales@evil.example.", ("sales@evil.example",)),
        # What the source's own words name was written by strangers too.
        ("Press@Harrow.example answers.", ("Press@Harrow.example",)),
        ("Call 020 7946 0958 now.", ("020 7946 0958",)),
        ("Call 02079460958 now.", ("02079460958",)),
        ("Call (020) 7946-0958 now.", ("020) 7946-0958",)),
        ("Use HARROW24 at the checkout.", ("HARROW24",)),
        ("HARROW24 gives 20% off.", ("HARROW24",)),
        ("Write to sales\u200b@evil.example.", ("sales@evil.example",)),
        ("Write to sales＠evil.example.", ("sales＠evil.example",)),
        ("Call 020 7946 0959 now.", ("020 7946 0959",)),
        ("Call +1 (555) 010-9999.", ("+1 (555) 010-9999",)),
        ("Call 05550109999.", ("05550109999",)),
        ("Use SAVE50NOW today.", ("SAVE50NOW",)),
        ("Use the code SUMMER today.", ("SUMMER",)),
        ("Coupon: “AUTUMN” for all.", ("AUTUMN",)),
        ("a@b.example and a@b.example", ("a@b.example",)),
    ],
)
def test_what_is_not_listed_is_strange(words: str, strange: tuple[str, ...]) -> None:
    assert unlisted_contacts(words, BRIEF, PERSONA) == strange


def test_check_names_some_and_counts_the_rest() -> None:
    words = " ".join(f"m{place}@evil.example" for place in range(7))

    assert check_contacts(words, BRIEF, PERSONA) == Check(
        "contacts",
        "failed",
        "These addresses, numbers or codes are not the persona's: m0@evil.example, "
        "m1@evil.example, m2@evil.example, m3@evil.example, m4@evil.example and 2 more.",
    )
    assert check_contacts("Fine.", BRIEF, PERSONA).outcome == "passed"


@pytest.mark.parametrize(("is_suspect", "outcome"), [(True, "warning"), (False, "passed")])
def test_suspicion_warns(is_suspect: bool, outcome: str) -> None:
    assert check_suspicion(Brief("", "en", "", (), is_suspect=is_suspect)).outcome == outcome


@pytest.mark.parametrize("unit", ["a@", "a.", "1 ", "A1-", "code ", "1", "+", "@", "A"])
def test_hostile_words_take_time_in_proportion(unit: str) -> None:
    started = process_time()

    unlisted_contacts(unit * (100_000 // len(unit)), BRIEF, PERSONA)

    assert process_time() - started < 15
