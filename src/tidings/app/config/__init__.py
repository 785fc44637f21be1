"""Configs of runs: TOML files, validated strictly. docs/pipeline.md describes every key."""

from tidings.app.config.pipeline import (
    AVAILABLE_NOW,
    DEFAULT,
    OUTBOX,
    Config,
    Metrics,
    check_engine,
    load_config,
)
from tidings.app.config.sink import FOLDERS, STORE, SinkConfig
from tidings.store.address import Address

__all__ = [
    "AVAILABLE_NOW",
    "DEFAULT",
    "FOLDERS",
    "OUTBOX",
    "STORE",
    "Address",
    "Config",
    "Metrics",
    "SinkConfig",
    "check_engine",
    "load_config",
]
