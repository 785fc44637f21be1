"""Every example of README.md and docs/ runs.

Python blocks of a page share a namespace, and all its examples one scratch directory that holds a
copy of `examples/`. Of a console block, each line `$ tidings ...` runs and must succeed. An
`<!-- not run -->` before a block excuses it.
"""

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("README.md"), *sorted(ROOT.glob("docs/*.md"))]
BLOCK = re.compile(
    r"(?P<excuse><!-- not run -->\s*)?^```(?P<language>python|console)\n(?P<text>.*?)^```$",
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
class Run:
    """One page being worked through from the top."""

    directory: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    done: set[Example] = field(default_factory=set)

    def run(self, example: Example) -> None:
        if example in self.done:
            return
        self.done.add(example)
        with contextlib.chdir(self.directory):
            {"python": self.python, "console": self.console}[example.language](example)

    def python(self, example: Example) -> None:
        source = "\n" * example.line + example.text  # so that a traceback shows the page's line
        exec(compile(source, str(example.page), "exec"), self.names)

    def console(self, example: Example) -> None:
        for line in re.findall(r"^\$ tidings .*", example.text, re.MULTILINE):
            command = [*CLI, *shlex.split(line)[2:]]
            outcome = subprocess.run(
                command, check=False, capture_output=True, text=True, timeout=300
            )
            assert outcome.returncode == 0, f"{line}\n{outcome.stdout}{outcome.stderr}"


def examples(page: Path) -> Iterator[Example]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if not block["excuse"]:
            line = text.count("\n", 0, block.start("text"))
            yield Example(page, line, block["language"], block["text"])


EXAMPLES = [example for page in PAGES for example in examples(page)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Run]:
    started = {}
    for page in PAGES:
        started[page] = Run(tmp_path_factory.mktemp(page.stem))
        if (ROOT / "examples").exists():
            shutil.copytree(ROOT / "examples", started[page].directory / "examples")
    return started


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, id=one.label, marks=[pytest.mark.spark] if one.uses_spark else [])
        for one in EXAMPLES
    ],
)
def test_example(example: Example, runs: dict[Path, Run]) -> None:
    """Run the examples before it on its page first, if they have not run yet."""
    page = [one for one in EXAMPLES if one.page == example.page]
    for one in page[: page.index(example) + 1]:
        runs[example.page].run(one)
