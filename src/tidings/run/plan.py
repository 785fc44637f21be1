"""What a run needs: the people of a config that can be served, and the folder to write to."""

from dataclasses import dataclass

from tidings.audit import Problem
from tidings.audit.people import enrolled, read_people
from tidings.config import Config
from tidings.errors import InvalidForm
from tidings.model import Subscription
from tidings.policy import Subscriber
from tidings.run.folder import Folder


@dataclass(frozen=True)
class Plan:
    """A config with its subscribers and subscriptions read, and its folder open."""

    config: Config
    subscribers: list[Subscriber]
    subscriptions: list[Subscription]
    refused: list[Problem]
    folder: Folder


def make_plan(config: Config, *, fresh: bool = False) -> Plan:
    """Read what a config names; what is refused is written apart, and stops nothing else."""
    found = read_people(config)
    refused = [problem for problem in found.problems if problem.refused]
    if not found.subscriptions:
        raise InvalidForm(
            f"no subscription in {config.subscriptions} can be used; "
            f"`tidings check {config.path}` says why"
        )
    folder = Folder(config, fresh=fresh)
    folder.write_refused(refused)
    return Plan(config, enrolled(config, found), found.subscriptions, refused, folder)
