"""Settings that contradict each other are told, with what to do."""

from __future__ import annotations

import pytest

from config.core.settings_checks import check_settings_agree

SOUND = {
    "IS_DEVELOPMENT": False,
    "LEASE_SECONDS": 60,
    "OUTBOUND_ALLOW_LOOPBACK": False,
    "PUBLIC_URL": "https://pipeline.example",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "IS_POSTGRES": True,
}


@pytest.mark.parametrize(
    ("wrong", "ids"),
    [
        ({}, []),
        ({"LEASE_SECONDS": 50}, ["ground.E001"]),
        ({"OUTBOUND_ALLOW_LOOPBACK": True}, ["ground.W001"]),
        ({"PUBLIC_URL": "http://pipeline.example"}, ["ground.W002"]),
        ({"IS_POSTGRES": False}, ["ground.W003"]),
        ({"IS_DEVELOPMENT": True, "LEASE_SECONDS": 3, "PUBLIC_URL": "http://127.0.0.1"}, []),
    ],
)
def test_settings_agree_tells_each_contradiction(settings, wrong, ids):
    for name, value in {**SOUND, **wrong}.items():
        setattr(settings, name, value)

    found = check_settings_agree(None)

    assert [message.id for message in found] == ids
    assert all(message.hint for message in found)
