"""Lists the routes of the pages of users and their workspaces."""

from django.urls import path, re_path

from accounts.pages import invitation, landing, members, notice_choices, profile, workspace
from accounts.pages.keys import views as key_views
from accounts.pages.page_routes import page_path, register_ids

register_ids("ws", "tok", "usr", "inv")

urlpatterns = [
    path("", landing.front, name="front"),
    path("new", landing.create, name="workspace_create"),
    path("account/profile", profile.profile, name="profile"),
    re_path(r"^invitations/(?P<token>[A-Za-z0-9_-]{43})$", invitation.invitation, name="invitation"),
    page_path("settings/", workspace.settings_page, "settings_page"),
    page_path("settings/access", workspace.access, "access"),
    page_path("settings/keys", key_views.keys, "keys"),
    page_path("settings/keys/new", key_views.create, "key_create"),
    page_path("settings/keys/revoke-all", key_views.revoke_all, "key_revoke_all"),
    page_path("settings/keys/<tok:token_id>", key_views.key, "key"),
    page_path("settings/keys/<tok:token_id>/requests", key_views.requests, "key_requests"),
    page_path("settings/keys/<tok:token_id>/secret", key_views.secret, "key_secret"),
    page_path("settings/keys/<tok:token_id>/rotate", key_views.rotate, "key_rotate"),
    page_path("settings/keys/<tok:token_id>/revoke", key_views.revoke, "key_revoke"),
    page_path("settings/keys/<tok:token_id>/undo", key_views.unrevoke, "key_unrevoke"),
    page_path("settings/members", members.member_list, "members"),
    page_path("settings/members/invite", members.invite, "member_invite"),
    page_path("settings/members/restore", members.restore_member, "member_restore"),
    page_path("settings/members/leave", members.leave, "member_leave"),
    page_path("settings/members/<usr:user>/role", members.change_role, "member_role"),
    page_path("settings/members/<usr:user>/remove", members.remove, "member_remove"),
    page_path("settings/invitations/<inv:invitation>/resend", members.resend_invitation, "member_resend"),
    page_path(
        "settings/invitations/<inv:invitation>/withdraw", members.withdraw_invitation, "member_withdraw"
    ),
    page_path(
        "settings/invitations/<inv:invitation>/reinstate", members.restore_invitation, "member_reinstate"
    ),
    page_path("settings/workspace", workspace.workspace, "workspace"),
    page_path("settings/workspace/key", workspace.model_key, "workspace_key"),
    page_path("settings/workspace/key/remove", workspace.remove_model_key, "workspace_key_remove"),
    page_path("settings/workspace/cap", workspace.model_cap, "workspace_cap"),
    page_path("settings/workspace/samples", workspace.remove_samples, "samples_remove"),
    page_path("settings/workspace/export", workspace.exported, "workspace_export"),
    page_path("settings/workspace/delete", workspace.delete, "workspace_delete"),
    page_path("settings/workspace/keep", workspace.keep, "workspace_keep"),
    page_path("settings/notices", notice_choices.notices_page, "notices"),
    page_path("settings/notices/test", notice_choices.send_test, "notices_test"),
    re_path(
        r"^notices/off/(?P<token>[A-Za-z0-9_:-]{20,500})$", notice_choices.unsubscribe, name="notices_off"
    ),
    path("theme", landing.theme, name="theme"),
    re_path(r"^settings(?:/(?P<rest>[a-z/-]*))?$", landing.settings_front, name="settings"),
]
