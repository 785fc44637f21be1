"""Registration of sources with a session, of which only the calls are recorded."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidings.sources.registry import CONNECTORS
from tidings.spark.sources.register import SOURCES, register_sources


class Java:
    """The part of Spark's own sessions that keeps the active one."""

    def __init__(self, active: str | None) -> None:
        self.active = active
        self.SparkSession = self

    def getActiveSession(self) -> Any:  # noqa: N802
        before = self.active
        return SimpleNamespace(isDefined=lambda: before is not None, get=lambda: before)

    def setActiveSession(self, session: str) -> None:  # noqa: N802
        self.active = session


def test_a_source_is_registered_under_the_name_that_it_has() -> None:
    assert SOURCES.keys() == {"tidings-table", *CONNECTORS}
    assert {name: source.name() for name, source in SOURCES.items()} == {
        name: name for name in SOURCES
    }


def test_a_remote_session_registers_all_sources() -> None:
    registered: list[Any] = []
    spark: Any = SimpleNamespace(dataSource=SimpleNamespace(register=registered.append))
    register_sources(spark)
    assert registered == [*SOURCES.values()]


@pytest.mark.parametrize("before", ["another", None])
@pytest.mark.parametrize("fails", [False, True])
def test_a_classic_session_is_active_only_meanwhile(before: str | None, fails: bool) -> None:
    java, seen = Java(before), list[Any]()

    def register(_: Any) -> None:
        seen.append(java.active)
        if fails:
            raise ValueError("no such source")

    spark: Any = SimpleNamespace(
        dataSource=SimpleNamespace(register=register), _jvm=java, _jsparkSession="this"
    )
    if fails:
        with pytest.raises(ValueError, match="no such source"):
            register_sources(spark)
    else:
        register_sources(spark)
    assert set(seen) == {"this"}
    assert java.active == (before or "this")
