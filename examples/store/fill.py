"""Put the readers of examples/movies and what they want into a store: catalogue.db."""

from pathlib import Path

from tidings.formats.arrow_by_row import BadRecord
from tidings.formats.files import read_subscribers, read_subscriptions
from tidings.store import open_store

here = Path(__file__).parent
movies = here.with_name("movies")
people = read_subscribers(movies / "subscribers.jsonl")
wishes = read_subscriptions(movies / "subscriptions.jsonl")

with open_store(here / "catalogue.db") as store:
    for records in (people, wishes):
        store.catalogue.load(each for each in records if not isinstance(each, BadRecord))
