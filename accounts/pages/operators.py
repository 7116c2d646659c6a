"""The operators' log-in is everybody's: with codes, a second factor and limits on guessing."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin

way_to_log_in = secure_admin_login(admin.site.login)
