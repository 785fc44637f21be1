"""The commands of the service: tokens, and what `serve` refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidings.app.cli import app
from tidings.policy import Subscriber
from tidings.store import open_store

RUN = CliRunner()


def call(*arguments: str) -> str:
    result = RUN.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "t.db")


def test_a_token_is_made_listed_and_revoked(store: str) -> None:
    options = (
        "--role",
        "subscriber",
        "--subscriber",
        "ada",
        "--expires",
        "90d",
        "--tenant",
        "acme",
    )
    text = call("token", "create", store, *options, "--label", "phone").strip()
    with open_store(store) as opened:
        token = opened.tokens.find(text, 0)
        assert token is not None
        assert (token.role, token.subscriber, token.tenant) == ("subscriber", "ada", "acme")
    listed = call("token", "list", store)
    assert "phone" in listed
    assert text not in listed
    assert json.loads(call("token", "list", store, "--json"))["id"] == token.id
    call("token", "revoke", store, text)
    with open_store(store) as opened:
        assert opened.tokens.find(text, 0) is None
    assert RUN.invoke(app, ("token", "revoke", store, token.id)).exit_code == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--role", "subscriber"), "if its role is subscriber"),
        (("--role", "admin", "--tenant", "No/Path"), "lower-case"),
        (("--role", "admin", "--expires", "soon"), "soon"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(store: str, options, reason: str) -> None:
    result = RUN.invoke(app, ("token", "create", store, *options))
    assert result.exit_code == 1
    assert reason in result.output


def test_a_store_that_does_not_exist_has_no_tokens(store: str) -> None:
    result = RUN.invoke(app, ("token", "list", store))
    assert result.exit_code == 1
    assert not Path(store).exists()


def test_without_tokens_others_are_not_served(store: str) -> None:
    result = RUN.invoke(app, ("serve", store, "--host", "0.0.0.0"))
    assert result.exit_code == 1
    assert "without tokens" in result.output


@pytest.mark.parametrize("only", [(), ("--only", "service"), ("--only", "pipeline")])
def test_a_store_that_cannot_be_opened_is_one_error(store: str, only: tuple[str, ...]) -> None:
    Path(store).write_text("no store")
    result = RUN.invoke(app, ("serve", store, "--port", "0", "--engine", "local", *only))
    assert result.exit_code == 1
    assert "t.db: this file is not an SQLite database" in result.output
    assert result.output.count("\n") <= 2


def test_a_demo_does_not_touch_a_store_of_somebody_else(store: str) -> None:
    with open_store(store) as opened:
        opened.catalogue.load([Subscriber("me")])
    result = RUN.invoke(app, ("serve", store, "--demo"))
    assert result.exit_code == 1
    assert "already has subscribers" in result.output


@pytest.mark.parametrize("only", [(), ("--only", "service")])
def test_a_tenant_is_served_alone_only_by_a_pipeline(store: str, only: tuple[str, ...]) -> None:
    result = RUN.invoke(app, ("serve", store, "--tenant", "acme", *only))
    assert result.exit_code == 1
    assert "--tenant needs --only pipeline" in result.output
    assert not Path(store).exists()


def test_a_tenant_that_is_not_on_spark_has_no_pipeline_of_its_own(store: str) -> None:
    options = ("--only", "pipeline", "--tenant", "acme", "--engine", "local")
    result = RUN.invoke(app, ("serve", store, *options))
    assert result.exit_code == 1
    assert "tenant 'acme' is not on Spark" in " ".join(result.output.split())
