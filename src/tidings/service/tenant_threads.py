"""The pipelines and channels of all tenants of a service, in one process: a thread for each."""

import logging
import time
from collections.abc import Callable, Collection
from itertools import product
from threading import Event as Flag
from threading import Thread, current_thread
from typing import Final

from tidings.channels import Dispatcher
from tidings.channels.address_book import declare_entries
from tidings.channels.person_senders import person_openers
from tidings.channels.registry import declare, openers
from tidings.channels.transport import DeclaredChannel
from tidings.channels.webhook import webhooks
from tidings.errors import InvalidForm, TidingsError, shown
from tidings.model.values import SECOND_US
from tidings.service.pipeline import Pipeline
from tidings.service.settings import ServiceSettings
from tidings.store import Store, open_store
from tidings.store.address import DEFAULT_TENANT
from tidings.store.webhooks import WEBHOOK

_LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 2.0

Work = Callable[[Store, str, ServiceSettings, Flag], None]


def run_pipelines(address: str, settings: ServiceSettings, stop: Flag) -> None:
    """Run pipelines and send webhooks until the flag is set; new tenants may join at any time."""
    _run_for_tenants(address, settings, stop, elsewhere=())


def start_beside_spark(
    address: str, settings: ServiceSettings, stop: Flag, on_spark: Collection[str]
) -> Thread:
    """Start the webhooks of all tenants, and the pipelines of those that are not on Spark."""
    arguments = (address, settings, stop, [f"pipeline of tenant {tenant}" for tenant in on_spark])
    thread = Thread(target=_run_for_tenants, args=arguments, daemon=True)
    thread.start()
    return thread


def _run_for_tenants(
    address: str, settings: ServiceSettings, stop: Flag, elsewhere: Collection[str]
) -> None:
    """Run each job for each tenant, except those that are done elsewhere."""
    works: dict[str, Work] = {"pipeline": _deliver, "channels": _send}
    threads = dict[str, Thread]()
    with open_store(address) as store:
        while True:
            for tenant, (label, work) in product(sorted(store.tokens.tenants()), works.items()):
                name = f"{label} of tenant {tenant}"
                if name in elsewhere:
                    continue
                if name not in threads or not threads[name].is_alive():
                    arguments = (address, tenant, work, settings, stop)
                    threads[name] = Thread(target=_run, args=arguments, name=name, daemon=True)
                    threads[name].start()
            if stop.wait(_LOOK_EVERY_S):
                break
    for thread in threads.values():
        thread.join()


def declare_channels(store: Store, tenant: str, settings: ServiceSettings) -> None:
    """Enter the channels of a tenant that the config declares, unless they are there already.

    Whoever writes deliveries does this first: a new channel begins with what is delivered after it
    was entered, and must get all that the service delivers.
    """
    now_us = time.time_ns() * SECOND_US // 10**9
    declare(store, _queues(tenant, settings), now_us)
    for draft in settings.entries if tenant == DEFAULT_TENANT else ():
        try:
            declare_entries(store, [draft], now_us)
        except InvalidForm:  # one that does not fit what is stored must not stop the others
            _LOG.exception("channel %s of %s is not entered", draft.id, shown(draft.subscriber))


def _send(store: Store, tenant: str, settings: ServiceSettings, stop: Flag) -> None:
    """Send the deliveries of a tenant to its webhooks, people and queues."""
    people = person_openers(store, tenant, settings.people)
    queues = openers(_queues(tenant, settings))
    Dispatcher(store, {WEBHOOK: webhooks(settings.rules), **people, **queues}).run(stop)


def _deliver(store: Store, tenant: str, settings: ServiceSettings, stop: Flag) -> None:
    declare_channels(store, tenant, settings)
    Pipeline(store, settings.lateness, keep_us=settings.keep_us).run(stop)


def _queues(tenant: str, settings: ServiceSettings) -> list[DeclaredChannel]:
    return [queue for queue in settings.queues if queue.tenant == tenant]


def _run(address: str, tenant: str, work: Work, settings: ServiceSettings, stop: Flag) -> None:
    """Do a job of a tenant; a failure is logged, and the job is restarted later."""
    try:
        with open_store(address, tenant=tenant) as store:
            work(store, tenant, settings.of_tenant(tenant), stop)
    except TidingsError:
        _LOG.exception("the %s failed and will be restarted", current_thread().name)
