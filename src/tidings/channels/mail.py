"""Mail: a digest as a message with text and HTML, which its reader can end with one click."""

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from typing import Any, Final

from tidings.channels.layouts import Digest, html_layout, text_layout
from tidings.channels.smtp import SmtpSettings
from tidings.model.values import moment

_QUOTED: Final = "quoted-printable"
_ADDRESSES: Final = ("list-unsubscribe", "message-id")


class UnfoldedAddresses(EmailPolicy):
    """The usual policy, except for headers that are one long word.

    The library would encode such a word, as it does with text, and no mail program decodes it.
    """

    def fold_binary(self, name: str, value: Any) -> bytes:
        """Return a header as it is sent."""
        if name.lower() in _ADDRESSES:
            return f"{name}: {value}{self.linesep}".encode("ascii")
        return super().fold_binary(name, value)


_POLICY: Final = UnfoldedAddresses(linesep="\r\n")


def digest_mail(
    settings: SmtpSettings, to: str, digest: Digest, name: str, at_us: int
) -> EmailMessage:
    """Return a digest as a mail; a name that stays the same makes a repetition recognisable."""
    mail = _mail(settings, to, digest.heading, name, moment(at_us))
    if digest.links.pause:
        # RFC 8058: a mail program posts to this address, without asking its reader again.
        mail["List-Unsubscribe"] = f"<{digest.links.pause}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail.set_content(text_layout(digest), cte=_QUOTED)
    mail.add_alternative(html_layout(digest), subtype="html", cte=_QUOTED)
    # The same mail each time; and quoted-printable text never holds `=_`, whatever it says.
    mail.set_boundary(f"=_{name}")
    return mail


def code_mail(settings: SmtpSettings, to: str, text: str, name: str, at_us: int) -> EmailMessage:
    """Return a mail with a code that verifies its address."""
    mail = _mail(settings, to, "Is this your address?", name, moment(at_us))
    mail.set_content(text, cte=_QUOTED)
    return mail


def message_id(settings: SmtpSettings, name: str) -> str:
    """Return the Message-ID of a mail.

    >>> message_id(SmtpSettings("h", "Tidings <t@films.example>", 25), "0f3c")
    '<0f3c@films.example>'
    """
    return f"<{name}@{settings.domain}>"


def _mail(settings: SmtpSettings, to: str, subject: str, name: str, at: datetime) -> EmailMessage:
    mail = EmailMessage(policy=_POLICY)
    username, _, domain = to.rpartition("@")  # `addr_spec` takes ASCII only
    mail["From"] = settings.sender
    mail["To"] = Address(username=username, domain=domain)
    mail["Subject"] = subject
    mail["Date"] = at
    mail["Message-ID"] = message_id(settings, name)
    # RFC 3834: programs that answer mail by themselves leave this one alone.
    mail["Auto-Submitted"] = "auto-generated"
    return mail
