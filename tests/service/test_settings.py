"""The settings of a service: those of a tenant, and of the channels of people."""

import dataclasses

import pytest

from tidings.channels.card import CardTemplate
from tidings.channels.reader_links import ReaderLinks
from tidings.errors import TidingsError
from tidings.model.limits import Limits
from tidings.service.settings import ServiceSettings

OWN = CardTemplate.load({"title": "own"})


def test_a_tenant_has_its_own_template_or_that_of_all() -> None:
    settings = ServiceSettings(templates={"films": OWN}, rate=7)
    assert settings.of_tenant("default") is settings
    films = settings.of_tenant("films")
    assert films.template == OWN
    assert films == dataclasses.replace(settings, template=OWN)
    assert films.people.template == OWN
    assert settings.people.template is settings.template is not OWN


def test_the_rules_are_those_of_webhooks() -> None:
    settings = ServiceSettings(webhook_hosts=("*.Example.com",), webhook_networks=("10.0.0.0/8",))
    assert settings.rules.hosts == ("*.example.com",)
    assert [str(network) for network in settings.rules.networks] == ["10.0.0.0/8"]
    assert settings.people.rules == settings.rules


def test_a_wrong_network_is_named() -> None:
    with pytest.raises(TidingsError, match=r"^webhook_networks: '10.0.0.0/99'"):
        _ = ServiceSettings(webhook_networks=("10.0.0.0/99",)).rules


@pytest.mark.parametrize("track", [False, True])
def test_links_lead_to_the_public_address(track: bool) -> None:
    settings = ServiceSettings(public_url="https://films.example", track=track)
    assert settings.people.links == ReaderLinks("https://films.example", track)
    assert ServiceSettings(track=track).people.links.base is None


def test_without_settings_a_service_is_careful() -> None:
    settings = ServiceSettings()
    assert settings.limits == Limits.public()
    assert settings.keep_us is None
    assert settings.webhook_networks == ()
    assert settings.people.smtp is None
    assert not settings.track
