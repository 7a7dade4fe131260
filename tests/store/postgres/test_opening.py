"""URLs, rights, versions: what stands against opening a store, said plainly and without a password."""

from __future__ import annotations

import traceback
from typing import Any, LiteralString, cast
from urllib.parse import urlsplit

import psycopg
import pytest

import keepstep
from keepstep.errors import BadInput, CannotOpen, NewerFormat, NotAStore, ReadOnly, WrongUse
from keepstep.store.conformance.bench import in_threads
from keepstep.store.postgres import PostgresStore, lines, schema
from keepstep.store.postgres.place import place_of
from keepstep.store.postgres.port import Step
from tests.postgres_server import SCHEMAS, server_url, with_schema
from tests.store.postgres.growing import Tables, done, opened

SECRET = "s3cret/word"


@pytest.fixture
def admin():
    """A session that may do everything."""
    with psycopg.connect(server_url(), autocommit=True) as connection:
        yield lambda statement: connection.execute(cast("LiteralString", statement))


@pytest.fixture
def bare():
    """The name of a schema that is not there."""
    name = f"bare_{SCHEMAS.take()}"
    yield name
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(cast("LiteralString", f'DROP SCHEMA IF EXISTS "{name}" CASCADE'))


@pytest.fixture
def role(admin):
    """A role that may nothing yet."""
    name = "needs_password"
    admin(f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    yield name
    admin(f"DROP OWNED BY {name} CASCADE")
    admin(f"DROP ROLE {name}")


def as_role(role: str, schema: str, password: str = SECRET) -> str:
    parts = urlsplit(server_url())
    return (
        f"postgresql://{role}:{password.replace('/', '%2F')}@{parts.hostname}:{parts.port}{parts.path}?schema={schema}"
    )


def refusal(kind: type[Exception], url: str, **how: Any) -> str:
    """What is said; whatever it is, no password is in it, nor in what it comes from."""
    with pytest.raises(kind) as caught:
        keepstep.open(url, **how)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# --- URLs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada@host/db", "postgresql://ada@host/db"),
        ("postgres://ada@host:5433/db?schema=other", "postgresql://ada@host:5433/db?schema=other"),
        ("postgresql://ada:pw@host/db?sslmode=require&timeout=5", "postgresql://ada@host/db?sslmode=require&timeout=5"),
        ("postgresql://host/db?password=pw&user=ada", "postgresql://ada@host/db"),
        ("postgresql://a:5432,b:5433/db", "postgresql://a:5432,b:5433/db"),
        ("postgresql:///db?host=/tmp", "postgresql:///db?host=%2Ftmp"),
        ("postgresql://[::1]:5433/db", "postgresql://[::1]:5433/db"),
        ("postgresql://o%27hara:p%40ss@host/my%20db", "postgresql://o%27hara@host/my%20db"),
    ],
)
def test_a_url_is_shown_without_its_password_and_leads_to_the_same_place(url, shown):
    place = place_of(url)

    assert place.url == shown
    assert "pw" not in repr(place)
    again = place_of(place.url)
    assert (again.url, again.schema, again.answer_seconds) == (place.url, place.schema, place.answer_seconds)


def test_the_url_of_a_store_opens_it_again(postgres_url):
    with keepstep.open(postgres_url) as store:
        store.save("r", {"n": 1}, workflow="w")
        with keepstep.open(store.url) as again:
            assert again.load("r").state == {"n": 1}


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ("shema=x", "no option 'shema'"),
        ("schema=Big", "schema="),
        ("schema=a%22b", "schema="),
        ("schema=pg_x", "schema="),
        ("schema=", "schema="),
        ("pooler=pgbouncer", "pooler="),
        ("timeout=soon", "timeout="),
        ("timeout=0", "timeout="),
        ("schema=a&schema=b", "twice"),
    ],
)
def test_what_no_url_has_is_refused_by_name(options, hint):
    assert hint in refusal(BadInput, f"postgresql://ada:{SECRET.replace('/', '%2F')}@host/db?{options}")


@pytest.mark.parametrize("url", ["postgresql:db", "postgresql://[::1/db"])
def test_what_is_no_url_is_refused(url):
    assert "postgresql://USER@HOST/DATABASE" in refusal(CannotOpen, url)


def test_two_schemas_of_a_database_are_two_stores(bare, postgres_url):
    with keepstep.open(postgres_url) as one, keepstep.open(with_schema(server_url(), bare)) as two:
        one.save("r", {"n": 1}, workflow="w")
        assert two.load("r") is None


# --- the server ------------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_said_to_be_so():
    said = refusal(CannotOpen, f"postgresql://ada:{SECRET.replace('/', '%2F')}@127.0.0.1:1/db")
    assert "127.0.0.1:1" in said
    assert "Check the URL" in said


def test_a_wrong_password_is_said_to_be_wrong(role, bare):
    assert "password authentication failed" in refusal(CannotOpen, as_role(role, bare, "wrong"))


def test_a_database_that_is_not_there_is_said_to_be_so():
    assert "does not exist" in refusal(CannotOpen, server_url().rpartition("/")[0] + "/nowhere")


def test_a_server_that_is_too_old_is_refused(bare, monkeypatch):
    monkeypatch.setattr(lines, "SERVER_VERSION", 990_000)
    assert "needs 99 or later" in refusal(CannotOpen, with_schema(server_url(), bare))


# --- rights ----------------------------------------------------------------------------------------------------------


def test_a_role_that_may_not_create_is_told_what_it_lacks(role, bare):
    said = refusal(CannotOpen, as_role(role, bare))
    assert "GRANT CREATE ON DATABASE" in said
    assert f'CREATE SCHEMA "{bare}" AUTHORIZATION' in said


def test_a_role_creates_its_store_in_a_schema_of_its_own(role, bare, admin):
    admin(f'CREATE SCHEMA "{bare}" AUTHORIZATION {role}')
    with keepstep.open(as_role(role, bare)) as store:
        store.save("r", {"n": 1}, workflow="w")
        assert SECRET not in store.url


def test_a_role_with_the_least_rights_does_everything_but_create(role, bare, admin):
    keepstep.open(with_schema(server_url(), bare)).close()
    assert "lacks rights" in refusal(CannotOpen, as_role(role, bare))

    for statement in LEAST_RIGHTS:
        admin(statement.format(schema=f'"{bare}"', role=role))

    with keepstep.open(as_role(role, bare)) as store:
        with store.run("r", "w") as run:
            run.save({"n": 1}, label="a")
            run.finish("done")
        store.tag("r", customer="ada")
        assert store.changes is not None
        store.delete("r")


LEAST_RIGHTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
)


def test_a_role_that_only_reads_may_open_a_store_for_reading(role, bare, admin):
    with keepstep.open(with_schema(server_url(), bare)) as store:
        store.save("r", {"n": 1}, workflow="w")
    admin(f'GRANT USAGE ON SCHEMA "{bare}" TO {role}')
    admin(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{bare}" TO {role}')
    admin(f'GRANT SELECT ON ALL SEQUENCES IN SCHEMA "{bare}" TO {role}')

    with keepstep.open(as_role(role, bare), read_only=True) as reader:
        assert reader.load("r").state == {"n": 1}
    with keepstep.open(as_role(role, bare)) as store, pytest.raises(ReadOnly, match="may not do that"):
        store.save("r", {"n": 2})


# --- what is there ---------------------------------------------------------------------------------------------------


def test_opening_for_reading_creates_nothing(bare, admin):
    assert "only writers create one" in refusal(CannotOpen, with_schema(server_url(), bare), read_only=True)
    assert admin(f"SELECT to_regnamespace('{bare}') IS NULL").fetchone() == (True,)


def test_two_who_create_one_store_at_once_both_succeed(bare):
    def create():
        store = opened(with_schema(server_url(), bare))
        found = done(store.size(None)).runs
        done(store.close())
        return found

    assert in_threads([create] * 6) == [0] * 6


def test_a_store_of_a_newer_version_is_only_read(postgres_url):
    done(opened(postgres_url).close())
    with Tables(postgres_url) as tables:
        tables.do("UPDATE {}.meta SET value = '99'")
    try:
        assert "format 99" in refusal(NewerFormat, postgres_url)
        with keepstep.open(postgres_url, read_only=True) as reader:
            assert reader.runs().items == []
    finally:
        with Tables(postgres_url) as tables:
            tables.do("UPDATE {}.meta SET value = %s", str(schema.FORMAT))


def test_an_older_store_is_brought_up_to_date(bare, monkeypatch):
    class Next(lines.Statements):
        def schema_step(self, number: int) -> list[str]:
            return super().schema_step(1) if number == 1 else [self._filled("CREATE TABLE {schema}.more (n int)")]

    url = with_schema(server_url(), bare)
    with keepstep.open(url) as store:
        store.save("r", {"n": 1}, workflow="w")
    monkeypatch.setattr(schema, "FORMAT", 2)
    monkeypatch.setattr("keepstep.store.postgres.store.Statements", Next)

    assert "older format 1" in refusal(CannotOpen, url, read_only=True)
    with keepstep.open(url) as store:
        assert store.load("r").state == {"n": 1}
    with Tables(url) as tables:
        assert tables.do("SELECT value FROM {}.meta") == [("2",)]
        assert tables.do("SELECT count(*) FROM {}.more") == [(0,)]


def test_a_schema_that_holds_other_tables_is_left_alone(bare, admin):
    admin(f'CREATE SCHEMA "{bare}"')
    admin(f'CREATE TABLE "{bare}".runs (mine int)')

    assert "?schema=NAME" in refusal(NotAStore, with_schema(server_url(), bare))
    assert admin(f'SELECT count(*) FROM "{bare}".runs').fetchone() == (0,)


def test_a_backup_is_the_databases_business(postgres_url):
    with keepstep.open(postgres_url) as store, pytest.raises(WrongUse, match="pg_dump"):
        store.backup("copy")


# --- connections -----------------------------------------------------------------------------------------------------


def test_commits_wait_for_the_disk_whatever_is_usual_at_the_server(postgres_url, admin):
    admin("ALTER ROLE postgres SET synchronous_commit = off")
    try:
        store = opened(postgres_url)
        [[(is_on,)]] = done(store._lines.read(Step("SHOW synchronous_commit")))
        done(store.close())
        by_pooler = opened(f"{postgres_url}&pooler=transaction")
        line = by_pooler._lines.writer
        done(by_pooler._locked(line, ["r"]))
        [[(is_local,)]] = done(line.send([Step("SHOW synchronous_commit")], within=True))
        done(by_pooler.close())
    finally:
        admin("ALTER ROLE postgres RESET synchronous_commit")
    assert is_on == is_local == "on"


def test_a_pooler_finds_nothing_left_in_a_session(postgres_url):
    store = PostgresStore(f"{postgres_url}&pooler=transaction")
    done(store.open())
    done(store.enlist("ann", 30))
    done(store.changes(None, 0))
    questions = "SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels())"
    for line in (store._lines.writer, store._lines.heart, store._lines.watch):
        assert done(line.send([Step(questions)])) == [[(0, 0)]]
        [[(limit,)]] = done(line.send([Step("SHOW idle_in_transaction_session_timeout")]))
        assert limit == "0"
    done(store.close())


def test_a_closed_store_keeps_no_connection(postgres_url, admin):
    name = "keepstep counted"
    store = opened(f"{postgres_url}&application_name={name.replace(' ', '%20')}")
    done(store.size(None))
    done(store.close())
    count = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"
    for _ in range(1000):
        if admin(count).fetchone() == (0,):
            return
        admin("SELECT pg_sleep(0.02)")
    raise AssertionError("its connections are still there")
