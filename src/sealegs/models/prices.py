"""What the tokens of well-known models cost: a dated table (`prices.json`), and a person's own prices.

A price belongs to a model at its provider's own address; at any other address it is not known.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sealegs.errors import UsageError, explain
from sealegs.files import configuration
from sealegs.files.package_data import read_json
from sealegs.harness.limits import Limits, Price
from sealegs.models.presets import batch_preset
from sealegs.models.registry import backend, preset_of, split_spec
from sealegs.types import Capability, ModelRef

SECTION = "prices"
PAID: frozenset[Capability] = frozenset({"generate", "loglikelihood", "stringlikelihood"})
"""What is counted; embedding and ranking, which cost next to nothing, are not."""
FREE = Price(0.0, 0.0)

Dollars = Annotated[float, Meta(ge=0)]


class Cost(Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars per million tokens."""

    input: Dollars
    output: Dollars


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    official: bool
    """Whether the source itself was read, in a stored copy; else several reports of it that agree."""
    models: dict[str, Cost]
    note: str = ""


class PriceTable(Struct, frozen=True, forbid_unknown_fields=True):
    date: str
    """When the table was put together; `Provider.official` and its note say from what."""
    providers: dict[str, Provider]


def price_table() -> PriceTable:
    return read_json(__package__, "prices.json", type=PriceTable)


def batch_price_of(ref: ModelRef) -> Price | None:
    """What a model costs when it is asked by batches; None where that is not known."""
    price, preset = price_of(ref), batch_preset(ref.spec.partition(":")[0])
    if price is None or preset is None or preset.batch_price == 1:
        return price
    share = preset.batch_price
    source = f"{price.source}, {share:.0%} of it in batches" if price.source else ""
    return Price(price.input * share, price.output * share, source)


def price_of(ref: ModelRef) -> Price | None:
    """What a model costs; None where that is not known."""
    bare, args = split_spec(ref.spec)
    scheme, _, name = bare.partition(":")
    if (written := configuration.read_section(SECTION).get(bare)) is not None:
        return _customised(bare, written)
    if is_local(ref):
        return FREE
    preset = preset_of(bare)
    moved = preset is not None and not preset.at_built_in_address
    elsewhere = moved or "base_url" in args or ref.args.get("base_url")
    if elsewhere or (scheme == "openai" and os.environ.get("OPENAI_BASE_URL", "").strip()):
        return None
    table = price_table()
    provider = table.providers.get(scheme)
    cost = provider.models.get(name) if provider else None
    if provider is None or cost is None:
        return None
    reported = "" if provider.official else ", from reports of the provider's page"
    return Price(cost.input, cost.output, f"table of {table.date}{reported}")


def is_local(ref: ModelRef) -> bool:
    """Whether a model runs on this machine, so that nothing is paid; a server of any name may pass on what it
    is asked, one of a preset for this machine does not."""
    bare, args = split_spec(ref.spec)
    scheme = bare.partition(":")[0]
    if (preset := preset_of(bare)) is not None:
        return preset.on_this_machine and not args.get("base_url", ref.args.get("base_url"))
    entry = backend(scheme)
    return entry is not None and scheme != "openai" and (entry.computes or scheme == "replay")


def prices_by_role(
    limits: Limits, refs: Mapping[str, ModelRef], roles: Mapping[str, Any], *, batched: Collection[str] = ()
) -> tuple[dict[str, Price], list[str]]:
    """The price of each model that is paid for, and the specs of those whose price is not known.

    A price that was given is that of every model, also of those that are asked by batches.
    """
    paid = {role: ref for role, ref in refs.items() if PAID & set(roles.get(role, PAID))}
    known = {
        role: limits.price or (batch_price_of(ref) if role in batched else price_of(ref))
        for role, ref in paid.items()
    }
    unknown = [paid[role].spec for role, price in known.items() if price is None]
    return {role: price for role, price in known.items() if price is not None}, list(dict.fromkeys(unknown))


def thinking_by_role(refs: Mapping[str, ModelRef]) -> dict[str, int]:
    """How many tokens each model may think with beside its answers."""
    given = {
        role: str({**ref.args, **split_spec(ref.spec)[1]}.get("reasoning_tokens", ""))
        for role, ref in refs.items()
    }
    return {role: int(number) for role, number in given.items() if number.isdecimal()}


def require_prices(limits: Limits, unknown: list[str]) -> None:
    """Refuse a limit in dollars that could not be kept."""
    if limits.max_usd is not None and unknown:
        raise UsageError(
            f"--max-usd: the price of {', '.join(unknown)} is not known. Write it into "
            f'{configuration.config_path()}: [prices."{split_spec(unknown[0])[0]}"] with input = and '
            "output =, in dollars per million tokens; or give a run --price-in and --price-out."
        )


def shown_prices(prices: Mapping[str, Price], refs: Mapping[str, ModelRef]) -> list[str]:
    """The known prices in words; not those that were given, and not of what is free."""
    lines = [
        f"{split_spec(refs[role].spec)[0]} ${price.input:g} in, ${price.output:g} out ({price.source})"
        for role, price in prices.items()
        if price.source
    ]
    return list(dict.fromkeys(lines))


def _customised(spec: str, fields: Mapping[str, Any]) -> Price:
    try:
        cost = msgspec.convert(fields, Cost)
    except msgspec.ValidationError as error:
        wrong = explain(error, fields)
        field = str(wrong.path[0]) if wrong.path else ""
        problem = f"{wrong.problem.rstrip('.')}. Write input = and output =, in dollars per million tokens."
        raise configuration.fault(SECTION, spec, problem, field=field) from None
    return Price(cost.input, cost.output, str(configuration.config_path()))
