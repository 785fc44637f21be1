"""The config of a service: every key, and clear refusals."""

from pathlib import Path

import pytest

from tidings.app.serve.config import load_serve_config
from tidings.errors import InvalidForm
from tidings.model.limits import Limits

WHOLE = """
[service]
store = "sqlite:///films.db"
host = "0.0.0.0"
port = 9000
engine = "local"
folder = "state"
lateness = "2s"
future = "1m"
keep = "30d"
rate = 50
subscriptions = 10
body_bytes = 1000
body_records = 7
recent = 100
streams = 3
webhooks = 2
webhook_hosts = ["*.example.com"]
webhook_networks = ["10.0.0.0/8"]

[limits]
preset = "public"
k = 5
"""


def write(folder: Path, text: str) -> str:
    path = folder / "service.toml"
    path.write_text(text)
    return str(path)


def test_tenants_on_spark(tmp_path: Path) -> None:
    text = '[service]\nengine = "spark"\nspark_tenants = ["acme", "default", "acme"]\n'
    assert load_serve_config(write(tmp_path, text)).spark_tenants == ("acme",)
    with pytest.raises(InvalidForm, match="spark_tenants: the name of a tenant"):
        load_serve_config(write(tmp_path, text.replace("acme", "../acme")))
    with pytest.raises(InvalidForm, match="the local engine serves them all"):
        load_serve_config(write(tmp_path, text.replace('"spark"', '"local"')))


def test_a_store_alone_has_the_defaults() -> None:
    config = load_serve_config("films.db")
    assert (config.store, config.host, config.port, config.engine) == (
        *("films.db", "127.0.0.1", 8000),
        None,
    )
    assert config.settings.limits == Limits.public()


def test_every_key_is_read(tmp_path: Path) -> None:
    config = load_serve_config(write(tmp_path, WHOLE))
    assert config.store == f"sqlite:///{tmp_path}/films.db"
    assert (config.host, config.port, config.engine) == ("0.0.0.0", 9000, "local")
    assert config.folder == tmp_path / "state"
    settings = config.settings
    assert (settings.lateness, settings.future_us, settings.keep_us) == (
        *("2s", 60_000_000),
        30 * 86_400_000_000,
    )
    assert (settings.rate, settings.subscriptions, settings.body_bytes) == (50, 10, 1000)
    assert settings.body_records == 7
    assert (settings.recent, settings.limits.k) == (100, 5)
    assert (settings.streams, settings.webhooks) == (3, 2)
    assert settings.webhook_hosts == ("*.example.com",)
    assert settings.webhook_networks == ("10.0.0.0/8",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "service"),
        ("[service]\nprot = 1", "prot"),
        ("[service]\nport = 70000", "port"),
        ("[service]\nengine = 'flink'", "engine is one of"),
        ("[service]\nkeep = 'long'", "keep"),
        ("[service]\nrate = 0", "rate"),
        ("[service]\nlateness = 'soon'", "lateness"),
        ("[service]\nstore = 7", "store"),
        ("[service]\nwebhook_hosts = 'a'", "webhook_hosts must be a list"),
        ("[service]\nwebhook_networks = ['10.0.0.1/8']", "webhook_networks"),
        ("[service]\n[limits]\nkk = 1", "kk"),
    ],
)
def test_a_wrong_key_or_value_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(InvalidForm, match=reason):
        load_serve_config(write(tmp_path, text))


PEOPLE = """
[service]
public_url = "https://films.example/tidings"
track = true
channels = 3

[mail]
host = "mail.example"
from = "Films <t@films.example>"
user = "tidings"
password = {env = "MAIL_PASSWORD"}

[template]
title = "{{name}}"

[templates.shop]
title = "{{sku}}"
"""


def test_how_people_are_reached(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text(PEOPLE)
    settings = load_serve_config(str(path)).settings
    assert settings.mail is not None
    assert (settings.mail.host, settings.mail.port) == ("mail.example", 587)
    assert settings.template.title.source == "{{name}}"
    assert settings.of_tenant("default") is settings
    assert settings.of_tenant("shop").people.template.title.source == "{{sku}}"
    assert (settings.public_url, settings.track) == ("https://films.example/tidings", True)
    assert settings.people.links.base == settings.public_url
    assert settings.channels == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[mail]\nhost = 'x'", r"\[mail\] from is missing"),
        ("mail = 7", r"\[mail\] it must be a table, not 7"),
        ("[template]\ntitle = '{{'", r"\[template\] title: line 1: a tag is opened"),
        ("[templates.shop]\ntitle = '{{'", r"\[templates.shop\] title: line 1"),
        ("[templates.Shop]\ntitle = 'a'", r"\[templates.Shop\] the name of a tenant"),
        ("templates = 7", "templates must be tables"),
        ("[service]\npublic_url = 'javascript:x'", r"\[service\] public_url must be http"),
        ("[service]\ntrack = 1", r"\[service\] track is true or false"),
    ],
)
def test_mistakes_about_people_are_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "service.toml"
    path.write_text(text if "[service]" in text else f"{text}\n[service]\n")
    with pytest.raises(InvalidForm, match=reason):
        load_serve_config(str(path))


@pytest.mark.parametrize(
    "name", ["http://ann:Sw0rdfish@h/x.toml", "s3://ann:Sw0rd@b/x.toml", "a\0b.toml", "none.toml"]
)
def test_the_name_of_a_config_may_be_anything(name: str) -> None:
    with pytest.raises(InvalidForm) as refused:
        load_serve_config(name)
    assert "Sw0rd" not in str(refused.value)


@pytest.mark.parametrize("url", ["http://ann:Sw0rdfish@h/", "ann:Sw0rdfish", "ftp://Sw0rd@h"])
def test_an_address_that_readers_use_is_not_shown(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidForm, match="public_url must be http:// or https://") as refused:
        load_serve_config(write(tmp_path, f'[service]\npublic_url = "{url}"\n'))
    assert "Sw0rd" not in str(refused.value)


@pytest.mark.parametrize("key", ["host", "folder", "engine", "track", "lateness", "webhooks"])
def test_an_address_at_a_wrong_key_is_not_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidForm, match=r"service\.toml: ") as refused:
        load_serve_config(write(tmp_path, f'[service]\n{key} = "https://ann:Sw0rdfish@h/x"\n'))
    assert "Sw0rd" not in str(refused.value)
