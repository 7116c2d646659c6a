from django.db import migrations

AT_ONCE = 500

POSTGRES = [
    'CREATE TABLE raw_item_words (item_id uuid PRIMARY KEY, words tsvector NOT NULL)',
    'CREATE INDEX raw_item_words_found ON raw_item_words USING gin (words) WITH (fastupdate = off)',
    """
    CREATE FUNCTION write_raw_item_words(raw uuid) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        DELETE FROM raw_item_words WHERE item_id = raw;
        INSERT INTO raw_item_words
        SELECT
            raw_item.id,
            array_to_tsvector(ARRAY['w' || replace(raw_item.workspace_id::text, '-', '') || test::int])
            || setweight(search_vector(search_words(raw_item.title), search_configuration(language)), 'A')
            || search_vector(search_words(left(body, 60000)), search_configuration(language))
        FROM raw_item
        JOIN raw_body ON raw_body.raw_item_id = raw_item.id AND raw_body.number = raw_item.content_version
        WHERE raw_item.id = raw AND deleted_at IS NULL AND (raw_item.title <> '' OR body <> '');
    END
    $$
    """,
    """
    CREATE FUNCTION keep_raw_item_words() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            TRUNCATE raw_item_words;
        ELSIF TG_OP = 'DELETE' THEN
            DELETE FROM raw_item_words WHERE item_id = OLD.id;
        ELSIF TG_TABLE_NAME = 'raw_body' THEN
            PERFORM write_raw_item_words(NEW.raw_item_id);
        ELSIF (NEW.title, NEW.language, NEW.content_version, NEW.deleted_at)
            IS DISTINCT FROM (OLD.title, OLD.language, OLD.content_version, OLD.deleted_at)
        THEN
            PERFORM write_raw_item_words(NEW.id);
        END IF;
        RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER keep_raw_item_words AFTER DELETE OR UPDATE OF title, language, content_version, deleted_at ON raw_item
    FOR EACH ROW EXECUTE FUNCTION keep_raw_item_words()
    """,
    """
    CREATE TRIGGER keep_raw_item_words AFTER INSERT ON raw_body
    FOR EACH ROW EXECUTE FUNCTION keep_raw_item_words()
    """,
    """
    CREATE TRIGGER forget_raw_item_words AFTER TRUNCATE ON raw_item
    FOR EACH STATEMENT EXECUTE FUNCTION keep_raw_item_words()
    """,
]


def forget(raw):
    return (
        "DELETE FROM raw_item_words WHERE rowid IN "
        f"(SELECT rowid FROM raw_item_words WHERE raw_item_words MATCH 'item_id:i' || {raw} || '0');"
    )


# The digit behind an id keeps the stemmer from its letters.
WORDS = """
    INSERT INTO raw_item_words (item_id, scope, title, body)
    SELECT
        'i' || raw.id || '0', 'w' || raw.workspace_id || raw.test,
        search_words(raw.title), search_words(substr(content.body, 1, 60000))
    FROM raw_item AS raw
    JOIN raw_body AS content ON content.raw_item_id = raw.id AND content.number = raw.content_version
    WHERE raw.deleted_at IS NULL AND (raw.title <> '' OR content.body <> '') AND raw.id
"""
SQLITE = [
    """
    CREATE VIRTUAL TABLE raw_item_words USING fts5(
        item_id, scope, title, body,
        tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co'", prefix = '2 3'
    )
    """,
    f'CREATE TRIGGER keep_raw_item_words_delete AFTER DELETE ON raw_item BEGIN {forget("OLD.id")} END',
    f"""
    CREATE TRIGGER keep_raw_item_words_update AFTER UPDATE OF title, content_version, deleted_at ON raw_item
    WHEN (NEW.title, NEW.content_version, NEW.deleted_at) IS NOT (OLD.title, OLD.content_version, OLD.deleted_at)
    BEGIN {forget("NEW.id")} {WORDS} = NEW.id; END
    """,
    f"""
    CREATE TRIGGER keep_raw_item_words_insert AFTER INSERT ON raw_body
    BEGIN {forget("NEW.raw_item_id")} {WORDS} = NEW.raw_item_id; END
    """,
]


def create(_apps, schema_editor):
    """Everything in one transaction, or nothing: one that was killed in `fill` finds the table and goes on to fill it."""
    if 'raw_item_words' in schema_editor.connection.introspection.table_names():
        return
    statements = POSTGRES if schema_editor.connection.vendor == 'postgresql' else SQLITE
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def fill(apps, schema_editor):
    """Write the words of the raw items that are there, some at a time; once more writes the same."""
    connection = schema_editor.connection
    items = apps.get_model('pipeline', 'RawItem').everywhere.using(connection.alias)
    last = None
    while True:
        rest = items.order_by('pk') if last is None else items.filter(pk__gt=last).order_by('pk')
        keys = list(rest.values_list('pk', flat=True)[:AT_ONCE])
        if not keys:
            return
        last = keys[-1]
        with schema_editor.connection.cursor() as cursor:
            if connection.vendor == 'postgresql':
                cursor.execute('SELECT write_raw_item_words(id) FROM unnest(%s) AS id', [keys])
                continue
            marks = ', '.join(['%s'] * len(keys))
            cursor.execute(
                f"""{WORDS} IN ({marks}) AND NOT EXISTS (
                    SELECT 1 FROM raw_item_words WHERE raw_item_words MATCH 'item_id:i' || raw.id || '0'
                )""",
                [key.hex for key in keys],
            )


class Migration(migrations.Migration):
    # Each batch is committed by itself, so that writers of a running service wait for none of the others.
    atomic = False

    dependencies = [
        ('pipeline', '0002_item_words'),
    ]

    operations = [
        migrations.RunPython(create, migrations.RunPython.noop, atomic=True),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
