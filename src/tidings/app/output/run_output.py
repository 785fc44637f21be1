"""What `run` prints before and after: what it is about to do, what it would do, what it did."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from tidings.app.config import FOLDERS, Address
from tidings.app.output.console import columns, plural
from tidings.app.run.plan import Plan
from tidings.app.run.summary import Account
from tidings.formats.event_source import Source
from tidings.rank.matcher import MANY


def show_plan(console: Console, plan: Plan) -> None:
    """Print what a run is about to do."""
    engine = "on Spark" if plan.config.engine == "spark" else "in one process"
    people = plural(len(plan.subscribers), "subscriber")
    wishes = plural(len(plan.subscriptions), "subscription")
    source = plan.config.source
    line = Text(str(plan.config.path), "bold").append(f" {engine}", "not bold")
    console.print(line.append(f": {people}, {wishes}, {source.label}", "not bold"), soft_wrap=True)
    file = source.older_than_before() if isinstance(source, Source) else None
    if plan.config.engine == "spark" and file is not None:
        words = f"note: Spark takes the oldest file first, and {file} is older than its predecessor"
        console.print(Text(words, "yellow"), soft_wrap=True)


def show_sketch(console: Console, plan: Plan, fields: Iterable[tuple[str, str]]) -> None:
    """Print what a run would do, with the columns of its source where Spark knows them."""
    for name, text in sketch_rows(plan, fields):
        console.print(Text(f"{name:<15}", "bold").append(text, "not bold"), soft_wrap=True)


def sketch_rows(plan: Plan, fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Give what a run would do, name by name."""
    config = plan.config
    index = "access" if len(plan.subscriptions) >= MANY else "scan"
    if config.engine == "spark":
        follows = isinstance(config.subscriptions, Address)
        index = f"access, in files{' that follow the store' if follows else ''}"
    policies = len({each.policy for each in plan.subscribers})
    rows = [
        ("engine", config.engine),
        ("source", config.source.label),
        ("columns", ", ".join(f"{name} {kind}" for name, kind in fields)),
        ("subscribers", f"{len(plan.subscribers):,} with {plural(policies, 'policy')}"),
        ("subscriptions", f"{len(plan.subscriptions):,} from {config.subscriptions}"),
        ("refused", f"{len(plan.refused):,}"),
        ("index", index),
        ("buckets", f"{config.buckets}"),
        ("lateness", config.lateness),
        ("trigger", config.trigger),
        ("sink", f"{config.sink.format}: {config.sink.label}"),
    ]
    spark = ("buckets", "trigger", "columns")
    return [row for row in rows if row[1] and (config.engine == "spark" or row[0] not in spark)]


def show_account(console: Console, account: Account) -> None:
    """Print what a run did, and where it is written."""
    if account.delivered:
        table = columns("Subscriber", "Deliveries>")
        for name, number in account.delivered.items():
            table.add_row(name, f"{number:,}")
        console.print(table)
    if not account.batches:
        console.print("Nothing is new since the last run; --fresh starts anew.")
    facts = [
        plural(account.events, "event"),
        plural(account.deliveries, "delivery"),
        f"{account.late:,} late",
        plural(account.dead, "dead letter"),
        f"{account.seconds:.1f} s",
    ]
    console.print(Text(", ".join(facts), "bold"))
    if good := _quality(account):
        console.print(Text(good))
    sink = account.plan.config.sink
    if account.plan.refused:
        words = f"{plural(len(account.plan.refused), 'record')} refused: {sink.path}/refused.jsonl"
        console.print(Text(words, "red"), soft_wrap=True)
    console.print(Text(f"Written to {sink.label}{_how(account)}"), soft_wrap=True)


def _quality(account: Account) -> str:
    """Say how good the deliveries are; nothing, if there were none."""
    told = account.quality
    if not told.get("delivered"):
        return ""
    words = [
        f"{told['share']:.1%} of {plural(told['matches'], 'match')} delivered",
        f"mean rank {told['mean_rank']:.3f} (of all that matched {told['mean_score']:.3f})",
    ]
    if told.get("diversity") is not None:
        words.append(f"diversity {told['diversity']:.3f}")
    if told.get("coverage") is not None:
        words.append(f"{told['coverage']:.1%} of the subscriptions that matched are served")
    return ", ".join(words)


def _how(account: Account) -> str:
    """Say how to read what is written in the folder."""
    sink = account.plan.config.sink
    if sink.format not in FOLDERS:
        return "."
    where = sink.path / "deliveries"
    how = f"cat {where}/*.jsonl" if sink.format == "jsonl" else f'pandas.read_parquet("{where}")'
    return f". Read it with: {how}"
