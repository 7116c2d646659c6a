"""Rows as a fresh instance would hold them: a test names what it is about, and the rest is plain.

What the product itself makes (an item of a raw item, a publication of an item) tests/pipeline/steps.py makes by its calls.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import factory
from factory.django import DjangoModelFactory

from accounts.access import tokens
from accounts.ledger import credits
from accounts.models import ApiToken, Membership, Plan, User, Workspace
from config.core.ids import uuid7
from pipeline.models import GeneratedItem, Generation, Outlet, Persona, Publication, RawItem, Source


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


class _OfWorkspaceFactory(DjangoModelFactory[Any]):
    """Whose rows belong to a workspace; a fresh one, where a test names none."""

    class Meta:
        abstract = True

    workspace = factory.SubFactory(WorkspaceFactory)

    @classmethod
    def _create(cls, model_class: type[Any], *args: Any, **kwargs: Any) -> Any:
        return model_class.everywhere.create(*args, **kwargs)


class MembershipFactory(_OfWorkspaceFactory):
    class Meta:
        model = Membership

    user = factory.SubFactory(UserFactory)
    role = Membership.Role.OWNER


class TokenFactory(DjangoModelFactory[ApiToken]):
    """A live token with every scope; its text is its attribute `secret`."""

    class Meta:
        model = ApiToken

    workspace = factory.SubFactory(WorkspaceFactory)
    name = "Integration"

    @classmethod
    def _create(cls, model_class: type[ApiToken], *args: Any, **kwargs: Any) -> ApiToken:
        del model_class
        minted = tokens.issue(kwargs.pop("workspace"), *args, **kwargs)
        minted.token.secret = minted.secret
        return minted.token


class SourceFactory(_OfWorkspaceFactory):
    class Meta:
        model = Source

    name = "Harbour feed"
    type = "rss"


class OutletFactory(_OfWorkspaceFactory):
    class Meta:
        model = Outlet

    name = "Stage"
    platform = "simulated"
    is_simulated = factory.LazyAttribute(lambda outlet: outlet.platform == "simulated")


class PersonaFactory(_OfWorkspaceFactory):
    class Meta:
        model = Persona

    name = "Ada"


class RawItemFactory(_OfWorkspaceFactory):
    class Meta:
        model = RawItem

    source = factory.SubFactory(SourceFactory, workspace=factory.SelfAttribute("..workspace"))
    dedup_key = factory.Sequence(lambda n: f"h:{n}")
    content_hash = factory.Sequence(str)
    title = factory.Sequence(lambda n: f"Story {n}")
    due_at = None


class GenerationFactory(_OfWorkspaceFactory):
    class Meta:
        model = Generation

    engine = "short_post"


class GeneratedItemFactory(_OfWorkspaceFactory):
    """A short post of a run that is done."""

    class Meta:
        model = GeneratedItem

    generation = factory.SubFactory(
        GenerationFactory,
        workspace=factory.SelfAttribute("..workspace"),
        test=factory.SelfAttribute("..test"),
        status="done",
    )
    test = False
    bucket = "text"
    engine_output = "Short Post"
    engine_version = 1
    variant_group = factory.LazyFunction(uuid7)


class PublicationFactory(_OfWorkspaceFactory):
    """Of an item to an outlet, whose workspace is its own."""

    class Meta:
        model = Publication

    workspace = factory.SelfAttribute("outlet.workspace")
    outlet = factory.SubFactory(OutletFactory)
    item = factory.SubFactory(GeneratedItemFactory, workspace=factory.SelfAttribute("..outlet.workspace"))
    platform = factory.SelfAttribute("outlet.platform")
    revision = 1
