"""The figures of a store are those of its parts."""

from tests.store.channel_states import fail

from tidings import DeadLetter, Delivery, Event
from tidings.store import EngineStep, open_store
from tidings.store.append_batch import BatchAppend
from tidings.store.channels import FailedDelivery
from tidings.store.figures import StoreFigures, WebhookFigures, read_figures
from tidings.store.publications import NewPublication


def test_an_empty_store_has_nothing(address: str) -> None:
    with open_store(address) as store:
        figures = read_figures(store.database)
    assert (figures.waiting, figures.lag_s(10)) == (0, 0.0)
    nothing = WebhookFigures(0, 0, 0, 0, 0, 0)
    assert figures == StoreFigures(0, 0, 0, 0, 0, None, 0, 0, 0, nothing)


def test_what_waits_and_what_failed_is_counted(address: str) -> None:
    with open_store(address) as store:
        events = [NewPublication(Event(name, {}, 0)) for name in "abc"]
        store.publications.accept(events[:1], now_us=1_000_000)
        store.publications.accept(events[1:], now_us=2_000_000)
        for name in ("h1", "h2", "h3"):
            store.webhooks.put("ada", name, "https://example.com", 0)
        deliveries = [Delivery("ada", name, 1.0, 1, {}, ("s",), 1, 0) for name in "ab"]
        output = BatchAppend.of("local", 1, deliveries, late=(), dead=[DeadLetter("x", "bad")])
        store.log.append(EngineStep(1, None, 0, upto=1), output)
        keys = {webhook.id: webhook.key for webhook in store.webhooks.of("ada")}
        fail(store, keys["h1"], FailedDelivery(1, 1, 5, "no answer"))
        fail(store, keys["h2"], FailedDelivery(1, 9, None, "no answer"), disabled="gone")
        figures = read_figures(store.database)
    assert (figures.published, figures.taken, figures.waiting, figures.step) == (3, 1, 2, 1)
    assert figures.lag_s(5_000_000) == 3.0
    assert (figures.delivered, figures.late, figures.dead) == (2, 0, 1)
    assert figures.webhooks == WebhookFigures(3, 1, 1, outbox=1 + 2, retries=1, given_up=1)
