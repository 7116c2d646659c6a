"""What the operator sets for platforms: a name that is none, or an address that is none, is found by the check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core import checks

from config.operations.plugin_checks import check_platform_settings

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper


def found(settings: SettingsWrapper, *, addresses: dict[str, str], versions: dict[str, str]) -> list[str]:
    settings.PLATFORM_ADDRESSES, settings.PLATFORM_VERSIONS = addresses, versions
    return [f"{one.id} {one.msg}" for one in checks.run_checks() if (one.id or "").startswith("platforms.E")]


def test_what_can_be_asked_is_fine(settings: SettingsWrapper) -> None:
    addresses = {"x": "https://x.example", "linkedin": "http://127.0.0.1:9000"}
    assert found(settings, addresses=addresses, versions={"linkedin": "202611"}) == []


def test_a_name_that_is_no_platform_is_named(settings: SettingsWrapper) -> None:
    given = found(settings, addresses={"linkdin": "https://l.example"}, versions={"linkdin": "202611"})
    assert given == [
        "platforms.E001 PLATFORM_ADDRESSES names 'linkdin', which is no platform: the setting has no effect.",
        "platforms.E001 PLATFORM_VERSIONS names 'linkdin', which is no platform: the setting has no effect.",
    ]
    hints = [one.hint or "" for one in check_platform_settings(None)]
    assert [" linkedin," in hint for hint in hints] == [True, True]


@pytest.mark.parametrize(
    "address", ["foo", "ftp://l.example", "https://", "https://me:pw@l.example", "https://l.example/#a"]
)
def test_an_address_that_is_none_is_named_and_not_quoted(settings: SettingsWrapper, address: str) -> None:
    assert found(settings, addresses={"linkedin": address}, versions={}) == [
        "platforms.E002 PLATFORM_ADDRESSES gives linkedin an address that is none."
    ]
