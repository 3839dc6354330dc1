"""Databases for tests: copies of a template, and one that is emptied after each test."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg import Connection, sql
from psycopg.errors import UndefinedTable

from backend.embedded.postgres import PostgresServer

_SCHEMA = """
    SELECT array_agg((oid, relfilenode, relkind, relname, relnatts, relchecks, relhastriggers) ORDER BY oid)::text,
        (SELECT array_agg(version_num)::text FROM alembic_version)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'S'
"""
_TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
"""
_SEQUENCES = """
    SELECT json_agg(json_build_object('at', seqrelid, 'last', coalesce(pg_sequence_last_value(seqrelid), seqstart),
        'is_called', pg_sequence_last_value(seqrelid) IS NOT NULL))::text FROM pg_sequence
"""
_SET_SEQUENCES = """
    SELECT setval(at, last, is_called)
    FROM json_to_recordset(%s) AS sequence(at regclass, last bigint, is_called boolean)
"""
_CLOSE_OTHERS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@contextmanager
def fresh_database(server: PostgresServer, template: str) -> Iterator[str]:
    """SQLAlchemy URL of a copy, which is dropped afterwards."""
    name = _copy(server, template)
    yield server.url_of(name)
    _drop(server, name)


class KeptDatabase:
    """One that a test after the other uses. To copy its files for each takes 70 ms, to delete rows takes 5."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server, self._template = server, template
        self._begin()

    @property
    def url(self) -> str:
        """SQLAlchemy's."""
        return self._server.url_of(self._name)

    def empty(self) -> None:
        """Begin anew: with the template's rows alone, or with another copy where its schema was changed."""
        with self._connected() as connection:
            connection.execute(_CLOSE_OTHERS)
            if is_same := _schema(connection) == self._schema:
                self._restore(connection)
        if not is_same:
            self.drop()
            self._begin()

    def drop(self) -> None:
        """For good."""
        _drop(self._server, self._name)

    def _begin(self) -> None:
        self._name = _copy(self._server, self._template)
        with self._connected() as connection:
            self._schema = _schema(connection)
            self._tables = [name for (name,) in connection.execute(_TABLES)]
            (self._sequences,) = connection.execute(_SEQUENCES).fetchone() or ("",)
            self._first_rows = {table: _rows(connection, table) for table in self._used(connection)}

    def _restore(self, connection: Connection) -> None:
        # No trigger runs: neither those of foreign keys nor those that protect the audit log.
        connection.execute("SET session_replication_role = replica")
        for table in self._used(connection):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for table, rows in self._first_rows.items():
            with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
                copy.write(rows)
        connection.execute(_SET_SEQUENCES, [self._sequences])

    def _used(self, connection: Connection) -> list[str]:
        """Tables with rows."""
        is_used = sql.SQL("SELECT {} WHERE EXISTS (SELECT 1 FROM {})")
        queries = [is_used.format(table, sql.Identifier(table)) for table in self._tables]
        return [name for (name,) in connection.execute(sql.SQL(" UNION ALL ").join(queries))]

    def _connected(self) -> Connection:
        return psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True)


def _schema(connection: Connection) -> object:
    """Equal where nothing but rows was changed."""
    try:
        return connection.execute(_SCHEMA).fetchone()
    except UndefinedTable:
        return None


def _rows(connection: Connection, table: str) -> bytes:
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy:
        return b"".join(bytes(block) for block in copy)


def _copy(server: PostgresServer, template: str) -> str:
    name = f"test_{uuid4().hex}"
    # Copying files takes half as long as writing a small database into the log.
    copied = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    _execute(server, copied.format(sql.Identifier(name), sql.Identifier(template)))
    return name


def _drop(server: PostgresServer, name: str) -> None:
    _execute(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _execute(server: PostgresServer, statement: sql.Composed) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(statement)
