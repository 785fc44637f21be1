"""Who is subscribed at a version, and by what policy."""

from collections.abc import Sequence

from tidings.index_files.subscriber_bundle import Member
from tidings.index_files.subscriber_table import People
from tidings.model import named_parts
from tidings.policy import Policy


class Roll:
    """The people of a base, and what became of some of them since."""

    def __init__(self, people: People, others: Sequence[Member] = ()) -> None:
        self.people = people
        self.changed: dict[str, Policy | None] = {}
        self.apply(others)

    def apply(self, changed: Sequence[Member]) -> None:
        """Put members in the places of those that have their names."""
        for each in changed:
            self.changed[each.name] = each.subscriber.policy if each.subscriber else None

    def policy(self, name: str) -> Policy | None:
        """Give the policy of a subscriber; None if there is no such subscriber."""
        return self.changed[name] if name in self.changed else self.people.policy(name)


def needs_attributes(policy: Policy) -> bool:
    """Tell whether a policy compares events with each other, and so needs more than their ids."""
    if policy.diversify.name != "none" or policy.window.name == "history":
        return True
    return not (
        named_parts.is_registered(policy.diversify) and named_parts.is_registered(policy.window)
    )
