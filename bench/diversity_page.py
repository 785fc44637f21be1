"""The results of bench/diversity.py as a page."""

from typing import Any

from pages import line, opening, ratio


def page(result: dict[str, Any]) -> str:
    parts = [
        opening("Diversifiers", result)[:-1],
        chosen(result["choices"]),
        peers(result["peers"]),
        sketches(result["sketches"]),
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
