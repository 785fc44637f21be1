"""What survives: subscribers, subscriptions and their changes; notifications; what was refused.

`open_store` opens one, in an SQLite file or in PostgreSQL. `open_database` opens what others keep,
and `Growing` reads a table there.
"""

from tidings.errors import StoreError, VersionGone
from tidings.store.append import Appended
from tidings.store.entry import Entry
from tidings.store.growing import Column, Growing
from tidings.store.letters import Letter
from tidings.store.notifications import Inbox
from tidings.store.opening import Store, open_database, open_store
from tidings.store.protocol import Database, Session
from tidings.store.settled import Settled

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
