"""Output of `run` before and after: the plan, the dry run, and the summary."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from tidings.app.check.audit import location
from tidings.app.config import FOLDERS, STORE, Address
from tidings.app.output.console import make_table, plural
from tidings.app.output.query_output import print_diagnosis
from tidings.app.run.plan import RunPlan
from tidings.app.run.sending import ChannelReport
from tidings.app.run.summary import RunSummary
from tidings.formats.event_source import Source
from tidings.rank.matcher import MANY

_REFUSED_SHOWN: Final = 3
MOST_SHOWN: Final = 20
"""With more subscribers than this, only those with the most deliveries are listed."""


def print_plan(console: Console, plan: RunPlan) -> None:
    """Print what a run is about to do."""
    engine = "on Spark" if plan.config.engine == "spark" else "in one process"
    subscribers = plural(len(plan.subscribers), "subscriber")
    subscriptions = plural(len(plan.subscriptions), "subscription")
    source = plan.config.source
    inputs = f": {subscribers}, {subscriptions}, {source.label}"
    line = Text(str(plan.config.path), "bold").append(f" {engine}{inputs}", "not bold")
    console.print(line, soft_wrap=True)
    notes = list(plan.folder.notes)
    file = source.older_than_before() if isinstance(source, Source) else None
    if plan.config.engine == "spark" and file is not None:
        notes.append(f"Spark reads the oldest file first, and {file} is older than its predecessor")
    for note in notes:
        console.print(Text(f"note: {note}", "yellow"), soft_wrap=True)


def print_dry_run(console: Console, plan: RunPlan, columns: Iterable[tuple[str, str]]) -> None:
    """Print what a run would do."""
    for name, text in dry_run_rows(plan, columns):
        console.print(Text(f"{name:<15}", "bold").append(text, "not bold"), soft_wrap=True)


def dry_run_rows(plan: RunPlan, columns: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what a run would do, by name; `columns` are those of the source, if Spark reads it."""
    config = plan.config
    index = "access" if len(plan.subscriptions) >= MANY else "scan"
    if config.engine == "spark":
        follows = isinstance(config.subscriptions, Address)
        index = f"access, in files{' that follow the store' if follows else ''}"
    policies = len({subscriber.policy for subscriber in plan.subscribers})
    rows = [
        ("engine", config.engine),
        ("source", config.source.label),
        ("columns", ", ".join(f"{name} {kind}" for name, kind in columns)),
        ("subscribers", f"{len(plan.subscribers):,} with {plural(policies, 'policy')}"),
        ("subscriptions", f"{len(plan.subscriptions):,} from {config.subscriptions}"),
        ("refused", f"{len(plan.refused):,}"),
        ("index", index),
        ("buckets", f"{config.buckets}"),
        ("lateness", config.lateness),
        ("trigger", config.trigger),
        ("sink", f"{config.sink.format}: {config.sink.label}"),
        ("channels", ", ".join(f"{channel.id} ({channel.kind})" for channel in config.channels)),
        ("people", "" if config.people is None else plural(len(config.people.entries), "channel")),
    ]
    spark_only = ("buckets", "trigger", "columns")
    return [
        row for row in rows if row[1] and (config.engine == "spark" or row[0] not in spark_only)
    ]


def print_summary(console: Console, summary: RunSummary) -> None:
    """Print the results of a run, and how to read them."""
    _print_subscribers(console, summary.delivered)
    if not summary.batches:
        console.print("No new events since the last run; --fresh starts over.")
    totals = [
        plural(summary.events, "event"),
        plural(summary.deliveries, "delivery"),
        f"{summary.late:,} late",
        plural(summary.dead, "dead letter"),
        f"{summary.seconds:.1f} s",
    ]
    console.print(Text(", ".join(totals), "bold"))
    if quality := _quality_line(summary):
        console.print(Text(quality))
    if rules := _rules_line(summary):
        console.print(Text(rules))
    if summary.diagnosis is not None and summary.events:
        print_diagnosis(console, summary.diagnosis)
    sink = summary.plan.config.sink
    if refused := summary.plan.refused:
        line = f"{plural(len(refused), 'record')} refused: {sink.path}/refused.jsonl"
        console.print(Text(line, "red"), soft_wrap=True)
        for problem in refused[:_REFUSED_SHOWN]:
            place, reason = location(problem.path, problem.line), problem.reason.splitlines()[0]
            console.print(Text(f"  {place}: {reason}"), soft_wrap=True)
    if summary.dead:
        stored = sink.store if sink.format == STORE else None
        place = f"`tidings store letters {stored}`" if stored else f"{sink.path}/dead_letters"
        line = f"{plural(summary.dead, 'dead letter')} with the reasons: {place}"
        console.print(Text(line, "red"), soft_wrap=True)
    for report in summary.channels:
        print_channel(console, report)
    console.print(Text(f"Written to {sink.label}{_reading_hint(summary)}"), soft_wrap=True)


def print_channel(console: Console, report: ChannelReport) -> None:
    """Print what a channel has sent, and why the rest was not: it failed, or is due later."""
    due = f" until {report.next_at}" if report.next_at and not report.reason else ""
    parts = [f"{report.sent:,} sent"]
    parts += [f"{report.waiting:,} waiting{due}"] if report.waiting else []
    lost = f" ({report.given_up_reason})" if report.given_up_reason else ""
    parts += [f"{report.given_up:,} given up{lost}"] if report.given_up else []
    line = f"channel {report.id} ({report.kind}: {report.target}): {', '.join(parts)}"
    is_well = (due or not report.waiting) and not report.given_up
    reason = f"; {report.reason}" if report.waiting and report.reason else ""
    console.print(Text(line + reason, "" if is_well else "red"), soft_wrap=True)


def _print_subscribers(console: Console, delivered: Mapping[str, int]) -> None:
    """Print the deliveries of each subscriber; if there are many, of those with the most."""
    if not delivered:
        return
    shown = sorted(delivered.items())
    if len(delivered) > MOST_SHOWN:
        shown = sorted(delivered.items(), key=lambda item: (-item[1], item[0]))[:MOST_SHOWN]
    table = make_table("Subscriber", "Deliveries>")
    for name, number in shown:
        table.add_row(name, f"{number:,}")
    console.print(table)
    if len(delivered) > MOST_SHOWN:
        least, most = min(delivered.values()), shown[-1][1]
        more = plural(len(delivered) - MOST_SHOWN, "more subscriber")
        counts = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        console.print(Text(f"and {more} with {counts} each; --json lists them all", "dim"))


def _quality_line(summary: RunSummary) -> str:
    """Return a line on the quality of the deliveries, or nothing if there are none."""
    quality = summary.quality
    if not quality.get("delivered"):
        return ""
    matches = plural(quality["matches"], "match")
    mean_rank = f"mean rank {quality['mean_rank']:.3f}"
    if quality["matches"]:
        share, mean_score = f"{quality['share']:.1%}", f"{quality['mean_score']:.3f}"
        parts = [f"{share} of {matches} delivered", f"{mean_rank} (of all matches {mean_score})"]
    else:  # what is delivered was matched by an earlier run
        parts = [mean_rank]
    if quality.get("diversity") is not None:
        parts.append(f"diversity {quality['diversity']:.3f}")
    if quality.get("coverage") is not None:
        parts.append(f"{quality['coverage']:.1%} of the matched subscriptions served")
    return ", ".join(parts)


def _rules_line(summary: RunSummary) -> str:
    """Return a line on what rules did, or nothing if they had nothing to do."""
    quality = summary.quality
    parts = [f"{quality[fate]:,} {fate}" for fate in ("held", "released") if quality.get(fate)]
    parts += [
        f"{count:,} dropped by {rule}" for rule, count in quality.get("dropped_by", {}).items()
    ]
    return f"rules: {', '.join(parts)}" if parts else ""


def _reading_hint(summary: RunSummary) -> str:
    """Return how to read the deliveries in the output folder."""
    sink = summary.plan.config.sink
    if sink.format not in FOLDERS:
        return "."
    folder = sink.path / "deliveries"
    lines = sink.format == "jsonl"
    command = f"cat {folder}/*.jsonl" if lines else f'pandas.read_parquet("{folder}")'
    return f". Read it with: {command}"
