"""Durable storage: the catalogue and its history, notifications, late events and dead letters.

`open_store` opens a store in an SQLite file or in PostgreSQL. `open_database` opens a database of
another application, from which `AppendOnlyTable` reads a table.
"""

from tidings.errors import StoreError, VersionGone
from tidings.store.append_batch import AppendResult
from tidings.store.append_only_table import AppendOnlyTable, TableColumn
from tidings.store.commit_horizon import CommitHorizon
from tidings.store.dead_letters import StoredLetter
from tidings.store.notifications import Inbox
from tidings.store.open import Store, open_database, open_store
from tidings.store.protocol import Database, Session
from tidings.store.records import CatalogueEntry

__all__ = [
    "AppendOnlyTable",
    "AppendResult",
    "CatalogueEntry",
    "CommitHorizon",
    "Database",
    "Inbox",
    "Session",
    "Store",
    "StoreError",
    "StoredLetter",
    "TableColumn",
    "VersionGone",
    "open_database",
    "open_store",
]
