"""One large set of candidates: the k of BLSH in one process, and the same on Spark.

python bench/crowds.py [--sizes 100000 1000000] [--k 10] [--quick]

Products of 60 kinds in variants, 10 attributes each, in Parquet, ranked at random; `maxdivrel-lsh`
with 20 tables of 5 rows. `choose` is BLSH in this process, on one core, over candidates in memory;
`read` is the time to create them from Parquet. `spark` reads the same files and chooses on all
cores. Both must choose the same. Results go to bench/results/crowds.json and crowds.md.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pages
import pyarrow as pa
from pages import machine, opening, publish, table
from pyarrow import parquet
from timing import timed

import tidings.spark as ts
from tidings.diversify import Candidate
from tidings.diversify.maxdivrel_lsh import MaxDivRelLsh
from tidings.formats.arrow import read_events

KINDS, ATTRIBUTES, VALUES, MOST_CHANGED, FILES = 60, 10, 1000, 0.4, 4
LSH = MaxDivRelLsh(tables=20, rows=5)
Row = dict[str, Any]


def main() -> None:
    options = arguments()
    spark = ts.session("tidings-bench")
    result: Row = {"machine": machine(), "k": options.k}
    with TemporaryDirectory() as place:
        result["rows"] = [measured(spark, Path(place), size, options.k) for size in options.sizes]
    publish("crowds", result, page, options)


def arguments() -> argparse.Namespace:
    parser = pages.arguments(__doc__, "2,000 candidates")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--k", type=int, default=10)
    options = parser.parse_args()
    if options.quick:
        options.sizes = [2_000]
    return options


def crowd(size: int, seed: int = 7) -> pa.Table:
    """Draw candidates: each is of a kind, and differs from it in a share of its attributes."""
    chance = np.random.default_rng(seed)
    kinds = chance.integers(VALUES, size=(KINDS, ATTRIBUTES))
    values = kinds[chance.integers(KINDS, size=size)]
    changed = chance.random(values.shape) < chance.random((size, 1)) * MOST_CHANGED
    values[changed] = chance.integers(VALUES, size=int(changed.sum()))
    words = pa.array([f"v{number}" for number in range(VALUES)])
    columns = {
        "id": pa.array([f"p{number:08d}" for number in range(size)]),
        "published_at": pa.array(np.arange(size) * 1_000_000, pa.timestamp("us", "UTC")),
        "rank": pa.array(np.round(chance.random(size), 3)),
    }
    columns |= {f"a{n}": words.take(pa.array(values[:, n])) for n in range(ATTRIBUTES)}
    return pa.table(columns)


def measured(spark: Any, folder: Path, size: int, k: int) -> Row:
    place, whole = folder / str(size), crowd(size)
    place.mkdir()
    for number, start in enumerate(range(0, size, -(-size // FILES))):
        part = whole.slice(start, -(-size // FILES))
        parquet.write_table(part, place / f"{number}.parquet")
    files = spark.read.parquet(str(place))
    ts.diversify(files, k, LSH).collect()
    found, spark_s = timed(lambda: ts.diversify(files, k, LSH).collect())
    given, read_s = timed(lambda: candidates(parquet.read_table(place)))
    chosen, choose_s = timed(lambda: LSH.choose(given, k))
    here = [(given[each].event.id, given[each].rank) for each in chosen]
    there = [(row["id"], row["rank"]) for row in sorted(found, key=lambda row: row["position"])]
    row = {"size": size, "read_s": read_s, "choose_s": choose_s, "spark_s": spark_s}
    row |= {"ratio": (read_s + choose_s) / spark_s, "right": here == there}
    print(row, file=sys.stderr, flush=True)
    return row


def candidates(whole: pa.Table) -> list[Candidate]:
    ranks = whole.column("rank").to_pylist()
    events = read_events(whole.drop_columns(["rank"]))
    return [Candidate(each, rank, rank) for each, rank in zip(events, ranks, strict=True)]


def page(result: Row) -> str:
    lines = opening(
        "One large set of candidates on Spark",
        result,
        f"The {result['k']} of `maxdivrel-lsh`. `x`: the speed-up of Spark over reading "
        "and choosing in one process.",
    )
    head = ("candidates", "read", "choose (BLSH)", "Spark, end to end", "x", "the same")
    rows = [
        (
            f"{row['size']:,}",
            *(f"{row[name]:,.1f} s" for name in ("read_s", "choose_s", "spark_s")),
            f"{row['ratio']:.2f}",
            "yes" if row["right"] else "NO",
        )
        for row in result["rows"]
    ]
    return "\n".join([*lines, *table(head, rows), ""])


if __name__ == "__main__":
    main()
