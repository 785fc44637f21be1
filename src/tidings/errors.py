"""The errors of Tidings: one family, each message a sentence a user can act on."""


class TidingsError(ValueError):
    """Anything that Tidings refuses. The message names the value and the rule."""


class InvalidValue(TidingsError):
    """A value that no event, subscription or policy may carry: NaN, null, an unknown type."""


class InvalidEvent(TidingsError):
    """A publication that is refused at the door."""


class InvalidCondition(TidingsError):
    """A condition outside the language; `position` is the offset of the offending text."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class InvalidSubscription(TidingsError):
    """A subscription or subscriber that is refused."""


class InvalidPolicy(TidingsError):
    """A policy, or one of its parts, with parameters that mean nothing."""


class InvalidForm(TidingsError):
    """A JSON, TOML or file record with a missing, unknown or ill-typed field."""


class StoreError(TidingsError):
    """A store that cannot be opened, read or written as asked; what failed left nothing behind."""


class VersionGone(StoreError):
    """A version of the catalogue whose history was compacted; read everything anew."""


class SourceError(TidingsError):
    """A source of events that cannot be read as asked; the next start goes on where it stopped."""
