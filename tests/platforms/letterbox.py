"""A platform with a log-in that ends, for tests: it asks the server that its settings name, as a real one would."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from pipeline import plugins
from pipeline.platforms.base import AccountInfo, Api, CannotTell, Platform, Renewed, Sent, Setting
from pipeline.platforms.fitting import FITTING_SETTINGS
from pipeline.platforms.http_calls import ask, ask_once, json_object, platform_message_of, raise_by_status
from pipeline.plugins import Evidence, NeedsReconnect

LABEL = "Letterbox"


class Letterbox(Platform):
    kind = "letterbox"
    label = LABEL
    summary = "Posts to a letterbox on a wall."
    evidence = Evidence("documents", "November 2026", "tests/platforms/letterbox.py")
    buckets = ("text",)
    api = Api(base_url="", version="2", reviewed_on=date(2026, 11, 20))
    settings = (
        Setting("server", "Server", "Where the letterbox hangs.", kind="url"),
        Setting("sign", "Signature", "What stands below each letter.", is_required=False),
        Setting("token", "Access token", "From the back of the box.", kind="password", is_secret=True),
        Setting("refresh", "Refresh token", kind="password", is_secret=True, is_required=False),
        *FITTING_SETTINGS,
    )

    def _ask(self, account: Any, http: Any, method: str, path: str, now: datetime, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {account.credentials.get('token', '')}"}
        url = f"{account.config['server']}{path}"
        response = ask(http, method, url, service=LABEL, headers=headers, **options)
        if response.status != 200:
            words = platform_message_of(response, "error")
            raise_by_status(response, service=LABEL, platform_message=words, now=now, is_commit=False)
        return json_object(response.body) or {}

    def check_account(self, account, *, http, now):
        told = self._ask(account, http, "GET", "/me", now)
        ends = told.get("ends_in")
        return AccountInfo(
            external_id=told["id"],
            handle=told.get("handle", ""),
            name=told.get("name", ""),
            expires_at=now + timedelta(seconds=ends) if ends else None,
            config={"box": told.get("box", "front")},
            notes=tuple(told.get("notes", ())),
        )

    def renew(self, account, *, http, now):
        if "refresh" not in account.credentials:
            return None
        body = {"refresh": account.credentials["refresh"]}
        response = ask(http, "POST", f"{account.config['server']}/renew", service=LABEL, json=body)
        told = json_object(response.body) or {}
        if response.status == 400:
            message = f"{LABEL} doesn't know this refresh token: {told.get('error', '')}"
            raise NeedsReconnect(message, code="refresh_refused", platform_status=400)
        if response.status != 200:
            raise_by_status(response, service=LABEL, platform_message="", now=now, is_commit=False)
        ends = now + timedelta(seconds=told["ends_in"])
        return Renewed({"token": told["token"], "refresh": told["refresh"]}, ends)

    def commit(self, account, post, state, *, http, key, now):
        del state
        headers = {"Authorization": f"Bearer {account.credentials.get('token', '')}"}
        url = f"{account.config['server']}/letters"
        body = {"text": post.payload.body, "key": key}
        response = ask_once(http, "POST", url, service=LABEL, headers=headers, json=body)
        if response.status != 200:
            words = platform_message_of(response, "error")
            raise_by_status(response, service=LABEL, platform_message=words, now=now, is_commit=True)
        return Sent(external_id=key)

    def reconcile(self, account, post, state, *, http, key, now):
        del account, post, state, http, key, now
        return CannotTell("A letterbox can't be asked.")


@contextmanager
def registered():
    """The kinds of platforms, with this one."""
    kinds = plugins._load("platforms")
    kinds[Letterbox.kind] = Letterbox()
    try:
        yield kinds[Letterbox.kind]
    finally:
        del kinds[Letterbox.kind]


class Wall:
    """The server's side: whose tokens are good, and every refresh token works once."""

    def __init__(self, httpserver):
        self.url = httpserver.url_for("").rstrip("/")
        self.me = {"id": "box-1", "handle": "@corner", "name": "Corner box"}
        self.good = {"token-1"}
        self.refresh = "refresh-1"
        self.renewals = 0
        self.letters = []
        self.failing = None
        """Status and words with which every call is answered, `{token}` in the words being the caller's."""
        self.ends_in = 3600
        httpserver.expect_request("/me").respond_with_handler(
            lambda request: self._authorized(request, self.me)
        )
        httpserver.expect_request("/letters").respond_with_handler(self._letter)
        httpserver.expect_request("/renew").respond_with_handler(self._renew)

    def _answer(self, status, body):
        from werkzeug import Response

        return Response(json.dumps(body), status=status, content_type="application/json")

    def _authorized(self, request, body):
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.failing:
            status, words = self.failing
            return self._answer(status, {"error": words.replace("{token}", token)})
        if token not in self.good:
            return self._answer(401, {"error": f"{token} is not good here"})
        return self._answer(200, body)

    def _letter(self, request):
        answer = self._authorized(request, {})
        if answer.status_code == 200:
            self.letters.append(request.json["key"])
        return answer

    def _renew(self, request):
        if self.failing:
            return self._answer(self.failing[0], {"error": self.failing[1]})
        given = request.json["refresh"]
        if given != self.refresh:
            return self._answer(400, {"error": f"{given} was used"})
        self.renewals += 1
        self.refresh = f"refresh-{self.renewals + 1}"
        token = f"token-{self.renewals + 1}"
        self.good.add(token)
        return self._answer(200, {"token": token, "refresh": self.refresh, "ends_in": self.ends_in})
