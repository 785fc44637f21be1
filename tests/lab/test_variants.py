"""Policies by name, from objects, forms and files."""

from pathlib import Path
from typing import Any

import pytest

from tidings.errors import TidingsError
from tidings.lab.variants import Variant, read_variants
from tidings.policy import Policy, Subscriber


def test_policies_are_objects_forms_files_or_own(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("k = 3\n")
    (tmp_path / "b.json").write_text('{"k": 4}')
    by_name = {"x": Policy(k=1), "y": {"k": 2}, "z": tmp_path / "a.toml", "own": "own"}
    read = read_variants(by_name)
    assert [variant.policy and variant.policy.k for variant in read] == [1, 2, 3, None]
    files = read_variants([str(tmp_path / "a.toml"), f"four={tmp_path / 'b.json'}", "own"])
    assert [(file.name, file.policy and file.policy.k) for file in files] == [
        ("a", 3),
        ("four", 4),
        ("own", None),
    ]
    assert files[2].words == "each subscriber's own policy"
    assert files[0].to_dict() == {"name": "a", "policy": {"k": 3}}


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        ([], "at least one policy"),
        ("a.toml", "a dict by name or a list of files"),
        ([3], "a list of policies has files"),
        ({"a": {"k": 0}}, "k"),
        ({"": {"k": 1}}, "the name of a policy"),
        (["none.toml"], "none.toml: the file cannot be read"),
        (["none.json"], "none.json: the file cannot be read"),
        (["policy.yaml"], "a policy is a .toml or .json file"),
        ({str(n): "own" for n in range(33)}, "at most 32 policies"),
    ],
)
def test_others_are_refused(policies: Any, reason: str) -> None:
    with pytest.raises(TidingsError, match=reason):
        read_variants(policies)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("k = 3\n")
    (tmp_path / "a.json").write_text('{"k": 3}')
    with pytest.raises(TidingsError, match="two policies are called 'a'"):
        read_variants([tmp_path / "a.toml", tmp_path / "a.json"])


def test_a_wrong_key_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("kk = 3\n")
    with pytest.raises(TidingsError, match=r"a.toml: .*kk"):
        read_variants([tmp_path / "a.toml"])


def test_a_variant_without_a_policy_has_that_of_the_subscriber() -> None:
    assert Variant("own").policy_of(Subscriber("ann", Policy(k=7))).k == 7
