"""The results of bench/diversity.py as a page."""

from typing import Any

from agreeing import mean
from pages import line, opening, ratio


def page(result: dict[str, Any]) -> str:
    parts = [
        opening("Diversifiers", result)[:-1],
        chosen(result["choices"]),
        peers(result["peers"]),
        sketches(result["sketches"]),
        streams(result["streams"]),
        agreements(result["agreement"]),
        best_sets(result["table_1"]),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["", line(head), "|---" * len(head) + "|", *map(line, rows)]


def chosen(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## One choice, ms",
        "",
        "20 attributes, random ranks; `plain` is the plain version, k = 10.",
    ]
    cells = []
    for row in rows:
        times = tuple(f"{row['ms'][k]:.2f}" for k in ("5", "10", "50"))
        cells.append((row["name"], str(row["n"]), *times, plain(row)))
    return lines + table(("diversifier", "n", "k = 5", "k = 10", "k = 50", "plain"), cells)


def plain(row: dict[str, Any]) -> str:
    return f"{row['plain']:.1f}" if "plain" in row else "-"


def peers(times: dict[str, float]) -> list[str]:
    own = times["divrank, overlap of 6 attributes"]
    rows = [(name, f"{ms:.3f}", ratio(own / ms)) for name, ms in times.items()]
    lines = ["## n = 1000, k = 10", "", "`x`: the time of divrank relative to that row."]
    return lines + table(("", "ms", "x"), rows)


def sketches(windows: dict[int, dict[str, float]]) -> list[str]:
    lines = ["## One arrival, us", "", "D = 50, m = 128 (16 tables of 8 rows). LSH window:"]
    lines += [
        "sketch, votes, expiry and delivery; peers: sketch, query and insert. `new event`: its"
    ]
    lines += ["attributes are hashed too. `x`: speed-up over that row."]
    rows = []
    for w, times in windows.items():
        new, kept = times["LSH window, new event"], times["LSH window, hashed"]
        for name, us in times.items():
            rows.append((str(w), name, f"{us:.1f}", ratio(us / new), ratio(us / kept)))
    return lines + table(("w", "", "us", "x, new event", "x, hashed"), rows)


def streams(rows: list[dict[str, Any]]) -> list[str]:
    names = ("LSH window", "BLSH", "greedy, lists kept", "greedy")
    lines = ["## One step of a sliding window, ms", ""]
    lines += ["20 tables of 5 rows, alpha 0.5, k = 10: an arrival, an expiry, the top k.", ""]
    lines += ["`x`: the speed-up of the LSH window over the greedy choice."]
    cells = []
    for row in rows:
        times = row["ms"]
        own = tuple(f"{times[name]:.3f}" if name in times else "-" for name in names)
        faster = ratio(times["greedy"] / times["LSH window"]) if "greedy" in times else "-"
        cells.append((str(row["D"]), str(row["w"]), *own, faster))
    return lines + table(("D", "w", *names, "x"), cells)


def agreements(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["## LSH against the greedy choice (TKS Fig. 7.5)", ""]
    lines += ["The six views of TKS Table 7.1, error 0.07, alpha = 1 - s, k = 10; ranked by normal"]
    lines += ["preferences over 32 tuples, or at random. `tuned`: the diversity probability"]
    lines += ["against greedy with the largest alpha that yields k, whatever s is. The thesis"]
    lines += ["reports a mean over windows of around 0.7; if w = k, all are chosen.", ""]
    for ranked, s in dict.fromkeys((row["ranked"], row["s"]) for row in rows):
        lines += [f"- ranked by {ranked}, s = {s}: mean {mean(rows, ranked, s):.2f}"]
    cells = []
    for row in rows:
        where = (row["ranked"], str(row["s"]), "{} x {}".format(*row["shape"]), str(row["w"]))
        cells.append((*where, *(f"{row[name]:.2f}" for name in ("diversity", "rank", "tuned"))))
    head = ("ranked by", "s", "L x r", "w", "diversity probability", "rank probability", "tuned")
    return lines + table(head, cells)


def best_sets(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    lines = ["## The heuristic and the optimum (PREF Table 1)", ""]
    lines += ["Set diversity of random films, sigma = 0; means of the draws."]
    cells = [(str(r["n"]), str(r["k"]), *cell(r, "heuristic"), *cell(r, "best")) for r in rows]
    return lines + table(("n", "k", "heuristic", "ms", "best set", "ms"), cells)


def cell(row: dict[str, Any], name: str) -> tuple[str, str]:
    return f"{row['diversity'][name]:.3f}", f"{row['ms'][name]:.2f}"
