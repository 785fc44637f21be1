"""The command `tidings plan`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tidings.app.cli.app import AsJson, app
from tidings.app.cli.dataclass_options import takes


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of `tidings plan`."""

    subscriptions: Annotated[str, typer.Option(metavar="N", help="How many, such as 100M.")]
    subscribers: Annotated[str, typer.Option(metavar="N", help="How many, such as 10M.")]
    events: Annotated[str, typer.Option(metavar="N/s", help="Events per second, such as 5k/s.")]
    matches: Annotated[
        str, typer.Option(metavar="N", help="Subscribers that an event matches, on average.")
    ]
    policy: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="The policy of all subscribers, in TOML or JSON. Default: the default policy.",
        ),
    ] = None
    trigger: Annotated[str, typer.Option(metavar="TIME", help="The time between triggers.")] = "10s"
    calibration: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="A file with the measured costs: read if it exists, otherwise written.",
        ),
    ] = None
    as_json: AsJson = False


@app.command()
@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Estimate the cores, memory and disk of a pipeline on Spark.

    Runs the pipeline at five small sizes on this machine, for about two minutes, fits the costs of
    an event, a match, a subscriber and a trigger to the measurements, and extrapolates. The
    calibration uses the policy of the plan.

    For example:

        tidings plan --subscriptions 100M --subscribers 10M --events 5k/s --matches 200
    """
    from tidings.app.capacity_plan import plan_capacity, read_quantity
    from tidings.lab.capacity.model import Demand
    from tidings.lab.variants import read_policy_file
    from tidings.model.values import SECOND_US, parse_duration_us
    from tidings.policy import DEFAULT_POLICY

    demand = Demand(
        int(read_quantity(options.subscriptions)),
        int(read_quantity(options.subscribers)),
        read_quantity(options.events),
        read_quantity(options.matches),
        DEFAULT_POLICY if options.policy is None else read_policy_file(options.policy),
        parse_duration_us(options.trigger) / SECOND_US,
    )
    plan_capacity(demand, options.calibration, as_json=options.as_json)
