"""Write the subscribers and subscriptions of examples/movies to a store: catalogue.db."""

from pathlib import Path

from tidings.formats.files import read_subscribers, read_subscriptions
from tidings.model.dead_letter import BadRecord
from tidings.store import open_store

here = Path(__file__).parent
movies = here.with_name("movies")
subscribers = read_subscribers(movies / "subscribers.jsonl")
subscriptions = read_subscriptions(movies / "subscriptions.jsonl")

with open_store(here / "catalogue.db") as store:
    for records in (subscribers, subscriptions):
        store.catalogue.load(record for record in records if not isinstance(record, BadRecord))
