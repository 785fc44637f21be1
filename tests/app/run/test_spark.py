"""Inputs of a run on Spark; tests/spark runs whole pipelines."""

from dataclasses import replace
from typing import Any

from tidings import Policy
from tidings.app.config import load_config
from tidings.app.run.plan import make_plan
from tidings.app.run.spark import match_inputs
from tidings.index_files.version_cache import FolderPolicies
from tidings.index_files.versions import IndexFolder as Index
from tidings.store import open_store


def test_changed_policies_of_a_config_reach_its_index(folder):
    with open_store(folder / "people.db") as store:
        for name in ("ann", "bob"):
            store.catalogue.put({"id": f"s-{name}", "subscriber": name, "where": "year > 0"})
    (folder / "store.toml").write_text(
        '[source]\npath = "[0-9].jsonl"\n[subscriptions]\nstore = "sqlite:///people.db"\n'
        '[sink]\npath = "out"\n[policies.default]\nk = 1\n'
    )
    config, seen = load_config(folder / "store.toml"), list[Any]()
    for policies in (config.policies, {**config.policies, "bob": Policy(k=9)}):
        with match_inputs(make_plan(replace(config, policies=policies))) as (index, _):
            assert isinstance(index, Index)
            roster = FolderPolicies(index, index.newest())
            seen.append([roster.policy(name) for name in ("ann", "bob")])
    assert seen == [[Policy(k=1), Policy(k=1)], [Policy(k=1), Policy(k=9)]]
