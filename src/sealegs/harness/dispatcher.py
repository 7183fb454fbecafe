"""The path of every request: past the journal, through the gate, to a model, into the journal.

A request is given its key once, which stays with it. What the journal holds is not asked. The gate admits
the rest while the limits hold; the model yields each request with its response, in any order, and the journal
stores it. A request that ended in an error is stored too: the next start asks it again, this one never.
"""

from __future__ import annotations

import gc
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from sealegs.errors import SealegsError, UsageError
from sealegs.harness.gate import MoneySetAside, RequestGate, Ticket
from sealegs.harness.model import HasNotes, Model, ServedModel
from sealegs.harness.progress import Progress, watch
from sealegs.journal.database import LOOKUP
from sealegs.journal.journal import Journal, Keyed, make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.text.answers import is_reasoning_only
from sealegs.types import Generate, Request, Response

LISTED = 5
"""Versions of a model that a note lists."""
NEW_OBJECTS = 20_000
"""After which the garbage collector looks for cycles among them, while requests are sent."""
FIRST_REPLIES = 20
"""A model of which so many first replies are reasoning without an answer is not asked further."""

Opener: TypeAlias = Callable[[str], Model]
"""Gives the model of a role, loading nothing before it is asked."""

Refusal: TypeAlias = Callable[[int], SealegsError]
"""Says why so many requests are not asked, and what permits them."""

TITLES = {"model": "asking", "embedder": "embedding", "judge": "judging"}


class RareCollection:
    """While requests are sent, Python's garbage collector looks for cycles less often: at its usual pace it
    takes a fifth of the time of many small requests. Calls may overlap; the last to end leaves it as it was.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._thresholds = (0, 0, 0)

    def __enter__(self) -> None:
        with self._lock:
            if not self._calls:
                self._thresholds = gc.get_threshold()
                gc.set_threshold(max(NEW_OBJECTS, self._thresholds[0]), *self._thresholds[1:])
            self._calls += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls:
                gc.set_threshold(*self._thresholds)


RARE_COLLECTION = RareCollection()


class ReasoningOnly(UsageError):
    """The first replies of a model are all reasoning, without an answer."""


class Dispatcher:
    """Has requests answered, each once, and reads what is stored."""

    def __init__(
        self,
        journal: Journal,
        identities: Mapping[str, dict[str, Any]],
        *,
        opener: Opener,
        gate: RequestGate,
        progress: Progress,
        titles: Mapping[str, str] = TITLES,
        reuse: Recording | None = None,
        refusals: Mapping[str, Refusal] | None = None,
    ) -> None:
        self.journal = journal
        self.gate = gate
        self._opener = opener
        self.progress = progress
        self._titles = titles
        self._reuse = reuse
        self._refusals = refusals or {}
        self._asked: dict[str, Model] = {}
        self.failed: set[bytes] = set()
        """The keys of what ended in an error in this start."""
        self._versions: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """By role: the models and fingerprints that the replies name."""
        self._digests = {role: model_digest(identity) for role, identity in identities.items()}
        gate.resume(journal.usage(), journal.put_usage)

    def ask(self, role: str, requests: Callable[[], Iterator[Request]]) -> None:
        """Have every request answered that the journal does not hold. `requests` may be iterated anew.

        Of a role that may not be asked, what failed before stays as it is; what was never asked is refused.
        """
        keys = self.keys(role, requests())
        if (different := len(set(keys))) < len(keys):
            words = f"{different:,} of {len(keys):,} requests differ; equal ones are asked once"
            self.progress.note(f"{self._title(role)}: {words}")
        self._ask(role, requests, keys)

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """Have requests of any roles answered that are not yet; the answers in order."""
        keys: dict[str, list[bytes]] = {}
        for role, group in by_role(requests).items():
            keys[role] = self.keys(role, group)
            self._ask(role, group.__iter__, keys[role])
        return self._read(requests, keys)

    def read(self, requests: Sequence[Request]) -> list[Response]:
        """The stored answers to requests of any roles, in order."""
        return self._read(
            requests, {role: self.keys(role, group) for role, group in by_role(requests).items()}
        )

    def keys(self, role: str, requests: Iterable[Request]) -> list[bytes]:
        digest = self._digests[role]
        return [make_key(digest, request) for request in requests]

    def count_missing(self, role: str, requests: Iterable[Request]) -> int:
        """How many requests were never answered, however that ended."""
        return len(self.journal.unanswered(self.keys(role, requests), again=False))

    def stored_bytes(self, requests: Sequence[Request]) -> int:
        """How large the stored answers to requests of any roles are."""
        keys = (key for role, group in by_role(requests).items() for key in self.keys(role, group))
        return self.journal.stored_bytes(keys)

    def notes(self) -> dict[str, list[str]]:
        """By role, what the models that were asked have to say beside the figures."""
        noted = {role: model.notes() for role, model in self._asked.items() if isinstance(model, HasNotes)}
        for role, versions in self._versions.items():
            noted[role] = [*noted.get(role, ()), *_version_notes(versions)]
        return {role: notes for role, notes in noted.items() if notes}

    def refused(self) -> dict[str, list[str]]:
        """By role, the settings that the servers refused, so that they were not sent."""
        asked = self._asked.items()
        refused = {role: model.refused() for role, model in asked if isinstance(model, ServedModel)}
        return {role: names for role, names in refused.items() if names}

    def _ask(self, role: str, requests: Callable[[], Iterator[Request]], keys: list[bytes]) -> None:
        title, total = self._title(role), len(set(keys))
        missing = self.journal.unanswered(keys) - self.failed
        if self._reuse is not None and missing:
            self._take_over(self._reuse, role, _pending(requests(), keys, set(missing)), total)
            missing = self.journal.unanswered(keys) - self.failed
        refusal = self._refusals.get(role)
        if missing and refusal:
            if new := len(self.journal.unanswered(keys, again=False)):
                raise refusal(new)
            missing = set()
        reasoning_only = self._count_reasoning(key for key in keys if key not in missing) if missing else None
        if reasoning_only is not None and reasoning_only >= FIRST_REPLIES:
            raise _only_thinks(self._opener(role), role)
        self.progress.phase(title, total=total, done=total - len(missing))
        if missing:
            model = self._asked[role] = self._opener(role)
            watch(model, self.progress)
            if isinstance(model, ServedModel):
                model.count_with(self.gate, role)
            pending = _pending(requests(), keys, missing)
            with RARE_COLLECTION:
                _Sending(self, model, role, pending, reasoning_only).run()

    def _count_reasoning(self, keys: Iterable[bytes]) -> int | None:
        """How many stored replies are reasoning without an answer; None where there is any other."""
        count = 0
        for response in self.journal.read(keys):
            if response.status != "error":
                if not is_reasoning_only(response):
                    return None
                count += 1
        return count

    def _title(self, role: str) -> str:
        """What a phase is called: `judging`, or `judging vllm:NAME` for a role that names its model."""
        kind, _, spec = role.partition(":")
        name = spec.partition("?")[0].rstrip(":")
        title = self._titles.get(kind, kind)
        return f"{title} {name}" if name else title

    def _take_over(self, reuse: Recording, role: str, pending: Iterator[Keyed], total: int) -> None:
        """File what another run was answered to these very requests, by this very model."""
        copied, title = 0, self._title(role)
        while chunk := {keyed.key: keyed for keyed in islice(pending, LOOKUP)}:
            for key, response in reuse.find(list(chunk)).items():
                if response.status != "error":
                    self.journal.put(chunk[key], response)
                    copied += 1
        self.journal.flush()
        if copied:
            self.progress.note(
                f"{title}: {copied:,} of {total:,} answers taken over from {reuse.path.parent}"
            )
        elif role == "model":
            self.progress.note(
                f"{title}: no answer taken over from {reuse.path.parent}: it holds none to these requests "
                "from this model."
            )

    def _read(self, requests: Sequence[Request], keys: Mapping[str, list[bytes]]) -> list[Response]:
        streams = {role: self.journal.read(group) for role, group in keys.items()}
        responses = [next(streams[request.role]) for request in requests]
        for request, response in zip(requests, responses, strict=True):
            if response.model or response.fingerprint:
                self._versions[request.role].add((response.model, response.fingerprint))
        return responses


class _Sending:
    """The requests of one role on their way: admitted, read by the model, stored."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        model: Model,
        role: str,
        pending: Iterator[Keyed],
        reasoning_only: int | None,
    ) -> None:
        self._dispatcher = dispatcher
        self._model = model
        self._role = role
        self._pending = pending
        self._first: Request | None = None
        """That begins a stream: it was admitted, and the model has not read it yet."""
        self._held_back: Keyed | None = None
        """The next request, which the gate does not admit while others are under way."""
        self._admitted: dict[Request, tuple[Keyed, Ticket]] = {}
        """Those that are not answered yet."""
        self._reasoning_only = reasoning_only
        """Replies of all starts that are reasoning without an answer; None once another has come."""

    def run(self) -> None:
        try:
            # Waits for money are in this thread, which a stop reaches.
            while (first := self._admit_next(wait=True)) is not None:
                self._answer_all(first)
        finally:
            self._dispatcher.journal.flush()

    def _answer_all(self, first: Request) -> None:
        """Have the model answer what the gate admits while it reads."""
        self._first = first
        answers: Iterator[tuple[Request, Response]] = iter(())
        answer: tuple[Request, Response] | None = None
        try:
            answers = iter(self._model.answer(self._stream()))
            for answer in answers:
                self._take(*answer)
        except (KeyboardInterrupt, ReasoningOnly) as stop:
            self._reasoning_only = None  # no second stop while the rest is stored
            if answer is not None and answer[0] in self._admitted:
                self._take(*answer)
            for request, response in _left_over(answers, stop):
                self._take(request, response)
            raise
        except MoneySetAside:  # what is settled below may leave it over: `run` has them admitted again
            self._pending = chain([keyed for keyed, _ in self._admitted.values()], self._pending)
        finally:
            if (close := getattr(answers, "close", None)) is not None:
                close()  # its thread reads no further
            for request, (_, ticket) in list(self._admitted.items()):
                self._dispatcher.gate.settle(ticket, None)
                if request is self._first and ticket.tokens is not None:
                    self._dispatcher.gate.return_try(self._role)
            self._admitted.clear()

    def _stream(self) -> Iterator[Request]:
        """What the gate admits; a model may read it in a thread of its own. It ends where the gate admits no
        more, and does not wait for money: that comes from what the model has read, and it may answer nothing
        before it has read a batch, or all. Once all is answered, `run` asks again."""
        request, self._first = self._first, None
        while request is not None:
            yield request
            request = self._admit_next(wait=False)

    def _admit_next(self, *, wait: bool) -> Request | None:
        """The next request; None at the end, and where it must wait until those under way are answered: for
        money, or for an equal one with another key (0 in one is 0.0 in the other)."""
        keyed = self._held_back or next(self._pending, None)
        if keyed is None or keyed.request in self._admitted:
            ticket = None
        else:
            ticket = self._dispatcher.gate.admit(keyed.request, wait=wait)
        if keyed is None or ticket is None:
            self._held_back = keyed
            return None
        self._held_back = None
        self._admitted[keyed.request] = keyed, ticket
        return keyed.request

    def _take(self, request: Request, response: Response) -> None:
        """Store a response, then count it. Interrupted in between, it is taken again, and counted once."""
        keyed, ticket = self._admitted.get(request, (None, None))
        if keyed is None or ticket is None:
            raise UsageError(
                f"{type(self._model).__name__} answered a request that it was not asked, or one twice: a "
                "model yields each request that it is given once, with its response."
            )
        dispatcher = self._dispatcher
        dispatcher.journal.put(keyed, response)
        if response.status == "error":
            dispatcher.failed.add(keyed.key)
        del self._admitted[request]
        dispatcher.gate.settle(ticket, response)
        dispatcher.progress.answered(response, usd=dispatcher.gate.usd)
        if self._reasoning_only is not None:
            self._check_reasoning(self._reasoning_only, request, response)

    def _check_reasoning(self, before: int, request: Request, response: Response) -> None:
        """Stop where a model only thinks: each reply is paid for, and none can be scored."""
        if response.status == "error" or not isinstance(request, Generate):
            return
        self._reasoning_only = before + 1 if is_reasoning_only(response) else None
        if self._reasoning_only == FIRST_REPLIES:
            raise _only_thinks(self._model, self._role)


def _only_thinks(model: Model, role: str) -> ReasoningOnly:
    fix = "--max-tokens with a larger number"
    if isinstance(model, ServedModel):
        name = "--model-arg " if role == "model" else f"in the spec of the {role}, ?"
        fix = f"{name}reasoning_tokens=8192"
    return ReasoningOnly(
        f"The first {FIRST_REPLIES} replies of the {role} are all reasoning, without any answer. Give it "
        f"tokens to think with ({fix}) and another --out."
    )


def _pending(requests: Iterable[Request], keys: Iterable[bytes], missing: set[bytes]) -> Iterator[Keyed]:
    """The requests whose key is missing, each once."""
    for request, key in zip(requests, keys, strict=True):
        if key in missing:
            missing.remove(key)
            yield Keyed(key, request)


def _left_over(
    answers: Iterator[tuple[Request, Response]], stop: BaseException
) -> Iterator[tuple[Request, Response]]:
    """What a model has received when it is stopped, and not yet yielded.

    The stop is thrown into its generator. One that hands over (`background.iterate`) yields the rest, and
    then raises it again; any other does so at once, and an iterator that is no generator has nothing.
    """
    try:
        if (throw := getattr(answers, "throw", None)) is not None:
            yield throw(stop)
            yield from answers
    except (type(stop), StopIteration):
        return


def _version_notes(versions: set[tuple[str, str]]) -> Iterator[str]:
    """Where a server's replies name more than one model, or more than one version of its software."""
    for what, names in (
        ("models", {model for model, _ in versions}),
        ("backends (system fingerprint, provider)", {fingerprint for _, fingerprint in versions}),
    ):
        if len(names) > 1:
            listed = sorted(name or "none" for name in names)
            more = f" and {len(listed) - LISTED:,} more" if len(listed) > LISTED else ""
            yield (
                f"The server's replies name {len(listed):,} {what}: {', '.join(listed[:LISTED])}{more}. The "
                "figures are of all of them together."
            )


def by_role(requests: Iterable[Request]) -> dict[str, list[Request]]:
    roles: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        roles[request.role].append(request)
    return roles
