"""The experiments by name, in the order of the report."""

from typing import Any, Final

from tidings.lab.papers import (
    rps_table_2,
    tks_table_7_7,
    tks_table_7_10,
)
from tidings.lab.papers.experiment import Experiment

EXPERIMENTS: Final[dict[str, Experiment[Any]]] = {
    experiment.name: experiment
    for experiment in (
        rps_table_2.EXPERIMENT,
        tks_table_7_7.EXPERIMENT,
        tks_table_7_10.EXPERIMENT,
    )
}
