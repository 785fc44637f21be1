"""What a run needs: the people of a config that can be served, and the folder to write to."""

from dataclasses import dataclass

from tidings.app.check import Problem
from tidings.app.check.config_people import enrolled, read_people
from tidings.app.config import Config, check_engine
from tidings.app.run.output_folder import Folder
from tidings.errors import InvalidForm
from tidings.model.records import Subscription
from tidings.policy import Subscriber


@dataclass(frozen=True)
class Plan:
    """A config with its subscribers and subscriptions read, and its folder."""

    config: Config
    subscribers: list[Subscriber]
    subscriptions: list[Subscription]
    refused: list[Problem]
    folder: Folder


def read_plan(config: Config) -> Plan:
    """Read what a config names; nothing is written yet."""
    check_engine(config)
    found = read_people(config)
    refused = [problem for problem in found.problems if problem.refused]
    if not found.subscriptions:
        raise InvalidForm(
            f"no subscription in {config.subscriptions} can be used; "
            f"`tidings check {config.path}` says why"
        )
    people = enrolled(config, found)
    return Plan(config, people, found.subscriptions, refused, Folder(config))


def make_plan(config: Config, *, fresh: bool = False) -> Plan:
    """Read what a config names, and make its folder ready.

    What is refused is written apart, and stops nothing else.
    """
    plan = read_plan(config)
    plan.folder.begin(fresh=fresh)
    plan.folder.write_refused(plan.refused)
    return plan
