"""An outlet opened for a call: its platform, its account, and the client that it speaks through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.ground.ids import encode
from pipeline import plugins, way_out
from pipeline.payloads import feed_addresses
from pipeline.platforms.base import Account, Platform
from pipeline.simulation import SimulatedServer

if TYPE_CHECKING:
    from config.ground.outbound import Client
    from pipeline.models import Outlet


@dataclass(frozen=True)
class Connection:
    platform: Platform
    account: Account
    http: Client


def platform_of(kind: str) -> Platform:
    return plugins.get("platforms", kind, Platform)


def account_of(outlet: Outlet) -> Account:
    config = dict(outlet.config)
    if outlet.platform == "feed":
        config["feed_url"] = feed_addresses(outlet.secret)["atom"]
    return Account(outlet=encode("out", outlet.pk), config=config, credentials=outlet.credentials or {})


def connect(outlet: Outlet) -> Connection:
    platform = platform_of(outlet.platform)
    http = SimulatedServer(outlet.workspace_id) if platform.is_simulated else way_out.client()
    return Connection(platform, account_of(outlet), http)
