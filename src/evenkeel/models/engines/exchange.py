"""One stream of requests, handed out to the workers of a model in leases, and the answers as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.models.engines.leases import ROWS, Lease, after_loss, divide, shared_out
from evenkeel.models.engines.team import Member, Team
from evenkeel.models.engines.worker import Failed
from evenkeel.types import Request, Response

AT_ONCE = 2
"""Leases of a worker: while it answers one, the next is on its way."""
WAIT_S = 1.0
LOST = "the worker process ended each time it computed this"


class Job(NamedTuple):
    """What a worker was sent: a lease, or a window of requests to be cut into portions."""

    member: Member
    lease: Lease
    planning: bool


class Exchange:
    """One stream of requests, handed out to the workers of a model."""

    def __init__(self, team: Team, requests: Iterable[Request], window: int) -> None:
        self._team = team
        self._requests = iter(requests)
        self._window = window
        self._ended = False
        self._unplanned: deque[Lease] = deque()
        self._leases: deque[Lease] = deque()
        self._jobs: dict[Any, Job] = {}

    def answers(self) -> Iterator[tuple[Request, Response]]:
        while True:
            self._read()
            self._hand_out()
            if self._ended and not (self._jobs or self._leases or self._unplanned):
                return
            yield from self._collect()

    def _read(self) -> None:
        """Read on while the workers can use more. A model that computes requests together is asked how it
        would cut them, so that the digits are those of a run without a cluster."""
        team = self._team
        planning = self._unplanned or any(job.planning for job in self._jobs.values())
        while not self._ended and not planning and len(self._leases) < AT_ONCE * len(team.ready):
            requests = list(islice(self._requests, self._window or ROWS))
            self._ended = not requests
            if requests and self._window:
                self._unplanned.append(Lease(requests))
                return
            if requests:
                self._leases.append(Lease(requests))

    def _hand_out(self) -> None:
        members = self._team.ready
        for busy in range(AT_ONCE):
            for member in members:
                if len(member.running) > busy or member.alone:
                    continue
                if self._unplanned:
                    self._send(member, self._unplanned.popleft(), planning=True)
                # A worker gets a second lease only where there are enough for all others.
                elif self._leases and (
                    not busy or (len(self._leases) >= len(members) and not self._leases[0].losses)
                ):
                    self._send(member, self._leases.popleft(), planning=False)

    def _send(self, member: Member, lease: Lease, *, planning: bool) -> None:
        method = member.actor.portions if planning else member.actor.answer
        ref = method.remote(lease.requests)
        member.running.append(ref)
        member.alone = bool(lease.losses)
        self._jobs[ref] = Job(member, lease, planning)

    def _collect(self) -> Iterator[tuple[Request, Response]]:
        """Wait for one result and take what has come."""
        ray, team = self._team.ray, self._team
        waiting = [*self._jobs, *team.starting]
        done, _ = ray.wait(waiting, num_returns=1, timeout=WAIT_S)
        if not done:
            team.check_patience()
            return
        # All there is, in the order of sending: what a worker answered before it was lost is not lost.
        done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for ref in [ref for ref in waiting if ref in set(done)]:
            if ref not in self._jobs and ref not in team.starting:
                continue  # it was handed on with the rest of a lost worker
            try:
                result = ray.get(ref)
            except ray.exceptions.RayError as error:
                yield from self._lost(ref, error)
                continue
            if isinstance(result, Failed):
                raise (ModelUnreachable if result.unreachable else UsageError)(result.problem)
            if ref in team.starting:
                team.started(ref, result)
                continue
            member, lease, planning = self._jobs.pop(ref)
            member.running.remove(ref)
            member.alone = False
            if planning:
                self._cut(lease, result)
            else:
                team.answered()
                yield from zip(lease.requests, result, strict=True)

    def _cut(self, lease: Lease, portions: list[list[int]]) -> None:
        """Make leases of portions, and of what a backend left out of them."""
        requests, included = lease.requests, {at for part in portions for at in part}
        rest = [request for at, request in enumerate(requests) if at not in included]
        parts = [*([requests[at] for at in part] for part in portions), *divide(rest, ROWS)]
        self._leases.extend(shared_out(parts, self._team.needs.workers))

    def _lost(self, ref: Any, error: BaseException) -> Iterator[tuple[Request, Response]]:
        """Hand on what a lost worker had; any of it may be the cause."""
        team = self._team
        if ref in team.starting:
            team.lose(team.starting[ref], error)
            return
        member = self._jobs[ref].member
        jobs = [self._jobs.pop(each) for each in member.running]
        member.running.clear()
        for _, lease, planning in jobs:
            if planning:
                if lease.losses:
                    self._cut(lease, [])
                else:
                    self._unplanned.appendleft(Lease(lease.requests, 1))
            else:
                rest = after_loss(lease)
                self._leases.extendleft(rest)
                if not rest:
                    yield from ((r, Response(status="error", reason=LOST)) for r in lease.requests)
        team.lose(member, error)
