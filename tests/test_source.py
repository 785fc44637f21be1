"""Rules of the source tree that no linter checks: names mean one thing, docstrings read plainly."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tidings"
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
RELATIVE = {path: path.relative_to(SOURCE).as_posix() for path in MODULES}
UNCLEAR = ("Give", "Tell", "Say")
"""Verbs that do not say whether something is returned, printed or raised."""


def test_a_class_name_means_one_thing() -> None:
    homes = defaultdict(list)
    for path, module in MODULES.items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(RELATIVE[path])
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_docstrings_begin_with_what_is_done() -> None:
    unclear = [
        f"{RELATIVE[path]}:{node.lineno} {node.name}"
        for path, module in MODULES.items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        and (ast.get_docstring(node) or "").partition(" ")[0] in UNCLEAR
    ]
    assert unclear == []


def test_kernels_raise_nothing() -> None:
    kernels = [path for path in MODULES if "kernels" in RELATIVE[path]]
    assert kernels
    for path in kernels:
        raised = [node.lineno for node in ast.walk(MODULES[path]) if isinstance(node, ast.Raise)]
        assert raised == [], RELATIVE[path]
