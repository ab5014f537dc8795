"""The service: persistent workers that take chunks from a queue of two classes, demand before speculation.

Everything here is called while one lock is held, the caller's own, so that what a caller decides and what the workers
do are in one order. A worker holds it between two chunks, to hand in one and take the next, and never while it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain

from expertcache_reference.reader.errors import ReadCancelled, ReadFailed, cancelled
from expertcache_reference.reader.files import Files, Hand
from expertcache_reference.reader.flights import Flight, Job, Request, Watcher, by_stage, flight_of
from expertcache_reference.reader.queue import Counts, Queue
from expertcache_reference.reader.transfer import Way, fill, unexpected
from expertcache_reference.system.seam import Lock, Machine, Thread


class Service:
    """Flights by key, the queue, the workers. Raises what `Machine.spawn` raises, with nothing left running."""

    def __init__(
        self, machine: Machine, files: Files, lock: Lock, watcher: Watcher, workers: int = 8, way: Way = "pread"
    ) -> None:
        self.flights: dict[Hashable, Flight] = {}
        self.counts = Counts()
        self.closed = False
        self._machine, self.files, self._lock, self._watcher = machine, files, lock, watcher
        self._way: Way = way
        self._queue = Queue()
        self._work = machine.condition(lock)
        self._threads: list[Thread] = []
        self._active = self._sleepers = self._latest = self._resting = 0
        try:
            for number in range(1, workers + 1):
                self._threads.append(machine.spawn(f"reader-{number}", lambda number=number: self._run(number)))  # type: ignore[misc]
        except BaseException:
            with lock:
                self.stop()
            self.join()
            raise

    # ------------------------------------------------------------------------------------------ the caller's side

    def submit(self, requests: Iterable[Request], *, demand: bool = True) -> list[Flight]:
        """Flights for the requests, stage by stage over all of them; a key under way is joined, not read again.

        Raises `InvalidModel` before anything has begun, `ReadCancelled` when the service is closed.
        """
        if self.closed:
            raise ReadCancelled("the reader is closed", where="reader", cure="open another one")
        asked = list(requests)
        fresh: dict[Hashable, Flight] = {}
        for request in asked:
            if request.key not in self.flights and request.key not in fresh:
                fresh[request.key] = flight_of(request, demand, self._machine.page)
        for flight in fresh.values():
            flight.handles = 0
        self.flights |= fresh
        found = [self.flights[request.key] for request in asked]
        for flight in found:
            flight.handles += 1
            if demand and not flight.demand:
                self.promote(flight)
        if fresh:
            jobs = by_stage(fresh.values())
            self._queue.add(jobs, demand=demand)
            for _ in range(min(len(jobs), self._resting)):  # no more than there is work for
                self._work.notify()
        return found

    def promote(self, flight: Flight) -> None:
        """Somebody waits for it now: its chunks that no worker has go before all speculation, once."""
        if not flight.demand:
            flight.demand = True
            self._queue.add([job for job in chain.from_iterable(flight.jobs) if not job.taken], demand=True)

    def withdraw(self, flight: Flight) -> None:
        """One handle less; with the last one the read is cancelled: queued chunks never begin.

        A chunk in service ends first and is thrown away, and only then has the flight landed.
        """
        flight.handles -= 1
        if flight.handles < 1 and not flight.over:
            self._cancel(flight)

    def _cancel(self, flight: Flight) -> None:
        flight.over, flight.error = True, flight.error or cancelled(flight.key)
        if self.flights.get(flight.key) is flight:
            del self.flights[flight.key]  # who asks from here on gets a read of its own
        if not flight.in_service:
            self._land(flight)

    def asleep(self, change: int) -> int:
        """So many more, or less, sleep for bytes from now on; what time it is."""
        now = self._told_time()
        self._sleepers += change
        return now

    def _told_time(self) -> int:
        """What time it is; the time since anything began or ended is booked."""
        now = self._machine.now()
        if self._active:
            self.counts.wall += now - self._latest
            self.counts.hidden += 0 if self._sleepers else now - self._latest
        self._latest = now
        return now

    def stop(self) -> None:
        """Take no more, cancel what is under way, let the workers go; then `join` without the lock."""
        self.closed = True
        for flight in [flight for flight in self.flights.values() if not flight.over]:
            self._cancel(flight)
        self._queue.clear()
        self._work.notify_all()

    def join(self) -> None:
        """Wait for the workers to end; the one call that is made without the lock."""
        for thread in self._threads:
            thread.join()

    # ------------------------------------------------------------------------------------------ the workers' side

    def _run(self, worker: int) -> None:
        hand = Hand(self.files)
        ended: tuple[Job, ReadFailed | None, list[int], int] | None = None
        while True:
            with self._lock:
                now = self._told_time()
                if ended is not None:
                    self._hand_in(worker, *ended, now)
                job = self._queue.next()
                while job is None:
                    hand.empty()
                    if self.closed:
                        return
                    self._rest()
                    hand = Hand(self.files)  # meanwhile another model may have been bound
                    job, now = self._queue.next(), self._told_time()
                self._active += 1
                job.flight.in_service += 1
                self._watcher.began(job, worker)
            ended = (job, *self._serve(hand, job), now)

    def _rest(self) -> None:
        """Sleep until there may be work."""
        self._resting += 1
        try:
            self._work.wait()
        finally:
            self._resting -= 1

    def _serve(self, hand: Hand, job: Job) -> tuple[ReadFailed | None, list[int]]:
        """Read the chunk: what went wrong, and what each request has delivered."""
        flight, came = job.flight, list[int]()
        start, length = job.chunk
        try:
            fill(hand, self._way, self._machine.most_per_read, flight.extents, flight.into, start, length, came.append)
        except ReadFailed as failure:
            return failure.fresh(), came  # without the frames, which would keep views of a mapping alive
        except BaseException as failure:  # a worker that died would leave its waiters asleep
            return unexpected(failure, flight.key), came
        return None, came

    def _hand_in(
        self, worker: int, job: Job, error: ReadFailed | None, came: list[int], since: int, now: int
    ) -> None:  # fmt: skip
        flight = job.flight
        self._active -= 1
        self.counts.add(came, now - since)
        flight.in_service -= 1
        if error is None:
            flight.left[job.stage] -= 1
            self._watcher.ended(job, worker)
        else:
            flight.over, flight.error = True, flight.error or error
        if not flight.in_service and (flight.over or not any(flight.left)):
            self._land(flight)

    def _land(self, flight: Flight) -> None:
        flight.over = flight.done = True
        flight.jobs = ()  # they name the flight: a circle that only the collector would find
        if self.flights.get(flight.key) is flight:
            del self.flights[flight.key]
        if flight.error is None:
            self.counts.records += 1
        elif isinstance(flight.error, ReadCancelled):
            self.counts.cancelled += 1
        else:
            self.counts.failed += 1
        self._watcher.landed(flight)
