"""The token address of OAuth 2.0 as platforms have it: codes with PKCE, refresh tokens that are good once."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.platforms.servers.base import Answer, Request

CLIENT_ID = "client-of-the-operator"
CLIENT_SECRET = "secret/of+the operator"


@dataclass
class TokenAddress:
    """`codes` holds what a person granted: the code's redirect address and challenge, empty without PKCE."""

    uses_basic: bool
    rotates: bool
    lives_for: int
    scope: str = ""
    gives_refresh: bool = True
    needs_pkce: bool = True
    is_refused: bool = False
    scope_asked: str = ""
    codes: dict[str, tuple[str, str]] = field(default_factory=dict)
    refresh_tokens: set[str] = field(default_factory=set)
    access_tokens: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)

    def grant(self, redirect_uri: str, challenge: str = "") -> str:
        code = secrets.token_urlsafe(12)
        self.codes[code] = (redirect_uri, challenge)
        return code

    def authorize(self, request: Request) -> Answer:
        """A person who says yes at once, or no where `is_refused`; what can't be asked for is told here."""
        asked = {name: values[0] for name, values in request.query.items()}
        redirect_uri, state = asked.get("redirect_uri", ""), asked.get("state", "")
        challenge = asked.get("code_challenge", "")
        is_sound = asked.get("response_type") == "code" and asked.get("client_id") == CLIENT_ID and state
        if not is_sound or (challenge and asked.get("code_challenge_method") != "S256"):
            return Answer(400, b"<html>The request is wrong.</html>")
        if self.needs_pkce != bool(challenge):
            return Answer(400, b"<html>PKCE is wrong.</html>")
        given = {"error": "access_denied"}
        if not self.is_refused:
            given = {"code": self.grant(redirect_uri, challenge)}
        self.scope_asked = asked.get("scope", "")
        return Answer(302, b"", {"Location": f"{redirect_uri}?{urlencode({**given, 'state': state})}"})

    def answer(self, request: Request) -> Answer:
        form = request.form()
        self.asked.append(form)
        if request.headers.get("content-type") != "application/x-www-form-urlencoded":
            return Answer(400, {"error": "invalid_request", "error_description": "Send a form."})
        if not self._knows(request, form):
            return Answer(401, {"error": "invalid_client", "error_description": "Unknown client."})
        if form.get("grant_type") == "authorization_code":
            redirect_uri, challenge = self.codes.pop(form.get("code", ""), (None, ""))
            digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if redirect_uri != form.get("redirect_uri") or (challenge and proof != challenge):
                return Answer(400, {"error": "invalid_grant", "error_description": "The code is no good."})
            return self._tokens()
        if form.get("grant_type") == "refresh_token":
            if form.get("refresh_token") not in self.refresh_tokens:
                return Answer(400, {"error": "invalid_grant", "error_description": "Token was revoked."})
            if self.rotates:
                self.refresh_tokens.discard(form["refresh_token"])
            return self._tokens()
        return Answer(400, {"error": "unsupported_grant_type"})

    def _knows(self, request: Request, form: dict[str, str]) -> bool:
        if self.uses_basic:
            pair = base64.b64encode(b"client-of-the-operator:secret%2Fof%2Bthe%20operator").decode()
            return request.headers.get("authorization") == f"Basic {pair}"
        return form.get("client_id") == CLIENT_ID and form.get("client_secret") == CLIENT_SECRET

    def _tokens(self) -> Answer:
        access, refresh = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        self.access_tokens.add(access)
        body: dict[str, Any] = {"token_type": "bearer", "expires_in": self.lives_for, "access_token": access}
        if self.scope:
            body["scope"] = self.scope
        if self.gives_refresh and (self.rotates or not self.refresh_tokens):
            self.refresh_tokens.add(refresh)
            body["refresh_token"] = refresh
        return Answer(200, body)
