"""Registered parts that are imported only when they are used."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class LazyPart:
    """A class or function, named by `module:attribute`, that is imported when it is called.

    The papers' structures serve only comparison; through this, `import tidings` loads none of them.

    >>> LazyPart("math:sqrt")(9)
    3.0
    """

    target: str

    def load(self) -> Any:
        """Import the part and return it."""
        module, _, attribute = self.target.partition(":")
        return getattr(import_module(module), attribute)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.load()(*arguments, **options)
