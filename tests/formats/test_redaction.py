"""Secret options by their names, and secret values in texts: hidden whole, in parts and encoded."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.formats.redaction import (
    hider,
    hider_of,
    is_like_address,
    is_secret,
    may_hide_password,
    shown_safely,
    shown_server,
)


def test_options_are_secret_by_their_names() -> None:
    assert all(map(is_secret, ("sasl.password", "ssl.key.password", "aws.secret.access.key")))
    assert not any(map(is_secret, ("subscribe", "key")))
    assert is_secret("fs.s3a.session.token")
    assert not is_secret("maxRowsPerTrigger")


@pytest.mark.parametrize(
    "key",
    ["PASSWORD", "pwd", "pass", "dsn", "url", "user", "kafka.sasl.jaas.config", "conninfo", "Auth"],
)
def test_a_name_is_secret_in_any_case(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    ["key", "key.serializer", "key.converter", "kafka.sasl.mechanism", "connection.timeout.ms"],
)
def test_names_that_only_resemble_secret_ones_are_shown(key: str) -> None:
    assert not is_secret(key)


def test_only_the_whole_name_key_is_harmless() -> None:
    assert is_secret("access.key")
    assert is_secret("keys")
    assert not is_secret("passengers")
    assert is_secret("bypass")


@pytest.mark.parametrize(
    "text",
    [
        "ann@host",
        "postgresql://host/db",
        "sqlite:file",
        " jdbc:x",
        "host=x",
        "user = ann",
        "my pwd",
        "Password",
        "top-secret",
        "nats?//ann:swordfish?host:4222",
        '#at"//ann:swordfish host',
    ],
)
def test_a_text_that_looks_like_an_address_is_not_shown(text: str) -> None:
    assert may_hide_password(text)
    assert shown_safely(text) == "***"


@pytest.mark.parametrize("text", ["out/films", "films", "C:/films", "a-b_c.parquet", "", "=x"])
def test_a_path_or_a_name_is_shown(text: str) -> None:
    assert not may_hide_password(text)
    assert shown_safely(text) == repr(text)


@pytest.mark.parametrize("text", ["secret.db", "/run/secrets/tidings.db", "pass", "old-pwd.db"])
def test_the_name_of_a_file_is_no_address(text: str) -> None:
    assert not is_like_address(text)
    assert may_hide_password(text)


@pytest.mark.parametrize("text", ["password swordfish", "a secret: x y", "ann@host", "host=x"])
def test_credentials_are_like_an_address(text: str) -> None:
    assert is_like_address(text)


@pytest.mark.parametrize("text", ["ann:swordfish/host", "nats?//ann:swordfish", "a b", "host:x"])
def test_only_the_name_of_a_server_is_shown(text: str) -> None:
    assert shown_server(text) == "***"
    assert shown_server("mqtt://host:1883") == "'mqtt://host:1883'"


def test_values_of_any_type_are_judged_by_their_text() -> None:
    assert shown_safely(3) == "3"
    assert shown_safely(["ann:swordfish@host"]) == "***"


def test_short_secrets_are_hidden_where_they_are_quoted() -> None:
    hide = hider(["ab", "word"])
    assert (
        hide('user "ab" is absent; a word, but no sword')
        == 'user "***" is absent; a ***, but no sword'
    )
    assert hider([])("as it is") == "as it is"


def test_empty_secrets_hide_nothing() -> None:
    assert hider(["", ""])("a 'b' \"\"") == "a 'b' \"\""


def test_long_secrets_are_hidden_within_words() -> None:
    assert hider(["swordfish"])("xswordfishy swordfis") == "x***y swordfis"


def test_parts_of_three_characters_are_shown_and_parts_of_four_hidden() -> None:
    assert hider(["abc/defg"])("abc and defg, not defgh") == "abc and ***, not defgh"


def test_the_longest_secret_is_hidden_first() -> None:
    assert hider(["swordfish", "swordfish-2000"])("swordfish-2000") == "***"


def test_a_secret_is_hidden_encoded_and_decoded() -> None:
    hide = hider(["s3cr%2Fet wörd"])
    assert hide("s3cr%2Fet wörd") == "***"
    assert hide("s3cr/et wörd") == "***"
    assert hide("s3cr%2Fet%20w%C3%B6rd") == "***"
    assert hide("s3cr/et%20w%C3%B6rd") == "***"


def test_signs_of_patterns_in_secrets_are_plain_characters() -> None:
    hide = hider(["a.c+e(fg)h"])
    assert hide("a.c+e(fg)h and abccefgh") == "*** and abccefgh"


def test_protocols_are_no_secrets() -> None:
    hide = hider(["jdbc:postgresql://host1/films"])
    assert hide("jdbc or postgresql, films on host1") == "jdbc or postgresql, *** on ***"


def test_only_the_values_of_secret_options_are_hidden() -> None:
    hide = hider_of({"subscribe": "films", "password": "swordfish"})
    assert hide("films: swordfish is wrong") == "films: *** is wrong"
    assert hider_of({"subscribe": "films"})("films") == "films"


@given(
    secret=st.text("ab1/:@% ", min_size=8, max_size=12),
    before=st.text("ab1 ", max_size=3),
    after=st.text("ab1 ", max_size=3),
)
@example(secret="a%2Fb%20ab", before="%2F", after="")
def test_a_long_secret_is_never_left_in_a_text(secret: str, before: str, after: str) -> None:
    assert secret not in hider([secret])(before + secret + after)
