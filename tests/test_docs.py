"""Every example in README.md and docs/ runs.

The Python blocks of a page share a namespace, and all its examples share a scratch directory with a
copy of `examples/`. Every `$ tidings ...` line of a console block runs and must succeed. A block
after `<!-- not run -->` is skipped.
"""

import contextlib
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

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("README.md"), *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(
    r"(?P<skip><!-- not run -->\s*)?^```(?P<language>python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
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
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    done: int = 0

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
        for line in re.findall(r"^\$ tidings .*", example.text, re.MULTILINE):
            command = [*CLI, *shlex.split(line)[2:]]
            child = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=300
            )
            assert child.returncode == 0, f"{line}\n{child.stdout}{child.stderr}"


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
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, PageRun]:
    started = {}
    for page, examples in EXAMPLES.items():
        directory = tmp_path_factory.mktemp(page.stem)
        shutil.copytree(ROOT / "examples", directory / "examples")
        started[page] = PageRun(directory, examples)
    return started


@pytest.mark.parametrize("example", list(cases()))
def test_example(example: Example, runs: dict[Path, PageRun]) -> None:
    runs[example.page].run_up_to(example)
