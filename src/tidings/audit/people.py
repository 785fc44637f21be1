"""Who a config serves: its subscriptions, and the subscribers that own them."""

from tidings.audit.records import Audit
from tidings.config import Config
from tidings.policy import Subscriber


def read_people(config: Config) -> Audit:
    """Read the subscribers and subscriptions of a config; bad ones, and those of nobody, apart."""
    found = Audit()
    if config.subscribers is not None:
        found.read(config.subscribers, "subscribers")
    found.read(config.subscriptions, "subscriptions")
    where = f"{config.subscribers} or [policies] of {config.path}"
    found.refuse_orphans(lambda owner: config.policy(owner) is not None, where)
    return found


def enrolled(config: Config, found: Audit) -> list[Subscriber]:
    """Give the subscribers of the file, then the other owners with their policies of the config."""
    listed = found.subscribers
    known = {each.id for each in listed}
    owners = dict.fromkeys(each.subscriber for each in found.subscriptions)
    policies = {name: config.policy(name) for name in owners if name not in known}
    return listed + [Subscriber(name, each) for name, each in policies.items() if each is not None]
