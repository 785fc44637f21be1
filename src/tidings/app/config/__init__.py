"""The config of a run: a TOML file, read strictly. docs/pipeline.md tells of every key."""

from tidings.app.config.pipeline import (
    AVAILABLE_NOW,
    DEFAULT,
    Config,
    Metrics,
    check_engine,
    load_config,
)
from tidings.app.config.sink import FOLDERS, STORE, Sink
from tidings.store.address import Address

__all__ = [
    "AVAILABLE_NOW",
    "DEFAULT",
    "FOLDERS",
    "STORE",
    "Address",
    "Config",
    "Metrics",
    "Sink",
    "check_engine",
    "load_config",
]
