from django.db import migrations, transaction
from django.db.models import F

AT_ONCE = 500
RUNS = r'[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+'

# As config/core/database/search_words.py.
POSTGRES = [
    rf"""
    CREATE FUNCTION search_words(said text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
    DECLARE
        folded text := left(said, 60000);
    BEGIN
        IF strpos(folded, '<') > 0 THEN
            folded := regexp_replace(folded, '</?[a-zA-Z][^<>]*>', ' ', 'g');
        END IF;
        folded := lower(folded);
        IF folded ~ '[^\x01-\x7f]' THEN
            folded := normalize(translate(replace(folded, 'ß', 'ss'), 'ς', 'σ'), NFKD);
            folded := normalize(regexp_replace(folded, '[\u0300-\u036f]', '', 'g'), NFKC);
        END IF;
        folded := regexp_replace(folded, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g');
        IF folded !~ '{RUNS}' THEN
            RETURN folded;
        END IF;
        RETURN regexp_replace(folded, '{RUNS}', ' ', 'g') || ' ' || (
            SELECT string_agg(substr(run[1], place, 2), ' ')
            FROM regexp_matches(folded, '{RUNS}', 'g') AS run, generate_series(1, length(run[1])) AS place
        );
    END
    $$
    """,
    """
    CREATE FUNCTION search_configuration(language text) RETURNS regconfig LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT CASE split_part(lower(language), '-', 1)
            WHEN 'ar' THEN 'arabic'::regconfig WHEN 'ca' THEN 'catalan' WHEN 'da' THEN 'danish'
            WHEN 'de' THEN 'german' WHEN 'el' THEN 'greek' WHEN 'en' THEN 'english' WHEN 'es' THEN 'spanish'
            WHEN 'eu' THEN 'basque' WHEN 'fi' THEN 'finnish' WHEN 'fr' THEN 'french' WHEN 'ga' THEN 'irish'
            WHEN 'hi' THEN 'hindi' WHEN 'hu' THEN 'hungarian' WHEN 'hy' THEN 'armenian' WHEN 'id' THEN 'indonesian'
            WHEN 'it' THEN 'italian' WHEN 'lt' THEN 'lithuanian' WHEN 'nb' THEN 'norwegian' WHEN 'ne' THEN 'nepali'
            WHEN 'nl' THEN 'dutch' WHEN 'nn' THEN 'norwegian' WHEN 'no' THEN 'norwegian' WHEN 'pt' THEN 'portuguese'
            WHEN 'ro' THEN 'romanian' WHEN 'ru' THEN 'russian' WHEN 'sr' THEN 'serbian' WHEN 'sv' THEN 'swedish'
            WHEN 'ta' THEN 'tamil' WHEN 'tr' THEN 'turkish' WHEN 'yi' THEN 'yiddish' ELSE 'simple'
        END
    $$
    """,
    """
    CREATE FUNCTION search_vector(text, regconfig) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
        SELECT to_tsvector('simple', $1)
            || CASE WHEN $2 = 'simple'::regconfig THEN ''::tsvector ELSE to_tsvector($2, $1) END
    $$
    """,
    'CREATE TABLE generated_item_words (item_id uuid PRIMARY KEY, words tsvector NOT NULL)',
    'CREATE INDEX generated_item_words_found ON generated_item_words USING gin (words) WITH (fastupdate = off)',
    """
    CREATE FUNCTION keep_item_words() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            TRUNCATE generated_item_words;
            RETURN NULL;
        END IF;
        IF TG_OP = 'UPDATE' THEN
            IF (NEW.title, NEW.body, NEW.language, NEW.deleted_at)
                IS NOT DISTINCT FROM (OLD.title, OLD.body, OLD.language, OLD.deleted_at)
                AND EXISTS (SELECT FROM generated_item_words WHERE item_id = OLD.id)
            THEN
                RETURN NULL;
            END IF;
        END IF;
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM generated_item_words WHERE item_id = OLD.id;
        END IF;
        IF TG_OP <> 'DELETE' THEN
            IF NEW.deleted_at IS NULL AND (NEW.title <> '' OR NEW.body <> '') THEN
                INSERT INTO generated_item_words VALUES (
                    NEW.id,
                    array_to_tsvector(ARRAY[
                        'w' || replace(NEW.workspace_id::text, '-', '') || NEW.test::int
                    ])
                    || setweight(search_vector(search_words(NEW.title), search_configuration(NEW.language)), 'A')
                    || search_vector(search_words(NEW.body), search_configuration(NEW.language))
                );
            END IF;
        END IF;
        RETURN NULL;
    END
    $$
    """,
    """
    CREATE TRIGGER keep_item_words
    AFTER INSERT OR DELETE OR UPDATE OF title, body, language, deleted_at ON generated_item
    FOR EACH ROW EXECUTE FUNCTION keep_item_words()
    """,
    """
    CREATE TRIGGER forget_item_words AFTER TRUNCATE ON generated_item
    FOR EACH STATEMENT EXECUTE FUNCTION keep_item_words()
    """,
]
_FORGET = "DELETE FROM generated_item_words WHERE rowid IN (SELECT rowid FROM generated_item_words WHERE generated_item_words MATCH 'item_id:i' || OLD.id || '0');"
# The digit behind an id keeps the stemmer from its letters.
_KEEP = """
    INSERT INTO generated_item_words (item_id, scope, title, body)
    SELECT
        'i' || NEW.id || '0', 'w' || NEW.workspace_id || NEW.test,
        search_words(NEW.title), search_words(NEW.body)
    WHERE NEW.deleted_at IS NULL AND (NEW.title <> '' OR NEW.body <> '');
"""
SQLITE = [
    """
    CREATE VIRTUAL TABLE generated_item_words USING fts5(
        item_id, scope, title, body,
        tokenize = "porter unicode61 remove_diacritics 2 categories 'L* M* N* Co'", prefix = '2 3'
    )
    """,
    f'CREATE TRIGGER keep_item_words_insert AFTER INSERT ON generated_item BEGIN {_KEEP} END',
    f'CREATE TRIGGER keep_item_words_delete AFTER DELETE ON generated_item BEGIN {_FORGET} END',
    f"""
    CREATE TRIGGER keep_item_words_update AFTER UPDATE OF title, body, language, deleted_at ON generated_item
    BEGIN {_FORGET} {_KEEP} END
    """,
]


def create(_apps, schema_editor):
    """Everything in one transaction, or nothing: one that was killed in `fill` finds the table and goes on to fill it."""
    if 'generated_item_words' in schema_editor.connection.introspection.table_names():
        return
    statements = POSTGRES if schema_editor.connection.vendor == 'postgresql' else SQLITE
    with schema_editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def fill(apps, schema_editor):
    """Touch the items, some at a time: the triggers write their words."""
    items = apps.get_model('pipeline', 'GeneratedItem').everywhere.using(schema_editor.connection.alias)
    last = None
    while True:
        rest = items.order_by('pk') if last is None else items.filter(pk__gt=last).order_by('pk')
        keys = list(rest.values_list('pk', flat=True)[:AT_ONCE])
        if not keys:
            return
        last = keys[-1]
        with transaction.atomic(using=schema_editor.connection.alias):
            items.filter(pk__in=keys).exclude(title='', body='').update(title=F('title'))


class Migration(migrations.Migration):
    # Each batch is committed by itself, so that writers of a running service wait for none of the others.
    atomic = False

    # A checkout of before the first release called it so.
    replaces = [
        ('pipeline', '0010_item_words'),
    ]

    dependencies = [
        ('pipeline', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(create, migrations.RunPython.noop, atomic=True),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
