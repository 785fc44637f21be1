"""Durable storage: publications, the catalogue and its history, notifications, dead letters.

`open_store` opens a store in an SQLite file or in PostgreSQL. `open_database` opens a database of
another application, from which `AppendOnlyTable` reads a table.
"""

from tidings.errors import StoreError, VersionGone
from tidings.store.append_batch import AppendResult
from tidings.store.append_only_table import AppendOnlyTable, CommitHorizon, TableColumn
from tidings.store.dead_letters import StoredLetter
from tidings.store.engine_log import EngineStep
from tidings.store.notifications import Inbox
from tidings.store.open import Store, open_database, open_store
from tidings.store.protocol import ChangeWatch, Database, Session
from tidings.store.publications import NewPublication
from tidings.store.records import CatalogueEntry
from tidings.store.spool import NumberedMessage, Spool, SpoolEntry
from tidings.store.tokens import Token

__all__ = [
    "AppendOnlyTable",
    "AppendResult",
    "CatalogueEntry",
    "ChangeWatch",
    "CommitHorizon",
    "Database",
    "EngineStep",
    "Inbox",
    "NewPublication",
    "NumberedMessage",
    "Session",
    "Spool",
    "SpoolEntry",
    "Store",
    "StoreError",
    "StoredLetter",
    "TableColumn",
    "Token",
    "VersionGone",
    "open_database",
    "open_store",
]
