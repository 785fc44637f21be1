"""The experiments by name, in the order of the report."""

from typing import Any, Final

from tidings.lab.papers import (
    pref_figures_10_15,
    pref_table_1,
    pref_table_2,
    rps_figure_6,
    rps_figure_9,
    rps_figures_7_8,
    rps_table_2,
    tks_figure_7_5,
    tks_figure_7_6,
    tks_figure_7_7,
    tks_figure_7_9,
    tks_figure_7_10,
    tks_figure_7_12,
    tks_table_5_10,
    tks_table_7_7,
    tks_table_7_10,
    tks_table_7_11,
)
from tidings.lab.papers.experiment import Experiment

EXPERIMENTS: Final[dict[str, Experiment[Any]]] = {
    experiment.name: experiment
    for experiment in (
        rps_table_2.EXPERIMENT,
        rps_figure_6.EXPERIMENT,
        rps_figures_7_8.EXPERIMENT,
        rps_figure_9.EXPERIMENT,
        pref_table_1.EXPERIMENT,
        pref_table_2.EXPERIMENT,
        pref_figures_10_15.EXPERIMENT,
        tks_table_5_10.EXPERIMENT,
        tks_table_7_7.EXPERIMENT,
        tks_table_7_10.EXPERIMENT,
        tks_table_7_11.EXPERIMENT,
        tks_figure_7_5.EXPERIMENT,
        tks_figure_7_6.EXPERIMENT,
        tks_figure_7_7.EXPERIMENT,
        tks_figure_7_9.EXPERIMENT,
        tks_figure_7_10.EXPERIMENT,
        tks_figure_7_12.EXPERIMENT,
    )
}
