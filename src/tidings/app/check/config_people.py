"""Who a config serves: its subscriptions, and the subscribers that own them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tidings.app.check.record_audit import Audit
from tidings.app.config import Address, Config
from tidings.errors import TidingsError
from tidings.formats.arrow_by_row import BadRecord
from tidings.model.limits import Limits
from tidings.policy import Subscriber
from tidings.store import CatalogueEntry, open_store
from tidings.store.records import Record


def read_people(config: Config) -> Audit:
    """Read the subscribers and subscriptions of a config; bad ones, and those of nobody, apart."""
    found = Audit(config.limits)
    if isinstance(config.subscriptions, Address):
        _read_store(config.subscriptions, found, config.limits)
    else:
        if config.subscribers is not None:
            found.read(config.subscribers, "subscribers")
        found.read(config.subscriptions, "subscriptions")
    where = f"{config.listed} or [policies] of {config.path}"
    found.refuse_orphans(lambda owner: config.policy(owner) is not None, where)
    return found


def _read_store(address: Address, found: Audit, limits: Limits) -> None:
    """Read all of one version of a store."""
    kinds: dict[str, list[CatalogueEntry]] = {"subscriber": [], "subscription": []}
    with open_store(address.url) as store:
        for entry in store.history.as_of():
            kinds[entry.kind].append(entry)
    for kind, entries in kinds.items():
        found.read(Path(address.shown), f"{kind}s", _records(entries, limits))


def _records(entries: Iterable[CatalogueEntry], limits: Limits) -> Iterator[Record | BadRecord]:
    for number, entry in enumerate(entries, start=1):
        try:
            record = entry.load(limits)
        except TidingsError as error:
            yield BadRecord(entry.form or {}, str(error), number)
        else:
            if record is not None:
                yield record


def enrolled(config: Config, found: Audit) -> list[Subscriber]:
    """Give the subscribers that are listed, then other owners with their policies of the config."""
    listed = found.subscribers
    known = {each.id for each in listed}
    owners = dict.fromkeys(each.subscriber for each in found.subscriptions)
    policies = {name: config.policy(name) for name in owners if name not in known}
    return listed + [Subscriber(name, each) for name, each in policies.items() if each is not None]
