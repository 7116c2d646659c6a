"""The input of a secret never sends it back, and says so where it has to be typed again."""

from __future__ import annotations

from accounts.pages.secret_input import SecretInput

SECRET = "canary-token-4711"
HELP = "Type it again: it isn&#x27;t kept after an error."


def make_html(value):
    return SecretInput().render("token", value, {"required": True, "aria-describedby": "id_token_helptext"})


def test_a_secret_has_to_be_typed_again():
    html = make_html(SECRET)
    assert (SECRET in html, " required" in html, 'type="hidden"' in html) == (False, True, False)
    assert f'id="id_token_again">{HELP}</span>' in html
    assert 'aria-describedby="id_token_helptext id_token_again"' in html


def test_an_empty_field_says_nothing():
    assert HELP not in make_html("")
    assert 'aria-describedby="id_token_helptext"' in make_html(None)


def test_an_address_is_shown_as_it_was_typed():
    html = make_html("https://hooks.example/T1?a=1&b=2")
    assert 'type="text" name="token" value="https://hooks.example/T1?a=1&amp;b=2"' in html
    assert HELP not in html
