"""The keys of a channel in a config: what is wrong is named, and what may be secret is not."""

from typing import Any

import pytest

from tidings.channels.transport import Secret, TransportForm, needs, read_secret
from tidings.errors import InvalidForm, TidingsError

KNOWN = ("server", "servers", "topic", "password", "options", "rate", "mode")


def form(**table: Any) -> TransportForm:
    return TransportForm(table, KNOWN)


def refusal(read: Any, *arguments: Any) -> str:
    with pytest.raises(InvalidForm) as error:
        read(*arguments)
    return str(error.value)


def test_an_unknown_key_is_named_with_the_known_ones() -> None:
    assert refusal(TransportForm, {"topik": "a"}, ("topic", "rate")) == (
        "unknown key 'topik'; expected one of: rate, topic"
    )


def test_a_text_is_required_unless_it_has_a_default() -> None:
    assert form(topic="films").text("topic") == "films"
    assert form(topic="films").text("topic", "other") == "films"
    assert form().text("topic", "other") == "other"
    assert refusal(form().text, "topic") == "topic is missing"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", "''"),
        (7, "7"),
        (None, "None"),
        (["a"], "['a']"),
        ("a\n", r"'a\n'"),
        ("kafka://ann:Sw0rdfish@host\n", "***"),
    ],
)
def test_a_text_is_printable(value: object, shown: str) -> None:
    message = refusal(form(topic=value).text, "topic")
    assert message == f"topic must be a non-empty string, not {shown}"


def test_the_value_of_a_key_that_may_be_secret_is_not_shown() -> None:
    assert refusal(form(password=12345).text, "password") == (
        "password must be a non-empty string, not ***"
    )


@pytest.mark.parametrize("value", ["node1", "https://host:8443/path", "[::1]:25"])
def test_a_host_has_no_user(value: str) -> None:
    assert form(server=value).host("server") == value


@pytest.mark.parametrize("sign", "@?#=;& ")
def test_what_may_hold_a_password_is_refused_unseen(sign: str) -> None:
    message = refusal(form(server=f"ann:Sw0rdfish{sign}host").host, "server")
    assert message == "server must not hold a user or a password; they have their own keys"


def test_servers_are_listed_with_commas() -> None:
    listed = form(servers="nats://node1:4222, node2 ,[::1]:9").servers("servers")
    assert listed == ("nats://node1:4222", "node2", "[::1]:9")
    assert form().servers("servers", "localhost") == ("localhost",)
    assert refusal(form().servers, "servers") == "servers is missing"


@pytest.mark.parametrize("value", ["a,", ",a", "a,,b", "ann:Sw0rdfish@a", "a/path", "a:b", "a b"])
def test_what_is_no_server_is_refused_unseen(value: str) -> None:
    assert refusal(form(servers=value).servers, "servers") == (
        "servers must list hosts such as node1:4222, without a user or a password; they have "
        "their own keys"
    )


def test_an_optional_text_may_be_missing_and_not_empty() -> None:
    assert form().optional("topic") is None
    assert form(topic="a").optional("topic") == "a"
    assert refusal(form(topic="").optional, "topic").startswith("topic must be a non-empty")


@pytest.mark.parametrize(
    ("value", "read"), [(1, 1.0), (0.5, 0.5), (1e-9, 1e-9), (999_999_999, 999_999_999.0)]
)
def test_a_number_is_positive(value: float, read: float) -> None:
    assert form(rate=value).number("rate") == read
    assert isinstance(form(rate=value).number("rate"), float)


@pytest.mark.parametrize("value", [0, -1, 1e9, float("nan"), float("inf"), True, "5", [1], 10**400])
def test_other_numbers_are_refused(value: object) -> None:
    message = refusal(form(rate=value).number, "rate")
    assert message.startswith("rate must be a positive number, not ")


def test_a_number_may_be_missing() -> None:
    assert form().number("rate") is None
    assert form().number("rate", 5) == 5.0


def test_one_of_several_words_is_chosen() -> None:
    assert form(mode="b").choice("mode", ["a", "b"], "a") == "b"
    assert form().choice("mode", ["a", "b"], "a") == "a"
    assert refusal(form(mode="c").choice, "mode", ["a", "b"], "a") == (
        "mode is one of 'a', 'b', not 'c'"
    )


def test_a_secret_is_a_text_or_the_name_of_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_TEST_SECRET", "from outside")
    assert form().secret("password") is None
    direct = form(password="Sw0rdfish").secret("password")
    assert direct == Secret(value="Sw0rdfish")
    assert direct.reveal() == "Sw0rdfish"
    named = form(password={"env": "TIDINGS_TEST_SECRET"}).secret("password")
    assert named == Secret("TIDINGS_TEST_SECRET")
    assert named.reveal() == "from outside"
    assert "Sw0rdfish" not in repr(direct)


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    secret = Secret("TIDINGS_TEST_SECRET")
    if value is None:
        monkeypatch.delenv("TIDINGS_TEST_SECRET", raising=False)
    else:
        monkeypatch.setenv("TIDINGS_TEST_SECRET", value)
    with pytest.raises(TidingsError) as error:
        secret.reveal()
    assert str(error.value) == "the environment variable TIDINGS_TEST_SECRET is not set"


@pytest.mark.parametrize(
    "value",
    [
        *("", 7, None, ["Sw0rdfish"], True),
        *({}, {"env": ""}, {"env": 7}, {"env": "A-B"}, {"env": "1A"}, {"env": "A B"}),
        *({"env": "A", "x": 1}, {"value": "Sw0rdfish"}),
    ],
)
def test_other_secrets_are_refused_unseen(value: object) -> None:
    assert refusal(read_secret, "password", value) == (
        'password must be a string, or name a variable: {env = "NAME"}'
    )


def test_options_are_joined_with_dots_and_become_text() -> None:
    table = {
        "sasl": {"username": "ann", "password": {"env": "A"}, "deep": {"er": 1}},
        "acks": "all",
        "retries": 5,
        "share": 0.5,
        "idempotent": True,
        "off": False,
    }
    assert form(options=table).options("options") == {
        "sasl.username": Secret(value="ann"),
        "sasl.password": Secret("A"),
        "sasl.deep.er": Secret(value="1"),
        "acks": Secret(value="all"),
        "retries": Secret(value="5"),
        "share": Secret(value="0.5"),
        "idempotent": Secret(value="true"),
        "off": Secret(value="false"),
    }
    assert form().options("options") == form(options={}).options("options") == {}


def test_wrong_options_are_named_with_their_table() -> None:
    assert refusal(form(options="a=b").options, "options") == (
        "options must be a table of names and values"
    )
    assert refusal(form(options={"sasl": {"password": []}}).options, "options") == (
        'options sasl.password must be a string, or name a variable: {env = "NAME"}'
    )


def test_a_library_that_is_missing_is_named_with_its_extra() -> None:
    error = needs("kafka", ImportError("No module named 'confluent_kafka'"))
    assert str(error) == (
        "No module named 'confluent_kafka'; install it with: pip install 'tidings[kafka]'"
    )
