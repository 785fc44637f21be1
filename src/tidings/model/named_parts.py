"""Parts of a policy as text: a registered frozen dataclass <-> its name and parameters.

`{"name": "divrank", "sigma": 0.5}` is `DivRank(sigma=0.5)`; `"none"` is `NoDiversity()`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from numbers import Real
from typing import Any, Final, TypeVar

from tidings.errors import InvalidPolicy, TidingsError, shown
from tidings.model import validate

P = TypeVar("P")

_REGISTRIES: Final[list[Mapping[str, type]]] = []
_CLASS: Final = "class"


def registry(kinds: dict[str, type[P]]) -> dict[str, type[P]]:
    """Return the classes of a kind of part by name; those that are in it later count as well."""
    _REGISTRIES.append(kinds)
    return kinds


def is_registered(part: object) -> bool:
    """Tell whether a part is of a registered class itself, and not of one derived from it."""
    name = getattr(part, "name", None)
    return any(each.get(name) is type(part) for each in _REGISTRIES if isinstance(name, str))


@validate.guarded_by(InvalidPolicy)
def read(registry: Mapping[str, type[P]], what: str, spec: object) -> P:
    """Give the part that `spec` stands for: a part itself, a bare name, or a form.

    An unknown name or parameter is refused with the ones that there are.
    """
    for kind in registry.values():
        if isinstance(spec, kind):
            return spec
    rule = f"a {what} is a name or a form with a name"
    form = validate.mapping(rule, {"name": spec} if isinstance(spec, str) else spec, InvalidPolicy)
    name = form.get("name")
    if not isinstance(name, str):
        raise InvalidPolicy(f"{rule}, not {shown(spec)}")
    name = validate.plain_text(name)
    if name not in registry:
        raise InvalidPolicy(f"{shown(name)} is no {what}; there are {', '.join(registry)}")
    return _make(registry[name], what, form | {"name": name})


def _make(kind: type[P], what: str, form: Mapping[str, Any]) -> P:
    known = {_outside(each): each for each in _parameters(kind)}
    if _CLASS in form and _CLASS not in known:
        raise InvalidPolicy(
            f"{what} {form['name']}: only the policy itself has the class {shown(form[_CLASS])}, "
            "which is not registered"
        )
    for name in form:
        if name != "name" and name not in known:
            allowed = ", ".join(known) or "none"
            raise InvalidPolicy(
                f"{what} {form['name']}: no parameter {shown(name)}; it has: {allowed}"
            )
    for name, each in known.items():
        if _required(each) and name not in form:
            raise InvalidPolicy(f"{what} {form['name']} needs {name!r}")
    values = {each.name: form[name] for name, each in known.items() if name in form}
    try:
        made = kind(**values)
        hash(made)
        return made
    except TidingsError as error:
        raise InvalidPolicy(f"{what} {form['name']}: {error}") from None
    except Exception as error:  # noqa: BLE001 - a part that does not foresee such a value
        listed = ", ".join(f"{name} = {shown(value)}" for name, value in form.items())
        raise InvalidPolicy(
            f"{what} {form['name']}: {listed} cannot be its parameters ({shown(error)})"
        ) from None


def form(part: Any, *, classes: bool = False) -> str | dict[str, Any]:
    """Return the form of a part: its bare name where all parameters are at their defaults.

    A part of a class that is not registered, such as one derived from a built-in class, has no
    written form. With `classes`, it has one that names its class, which `read` refuses.
    """
    values = {each: getattr(part, each.name) for each in _parameters(type(part))}
    changed = {
        _outside(each): _plain(v, classes) for each, v in values.items() if v != _default(each)
    }
    if not is_registered(part):
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        if not classes:
            raise InvalidPolicy(f"{shown(kind)} is not registered, so it has no written form")
        changed[_CLASS] = kind
    return {"name": part.name, **changed} if changed else str(part.name)


def _plain(value: Any, classes: bool) -> Any:
    if callable(value):
        raise InvalidPolicy(f"{shown(value)} is a function, which has no written form")
    if hasattr(value, "to_form"):
        return value.to_form()
    if is_dataclass(value):
        return form(value, classes=classes)
    if isinstance(value, Mapping):
        return {name: _plain(each, classes) for name, each in value.items()}
    if isinstance(value, Real) and not isinstance(value, int | float):
        return float(value)  # a fraction or a number of numpy, which JSON does not know
    return value


def _parameters(kind: type) -> list[Field[Any]]:
    return [each for each in fields(kind) if each.init]


def _outside(each: Field[Any]) -> str:
    """Give the parameter's name outside Python, where `lambda` needs no underscore."""
    return each.name.rstrip("_")


def _required(each: Field[Any]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _default(each: Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default
