"""Writes publications of concurrent requests together: one commit, and one sync, for many."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from tidings.model.values import SECOND_US
from tidings.store.publications import NewPublication, Publications


@dataclass(eq=False)
class _Job:
    """The publications of a request, and their results."""

    publications: Sequence[NewPublication]
    new: list[bool] = field(default_factory=list)
    error: Exception | None = None
    done: bool = False


class PublicationWriter:
    """Accepts publications of many threads.

    The thread that gets the lock writes for all waiting.
    """

    def __init__(self, publications: Publications) -> None:
        self._publications = publications
        self._writing, self._listing = Lock(), Lock()
        self._waiting: list[_Job] = []

    def accept(self, publications: Sequence[NewPublication]) -> list[bool]:
        """Write publications durably; return which of them are new."""
        job = _Job(publications)
        with self._listing:
            self._waiting.append(job)
        with self._writing:
            if not job.done:
                with self._listing:
                    jobs, self._waiting = self._waiting, []
                self._write(jobs)
        if job.error is not None:
            raise job.error
        return job.new

    def _write(self, jobs: list[_Job]) -> None:
        """Write the publications of all jobs; an error applies to each of them."""
        everything = [publication for job in jobs for publication in job.publications]
        try:
            new = self._publications.accept(everything, time.time_ns() * SECOND_US // 10**9)
        except Exception as error:  # noqa: BLE001 - it is raised again, in every request
            for job in jobs:
                job.error, job.done = error, True
            return
        for job in jobs:
            count = len(job.publications)
            job.new, new, job.done = new[:count], new[count:], True
