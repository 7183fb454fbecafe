"""Prices: a dated table, a person's own, and limits in dollars that are kept."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import sealegs as sl
from commandline import sealegs
from dialects import Imitated
from present import present
from sealegs.errors import BudgetReached, DataError, UsageError
from sealegs.harness.gate import RequestGate
from sealegs.harness.limits import Limits, Price
from sealegs.models.prices import price_of, price_table
from sealegs.types import Generate, ModelRef, Response, Sampling

GROQ = "groq:openai/gpt-oss-120b"
REPORTED = f"table of {price_table().date}, from reports of the provider's page"


def test_a_price_is_that_of_the_providers_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert price_of(ModelRef(GROQ)) == (0.15, 0.6, REPORTED)
    assert price_of(ModelRef(f"{GROQ}?base_url=http://127.0.0.1:9/v1")) is None
    assert price_of(ModelRef(GROQ, {"base_url": "http://127.0.0.1:9/v1"})) is None
    assert price_of(ModelRef("groq:other")) is None
    official = price_of(ModelRef("anthropic:claude-sonnet-5-5"))
    assert official == (2, 10, f"table of {price_table().date}")
    assert price_of(ModelRef("openai:gpt-4o-mini")) is not None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert price_of(ModelRef("openai:gpt-4o-mini")) is None
    for spec in ("embedded", "hf:x", "ollama:x"):
        assert price_of(ModelRef(spec)) == (0, 0, "")
    monkeypatch.setenv("OLLAMA_HOST", "https://ollama.com")
    assert price_of(ModelRef("ollama:x")) is None


def test_a_dry_run_shows_dollars_and_the_date(questions: Path, tmp_path: Path) -> None:
    def shown(*more: str, model: str = GROQ, **environment: str) -> str:
        done = sealegs(
            "run", "mirae", "--data", questions, "--dry-run", "--model", model, *more, **environment
        )
        return " ".join(done.stdout.split())  # lines are broken between words

    assert "The cost is at most about $0.3" in shown()
    assert f"{GROQ} $0.15 in, $0.6 out ({REPORTED})" in shown()
    plan = sl.dry_run("mirae", GROQ, data=questions)
    assert plan.usd == pytest.approx(
        (plan.tokens_in["generate"] * 0.15 + plan.tokens_out["generate"] * 0.6) / 1e6
    )
    assert "no prices given for groq:other (" in shown(model="groq:other")
    assert "for openai:other (" in shown(model="openai:other?base_url=http://127.0.0.1:9/v1")
    settings = tmp_path / "sealegs.toml"
    settings.write_text(f'[prices."{GROQ}"]\ninput = 2\noutput = 4.5\n')
    assert f"$2 in, $4.5 out ({settings})" in shown(SEALEGS_CONFIG=str(settings))
    given = shown("--price-out", "3")
    assert "table of" not in given
    assert "$0 in, $3 out, as given" in given


def test_tokens_for_thinking_are_counted_too(questions: Path) -> None:
    plain, thinking = (
        sl.dry_run("mirae", GROQ, data=questions, limit=1, model_args=args)
        for args in ({"reasoning_tokens": "1"}, {"reasoning_tokens": "1001"})
    )
    more = thinking.tokens_out["generate"] - plain.tokens_out["generate"]
    assert more == 1000 * plain.requests["generate"]
    assert present(thinking.usd) - present(plain.usd) == pytest.approx(more * 0.6 / 1e6)
    with pytest.raises(UsageError, match="reasoning_tokens"):
        sl.run("mirae", GROQ, data=questions, model_args={"reasoning_tokens": "many"}, progress=False)


def test_a_judge_is_counted_at_its_own_price(tmp_path: Path) -> None:
    gate = RequestGate(Limits(max_usd=1.0), {"model": Price(1, 1), "judge": Price(100, 100)})
    for role, usd in (("model", 0.001), ("judge", 0.101)):
        request = Generate(prompt="a", sampling=Sampling(max_tokens=1), role=role)
        ticket = present(gate.admit(request, wait=True))
        gate.settle(ticket, Response(status="ok", tokens_in=400, tokens_out=600))
        assert gate.usd == pytest.approx(usd)
    long = Generate(prompt="word " * 20_000, sampling=Sampling(max_tokens=1), role="judge")
    with pytest.raises(BudgetReached, match="max.usd"):
        gate.admit(long, wait=True)
    assert gate.admit(msgspec.structs.replace(long, role="model"), wait=True)


def test_a_limit_in_dollars_is_kept_by_known_prices_and_refused_without(
    questions: Path, tmp_path: Path, imitated: Imitated
) -> None:
    settings = {"data": questions, "progress": False}
    with pytest.raises(UsageError, match=r"the price of groq:other is not known.*\[prices.\"groq:other\"\]"):
        sl.run("mirae", "groq:other", max_usd=1, out=tmp_path / "no", **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "no").exists()
    server, path = imitated("groq"), tmp_path / "groq.toml"
    path.write_text(path.read_text() + '[prices."groq:loop"]\ninput = 1000\noutput = 1000\n')
    with pytest.raises(BudgetReached, match="--max-usd"):
        sl.run("mirae", "groq:loop", max_usd=0.5, out=tmp_path / "run", **settings)  # type: ignore[arg-type]
    assert 0 < len(server.received) < 30


def test_a_mistake_in_a_price_is_named_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sealegs.toml"
    path.write_text(f'\n[prices."{GROQ}"]\ninput = -1\noutput = 1\n')
    monkeypatch.setenv("SEALEGS_CONFIG", str(path))
    with pytest.raises(DataError, match=r"sealegs.toml, \[prices.*at least 0"):
        price_of(ModelRef(GROQ))


def test_a_model_that_thinks_is_named_and_counted_with_an_allowance(questions: Path) -> None:
    plans = {
        spec: sl.dry_run("mirae", spec, data=questions, limit=1, model_args=args)
        for spec, args in (
            ("openai:gpt-4o", {}),
            ("openai:o3-mini", {}),
            ("openai:gpt-5", {"reasoning_tokens": 100}),
        )
    }
    plain, thinking, given = plans.values()
    count = plain.requests["generate"]
    assert thinking.tokens_out["generate"] - plain.tokens_out["generate"] == 8192 * count
    assert given.tokens_out["generate"] - plain.tokens_out["generate"] == 100 * count
    assert "openai:o3-mini thinks before it answers" in str(thinking.overview().lines)
    assert [plan.thinking for plan in plans.values()] == [(), ("openai:o3-mini",), ()]
