"""PREF Figures 10 to 15: how many events policies deliver, and their rank, diversity and age.

All figures come from the same runs: every policy over the same films in four orders.
"""

from collections.abc import Callable, Sequence
from itertools import product
from statistics import fmean
from typing import Final

from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Progress, span
from tidings.lab.papers.film_runs import (
    KINDS,
    SIGMAS,
    STEP,
    Kind,
    PolicyKey,
    PolicyOutcome,
    StreamParameters,
    StreamRuns,
    stream_runs,
)
from tidings.lab.svg import Panel, Series, chart
from tidings.lab.workloads.movies import ORDERS, Order

SLIGHTLY: Final = 1.25
"""The ratio up to which a number is slightly larger."""


def run(parameters: StreamParameters, seed: int, progress: Progress) -> Sequence[Exhibit]:
    """Run all policies, and return the figures."""
    runs = stream_runs(parameters, seed, progress)
    return [figure_10(runs), *average_ranks(runs), figure_14(runs), figure_15(runs)]


def rows_of(
    runs: StreamRuns, sigmas: Sequence[float], orders: Sequence[Order] = ORDERS
) -> DataTable:
    """Return the outcomes of some sigmas as a table."""
    rows = tuple(
        (order, *key, *outcome)
        for (order, key), outcome in runs.outcomes.items()
        if key.sigma in sigmas and order in orders
    )
    return DataTable(("order", *PolicyKey._fields, *PolicyOutcome._fields), rows)


def panels(
    runs: StreamRuns, y_label: str, sigma: float, value: Callable[[PolicyOutcome], float]
) -> list[Panel]:
    """Return a panel per kind of window, with a line per order and length."""
    return [
        Panel(
            f"({letter}) {kind}",
            "k",
            y_label,
            [
                Series(f"{order}, {length}", runs.parameters.ks, list(map(value, outcomes)))
                for order, length in product(ORDERS, runs.parameters.lengths)
                if (outcomes := runs.of(order, kind, length, sigma))
            ],
        )
        for letter, kind in zip("abc", KINDS, strict=True)
    ]


def figure_10(runs: StreamRuns) -> Exhibit:
    """Return the numbers of delivered events."""
    return Exhibit(
        "PREF",
        "Figure 10",
        "Delivered events, sigma = 1",
        rows_of(runs, (1.0,)),
        (
            periods_deliver_k(runs),
            periods_deliver_few(runs),
            *(larger_windows_deliver_less(runs, kind) for kind in ("sliding", "history")),
            *(best_last_delivers_most(runs, kind) for kind in ("sliding", "history")),
            *(random_delivers_least(runs, kind) for kind in ("sliding", "history")),
            diversity_leaves_periods(runs),
            diversity_delivers_more(runs),
        ),
        chart(panels(runs, "delivered events", 1.0, lambda outcome: outcome.delivered)),
    )


def periods_deliver_k(runs: StreamRuns) -> Claim:
    """Claim that periodic delivery does not depend on the order."""
    equal = all(
        len({runs.outcomes[order, key].delivered for order in ORDERS}) == 1
        for _, key in runs.outcomes
        if key.kind == "periodic" and key.sigma == 1
    )
    return Claim(
        "With periods, the number of delivered events does not depend on the order of publication.",
        "bounded by k in each period",
        "the same in all orders" if equal else "differs between orders",
        equal,
        "Some period has fewer than k events that match.",
    )


def periods_deliver_few(runs: StreamRuns) -> Claim:
    """Claim the shares that the paper reports."""
    shares = [
        outcome.delivered / runs.parameters.matching
        for (_, key), outcome in runs.outcomes.items()
        if key.kind == "periodic" and key.sigma == 1
    ]
    return Claim(
        "With periods, 2.2 % to 21.5 % of all matching events are delivered.",
        "2.2 % to 21.5 %",
        f"{min(shares):.1%} to {max(shares):.1%}",
        round(min(shares), 3) == 0.022 and round(max(shares), 3) == 0.215,
    )


def totals(runs: StreamRuns, kind: Kind, sigma: float = 1.0) -> dict[Order, dict[int, int]]:
    """Return the delivered events by order and length, summed over k."""
    return {
        order: {
            length: sum(outcome.delivered for outcome in runs.of(order, kind, length, sigma))
            for length in runs.parameters.lengths
        }
        for order in ORDERS
    }


def larger_windows_deliver_less(runs: StreamRuns, kind: Kind) -> Claim:
    """Claim that a larger window leads to fewer deliveries."""
    short, long = runs.parameters.lengths[0], runs.parameters.lengths[-1]
    by_order = totals(runs, kind)
    ratios = {order: by[long] / by[short] for order, by in by_order.items()}
    offered = runs.parameters.matching * len(runs.parameters.ks)
    return Claim(
        f"With {named(kind)}, a larger window delivers fewer events, unless all are delivered.",
        "fewer",
        f"w = {long} relative to {short}: {ratio_list(ratios)}",
        all(ratios[order] < 1 or by_order[order][long] == offered for order in ORDERS),
    )


def best_last_delivers_most(runs: StreamRuns, kind: Kind) -> Claim:
    """Claim that nothing is pruned if every new event is better."""
    delivered = {order: sum(by.values()) for order, by in totals(runs, kind).items()}
    return Claim(
        f"With {named(kind)}, best-last has the worst pruning.",
        "the most delivered events",
        shares_of(runs, delivered),
        max(delivered, key=delivered.__getitem__) == "best-last",
    )


def random_delivers_least(runs: StreamRuns, kind: Kind) -> Claim:
    """Claim that the random order prunes best."""
    delivered = {order: sum(by.values()) for order, by in totals(runs, kind).items()}
    return Claim(
        f"With {named(kind)}, the random order has the best pruning.",
        "the fewest delivered events",
        shares_of(runs, delivered),
        min(delivered, key=delivered.__getitem__) == "random",
        "In best-first order, the events that take the places of those that leave are the next "
        "best ones, one for one, which is the least possible; a random order also lets better "
        "ones in while old ones are still in the window.",
    )


def diversity_leaves_periods(runs: StreamRuns) -> Claim:
    """Claim that periods deliver as many events whatever sigma is."""
    equal = all(
        outcome.delivered == runs.outcomes[order, key._replace(sigma=1.0)].delivered
        for (order, key), outcome in runs.outcomes.items()
        if key.kind == "periodic"
    )
    return Claim(
        "With periods, diversity leaves the number of delivered events as it is.",
        "the total number remains the same",
        "the same for all sigmas" if equal else "differs between sigmas",
        equal,
    )


def diversity_delivers_more(runs: StreamRuns) -> Claim:
    """Claim that diversity makes sliding windows deliver slightly more (PREF Prop. 3)."""
    plain, diverse = (
        {order: sum(by.values()) for order, by in totals(runs, "sliding", sigma).items()}
        for sigma in (1.0, 0.5)
    )
    growth = sum(diverse.values()) / sum(plain.values())
    ratios = {order: diverse[order] / plain[order] for order in ORDERS}
    return Claim(
        "With sliding windows, diversity delivers slightly more events in all orders together: at "
        f"most {SLIGHTLY:g} times.",
        "slightly larger due to Proposition 3",
        f"sigma = 0.5 relative to 1: {growth:.2f} times; {ratio_list(ratios)}",
        1 < growth <= SLIGHTLY,
        "What is chosen together changes with every event, so that more get their turn.",
    )


def shares_of(runs: StreamRuns, delivered: dict[Order, int]) -> str:
    """Return the share of matching events that were delivered, by order."""
    offered = runs.parameters.matching * len(runs.parameters.ks) * len(runs.parameters.lengths)
    return ", ".join(f"{order} {count / offered:.1%}" for order, count in delivered.items())


def named(kind: Kind) -> str:
    """Return the policy in the words of the paper."""
    return {
        "periodic": "periods",
        "sliding": "sliding windows",
        "history": "history-based filtering",
    }[kind]


def ratio_list(ratios: dict[Order, float]) -> str:
    """Return ratios by order."""
    return ", ".join(f"{order} {ratio:.2f}" for order, ratio in ratios.items())


def average_ranks(runs: StreamRuns) -> list[Exhibit]:
    """Return Figures 11 to 13: average ranks for the three sigmas."""
    titles = {
        1.0: ("Figure 11", "Average rank of delivered events, sigma = 1 (no diversity)"),
        0.0: ("Figure 12", "Average rank of delivered events, sigma = 0 (no ranking)"),
        0.5: ("Figure 13", "Average rank of delivered events, sigma = 0.5"),
    }
    claims = {
        1.0: (ranks_are_above_all(runs), ranks_fall_with_k(runs, 1.0)),
        0.0: (
            ranks_fall_with_diversity(runs, 0.0),
            ranks_fall_with_k(runs, 0.0),
            ranks_fall_faster(runs, 0.0),
        ),
        0.5: (
            ranks_fall_with_diversity(runs, 0.5),
            ranks_lie_between(runs),
            ranks_fall_with_k(runs, 0.5),
            ranks_fall_faster(runs, 0.5),
        ),
    }
    return [
        Exhibit(
            "PREF", number, title, rows_of(runs, (sigma,)), claims[sigma], rank_chart(runs, sigma)
        )
        for sigma, (number, title) in titles.items()
    ]


def rank_chart(runs: StreamRuns, sigma: float) -> str:
    """Draw average ranks beside that of all matching events."""
    drawn = panels(runs, "average rank", sigma, lambda outcome: outcome.rank)
    ks = runs.parameters.ks
    every = Series("all matching", ks, [runs.mean_rank] * len(ks), dashed=True)
    with_all = [
        Panel(panel.title, panel.x_label, panel.y_label, [*panel.series, every]) for panel in drawn
    ]
    return chart(with_all)


def ranks(runs: StreamRuns, kind: Kind, sigma: float) -> list[float]:
    """Return the mean rank for each k, over orders and lengths."""
    columns = zip(
        *(
            runs.of(order, kind, length, sigma)
            for order in ORDERS
            for length in runs.parameters.lengths
        ),
        strict=True,
    )
    return [fmean(outcome.rank for outcome in column) for column in columns]


def ranks_are_above_all(runs: StreamRuns) -> Claim:
    """Claim that delivered events rank above the mean of all that match."""
    least = min(
        (outcome.rank, f"{order}, {key.name}")
        for (order, key), outcome in runs.outcomes.items()
        if key.sigma == 1
    )
    return Claim(
        "In all cases the average rank of delivered events is above that of all matching events.",
        "above 0.46",
        f"at least {least[0]:.3f} ({least[1]}); all matching events: {runs.mean_rank:.3f}",
        least[0] > runs.mean_rank,
        "In best-first order a few good events fill the lists early and for long. When they "
        "leave, only low-ranked events are left to take their places, and these are most of what "
        "is delivered.",
    )


def ranks_fall_with_k(runs: StreamRuns, sigma: float) -> Claim:
    """Claim that more events have a lower mean rank."""
    falls = {kind: ranks(runs, kind, sigma) for kind in KINDS}
    return Claim(
        "The average rank decreases from the smallest k to the largest.",
        "decreases",
        "; ".join(f"{kind} {values[0]:.3f} to {values[-1]:.3f}" for kind, values in falls.items()),
        all(values[-1] < values[0] for values in falls.values()),
        "Without any regard to rank, the choice from few or many events has about the rank of all "
        "that match."
        if sigma == 0
        else "",
    )


def ranks_fall_faster(runs: StreamRuns, sigma: float) -> Claim:
    """Claim that the average rank falls more with k if diversity counts."""
    falls = {
        kind: [before[0] - before[-1], after[0] - after[-1]]
        for kind in KINDS
        for before, after in [(ranks(runs, kind, 1.0), ranks(runs, kind, sigma))]
    }
    return Claim(
        f"With sigma = {sigma:g} the average rank decreases more with k than with sigma = 1.",
        "more evident when diversity is used",
        "; ".join(
            f"{kind} {-more:+.3f} instead of {-less:+.3f}" for kind, (less, more) in falls.items()
        ),
        all(more > less for less, more in falls.values()),
        "Without any regard to rank there is none to lose as k grows."
        if sigma == 0
        else "Where diversity has cost rank for small k already, less is left to lose.",
    )


def ranks_fall_with_diversity(runs: StreamRuns, sigma: float) -> Claim:
    """Claim that diversity costs rank."""
    losses = {
        kind: fmean(ranks(runs, kind, 1.0)) - fmean(ranks(runs, kind, sigma)) for kind in KINDS
    }
    return Claim(
        f"With sigma = {sigma:g} the average rank is lower than with sigma = 1.",
        "lower",
        ", ".join(f"{kind} {-loss:+.3f}" for kind, loss in losses.items()),
        min(losses.values()) > 0,
    )


def ranks_lie_between(runs: StreamRuns) -> Claim:
    """Claim that sigma trades rank for diversity."""
    means = {kind: [fmean(ranks(runs, kind, sigma)) for sigma in SIGMAS] for kind in KINDS}
    return Claim(
        "The average rank with sigma = 0.5 lies between those with sigma = 1 and sigma = 0.",
        "between",
        "; ".join(
            f"{kind} {', '.join(f'{mean:.3f}' for mean in values)}"
            for kind, values in means.items()
        ),
        all(values[0] >= values[1] >= values[2] for values in means.values()),
    )


def figure_14(runs: StreamRuns) -> Exhibit:
    """Return the diversity of lists, in random order."""
    drawn = [
        Panel(
            f"({letter}) {kind}",
            "k",
            "diversity",
            [
                Series(
                    f"sigma {sigma:g}, {length}",
                    runs.parameters.ks,
                    [outcome.diversity for outcome in runs.of("random", kind, length, sigma)],
                )
                for sigma, length in product(SIGMAS, runs.parameters.lengths)
            ],
        )
        for letter, kind in zip("abc", KINDS, strict=True)
    ]
    return Exhibit(
        "PREF",
        "Figure 14",
        "Average diversity, random order",
        rows_of(runs, SIGMAS, ("random",)),
        (diversity_grows(runs), diversity_grows_most_for_small_k(runs)),
        chart(drawn),
        f"Of periods, the events that were delivered together; of windows, the current k, after "
        f"every {STEP} publications.",
    )


def gains(runs: StreamRuns, sigma: float, k: int) -> list[float]:
    """Return the gain in diversity over sigma = 1, by kind and length."""
    return [
        runs.outcomes["random", PolicyKey(kind, length, k, sigma)].diversity
        - runs.outcomes["random", PolicyKey(kind, length, k, 1.0)].diversity
        for kind, length in product(KINDS, runs.parameters.lengths)
    ]


def diversity_grows(runs: StreamRuns) -> Claim:
    """Claim that diversification yields more diversity in all cases."""
    every = [
        gain for sigma in (0.5, 0.0) for k in runs.parameters.ks for gain in gains(runs, sigma, k)
    ]
    return Claim(
        "Results are more diverse with sigma = 0.5 and sigma = 0 than with sigma = 1.",
        "higher diversity",
        f"{min(every):+.3f} to {max(every):+.3f}",
        min(every) > 0,
    )


def diversity_grows_most_for_small_k(runs: StreamRuns) -> Claim:
    """Claim that the gain is larger for smaller k."""
    means = [
        fmean(gain for sigma in (0.5, 0.0) for gain in gains(runs, sigma, k))
        for k in runs.parameters.ks
    ]
    return Claim(
        "The increase of diversity is larger for the smallest k than for the largest.",
        "larger",
        f"{', '.join(f'{mean:+.3f}' for mean in means)} for k = "
        f"{', '.join(map(str, runs.parameters.ks))}",
        means[0] > means[-1],
    )


def figure_15(runs: StreamRuns) -> Exhibit:
    """Return the age of events at delivery, and the time that policies take."""
    table = rows_of(runs, (0.5,))
    spent = {(key.kind, key.length): value for key, value in runs.microseconds.items()}
    rows = tuple((*row, spent[row[1], row[2]]) for row in table.rows)  # type: ignore[index]
    return Exhibit(
        "PREF",
        "Figure 15",
        "Average freshness of delivered events, sigma = 0.5",
        DataTable((*table.columns, "us per event"), rows, ("us per event",)),
        (
            *(longer_is_later(runs, kind) for kind in ("periodic", "sliding")),
            periods_depend_on_order(runs),
            history_is_independent_of_order(runs),
            history_depends_on_length(runs),
        ),
        chart(
            panels(
                runs, "publications between\npublication and delivery", 0.5, lambda mean: mean.age
            )
        ),
        "Events are published at a constant rate, so that ages count publications. The paper "
        "measured milliseconds, which include the time of computing.",
    )


def ages(runs: StreamRuns, kind: Kind, length: int) -> dict[Order, float]:
    """Return the mean age by order, over all k."""
    return {
        order: fmean(outcome.age for outcome in runs.of(order, kind, length, 0.5))
        for order in ORDERS
    }


def longer_is_later(runs: StreamRuns, kind: Kind) -> Claim:
    """Claim that longer periods or windows deliver later."""
    short, long = (ages(runs, kind, length) for length in runs.parameters.lengths[:2])
    ratios = {order: long[order] / short[order] if short[order] else 1.0 for order in ORDERS}
    return Claim(
        f"With {named(kind)}, a larger length means larger delays.",
        "larger",
        f"the larger relative to the smaller: {ratio_list(ratios)}",
        min(ratios.values()) > 1,
        "In the burst order the longer window always holds a burst, so that an event either gets "
        "in soon or never. The shorter one is without a burst for a while, and what was published "
        "long before then gets in late.",
    )


def periods_depend_on_order(runs: StreamRuns) -> Claim:
    """Claim that in periods the order of publication influences freshness."""
    means = ages(runs, "periodic", runs.parameters.lengths[-1])
    return Claim(
        "With periods, the freshness depends on the order: events that are better towards the end "
        "of a period wait less (best-last less than best-first).",
        "depends on the order",
        ratio_list(means),
        means["best-last"] < means["best-first"],
    )


def history_is_independent_of_order(runs: StreamRuns) -> Claim:
    """Claim that in history-based filtering the order hardly influences freshness."""
    means = [
        age for length in runs.parameters.lengths for age in ages(runs, "history", length).values()
    ]
    return Claim(
        "With history-based filtering, the freshness does not depend much on the order.",
        "not much",
        f"ages of {span(means)} publications in all orders",
        max(means) - min(means) < 1,
    )


def history_depends_on_length(runs: StreamRuns) -> Claim:
    """Claim that in history-based filtering the length influences freshness."""
    short, long = (
        fmean(ages(runs, "history", length).values()) for length in runs.parameters.lengths[:2]
    )
    return Claim(
        "With history-based filtering, the freshness depends on the size of the window.",
        "influenced by the size of the window",
        f"ages of {short:.1f} and {long:.1f} publications",
        long != short,
        "An event is delivered when it is published or never, so that no publication comes "
        "between. The paper measured the time of computing, which is microseconds here: see the "
        "numbers.",
    )


EXPERIMENT: Final = Experiment(
    "pref-figures-10-15",
    "PREF",
    tuple(f"Figure {number}" for number in range(10, 16)),
    run,
    paper_parameters=StreamParameters(),
    laptop=StreamParameters(),
    quick=StreamParameters(80, 37, subscriptions=8, lengths=(20, 40), ks=(2, 4)),
)
