"""The operators' way in: everybody's log-in, and a second factor where the setting asks for one."""

from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator


@pytest.fixture
def operator(operator):
    operator.mark_email_verified()
    return operator


def test_the_admin_s_log_in_is_everybody_s(client, db):
    answer = client.get("/admin/", follow=True)
    assert answer.redirect_chain[-1] == ("/account/login/?next=%2Fadmin%2F", 302)


def test_log_in_is_by_email_in_any_case(client, operator):
    answer = client.post(
        "/account/login/?next=/admin/", {"login": "Operator@Example.test", "password": "correct horse"}
    )
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")


def test_who_is_no_operator_is_not_let_in(client, alice):
    client.force_login(alice)
    assert client.get("/admin/", follow=True).status_code == 403


def test_the_admin_asks_for_a_second_factor_where_the_setting_says_so(client, operator, settings):
    client.force_login(operator)
    assert client.get("/admin/").status_code == 200
    settings.ADMIN_REQUIRES_MFA = True
    answer = client.get("/admin/")
    assert (answer.status_code, answer["Location"]) == (302, "/account/2fa/")
    Authenticator.objects.create(user=operator, type="totp", data={"secret": "x"})
    assert client.get("/admin/").status_code == 200
