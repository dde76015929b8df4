"""The tables of records in PostgreSQL, version by version. Each step is run once, under a lock, in one transaction."""

from __future__ import annotations

from typing import Final, LiteralString

SCHEMA_LOCK: Final = 0x504D5243_00000001
"""`PMRC` and a number: advisory locks are told apart by numbers alone."""

FIND_TABLES: Final = "SELECT 1 FROM pg_class WHERE relname = 'pointsman_meta' AND pg_table_is_visible(oid)"
READ_VERSION: Final = "SELECT version FROM pointsman_meta"

# Identifiers compare by their bytes, whatever the database's language is: their order is that of time.
_FIRST: Final = """
CREATE TABLE pointsman_meta (
    version INTEGER NOT NULL, pruned DOUBLE PRECISION NOT NULL, sized DOUBLE PRECISION NOT NULL
);
INSERT INTO pointsman_meta VALUES (0, 0, 0);
CREATE TABLE pointsman_bases (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL UNIQUE,
    body BYTEA NOT NULL
);
CREATE TABLE pointsman_records (
    record TEXT COLLATE "C" PRIMARY KEY,
    decision TEXT NOT NULL,
    model TEXT,
    basis BIGINT NOT NULL,
    size BIGINT NOT NULL,
    body BYTEA NOT NULL
);
CREATE INDEX pointsman_records_by_decision ON pointsman_records (decision, record);
CREATE INDEX pointsman_records_by_model ON pointsman_records (model, record);
CREATE INDEX pointsman_records_by_basis ON pointsman_records (basis);
CREATE INDEX pointsman_records_by_size ON pointsman_records (record) INCLUDE (size);
CREATE TABLE pointsman_contents (
    record TEXT COLLATE "C" PRIMARY KEY,
    why TEXT NOT NULL,
    size BIGINT NOT NULL,
    body BYTEA
);
CREATE TABLE pointsman_shadows (
    record TEXT COLLATE "C" PRIMARY KEY,
    differs BOOLEAN NOT NULL,
    body BYTEA NOT NULL
);
"""

_SECOND: Final = """
CREATE TABLE pointsman_answers (record TEXT COLLATE "C" PRIMARY KEY, body BYTEA NOT NULL);
"""

MIGRATIONS: Final[tuple[LiteralString, ...]] = (_FIRST, _SECOND)
"""Step n leads from version n to n + 1."""

SCHEMA_VERSION: Final = len(MIGRATIONS)
