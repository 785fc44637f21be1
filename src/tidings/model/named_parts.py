"""JSON forms of the parts of a policy: a registered dataclass <-> its name and parameters.

`{"name": "divrank", "sigma": 0.5}` is `DivRank(sigma=0.5)`; `"none"` is `NoDiversity()`. A registry
of structures may name some that are imported only when they are used (`LazyPart`).
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from importlib import import_module
from numbers import Real
from typing import Any, Final, TypeVar

from tidings.errors import InvalidPolicy, TidingsError, shown
from tidings.model import validate

P = TypeVar("P")

_REGISTRIES: Final[list[Mapping[str, type]]] = []
_CLASS: Final = "class"


def registry(kinds: dict[str, type[P]]) -> dict[str, type[P]]:
    """Register the classes of a kind of part by name, including those added later."""
    _REGISTRIES.append(kinds)
    return kinds


def is_registered(part: object) -> bool:
    """Return whether the class of a part itself, and not only a base class, is registered."""
    name = getattr(part, "name", None)
    return any(kinds.get(name) is type(part) for kinds in _REGISTRIES if isinstance(name, str))


@validate.guarded_by(InvalidPolicy)
def read(registry: Mapping[str, type[P]], what: str, spec: object) -> P:
    """Return the part that `spec` describes: a part itself, a bare name, or a form.

    The error for an unknown name or parameter lists the known ones.
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
        raise InvalidPolicy(f"unknown {what} {shown(name)}; expected one of: {', '.join(registry)}")
    return _make(registry[name], what, form | {"name": name})


def _make(kind: type[P], what: str, form: Mapping[str, Any]) -> P:
    known = {_public_name(parameter): parameter for parameter in _parameters(kind)}
    if _CLASS in form and _CLASS not in known:
        raise InvalidPolicy(
            f"{what} {form['name']}: only the policy itself has the class {shown(form[_CLASS])}, "
            "which is not registered"
        )
    for name in form:
        if name != "name" and name not in known:
            allowed = ", ".join(known) or "none"
            raise InvalidPolicy(
                f"{what} {form['name']}: unknown parameter {shown(name)}; "
                f"expected one of: {allowed}"
            )
    for name, parameter in known.items():
        if _required(parameter) and name not in form:
            raise InvalidPolicy(f"{what} {form['name']} needs {name!r}")
    values = {parameter.name: form[name] for name, parameter in known.items() if name in form}
    try:
        part = kind(**values)
        hash(part)
        return part
    except TidingsError as error:
        raise InvalidPolicy(f"{what} {form['name']}: {error}") from None
    except Exception as error:  # noqa: BLE001 - a part may not check its parameters
        listed = ", ".join(f"{name} = {shown(value)}" for name, value in form.items())
        raise InvalidPolicy(
            f"{what} {form['name']}: {listed} cannot be its parameters ({shown(error)})"
        ) from None


def form(part: Any, *, classes: bool = False) -> str | dict[str, Any]:
    """Return the form of a part: its bare name if all parameters have their defaults.

    A part of an unregistered class, such as a subclass of a built-in part, has no JSON form. With
    `classes`, it gets one that names its class, which `read` refuses.
    """
    values = {parameter: getattr(part, parameter.name) for parameter in _parameters(type(part))}
    changed = {
        _public_name(parameter): _plain(value, classes)
        for parameter, value in values.items()
        if value != _default(parameter)
    }
    if not is_registered(part):
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        if not classes:
            raise InvalidPolicy(f"{shown(kind)} is not registered, so it has no JSON form")
        changed[_CLASS] = kind
    return {"name": part.name, **changed} if changed else str(part.name)


def _plain(value: Any, classes: bool) -> Any:
    if callable(value):
        raise InvalidPolicy(f"{shown(value)} is a function, which has no JSON form")
    if hasattr(value, "to_form"):
        return value.to_form()
    if is_dataclass(value):
        return form(value, classes=classes)
    if isinstance(value, tuple):
        return [_plain(inner, classes) for inner in value]
    if isinstance(value, Mapping):
        return {name: _plain(inner, classes) for name, inner in value.items()}
    if isinstance(value, Real) and not isinstance(value, int | float):
        return float(value)  # a Fraction or a numpy number, which JSON cannot hold
    return value


def _parameters(kind: type) -> list[Field[Any]]:
    return [parameter for parameter in fields(kind) if parameter.init]


def _public_name(parameter: Field[Any]) -> str:
    """Return the name of a parameter in JSON, where `lambda` needs no underscore."""
    return parameter.name.rstrip("_")


def _required(parameter: Field[Any]) -> bool:
    return parameter.default is MISSING and parameter.default_factory is MISSING


def _default(parameter: Field[Any]) -> Any:
    if parameter.default_factory is not MISSING:
        return parameter.default_factory()
    return parameter.default


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
