"""Variants of a comparison: one policy for all subscribers, or each subscriber's own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidings.errors import InvalidForm, InvalidPolicy, prefix_errors, shown
from tidings.formats.json_forms import loads_policy, read_policy
from tidings.formats.json_text import read_json
from tidings.formats.policy_words import describe_policy
from tidings.formats.toml_file import read_toml
from tidings.model import validate
from tidings.model.limits import TRUSTED, Limits
from tidings.policy import Policy, Subscriber

OWN: Final = "own"
"""Stands for each subscriber's own policy."""
MOST: Final = 32
"""The maximum number of policies: each is a bit of a number that says which policies delivered."""
_POLICY_BYTES: Final = 16_000_000
PolicyInput = Policy | Mapping[str, Any] | str | Path
PolicyInputs = Mapping[str, PolicyInput] | Iterable[str | Path]


@dataclass(frozen=True)
class Variant:
    """A policy under a name; without one, each subscriber has its own."""

    name: str
    policy: Policy | None = None

    def policy_of(self, subscriber: Subscriber) -> Policy:
        """Return the policy of a subscriber in this variant."""
        return self.policy or subscriber.policy

    @property
    def words(self) -> str:
        """The policy in words."""
        return (
            "each subscriber's own policy" if self.policy is None else describe_policy(self.policy)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"name": self.name, "policy": self.policy.to_dict() if self.policy else OWN}


def read_variants(policies: PolicyInputs, limits: Limits = TRUSTED) -> tuple[Variant, ...]:
    """Return the variants of policies by name, or of files, which have the names of the variants.

    A policy is an object, its form, a TOML or JSON file, or the word "own". The text NAME=FILE
    names a file.
    """
    if isinstance(policies, str | bytes | Policy) or not isinstance(policies, Iterable):
        raise InvalidForm(f"policies are a dict by name or a list of files, not {shown(policies)}")
    named = policies.items() if isinstance(policies, Mapping) else map(_named, policies)
    variants = [Variant(_name(name), _policy(policy, limits)) for name, policy in named]
    if not variants:
        raise InvalidForm("a comparison needs at least one policy")
    if len(variants) > MOST:
        raise InvalidForm(f"a comparison has at most {MOST} policies, not {len(variants)}")
    names = [variant.name for variant in variants]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidForm(f"two policies are called {shown(twice[0])}; write NAME=FILE to name one")
    return tuple(variants)


def _named(policy: object) -> tuple[str, str | Path]:
    if not isinstance(policy, str | Path):
        raise InvalidForm(f"a list of policies has files; use a dict for others: {shown(policy)}")
    name, equals, path = str(policy).rpartition("=")
    return (name, path) if equals and name else (Path(policy).stem, policy)


def _name(name: object) -> str:
    return validate.name("the name of a policy", name, InvalidPolicy)


def _policy(policy: object, limits: Limits) -> Policy | None:
    if policy == OWN:
        return None
    if isinstance(policy, str | Path):
        return read_policy_file(Path(policy), limits)
    return read_policy(policy, limits)  # type: ignore[arg-type]


def read_policy_file(path: Path, limits: Limits = TRUSTED) -> Policy:
    """Read a policy from a TOML or JSON file."""
    with prefix_errors(f"{path}: ", raised=InvalidForm):
        if path.suffix == ".json":
            return loads_policy(_read_json(path), limits)
        if path.suffix != ".toml":
            raise InvalidForm(f"a policy is a .toml or .json file, or {OWN!r}")
        return loads_policy(read_toml(path), limits)


def _read_json(path: Path) -> Any:
    try:
        return read_json(validate.file_bytes(path, _POLICY_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidForm(f"the file cannot be read: {error}") from None
