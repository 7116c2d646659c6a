"""Defines the user model, which logs in by email address."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower

from config.core.clock import utc_now
from config.core.ids import uuid7


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Save and return a user; one without a password can't log in by password."""
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Create a superuser with a verified address: only somebody with database access can run this."""
        user = self.create_user(email, password, is_staff=True, is_superuser=True, **fields)
        user.mark_email_verified()
        return user

    def get_by_natural_key(self, username: str | None) -> User:
        # The unique constraint is on lower(email), so logging in ignores case too.
        return self.get(email__iexact=username)


class User(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    date_joined = models.DateTimeField(default=utc_now)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        db_table = "user_account"
        constraints: ClassVar = [
            # Alice@ and alice@ are one mailbox in practice.
            models.UniqueConstraint(Lower("email"), name="user_email_once"),
        ]

    def __str__(self) -> str:
        return self.email

    def mark_email_verified(self) -> None:
        """Mark the address as verified, so that the first log-in asks for no code."""
        # allauth's models import the user model, so an import at the top would be circular.
        from allauth.account.models import EmailAddress  # noqa: PLC0415

        EmailAddress.objects.update_or_create(
            user=self, email=self.email, defaults={"verified": True, "primary": True}
        )
