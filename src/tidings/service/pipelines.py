"""The pipelines of all tenants of a service, in one process: a thread for each."""

import logging
from threading import Event as Flag
from threading import Thread
from typing import Final

from tidings.errors import TidingsError
from tidings.service.pipeline import Pipeline
from tidings.service.settings import ServiceSettings
from tidings.store import open_store
from tidings.store.address import DEFAULT_TENANT

_LOG: Final = logging.getLogger(__name__)
_LOOK_EVERY_S: Final = 2.0


def run_pipelines(address: str, settings: ServiceSettings, stop: Flag) -> None:
    """Run a pipeline for each tenant until the flag is set; new tenants join while it runs."""
    threads = dict[str, Thread]()
    with open_store(address) as store:
        while True:
            tenants = {DEFAULT_TENANT, *(token.tenant for token in store.tokens.listed())}
            for tenant in sorted(tenants):
                if tenant not in threads or not threads[tenant].is_alive():
                    arguments = (address, tenant, settings, stop)
                    threads[tenant] = Thread(target=_run, args=arguments, name=f"tenant {tenant}")
                    threads[tenant].start()
            if stop.wait(_LOOK_EVERY_S):
                break
    for thread in threads.values():
        thread.join()


def _run(address: str, tenant: str, settings: ServiceSettings, stop: Flag) -> None:
    """Run the pipeline of a tenant; one that fails is logged, and started again later."""
    try:
        with open_store(address, tenant=tenant) as store:
            Pipeline(store, settings.lateness, keep_us=settings.keep_us).run(stop)
    except TidingsError:
        _LOG.exception("the pipeline of tenant %s has failed, and will start again", tenant)
