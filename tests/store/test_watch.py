"""Watches: a commit of another connection is seen, and nothing else."""

from threading import Thread

from tidings.store import open_store


def test_a_watch_sees_commits(address: str) -> None:
    with open_store(address) as store, open_store(address) as other:
        watch = store.database.watch()
        assert not watch.wait(0)
        other.catalogue.put({"id": "ada"})
        assert watch.wait(300)
        assert not watch.wait(0)
        writer = Thread(target=other.catalogue.put, args=({"id": "bob"},))
        writer.start()
        assert watch.wait(300)
        writer.join()
        watch.close()


def test_tenants_do_not_wake_each_other(address: str) -> None:
    with open_store(address) as store, open_store(address, tenant="acme") as acme:
        watch = store.database.watch()
        acme.catalogue.put({"id": "ada"})
        assert not watch.wait(0)
        watch.close()
