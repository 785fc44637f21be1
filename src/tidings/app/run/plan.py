"""The inputs of a run: the valid subscribers and subscriptions of a config, and its folder."""

from dataclasses import dataclass

from tidings.app.check import Problem, audit_config
from tidings.app.config import Config, check_engine
from tidings.app.run.output_folder import OutputFolder
from tidings.errors import InvalidForm
from tidings.formats.messages import MessageSource
from tidings.model.records import Subscription
from tidings.policy import Subscriber
from tidings.sources.registry import check_options


@dataclass(frozen=True)
class RunPlan:
    """A config with its subscribers and subscriptions loaded, and its output folder."""

    config: Config
    subscribers: list[Subscriber]
    subscriptions: list[Subscription]
    refused: list[Problem]
    folder: OutputFolder


def read_plan(config: Config) -> RunPlan:
    """Read the files that a config names, without writing anything."""
    check_engine(config)
    if isinstance(config.source, MessageSource):
        check_options(config.source.format, config.source.options)
    audit = audit_config(config)
    if not audit.subscriptions:
        raise InvalidForm(
            f"{config.subscriptions} holds no valid subscription; "
            f"`tidings check {config.path}` lists the problems"
        )
    return RunPlan(
        config,
        audit.with_owners(config.policy),
        audit.subscriptions,
        [problem for problem in audit.problems if problem.refused],
        OutputFolder(config),
    )


def make_plan(config: Config, *, fresh: bool = False) -> RunPlan:
    """Read the files that a config names, and prepare its output folder.

    Refused records are written there, and the run continues without them.
    """
    plan = read_plan(config)
    plan.folder.begin(fresh=fresh)
    plan.folder.write_refused(plan.refused)
    return plan
