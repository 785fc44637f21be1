"""The result of a comparison: tables of figures, deliveries, and how much policies agree."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidings.engine.quality import Distances, QualitySums, Report, RunningMean
from tidings.formats.markup import fragment
from tidings.lab.examples import Example, find_examples
from tidings.lab.recording import Recording
from tidings.lab.replay import DELIVERED, SUMS, PartTables
from tidings.lab.report import report_page, summary_table
from tidings.lab.variants import Variant
from tidings.model.values import SECOND_US

if TYPE_CHECKING:
    import pandas as pd

FIGURES: Final = (
    "matches",
    "delivered",
    "share",
    "mean_rank",
    "mean_score",
    "mean_match_score",
    "diversity",
    "mean_age_s",
    "coverage",
)
_COUNTS: Final = ("matches", "delivered", "receivers", "held", "released", "dropped")
SUMMARY: Final = pa.schema(
    {"policy": pa.string()}
    | {name: pa.float64() for name in FIGURES}
    | {name: pa.int64() for name in _COUNTS}
)
SUBSCRIBERS: Final = pa.schema(
    {"policy": pa.string(), "subscriber": pa.string()}
    | {name: pa.float64() for name in FIGURES}
    | {name: pa.int64() for name in ("matches", "delivered")}
)
OVERLAP: Final = pa.schema(
    {
        "first": pa.string(),
        "second": pa.string(),
        "common": pa.int64(),
        "either": pa.int64(),
        "jaccard": pa.float64(),
        "share_of_first": pa.float64(),
        "share_of_second": pa.float64(),
    }
)


@dataclass(frozen=True)
class Comparison:
    """The deliveries that several policies would have made from one recording.

    `summary` has a row per policy, `subscribers` one per policy and subscriber, `overlap` one per
    pair of policies, and `deliveries` every delivery. All are Arrow tables.

    Figures are those of `Engine.quality`: `share` of the matches, `mean_rank` of the deliveries
    when they were made, `diversity` (PREF Def. 8), `mean_age_s` and `coverage`. `mean_score` is
    that of the deliveries before decay, beside `mean_match_score`, that of all matches: it can be
    compared between policies with the same scorer.
    """

    recording: Recording
    variants: tuple[Variant, ...]
    tables: PartTables
    until_us: int

    @property
    def policies(self) -> list[str]:
        """The names of the policies."""
        return [variant.name for variant in self.variants]

    @property
    def deliveries(self) -> pa.Table:
        """Every delivery, policy by policy."""
        return self.tables.delivered

    @property
    def rules(self) -> pa.Table:
        """The effects of rules on chosen events: policy, rule, fate, count."""
        return self.tables.ruled

    @property
    def set_aside(self) -> pa.Table:
        """Subscribers that a policy could not serve: policy, subscriber, reason."""
        return self.tables.aside

    @cached_property
    def summary(self) -> pa.Table:
        """The figures of each policy."""
        sums, fates = self._sums_by_policy, self._fates
        rows = [
            {
                "policy": name,
                **_figures(sums[name]),
                "receivers": sum(row["delivered"] > 0 for row in sums[name]),
                **fates[name],
            }
            for name in self.policies
        ]
        return pa.Table.from_pylist(rows, SUMMARY)

    @cached_property
    def subscribers(self) -> pa.Table:
        """The figures of each subscriber under each policy."""
        rows = [
            {"policy": name, "subscriber": row["subscriber"], **_figures([row])}
            for name in self.policies
            for row in self._sums_by_policy[name]
        ]
        return pa.Table.from_pylist(rows, SUBSCRIBERS)

    @cached_property
    def overlap(self) -> pa.Table:
        """How many deliveries each pair of policies has in common.

        `jaccard` is their share of the deliveries that either made.
        """
        delivered = {row["policy"]: row["delivered"] for row in self.summary.to_pylist()}
        common = defaultdict[tuple[str, str], int](int)
        for row in self.tables.common.to_pylist():
            common[row["first"], row["second"]] += row["count"]
        rows = [
            {
                "first": first,
                "second": second,
                "common": both,
                "either": (either := delivered[first] + delivered[second] - both),
                "jaccard": _share(both, either),
                "share_of_first": _share(both, delivered[first]),
                "share_of_second": _share(both, delivered[second]),
            }
            for (first, second), both in common.items()
        ]
        return pa.Table.from_pylist(rows, OVERLAP)

    @cached_property
    def examples(self) -> list[Example]:
        """Events that the first policy delivered and another did not, and the other way round."""
        return find_examples(self.recording, self.variants, self.deliveries, self.until_us)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the summary as a DataFrame, one row per policy."""
        frame: pd.DataFrame = self.summary.to_pandas().set_index("policy")
        return frame

    def delivered_by(self, policy: str) -> pa.Table:
        """Return the deliveries of one policy."""
        return self.deliveries.filter(pc.equal(self.deliveries["policy"], policy))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: the recording in numbers, and all tables but deliveries."""
        return {
            "publications": len(self.recording.events),
            "subscriptions": len(self.recording.subscriptions),
            "subscribers": len(self.recording.subscribers),
            "refused": {records.kind: records.total for records in self.recording.refused},
            "policies": [variant.to_dict() | {"words": variant.words} for variant in self.variants],
            "summary": self.summary.to_pylist(),
            "overlap": self.overlap.to_pylist(),
            "rules": self.rules.to_pylist(),
            "set_aside": self.set_aside.to_pylist(),
        }

    def report(self, path: str | Path) -> Path:
        """Write the report, a self-contained HTML page."""
        target = Path(path)
        target.write_text(report_page(self), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        """Return the summary as a table, for notebooks."""
        return fragment(summary_table(self))

    @cached_property
    def _sums_by_policy(self) -> Mapping[str, list[dict[str, Any]]]:
        """The sums of each policy's subscribers, in order of their ids."""
        rows = defaultdict[str, list[dict[str, Any]]](list)
        for row in sorted(self.tables.sums.to_pylist(), key=lambda row: row["subscriber"]):
            rows[row["policy"]].append(row)
        return rows

    @cached_property
    def _fates(self) -> Mapping[str, dict[str, int]]:
        fates = {name: dict.fromkeys(("held", "released", "dropped"), 0) for name in self.policies}
        for row in self.rules.to_pylist():
            fates[row["policy"]][row["fate"]] += row["count"]
        return fates


def _figures(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of some subscribers together.

    Sums are exact, so they do not depend on any order.
    """
    listed = list(rows)
    total: dict[str, Any] = {
        name: math.fsum(row[name] for row in listed) for name in SUMS.names[2:]
    }
    counts = {name: int(total[name]) for name in ("matches", "wanted", "delivered", "served")}
    delivered = counts["delivered"]
    report: Report = QualitySums(
        RunningMean(total["scores"], counts["matches"]),
        RunningMean(total["ranks"], delivered),
        RunningMean(total["ages_us"] / SECOND_US, delivered),
        Distances(total["distances"], int(total["pairs"])),
        counts["wanted"],
        counts["served"],
    ).report()
    return {
        "matches": report.matches,
        "delivered": report.delivered,
        "share": report.share,
        "mean_rank": report.mean_rank,
        "mean_score": _share(total["delivered_scores"], delivered),
        "mean_match_score": report.mean_score,
        "diversity": report.diversity,
        "mean_age_s": report.mean_age_s,
        "coverage": report.coverage,
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def joined(parts: Sequence[PartTables], policies: Sequence[str]) -> PartTables:
    """Return the tables of all parts together; deliveries stay policy by policy."""
    tables = [pa.concat_tables(same) for same in zip(*parts, strict=True)]
    delivered, *rest = tables
    # The files must be the same whether parts were read back or computed: Parquet renames the items
    # of lists, and its pages depend on the chunks of a table.
    delivered = delivered.cast(DELIVERED)
    by_policy = [
        delivered.filter(pc.equal(delivered["policy"], name)).combine_chunks() for name in policies
    ]
    sums, ruled, common, aside = rest
    return PartTables(pa.concat_tables(by_policy), sums, _summed(ruled), _summed(common), aside)


def _summed(table: pa.Table) -> pa.Table:
    """Return the counts of all parts together, in order of their first appearance."""
    names = [name for name in table.column_names if name != "count"]
    counts = defaultdict[tuple[Any, ...], int](int)
    for row in table.to_pylist():
        counts[tuple(row[name] for name in names)] += row["count"]
    rows = [dict(zip(names, key, strict=True), count=n) for key, n in counts.items()]
    return pa.Table.from_pylist(rows, table.schema)
