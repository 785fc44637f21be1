"""What survives: subscribers, subscriptions and their changes; notifications; what was refused.

`open_store` opens one, in an SQLite file or in PostgreSQL. `open_database` opens what others keep,
and `Growing` reads a table there.
"""

from tidings.errors import StoreError, VersionGone
from tidings.store.append_batch import Appended
from tidings.store.append_only_table import Column, Growing
from tidings.store.commit_horizon import Settled
from tidings.store.dead_letters import Letter
from tidings.store.notifications import Inbox
from tidings.store.open import Store, open_database, open_store
from tidings.store.protocol import Database, Session
from tidings.store.records import Entry

__all__ = [
    "Appended",
    "Column",
    "Database",
    "Entry",
    "Growing",
    "Inbox",
    "Letter",
    "Session",
    "Settled",
    "Store",
    "StoreError",
    "VersionGone",
    "open_database",
    "open_store",
]
