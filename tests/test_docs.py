"""Every example in README.md and docs/ runs.

The Python blocks of a page share a namespace, and all its examples share a scratch directory with a
copy of `examples/`. Every `$ tidings ...` line of a console block runs, in this process, and must
succeed. A block after `<!-- not run -->` is skipped.

A line `$ tidings serve ... &` starts a service, at a port of its own, which `$ kill -9 %1` or the
end of the page ends. Lines with `curl` call it, and must print what the page says, where `...`
stands for anything.
"""

import contextlib
import doctest
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import pytest
from tests.ports import reserved_port
from typer.testing import CliRunner

from tidings.app.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("README.md"), *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(
    r"(?P<skip><!-- not run -->\s*)?^```(?P<language>python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CLI = [sys.executable, "-c", "from tidings.app.cli import main; main()"]


@dataclass(frozen=True)
class Example:
    page: Path
    line: int
    language: str
    text: str

    @property
    def label(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def uses_spark(self) -> bool:
        return "pyspark" in self.text or "tidings.spark" in self.text


@dataclass
class PageRun:
    """The examples of one page, run in order."""

    directory: Path
    examples: list[Example]
    port: int
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    done: int = 0
    service: "subprocess.Popen[bytes] | None" = None

    def run_up_to(self, last: Example) -> None:
        """Run an example after all examples before it that have not run yet."""
        for example in self.examples[self.done : self.examples.index(last) + 1]:
            self.done += 1
            with contextlib.chdir(self.directory):
                {"python": self.python, "console": self.console}[example.language](example)

    def python(self, example: Example) -> None:
        source = "\n" * example.line + example.text  # so that a traceback shows the page's line
        exec(compile(source, str(example.page), "exec"), self.names)

    def console(self, example: Example) -> None:
        for part in re.split(r"^\$ ", example.text, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            if line.startswith("tidings serve") and line.endswith("&"):
                self.serve(shlex.split(line)[1:-1])
            elif line == "kill -9 %1":
                self.stop()
            elif line.startswith("tidings "):
                result = CliRunner(env={"TERM": "dumb"}).invoke(app, shlex.split(line)[1:])
                assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
            elif "curl " in line and self.service is not None:
                self.call(line.replace(":8000", f":{self.port}"), output)

    def call(self, line: str, output: str) -> None:
        """Run a line; one that sleeps or waits is repeated, since a busy machine takes longer."""
        patient = line.startswith("sleep ") or "?wait=applied" in line
        for _ in range(30 if patient else 1):
            printed = run(["bash", "-c", line], line)
            if doctest.OutputChecker().check_output(output, f"{printed}\n", ELLIPSIS):
                return
        raise AssertionError(f"{line}\n{printed}")

    def serve(self, arguments: list[str]) -> None:
        """Start a service, and wait until it listens."""
        command = [*CLI, *arguments, "--port", str(self.port), "--json"]
        self.service = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.service.stdout is not None
        assert json.loads(self.service.stdout.readline())["url"].endswith(f":{self.port}")

    def stop(self) -> None:
        """Kill the service, if there is one."""
        if self.service is not None:
            self.service.kill()
            self.service.communicate()
            self.service = None


def run(command: list[str], line: str) -> str:
    child = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, f"{line}\n{child.stdout}{child.stderr}"
    return child.stdout


def read_examples(page: Path) -> Iterator[Example]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if not block["skip"]:
            line = text.count("\n", 0, block.start("text"))
            yield Example(page, line, block["language"], block["text"])


EXAMPLES = {page: list(read_examples(page)) for page in PAGES}


def cases() -> Iterator[object]:
    """Yield every example; one that follows an example with Spark on its page needs Spark too."""
    for examples in EXAMPLES.values():
        spark = accumulate((example.uses_spark for example in examples), max)
        for example, uses_spark in zip(examples, spark, strict=True):
            marks = [pytest.mark.spark] if uses_spark else []
            yield pytest.param(example, id=example.label, marks=marks)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, PageRun]]:
    started = {}
    with contextlib.ExitStack() as stack:
        for page, examples in EXAMPLES.items():
            directory = tmp_path_factory.mktemp(page.stem)
            shutil.copytree(ROOT / "examples", directory / "examples")
            port = stack.enter_context(reserved_port())  # a page may kill its service and go on
            started[page] = PageRun(directory, examples, port)
            stack.callback(started[page].stop)
        yield started


@pytest.mark.parametrize("example", list(cases()))
def test_example(example: Example, runs: dict[Path, PageRun]) -> None:
    runs[example.page].run_up_to(example)
