"""Commands that take one object: each field of a dataclass is an argument or option."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def gathered(kind: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Make a command of a function that takes a `kind`; the command takes its fields by name."""
    hints = get_type_hints(kind, include_extras=True)
    given = [_parameter(each, hints[each.name]) for each in fields(kind)]  # type: ignore[arg-type]

    def decorate(function: Callable[[T], None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            function(kind(**values))

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = hints
        command.__signature__ = Signature(given)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(field: Field[Any], hint: Any) -> Parameter:
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
