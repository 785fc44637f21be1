"""A folder with the files that a config names, and a loader of configs from parts of TOML."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tidings.app.config import Config, load_config
from tidings.store import open_store

FILES = '[source]\npath = "events.jsonl"\n'
SUBSCRIPTIONS = '[subscriptions]\npath = "subscriptions.jsonl"\n'
OUT = '[sink]\npath = "out"\n'
Load = Callable[..., Config]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("events.jsonl", "subscriptions.jsonl", "subscribers.jsonl"):
        (tmp_path / name).touch()
    open_store(tmp_path / "people.db").close()
    return tmp_path


@pytest.fixture
def load(folder: Path) -> Load:
    """Return a function that loads a config: a whole text, or defaults with other parts."""

    def load(text=None, *, source=FILES, subscriptions=SUBSCRIPTIONS, sink=OUT, rest=""):
        parts = f"{source}{subscriptions}{sink}{rest}"
        (folder / "run.toml").write_text(parts if text is None else text)
        return load_config(folder / "run.toml")

    return load
