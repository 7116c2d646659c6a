"""A person who logs in."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower

from config.core.clock import utc_now
from config.core.ids import uuid7


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Made in a shell by somebody who holds the database: their address needs no mail to prove it."""
        user = self.create_user(email, password, is_staff=True, is_superuser=True, **fields)
        user.vouch_for_email()
        return user

    def get_by_natural_key(self, username: str | None) -> User:
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

    def vouch_for_email(self) -> None:
        """Take the address as proven, so that the first log-in asks for no code."""
        # Its models can't be imported while this one is being made.
        from allauth.account.models import EmailAddress  # noqa: PLC0415

        EmailAddress.objects.update_or_create(
            user=self, email=self.email, defaults={"verified": True, "primary": True}
        )
