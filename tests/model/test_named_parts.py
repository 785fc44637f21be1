"""Parts of a policy as text: a registered dataclass <-> its name and parameters."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from tidings.errors import InvalidPolicy
from tidings.index import INDEXES
from tidings.index.boxes import BOX_INDEXES
from tidings.index.intervals import INTERVAL_INDEXES
from tidings.model import named_parts
from tidings.model.named_parts import LazyPart


@dataclass(frozen=True)
class Plain:
    name: ClassVar[str] = "plain"


@dataclass(frozen=True)
class Mixed:
    length: int
    lambda_: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    inner: Any = Plain()
    seen: int = field(init=False, default=0)
    name: ClassVar[str] = "mixed"

    def __post_init__(self) -> None:
        if self.length == 13:
            raise InvalidPolicy("length is not 13")


@dataclass(frozen=True)
class Written:
    """A value with a form of its own."""

    text: str

    def to_form(self) -> str:
        return self.text


REGISTRY: dict[str, type[Any]] = named_parts.registry({"plain": Plain, "mixed": Mixed})


def read(spec: object) -> Any:
    return named_parts.read(REGISTRY, "stage", spec)


def test_a_part_is_itself() -> None:
    part = Mixed(3)
    assert read(part) is part


@pytest.mark.parametrize("spec", ["plain", {"name": "plain"}, Plain()])
def test_a_name_a_form_and_a_part_mean_the_same(spec: object) -> None:
    assert read(spec) == Plain()


def test_parameters_have_their_names_outside_python() -> None:
    assert read({"name": "mixed", "length": 3, "lambda": 0.7}) == Mixed(3, lambda_=0.7)
    assert named_parts.form(Mixed(3, lambda_=0.7)) == {"name": "mixed", "length": 3, "lambda": 0.7}


@pytest.mark.parametrize(
    ("part", "form"),
    [
        (Plain(), "plain"),
        (Mixed(3), {"name": "mixed", "length": 3}),
        (Mixed(3, weights={"a": 2.0}), {"name": "mixed", "length": 3, "weights": {"a": 2.0}}),
        (Mixed(3, weights={}, lambda_=0.5), {"name": "mixed", "length": 3}),
    ],
)
def test_a_form_has_what_is_not_at_its_default_and_is_read_back(part: object, form: object) -> None:
    assert named_parts.form(part) == form
    assert read(form) == part


def test_parts_within_parts_have_forms_too() -> None:
    part = Mixed(3, inner=Mixed(4))
    assert named_parts.form(part) == {
        "name": "mixed",
        "length": 3,
        "inner": {"name": "mixed", "length": 4},
    }


def test_a_value_may_have_a_form_of_its_own() -> None:
    assert named_parts.form(Mixed(3, inner=Written("30m"))) == {
        "name": "mixed",
        "length": 3,
        "inner": "30m",
    }


def test_a_written_mapping_is_a_copy() -> None:
    part = Mixed(3, weights={"a": 2.0})
    form = named_parts.form(part)
    assert isinstance(form, dict)
    form["weights"]["a"] = 9.0
    assert part.weights == {"a": 2.0}


def test_a_function_has_no_written_form() -> None:
    with pytest.raises(InvalidPolicy, match="<built-in function len> is a function, which has no"):
        named_parts.form(Mixed(3, inner=len))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("plane", "unknown stage 'plane'; expected one of: plain, mixed"),
        ({"name": "plane"}, "unknown stage 'plane'"),
        (None, "a stage is a name or a form with a name, not None"),
        (3, "a stage is a name or a form with a name, not 3"),
        ({}, "a stage is a name or a form with a name, not {}"),
        ({"name": 3}, "a stage is a name or a form with a name"),
        (Plain, "a stage is a name or a form with a name"),
        (Written("plain"), "a stage is a name or a form with a name"),
        ("mixed", "stage mixed needs 'length'"),
        ({"name": "mixed", "lambda": 1}, "stage mixed needs 'length'"),
        (
            {"name": "plain", "length": 3},
            "unknown parameter 'length'; expected one of: none",
        ),
        (
            {"name": "mixed", "length": 3, "size": 4},
            "mixed: unknown parameter 'size'; expected one of: length, lambda, weights, inner",
        ),
        ({"name": "mixed", "length": 3, "lambda_": 1}, "unknown parameter 'lambda_'"),
        ({"name": "mixed", "length": 3, "seen": 1}, "unknown parameter 'seen'"),
        ({"name": "mixed", "length": 13}, "stage mixed: length is not 13"),
    ],
)
def test_a_refusal_names_the_stage_and_what_there_is(spec: object, why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        read(spec)


PARTS = [
    *INDEXES.values(),
    *INTERVAL_INDEXES.values(),
    *(make for kinds in BOX_INDEXES.values() for make in kinds.values()),
]


def loaded_modules(statement: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()


def test_the_package_loads_no_paper_no_spark_and_no_pandas() -> None:
    modules = loaded_modules("import tidings, tidings.index.boxes, tidings.index.intervals")
    assert "tidings.index.boxes.live" in modules
    assert [name for name in modules if "papers" in name.split(".")] == []
    assert [name for name in modules if name.split(".")[0] in ("pyspark", "pandas")] == []


def test_the_spark_package_loads_no_paper() -> None:
    modules = loaded_modules("import tidings.spark")
    assert [name for name in modules if "papers" in name.split(".")] == []


@pytest.mark.parametrize("part", [part for part in PARTS if isinstance(part, LazyPart)], ids=str)
def test_every_lazy_part_exists(part: LazyPart) -> None:
    assert callable(part.load())


def test_a_lazy_part_passes_its_arguments_on() -> None:
    assert LazyPart("builtins:dict")([("a", 1)], b=2) == {"a": 1, "b": 2}
