"""Commands whose arguments and options are the fields of a dataclass."""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def takes(kind: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Turn a function of one `kind` into a command with an option for each of its fields."""
    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        _parameter(field, hints[field.name])
        for field in fields(kind)  # type: ignore[arg-type]
    ]

    def decorate(function: Callable[[T], None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            function(kind(**values))

        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = hints
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(field: Field[Any], hint: Any) -> Parameter:
    default = Parameter.empty if field.default is MISSING else field.default
    return Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
