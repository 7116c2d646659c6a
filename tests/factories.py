"""Rows of the accounts app, as a fresh instance would hold them; other apps' factories have modules of their own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import factory
from factory.django import DjangoModelFactory

from accounts import credits
from accounts.access import tokens
from accounts.models import ApiToken, Membership, Plan, User, Workspace


class UserFactory(DjangoModelFactory[User]):
    class Meta:
        model = User
        skip_postgeneration_save = True

    email = factory.Sequence(lambda n: f"person{n}@example.test")
    name = "Alice Example"

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **kwargs: Any) -> User:
        # Through the manager, so that passwords are hashed.
        return model_class.objects.create_user(*args, **kwargs)


class PlanFactory(DjangoModelFactory[Plan]):
    class Meta:
        model = Plan

    name = factory.Sequence(lambda n: f"Plan {n}")


class WorkspaceFactory(DjangoModelFactory[Workspace]):
    """Whitelisted and with its account; furnished with nothing: `workspaces.create` does that."""

    class Meta:
        model = Workspace

    name = factory.Sequence(lambda n: f"Newsroom {n}")
    plan = factory.SubFactory(PlanFactory)
    whitelisted_at = datetime(2026, 1, 1, tzinfo=UTC)

    @classmethod
    def _create(cls, model_class: type[Workspace], *args: Any, **kwargs: Any) -> Workspace:
        opened_at = kwargs.pop("opened_at", None) or datetime.now(UTC)
        workspace: Workspace = model_class.everywhere.create(*args, **kwargs)
        credits.open_account(workspace, opened_at)
        return workspace


class MembershipFactory(DjangoModelFactory[Membership]):
    class Meta:
        model = Membership

    workspace = factory.SubFactory(WorkspaceFactory)
    user = factory.SubFactory(UserFactory)
    role = Membership.Role.OWNER

    @classmethod
    def _create(cls, model_class: type[Membership], *args: Any, **kwargs: Any) -> Membership:
        return model_class.everywhere.create(*args, **kwargs)


class TokenFactory(DjangoModelFactory[ApiToken]):
    """A live token with every scope; its text is its attribute `secret`."""

    class Meta:
        model = ApiToken

    workspace = factory.SubFactory(WorkspaceFactory)
    name = "Integration"

    @classmethod
    def _create(cls, model_class: type[ApiToken], *args: Any, **kwargs: Any) -> ApiToken:
        del model_class
        minted = tokens.mint(kwargs.pop("workspace"), *args, **kwargs)
        minted.token.secret = minted.secret
        return minted.token
