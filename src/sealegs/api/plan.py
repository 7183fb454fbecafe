"""A dry run: the requests of a run, counted by models that answer nothing real, on the path of a real run.

Each stand-in answer is as long as it may be, and none is a valid verdict: so each verdict is asked for again,
and the counts are what a run asks at most.
"""

from __future__ import annotations

import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.api.batch import batched_roles
from sealegs.api.run import RUN_ARGUMENTS
from sealegs.api.setup import model_refs, open_models, read_samples, with_sampling
from sealegs.errors import CapabilityError, UsageError
from sealegs.harness.benchmark import Benchmark, degraded, helper_specs
from sealegs.harness.dispatcher import Dispatcher
from sealegs.harness.gate import UNPRICED, RequestGate, estimate
from sealegs.harness.limits import Limits, Price
from sealegs.harness.progress import Progress
from sealegs.harness.registry import benchmark_name, load_benchmark
from sealegs.harness.scoring import ask, scored
from sealegs.journal.journal import Journal
from sealegs.models.engines.engine import Engine
from sealegs.models.local.weights import local_folder
from sealegs.models.prices import (
    is_local,
    prices_by_role,
    require_prices,
    shown_prices,
    thinking_by_role,
)
from sealegs.models.reasoning import ALLOWANCE, thinks
from sealegs.models.registry import check_spec, key_words, on_server, split_spec
from sealegs.page.grid import Displayed, Grid, Overview
from sealegs.types import (
    KIND_NEEDS,
    Capability,
    Embed,
    Generate,
    LogLikelihood,
    Logprobs,
    ModelRef,
    Rank,
    Request,
    Response,
    Sample,
    StringLikelihood,
    StringProbability,
)


class Plan(Displayed, Struct, frozen=True):
    """What a run would ask, by kind: requests, tokens read (estimated), tokens written (at most)."""

    requests: dict[str, int]
    tokens_in: dict[str, int]
    tokens_out: dict[str, int]
    usd: float | None = None
    """What that costs at most, where prices are known; embedding and ranking are not counted."""
    local: bool = False
    """Whether all models run on this machine, so that nothing is paid."""
    prices: tuple[str, ...] = ()
    """The prices that were used: known ones with their date or file, or those given."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known, so that no cost can be named."""
    thinking: tuple[str, ...] = ()
    """Models that are known to think, and were given no tokens for it: an allowance is counted."""
    keys: tuple[str, ...] = ()
    """Which environment variable's key would be sent to which host, and which variable is not set."""
    problem: str = ""
    """What the run would end with before it asks anyone."""

    def overview(self) -> Overview:
        """A row for each kind of request, and what it costs."""
        rows = [
            (kind, [f"{count:,}", f"{self.tokens_in.get(kind, 0):,}", f"≤ {written:,}" if written else "–"])
            for kind, count in self.requests.items()
            for written in [self.tokens_out.get(kind, 0)]
        ]
        grid = Grid("", "kind", ["requests", "tokens in", "tokens out"], rows, left=1)  # type: ignore[arg-type]
        if not rows:
            cost = ["Asks no model: costs nothing."]
        elif self.usd is not None:
            cost = [f"The cost is at most about ${self.usd:,.2f}."]
        elif self.unpriced:
            names = dict.fromkeys(spec.partition("?")[0] for spec in self.unpriced)
            cost = [
                f"Cost unknown: no prices given for {', '.join(names)} "
                "(--price-in and --price-out, in dollars per million tokens)."
            ]
        else:
            cost = ["Runs locally: free."] if self.local and not self.problem else []
        cost += [f"Dollars per million tokens: {line}." for line in self.prices]
        cost += [
            f"{name} thinks before it answers: {ALLOWANCE:,} tokens of thinking are counted for each answer. "
            f"Give it as many: reasoning_tokens={ALLOWANCE}."
            for name in self.thinking
        ]
        cost += [f"Key: {key}." for key in self.keys]
        estimated = ["Tokens are estimated; every answer is counted at its full length."] if rows else []
        problems = [f"This run would not begin: {self.problem}"] if self.problem else []
        return Overview("What a run would ask", cost, [grid] if rows else [], estimated, warnings=problems)


def dry_run(benchmark: str | Path, model: str | None = None, **settings: Any) -> Plan:
    """Count what a run would ask. Nothing is asked, and no model is loaded; what models on this machine lack
    is the plan's `problem`. The settings are those of `sl.run`.

    plan = sl.dry_run("rgb", model="openai:NAME", limit=20, price_in=0.15, price_out=0.6)
    plan.requests, plan.usd
    """
    limits = Limits.of(*(settings.get(name) for name in Limits.__struct_fields__))
    options = {name: value for name, value in settings.items() if name not in RUN_ARGUMENTS}
    loaded = load_benchmark(benchmark, options, seed=settings.get("seed", 0), also=RUN_ARGUMENTS)
    name = benchmark_name(benchmark)
    args = with_sampling(model, *(settings.get(name) for name in ("model_args", "top_p", "top_k")))
    refs = model_refs(loaded, name, model, args, settings.get("base_url"))
    for ref in refs.values():
        check_spec(ref.spec, ref.args)
    data, column = settings.get("data", "starter"), settings.get("column", ())
    samples, _ = read_samples(loaded, name, data, settings.get("lang"), settings.get("limit"), column)
    batched = batched_roles(loaded, name, refs) if settings.get("batch") else frozenset()
    thinking = thinking_by_role(refs)
    thinkers = {
        role: split_spec(ref.spec)[0]
        for role, ref in refs.items()
        if role not in thinking and "generate" in loaded.roles.get(role, ()) and on_server(ref.spec)
        if thinks(ref.spec)
    }
    thinking |= dict.fromkeys(thinkers, ALLOWANCE)
    prices, unpriced = prices_by_role(limits, refs, loaded.roles, batched=batched)
    require_prices(limits, unpriced)
    named = bool(model) or "model" not in loaded.roles
    if price := limits.price:
        prices = dict.fromkeys(loaded.roles, price)
        shown = [f"${price.input:g} in, ${price.output:g} out, as given"]
    else:
        prices = prices if named and not unpriced else {}
        shown = shown_prices(prices, refs)
    return msgspec.structs.replace(
        count_requests(loaded, samples, prices, thinking),
        local=named and all(is_local(each) for each in refs.values()),
        prices=tuple(shown),
        unpriced=tuple(unpriced),
        thinking=tuple(dict.fromkeys(thinkers.values())),
        keys=tuple(dict.fromkeys(words for each in refs.values() for words in key_words(each))),
        problem=problem_of(loaded, name, refs),
    )


def problem_of(benchmark: Benchmark, name: str, refs: Mapping[str, ModelRef]) -> str:
    """What a model on this machine lacks, in the words of the run: a package, a path, an ability. Whether the
    Hub has a model is not looked up."""
    here = {role: ref for role, ref in refs.items() if role in benchmark.roles and not on_server(ref.spec)}
    try:
        with Engine() as engine:
            open_models(engine, benchmark, name, here)
        for bare in (split_spec(ref.spec)[0] for ref in here.values()):
            if bare.startswith(("hf:", "sbert:")):
                local_folder(bare)
    except UsageError as error:
        if isinstance(error, CapabilityError) and degraded(benchmark, error.lacking):
            return ""  # the run continues without
        return " ".join([str(error), *getattr(error, "__notes__", ())])
    return ""


def count_requests(
    benchmark: Benchmark,
    samples: Sequence[Sample],
    prices: Mapping[str, Price],
    thinking: Mapping[str, int],
) -> Plan:
    """Send every request of a run past a counting model; the cost is that of the roles with a price."""
    counting = CountingModel({role for role in helper_specs(benchmark) if ":" not in role}, thinking)
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Journal(Path(folder) / "journal.sqlite")) as journal,
    ):
        dispatcher = Dispatcher(
            journal,
            {role: {"spec": role} for role in benchmark.roles},
            opener=lambda role: counting,
            gate=RequestGate(),
            progress=Progress(),
        )
        ask(benchmark, samples, dispatcher)
        for _ in scored(benchmark, samples, dispatcher):
            pass
    usd = sum(price.usd(*counting.paid[role]) for role, price in prices.items() if role in counting.paid)
    known = any(price.input or price.output for price in prices.values())
    return Plan(
        dict(counting.requests),
        dict(counting.tokens_in),
        dict(counting.tokens_out),
        usd if known else None,
    )


class CountingModel:
    """Counts requests and their tokens by kind; those of a helper that an option names, by its role."""

    capabilities: frozenset[Capability] = frozenset(KIND_NEEDS.values())

    def __init__(self, named_roles: set[str], thinking: Mapping[str, int]) -> None:
        self.requests: Counter[str] = Counter()
        self.tokens_in: Counter[str] = Counter()
        self.tokens_out: Counter[str] = Counter()
        self.paid: dict[str, tuple[int, int]] = {}
        """Tokens read and written of what is paid for, by role."""
        self._named_roles = named_roles
        self._thinking = thinking
        self._numbers = count()

    def identity(self) -> dict[str, Any]:
        return {"spec": "counting"}

    def probe(self, needs: frozenset[Capability]) -> None:
        """It can do everything."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for request in requests:
            kind: str = KIND_NEEDS[type(request)]
            if kind == "generate" and request.role in self._named_roles:
                kind = request.role
            tokens_in, tokens_out = estimate(request, self._thinking)
            self.requests[kind] += 1
            self.tokens_in[kind] += tokens_in
            self.tokens_out[kind] += tokens_out
            if not isinstance(request, UNPRICED):
                before = self.paid.get(request.role, (0, 0))
                self.paid[request.role] = before[0] + tokens_in, before[1] + tokens_out
            yield request, self._stand_in(request, estimate(request)[1])

    def _stand_in(self, request: Request, tokens: int) -> Response:
        match request:
            case Generate():
                # Each text is another: what is done once for each distinct answer is done for every one. Of
                # marks alone, which are quick to score: about one token each.
                return Response(status="ok", text=f"{next(self._numbers)} {'.' * tokens}")
            case LogLikelihood():
                return Response(status="ok", logprobs=Logprobs((request.continuation,), (-1.0,)))
            case StringLikelihood():
                return Response(status="ok", string=StringProbability(own=-1.0, low=-1.0, high=-1.0))
            case Embed():
                return Response(status="ok", vector=struct.pack("<2f", 1.0, 0.0))
            case Rank():
                return Response(status="ok", rank=0.0)

    def close(self) -> None:
        """It holds nothing."""
