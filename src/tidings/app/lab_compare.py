"""`tidings lab compare` and `tidings lab timeline`: read the files, replay, write and print."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich import progress
from rich.console import Console

from tidings.app.check.audit import audit_config
from tidings.app.config import load_config
from tidings.app.output.console import make_table, open_console, plural
from tidings.app.terminal import json_line
from tidings.errors import InvalidForm
from tidings.formats.event_source import Source
from tidings.formats.layout import Layout
from tidings.lab.comparison import Comparison
from tidings.lab.output import write_comparison
from tidings.lab.recording import Recording, read_recording
from tidings.lab.report import TABLE
from tidings.lab.run_comparison import CompareSettings, Progress, compare_recording
from tidings.lab.timeline import timeline, timeline_page
from tidings.lab.variants import read_variants

_INTERRUPTED: Final = 130


@dataclass(frozen=True)
class RecordedFiles:
    """The files of a recording: those of a config, or individual ones, with names of columns."""

    config: Path | None = None
    publications: str | None = None
    subscriptions: Path | None = None
    subscribers: Path | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> Recording:
        """Read the recording."""
        if self.config is not None:
            return self._read_config(self.config)
        if self.publications is None or self.subscriptions is None:
            raise InvalidForm("pass --publications and --subscriptions, or --config")
        layout = Layout(columns=self.columns, types=self.types, lists=self.lists)
        return read_recording(
            self.publications, self.subscriptions, self.subscribers, layout=layout
        )

    def _read_config(self, path: Path) -> Recording:
        """Read the files of a config; options override them."""
        config = load_config(path)
        if not isinstance(config.source, Source):
            raise InvalidForm(f"{path}: a recording must be files, not {config.source.label}")
        audit = audit_config(config)
        return read_recording(
            self.publications or config.source,
            self.subscriptions or audit.subscriptions,
            self.subscribers or audit.subscribers,
            policy_of=config.policy,
            limits=config.limits,
        )


def compare_files(
    files: RecordedFiles,
    policies: Sequence[str],
    until: str | None,
    settings: CompareSettings,
    *,
    as_json: bool = False,
) -> int:
    """Compare policies, write the files and print the figures; return the exit status."""
    variants = read_variants(policies)
    assert settings.out is not None
    finished = [0, 0]
    try:
        with _progress_bar(open_console(stderr=True)) as show:

            def note(done: int, total: int) -> None:
                finished[:] = done, total
                show(done, total)

            comparison = compare_recording(files.read(), variants, until, settings, note)
            paths = write_comparison(comparison, settings.out)
    except KeyboardInterrupt:
        stopped = f"Stopped after {finished[0]} of {plural(finished[1], 'part')}"
        open_console(stderr=True).print(f"{stopped}; the same command resumes.")
        return _INTERRUPTED
    console = open_console()
    if as_json:
        console.out(json_line({**comparison.to_dict(), "report": str(paths[0])}), highlight=False)
    else:
        _print(console, comparison, paths)
    return 0


@contextmanager
def _progress_bar(console: Console) -> Iterator[Progress]:
    """Yield a function that shows how many parts are finished, on a terminal only."""
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn())
    bar = progress.Progress(
        *columns,
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("Reading", total=None)

        def show(done: int, total: int) -> None:
            text = "Writing" if done == total else "Replaying"
            bar.update(task, description=text, completed=done, total=total)

        yield show


def _print(console: Console, comparison: Comparison, paths: Sequence[Path]) -> None:
    recording = comparison.recording
    console.print(
        f"{plural(len(recording.events), 'publication')}, "
        f"{plural(len(recording.subscribers), 'subscriber')}, "
        f"{plural(len(recording.subscriptions), 'subscription')}",
        highlight=False,
    )
    for refused in recording.refused:
        text = f"{plural(refused.total, refused.kind)} refused; the first: {refused.reasons[0]}"
        open_console(stderr=True).print(text, markup=False, highlight=False)
    table = make_table("policy", *(f"{figure.heading.lower()}>" for figure in TABLE))
    for row in comparison.summary.to_pylist():
        values = (row[figure.column] for figure in TABLE)
        texts = ("-" if v is None else f.write(v) for f, v in zip(TABLE, values, strict=True))
        table.add_row(row["policy"], *texts)
    console.print(table)
    console.print(f"The report: {paths[0]}", markup=False, highlight=False, soft_wrap=True)


def show_timeline(
    files: RecordedFiles,
    subscriber: str,
    period: tuple[str | None, str | None],
    policy: str | None,
    html: Path | None,
    *,
    as_json: bool = False,
) -> None:
    """Print the timeline of a subscriber, or write it as a page."""
    chosen = read_variants([policy])[0].policy if policy is not None else None
    result = timeline(files.read(), subscriber, *period, policy=chosen)
    console = open_console()
    if html is not None:
        html.write_text(timeline_page(result), encoding="utf-8")
        console.print(f"The timeline: {html}", markup=False, highlight=False, soft_wrap=True)
    elif as_json:
        console.out(json_line(result.to_dict()), highlight=False)
    else:
        console.print(str(result), markup=False, highlight=False, soft_wrap=True)
