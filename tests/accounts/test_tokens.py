"""Tokens: form, checksum, storage, rotation, revocation."""

import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.access import tokens
from accounts.models import ApiToken, AuditEntry
from config.core.errors import Conflict, Invalid
from tests.factories import TokenFactory, UserFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db
NOW = datetime.now(UTC)


def test_token_has_the_promised_form(workspace):
    live = tokens.issue(workspace, name="Live").secret
    test = tokens.issue(workspace, name="Test", is_test=True).secret

    assert re.fullmatch(r"cpk_live_[0-9A-Za-z]{36}", live)
    assert re.fullmatch(r"cpk_test_[0-9A-Za-z]{36}", test)
    assert tokens.is_well_formed(live)
    assert tokens.is_well_formed(test)


def test_checksum_is_crc_32_in_base_62():
    # The check value of CRC-32 for these nine digits is 0xCBF43926 = 3 421 780 262.
    powers = [62**5, 62**4, 62**3, 62**2, 62, 1]
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    checksum = tokens._checksum("123456789")
    assert (
        sum(digits.index(letter) * power for letter, power in zip(checksum, powers, strict=True))
        == 0xCBF43926
    )
    assert tokens._checksum("") == "000000"


def test_only_digest_prefix_and_last_four_are_stored(workspace):
    minted = tokens.issue(workspace, name=" Bridge ", scopes=["raw:write"])
    row = ApiToken.everywhere.get(pk=minted.token.pk)

    assert bytes(row.digest) == hashlib.sha256(minted.secret.encode()).digest()
    assert row.prefix == minted.secret[:13]
    assert row.last_four == minted.secret[-4:]
    assert str(row) == f"{minted.secret[:13]}…{minted.secret[-4:]}"
    assert row.name == "Bridge"
    values = [value for value in vars(row).values() if isinstance(value, str | list)]
    assert not [value for value in values if minted.secret in str(value)]


@given(
    position=st.integers(0, 44),
    letter=st.sampled_from("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"),
)
def test_one_wrong_letter_is_told_without_a_query(position, letter):
    secret = tokens._new_secret(is_test=False)
    mistyped = secret[:position] + letter + secret[position + 1 :]
    assert tokens.is_well_formed(mistyped) == (mistyped == secret)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cpk_live_",
        "cpk_live_" + "ä" * 36,
        "cpk_live_" + "0" * 36 + "\n",
        "sk-123",
        "cpk_prod_" + "0" * 36,
    ],
)
def test_malformed_is_refused_without_a_query(text, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert tokens.find_token(text, NOW) is None


def test_trailing_newline_is_not_part_of_a_token(workspace):
    secret = tokens.issue(workspace, name="x").secret
    assert not tokens.is_well_formed(secret + "\n")


def test_find_reads_workspace_and_plan_in_one_query(workspace, token, django_assert_num_queries):
    TokenFactory(workspace=WorkspaceFactory())
    with django_assert_num_queries(1):
        found = tokens.find_token(token.secret, NOW)
        assert found.workspace.plan.name == "Small"
    assert found.pk == token.pk
    assert found.workspace == workspace


def test_find_knows_no_unknown_token(token):
    assert tokens.find_token(tokens._new_secret(is_test=False), NOW) is None


def test_expiry_is_exclusive(workspace):
    end = NOW + timedelta(hours=1)
    token = TokenFactory(workspace=workspace, expires_at=end)
    assert tokens.find_token(token.secret, end - timedelta(microseconds=1)) == token
    assert tokens.find_token(token.secret, end) is None


def test_token_of_a_deleted_workspace_is_unknown(workspace, token):
    type(workspace).everywhere.filter(pk=workspace.pk).update(deleted_at=NOW)
    assert tokens.find_token(token.secret, NOW) is None


def test_mint_keeps_scopes_in_order_and_once(workspace):
    minted = tokens.issue(workspace, name="x", scopes=["raw:write", "sources:read", "raw:write"])
    assert minted.token.scopes == ["sources:read", "raw:write"]


def test_default_scopes_are_all(workspace):
    assert tokens.issue(workspace, name="x").token.scopes == list(tokens.SCOPES)


@pytest.mark.parametrize(("scopes", "code"), [(["raw:shred"], "unknown_scope"), ([], "required")])
def test_mint_refuses_scopes_that_mean_nothing(workspace, scopes, code):
    with pytest.raises(Invalid) as refused:
        tokens.issue(workspace, name="x", scopes=scopes)
    assert [(one.field, one.code) for one in refused.value.detail] == [("scopes", code)]
    assert ApiToken.everywhere.count() == 0


def test_mint_refuses_an_expiry_in_the_past(workspace):
    with pytest.raises(Invalid) as refused:
        tokens.issue(workspace, name="x", expires_at=NOW - timedelta(seconds=1))
    assert refused.value.detail[0].code == "in_the_past"


def test_presets():
    assert tokens.PRESETS == {
        "full": tokens.SCOPES,
        "read-only": ("sources:read", "raw:read", "generated:read", "analytics:read"),
        "push-only": ("raw:write",),
    }


@pytest.mark.parametrize(("arguments", "actor"), [({}, "system"), ({"actor": "manage.py"}, "manage.py")])
def test_mint_is_audited(workspace, arguments, actor):
    minted = tokens.issue(workspace, name="Bridge", scopes=["raw:write"], **arguments)
    [entry] = AuditEntry.everywhere.all()
    assert (entry.workspace, entry.actor, entry.action, entry.subject, entry.details) == (
        workspace,
        actor,
        "token.issued",
        tokens.public_id(minted.token),
        {"name": "Bridge", "scopes": ["raw:write"], "test": False},
    )


def test_mint_names_its_person(workspace, alice):
    minted = tokens.issue(workspace, name="x", created_by=alice)
    assert minted.token.created_by == alice
    assert AuditEntry.everywhere.get().actor == "alice@example.test"


def test_rotation_keeps_rights_and_lets_the_old_key_run_out(workspace, alice):
    old = TokenFactory(workspace=workspace, name="Bridge", scopes=["raw:write"], is_test=True)
    before = datetime.now(UTC)
    minted = tokens.rotate(old, by=alice)
    after = datetime.now(UTC)

    new = ApiToken.everywhere.get(pk=minted.token.pk)
    assert (new.name, new.scopes, new.is_test, new.expires_at, new.rotated_from, new.created_by) == (
        "Bridge",
        ["raw:write"],
        True,
        None,
        old,
        alice,
    )
    old.refresh_from_db()
    assert before + timedelta(hours=24) <= old.expires_at <= after + timedelta(hours=24)
    assert tokens.find_token(old.secret, datetime.now(UTC)) == old
    assert tokens.find_token(minted.secret, datetime.now(UTC)) == new
    entry = AuditEntry.everywhere.get(action="token.rotated")
    assert entry.details == {"successor": tokens.public_id(new), "overlap_seconds": 86400}


def test_rotation_without_overlap_ends_the_old_key_at_once(token, alice):
    tokens.rotate(token, overlap=timedelta(0), by=alice)
    assert tokens.find_token(token.secret, datetime.now(UTC)) is None


def test_rotation_never_lengthens_a_life(workspace, alice):
    end = datetime.now(UTC) + timedelta(hours=1)
    token = TokenFactory(workspace=workspace, expires_at=end)
    minted = tokens.rotate(token, overlap=timedelta(days=7), by=alice)
    token.refresh_from_db()
    assert token.expires_at == end
    assert minted.token.expires_at == end


@pytest.mark.parametrize("overlap", [timedelta(days=7, seconds=1), timedelta(seconds=-1)])
def test_rotation_refuses_other_overlaps(token, alice, overlap):
    with pytest.raises(Invalid) as refused:
        tokens.rotate(token, overlap=overlap, by=alice)
    assert refused.value.detail[0].message == "The overlap may be 0 to 7 days."
    assert ApiToken.everywhere.count() == 1


def test_dead_keys_are_not_rotated(workspace, alice):
    revoked = TokenFactory(workspace=workspace)
    tokens.revoke(revoked, alice)
    expired = TokenFactory(workspace=workspace)
    ApiToken.everywhere.filter(pk=expired.pk).update(expires_at=NOW - timedelta(days=1))
    for token in (revoked, expired):
        with pytest.raises(Conflict) as refused:
            tokens.rotate(token, by=alice)
        assert refused.value.detail[0].code == "token_not_live"
    assert ApiToken.everywhere.count() == 2


def test_revoking_is_at_once_and_noted_once(token, alice):
    assert tokens.find_token(token.secret, NOW) == token
    tokens.revoke(token, alice)
    tokens.revoke(token, alice)
    assert tokens.find_token(token.secret, NOW) is None
    assert token.revoked_at is not None
    entry = AuditEntry.everywhere.get(action="token.revoked")
    assert (entry.actor, entry.subject) == ("alice@example.test", tokens.public_id(token))


def test_use_is_noted_at_most_once_a_minute(token, django_assert_num_queries):
    read = tokens.find_token(token.secret, NOW)
    with django_assert_num_queries(1):
        tokens.record_use(read, address="203.0.113.5", now=NOW)
    read = tokens.find_token(token.secret, NOW)
    assert (read.last_used_at, read.last_used_from) == (NOW, "203.0.113.5")

    with django_assert_num_queries(0):
        tokens.record_use(read, address="203.0.113.6", now=NOW + timedelta(seconds=59))
    with django_assert_num_queries(1):
        tokens.record_use(read, address="203.0.113.7", now=NOW + timedelta(seconds=60))
    # A request that had read the row before the last note changes nothing.
    tokens.record_use(read, address="203.0.113.8", now=NOW + timedelta(seconds=61))
    read = tokens.find_token(token.secret, NOW)
    assert (read.last_used_at, read.last_used_from) == (NOW + timedelta(seconds=60), "203.0.113.7")


def test_key_has_one_living_successor(token, alice):
    first = tokens.rotate(token, by=alice)
    with pytest.raises(Conflict) as refused:
        tokens.rotate(token, by=alice)
    assert refused.value.detail[0].code == "token_rotated"
    # A successor whose text was lost is revoked, and the old key, while it lives, can have another.
    tokens.revoke(first.token, alice)
    assert tokens.rotate(token, by=alice).token.rotated_from == token


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("overlap", [timedelta(0), timedelta(days=1)])
def test_rotations_at_once_make_one_successor(in_threads, overlap):
    token, alice = TokenFactory(), UserFactory()

    def rotate(_number):
        try:
            return tokens.rotate(ApiToken.everywhere.get(pk=token.pk), overlap=overlap, by=alice)
        except Conflict:
            return None

    results = in_threads(8, rotate)
    assert len([result for result in results if result]) == 1
    assert ApiToken.everywhere.count() == 2


def test_a_revocation_is_taken_back_by_who_made_it(token, alice):
    tokens.revoke(token, alice)
    tokens.unrevoke(token, alice)
    tokens.unrevoke(token, alice)
    assert token.revoked_at is None
    assert tokens.find_token(token.secret, datetime.now(UTC)) == token
    entry = AuditEntry.everywhere.get(action="token.unrevoked")
    assert (entry.actor, entry.subject) == ("alice@example.test", tokens.public_id(token))


def test_an_operator_s_revocation_and_that_of_all_stand(workspace, token, alice):
    tokens.revoke(token, UserFactory(email="operator@example.test"))
    second = TokenFactory(workspace=workspace)
    tokens.revoke_all(workspace, alice)
    for one in (token, second):
        with pytest.raises(Conflict) as refused:
            tokens.unrevoke(one, alice)
        assert refused.value.detail[0].code == "undo_over"
        assert tokens.find_token(one.secret, datetime.now(UTC)) is None


@pytest.mark.parametrize("how", ["one", "all"])
def test_an_earlier_revocation_of_one_s_own_opens_no_later_one(workspace, token, alice, how):
    operator = UserFactory(email="operator@example.test")
    tokens.revoke(token, alice)
    tokens.unrevoke(token, alice)
    if how == "one":
        tokens.revoke(token, operator)
    else:
        tokens.revoke_all(workspace, operator)
    with pytest.raises(Conflict) as refused:
        tokens.unrevoke(token, alice)
    assert refused.value.detail[0].code == "undo_over"
    assert tokens.find_token(token.secret, datetime.now(UTC)) is None


@pytest.mark.parametrize(("seconds", "works"), [(29, True), (30, False)])
def test_a_revocation_stands_after_some_seconds(token, alice, seconds, works):
    tokens.revoke(token, alice)
    at = token.revoked_at - timedelta(seconds=seconds)
    ApiToken.everywhere.filter(pk=token.pk).update(revoked_at=at)
    AuditEntry.everywhere.filter(action="token.revoked").update(created_at=at)
    try:
        tokens.unrevoke(token, alice)
    except Conflict:
        assert not works
    assert (tokens.find_token(token.secret, datetime.now(UTC)) == token) is works


def test_a_key_gets_no_second_successor_by_an_undo(token, alice):
    first = tokens.rotate(token, by=alice)
    tokens.revoke(first.token, alice)
    second = tokens.rotate(token, by=alice)
    with pytest.raises(Conflict) as refused:
        tokens.unrevoke(first.token, alice)
    assert refused.value.detail[0].code == "token_rotated"
    assert list(ApiToken.everywhere.filter(rotated_from=token, revoked_at=None)) == [second.token]


def test_a_successor_s_revocation_is_taken_back_where_it_has_no_rival(token, alice):
    first = tokens.rotate(token, by=alice)
    tokens.revoke(first.token, alice)
    tokens.unrevoke(first.token, alice)
    assert tokens.find_token(first.secret, datetime.now(UTC)) == first.token
