"""What survives: subscribers, subscriptions and their changes; notifications; what was refused.

`open_store` opens one, in an SQLite file or in PostgreSQL.
"""

from tidings.errors import StoreError, VersionGone
from tidings.store.append import Appended
from tidings.store.entry import Entry
from tidings.store.letters import Letter
from tidings.store.notifications import Inbox
from tidings.store.opening import Store, open_store
from tidings.store.protocol import Database, Session

__all__ = [
    "Appended",
    "Database",
    "Entry",
    "Inbox",
    "Letter",
    "Session",
    "Store",
    "StoreError",
    "VersionGone",
    "open_store",
]
