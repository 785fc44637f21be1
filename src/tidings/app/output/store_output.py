"""Output of the commands on stores."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tidings.app.output.console import make_table, plural
from tidings.model.records import Delivery
from tidings.model.values import format_time
from tidings.store.channels import FailedDelivery
from tidings.store.dead_letters import StoredLetter
from tidings.store.notifications import Inbox
from tidings.store.tokens import Token


def print_records(
    console: Console, kind: str, records: Sequence[Mapping[str, Any]], *, more: bool
) -> None:
    """Print subscriptions or subscribers as a table."""
    if kind == "subscriber":
        table = make_table("Subscriber", "Paused", "Policy")
        for record in records:
            paused = "yes" if record.get("paused") else ""
            table.add_row(str(record.get("id")), paused, json.dumps(record.get("policy", {})))
    else:
        table = make_table("Subscription", "Subscriber", "Condition", "Weight>")
        for record in records:
            condition = record.get("where") or json.dumps(record.get("any", record.get("damage")))
            weight = record.get("prefrank", record.get("score", ""))
            names = (str(record.get("id")), str(record.get("subscriber", "")))
            table.add_row(*names, condition, str(weight))
    if records:
        console.print(table)
    ending = f"; continue with --after {records[-1]['id']}" if more else ""
    console.print(Text(plural(len(records), kind) + ending, "bold"))


def print_inbox(console: Console, deliveries: Sequence[Delivery], inbox: Inbox) -> None:
    """Print notifications, the unread ones marked, and how many there are."""
    table = make_table("", "Number>", "Event", "Rank>", "Delivered", "Matched by", "Content")
    for delivery in deliveries:
        mark = "*" if delivery.sequence > inbox.read else ""
        at = format_time(delivery.delivered_us)
        table.add_row(
            *(mark, str(delivery.sequence), delivery.event, f"{delivery.rank:.4g}", at),
            ", ".join(delivery.matched),
            delivery.content_json or "",
        )
    if deliveries:
        console.print(table)
    console.print(Text(f"{plural(inbox.last, 'notification')}, {inbox.unread:,} unread", "bold"))


def print_letters(console: Console, letters: Sequence[StoredLetter], waiting: int) -> None:
    """Print late events or dead letters with the reasons, and how many are waiting."""
    table = make_table("Letter>", "Reason", "Record")
    for letter in letters:
        table.add_row(str(letter.id), letter.reason, json.dumps(letter.record))
    if letters:
        console.print(table)
    console.print(Text(f"{plural(waiting, 'letter')} waiting", "bold"))


def print_addresses(console: Console, states: Sequence[Mapping[str, Any]]) -> None:
    """Print the addresses of people as a table."""
    table = make_table("Subscriber", "Channel", "Address", "When", "State", "Sent", "Waiting")
    for state in states:
        when = ", ".join(state["at"]) if state["every"] == "day" else f"every {state['every']}"
        names = ("subscriber", "id", "address")
        counts = (f"{state['sent']:,}", f"{state['waiting']:,}")
        table.add_row(*(str(state[name]) for name in names), when, _word(state), *counts)
    if states:
        console.print(table)
    console.print(Text(plural(len(states), "channel"), "bold"))


def _word(state: Mapping[str, Any]) -> str:
    """Return the state of a channel in a few words."""
    if state["disabled"]:
        return f"disabled: {state['disabled']}"
    if not state["verified"]:
        return "not verified"
    if state["paused"]:
        return "paused"
    return f"failing: {state['reason']}" if state["failures"] else "working"


def print_tokens(console: Console, tokens: Sequence[Token]) -> None:
    """Print tokens as a table, with the time at which each was revoked."""
    table = make_table("Token", "Role", "Tenant", "Subscriber", "Label", "Expires", "Revoked")
    for token in tokens:
        form = {
            name: "" if value is None else str(value) for name, value in token.to_dict().items()
        }
        names = ("id", "role", "tenant", "subscriber", "label", "expires_at", "revoked_at")
        table.add_row(*(form[name] for name in names))
    if tokens:
        console.print(table)
    console.print(Text(plural(len(tokens), "token"), "bold"))


def print_channels(console: Console, forms: Sequence[dict[str, Any]]) -> None:
    """Print channels as a table, with the reasons why messages were not sent."""
    table = make_table(
        "Channel", "Kind", "Subscriber", "State", "Sent>", "Waiting>", "Given up>", "Reason"
    )
    for form in forms:
        counts = [f"{form[name]:,}" for name in ("sent", "waiting", "given_up")]
        names = [form[name] or "" for name in ("id", "kind", "subscriber", "state")]
        table.add_row(*names, *counts, _why_unsent(form))
    if forms:
        console.print(table)
    console.print(Text(plural(len(forms), "channel"), "bold"))


def _why_unsent(form: Mapping[str, Any]) -> str:
    """Return why messages wait, and why others were given up."""
    is_failing = form["failures"] or form["state"] == "disabled"
    due = f"due at {form['next_at']}" if form["waiting"] and form["next_at"] else None
    waits, lost = form["reason"] if is_failing else due, form["given_up_reason"]
    reasons = [waits, f"given up: {lost}" if lost and lost != waits else None]
    return "; ".join(reason for reason in reasons if reason)


def print_failures(console: Console, failures: Sequence[FailedDelivery]) -> None:
    """Print the messages that a channel failed to send."""
    table = make_table("Message>", "Attempts>", "Again at", "Reason")
    for failure in failures:
        form = failure.to_dict()
        again = form["next_at"] or "given up"
        table.add_row(str(failure.number), str(failure.attempts), again, failure.reason)
    if failures:
        console.print(table)
    console.print(Text(plural(len(failures), "message"), "bold"))
