"""Rules of the source tree that no linter checks: names mean one thing, docstrings read plainly."""

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tidings"
UNCLEAR = ("Give", "Tell", "Say")
"""Verbs that do not say whether something is returned, printed or raised."""


@cache
def modules() -> dict[str, ast.Module]:
    """Return the modules by path; parsed when a test needs them, not in every worker."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in SOURCE.rglob("*.py")
    }


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(list)
    for path, module in modules().items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_docstrings_begin_with_what_is_done() -> None:
    unclear = [
        f"{path}:{node.lineno} {node.name}"
        for path, module in modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        and (ast.get_docstring(node) or "").partition(" ")[0] in UNCLEAR
    ]
    assert unclear == []


def test_kernels_raise_nothing() -> None:
    kernels = {path: module for path, module in modules().items() if "kernels" in path}
    assert kernels
    for path, module in kernels.items():
        raised = [node.lineno for node in ast.walk(module) if isinstance(node, ast.Raise)]
        assert raised == [], path
