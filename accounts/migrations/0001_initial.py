import config.core.clock
import config.core.encrypted_fields
import config.core.ids
import django.db.models.deletion
import django.db.models.functions.text
import django.db.models.manager
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # What a checkout of before the first release has applied; `migrate` knows by it that nothing is left to do.
    replaces = [
        ('accounts', '0002_sample_data'),
        ('accounts', '0003_shared_counts_and_deleting_keys'),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='Workspace',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('timezone', models.CharField(default='UTC', max_length=64)),
                ('credits_per_month', models.PositiveIntegerField(blank=True, null=True)),
                ('active_sources_most', models.PositiveIntegerField(blank=True, null=True)),
                ('poll_interval_minutes_least', models.PositiveIntegerField(blank=True, null=True)),
                ('is_unlimited', models.BooleanField(default=False)),
                ('whitelisted_at', models.DateTimeField(blank=True, null=True)),
                ('requires_approval', models.BooleanField(default=False)),
                ('model_key', config.core.encrypted_fields.ClosedTextField(blank=True, null=True)),
                ('model_key_last_four', models.CharField(blank=True, db_default='', default='', max_length=4)),
                ('model_cap_micro_usd', models.PositiveBigIntegerField(blank=True, null=True)),
                ('samples', models.CharField(blank=True, choices=[('', 'None'), ('filling', 'Filling'), ('filled', 'Filled'), ('removing', 'Removing'), ('removed', 'Removed')], db_default='', default='', max_length=10)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('deletes_at', models.DateTimeField(blank=True, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('erased_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'db_table': 'workspace',
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('deletes_at__isnull', False), ('erased_at__isnull', True)), fields=['deletes_at'], name='workspace_to_erase'), models.Index(condition=models.Q(('samples', 'removing')), fields=['id'], name='workspace_to_clear')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True)),
                ('credits_per_month', models.PositiveIntegerField(default=5000)),
                ('active_sources_most', models.PositiveIntegerField(default=20)),
                ('poll_interval_minutes_least', models.PositiveIntegerField(default=15)),
                ('is_default', models.BooleanField(default=False)),
            ],
            options={
                'db_table': 'plan',
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_default', True)), fields=('is_default',), name='plan_one_default')],
            },
        ),
        migrations.CreateModel(
            name='WhitelistRequest',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('message', models.TextField(blank=True)),
                ('status', models.CharField(choices=[('pending', 'pending'), ('approved', 'approved'), ('refused', 'refused')], default='pending', max_length=10)),
                ('reason', models.CharField(blank=True, max_length=1000)),
                ('asked_by', models.CharField(max_length=200)),
                ('decided_by', models.CharField(blank=True, max_length=200)),
                ('decided_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
            ],
            options={
                'db_table': 'whitelist_request',
                'base_manager_name': 'everywhere',
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('name', models.CharField(blank=True, max_length=120)),
                ('is_active', models.BooleanField(default=True)),
                ('is_staff', models.BooleanField(default=False)),
                ('date_joined', models.DateTimeField(default=config.core.clock.utc_now)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'db_table': 'user_account',
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('email'), name='user_email_once')],
            },
        ),
        migrations.CreateModel(
            name='CreditBalance',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='credits', serialize=False, to='accounts.workspace')),
                ('period_start', models.DateField()),
                ('granted', models.BigIntegerField(default=0)),
                ('available', models.BigIntegerField(default=0)),
                ('reserved', models.BigIntegerField(default=0)),
                ('used', models.BigIntegerField(default=0)),
            ],
            options={
                'db_table': 'credit_balance',
                'constraints': [models.CheckConstraint(condition=models.Q(('reserved__gte', 0)), name='credit_balance_reserved_not_negative')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='RateBucket',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='accounts.workspace')),
                ('arrival_micros', models.BigIntegerField()),
            ],
            options={
                'db_table': 'rate_bucket',
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('actor', models.CharField(max_length=200)),
                ('action', models.CharField(max_length=60)),
                ('subject', models.CharField(blank=True, max_length=200)),
                ('details', models.JSONField(default=dict)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('workspace', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'audit entry',
                'verbose_name_plural': 'audit entries',
                'db_table': 'audit_entry',
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', '-created_at'], name='audit_entry_list')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=120)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('prefix', models.CharField(max_length=16)),
                ('last_four', models.CharField(max_length=4)),
                ('scopes', models.JSONField(default=list)),
                ('is_test', models.BooleanField(default=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_from', models.GenericIPAddressField(blank=True, null=True)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('rotated_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='accounts.apitoken')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'API token',
                'verbose_name_plural': 'API tokens',
                'db_table': 'api_token',
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', '-created_at'], name='api_token_list')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='GuardCount',
            fields=[
                ('key', models.CharField(max_length=250, primary_key=True, serialize=False)),
                ('value', models.TextField()),
                ('ends_micros', models.BigIntegerField()),
            ],
            options={
                'db_table': 'guard_count',
                'indexes': [models.Index(fields=['ends_micros'], name='guard_count_age')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('key', models.CharField(max_length=255)),
                ('request_digest', models.BinaryField(max_length=32)),
                ('status', models.PositiveSmallIntegerField()),
                ('body', models.BinaryField()),
                ('headers', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'idempotency_key',
                'indexes': [models.Index(fields=['created_at'], name='idempotency_key_age')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'test', 'key'), name='idempotency_key_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], max_length=10)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('sends', models.PositiveIntegerField(default=1)),
                ('sent_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(null=True)),
                ('withdrawn_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.workspace')),
            ],
            options={
                'db_table': 'invitation',
                'base_manager_name': 'everywhere',
                'constraints': [models.UniqueConstraint(models.F('workspace'), django.db.models.functions.text.Lower('email'), condition=models.Q(('accepted_at', None), ('withdrawn_at', None)), name='invitation_one_pending')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='LedgerEntry',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('grant', 'Grant'), ('reserve', 'Reserve'), ('settle', 'Settle'), ('release', 'Release'), ('expire', 'Expire'), ('adjust', 'Adjust')], max_length=8)),
                ('amount', models.BigIntegerField()),
                ('reserved_change', models.BigIntegerField(default=0)),
                ('used_change', models.BigIntegerField(default=0)),
                ('subject', models.UUIDField(null=True)),
                ('reason', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ledger', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'ledger entry',
                'verbose_name_plural': 'ledger entries',
                'db_table': 'ledger_entry',
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', '-id'], name='ledger_entry_list')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'reserve')), fields=('subject',), name='ledger_entry_reserved_once'), models.UniqueConstraint(condition=models.Q(('kind__in', ['settle', 'release'])), fields=('subject',), name='ledger_entry_settled_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('editor', 'Editor'), ('viewer', 'Viewer')], max_length=10)),
                ('is_sample', models.BooleanField(db_default=False, default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='accounts.workspace')),
            ],
            options={
                'db_table': 'membership',
                'base_manager_name': 'everywhere',
                'constraints': [models.UniqueConstraint(fields=('workspace', 'user'), name='membership_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Notice',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('kind', models.CharField(choices=[('post_failed', 'A post failed'), ('post_handed_over', 'A post needs manual publishing'), ('reviews_waiting', 'Items to review'), ('item_flagged', 'A published item’s source changed'), ('source_failing', 'A source fails'), ('recurrence_stopped', 'Repeat stopped'), ('few_topics', 'Topics run low'), ('outlet_reconnect', 'An outlet needs reconnecting'), ('webhook', 'A webhook endpoint fails'), ('quota', 'Credits run out'), ('monthly', 'Monthly report'), ('digest', 'Daily digest'), ('test', 'Test')], max_length=20)),
                ('key', models.CharField(max_length=120)),
                ('title', models.CharField(max_length=200)),
                ('text', models.TextField(blank=True)),
                ('path', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'notice',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='notice_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='notice_wake_by_workspace'), models.Index(fields=['created_at'], name='notice_age')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'kind', 'key'), name='notice_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='NoticeChoice',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kinds', models.JSONField(default=dict)),
                ('by_mail', models.BooleanField(default=True)),
                ('slack_url', config.core.encrypted_fields.SealedTextField(null=True)),
                ('telegram_token', config.core.encrypted_fields.SealedTextField(null=True)),
                ('telegram_chat', models.CharField(blank=True, max_length=64)),
                ('updated_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'notice_choice',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'constraints': [models.UniqueConstraint(fields=('workspace', 'user'), name='notice_choice_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='NoticeDigest',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'digest',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='digest_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='digest_wake_by_workspace')],
                'constraints': [models.UniqueConstraint(fields=('workspace',), name='digest_one')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='NoticeMessage',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('channel', models.CharField(choices=[('mail', 'Mail'), ('slack', 'Slack'), ('telegram', 'Telegram')], max_length=10)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('gathered', 'In the next digest'), ('told', 'Sent in a digest'), ('sent', 'Sent'), ('failed', 'Failed'), ('dropped', 'Dropped')], default='pending', max_length=10)),
                ('failures', models.PositiveSmallIntegerField(default=0)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('sent_at', models.DateTimeField(null=True)),
                ('notice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='accounts.notice')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'message',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='message_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='message_wake_by_workspace'), models.Index(fields=['workspace', 'user', '-id'], name='message_of_person')],
                'constraints': [models.UniqueConstraint(fields=('notice', 'user', 'channel'), name='message_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.AddField(
            model_name='workspace',
            name='plan',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='workspaces', to='accounts.plan'),
        ),
        migrations.AddField(
            model_name='whitelistrequest',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='whitelist_requests', to='accounts.workspace'),
        ),
        migrations.AddConstraint(
            model_name='whitelistrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'pending')), fields=('workspace',), name='whitelist_request_one_pending'),
        ),
    ]
