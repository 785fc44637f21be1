"""Names of sources, and what to install for them."""

import sys

import pytest

from tidings.errors import SourceError
from tidings.sources.registry import CONNECTORS, open_reader


@pytest.mark.parametrize("name", CONNECTORS)
def test_a_wrong_option_is_refused_by_the_name_of_the_source(name: str) -> None:
    with pytest.raises(SourceError, match=f"{name}: "):
        open_reader(name, {"no.such.option": "1"})


def test_without_the_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tidings.sources.kafka", raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SourceError, match=r"pip install 'tidings\[kafka\]'"):
        open_reader("tidings-kafka", {})
