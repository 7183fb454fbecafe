"""A benchmark in a file of the user's: every command takes its path, or its name where it is registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from commandline import evenkeel
from evenkeel.harness import registry
from loopback import Loopback

pytestmark = pytest.mark.slow

PARROT = '''
from typing import Annotated
from msgspec import Meta, Struct
from evenkeel.page.metrics import Metric
from evenkeel.harness.benchmark import Benchmark
from evenkeel.types import Generate, Message, Sample, Sampling

class Parrot(Benchmark):
    """Can it repeat a word?"""

    class Options(Struct, frozen=True, kw_only=True):
        say: Annotated[str, Meta(description="What to say before the word.")] = "Repeat:"
        max_tokens: Annotated[int, Meta(ge=1, description="The longest answer.")] = 16

    roles = {"model": {"generate"}}
    metrics = [Metric("repeated", "Words repeated", unit="share", better="higher")]

    def samples(self, data):
        return [
            Sample(id=row.name, group=row.name, tags={"lang": "en"}, inputs={"word": row.text("word")})
            for row in data.rows()
        ]

    def requests(self, sample):
        turn = Message("user", f"{self.options.say} {sample.inputs['word']}")
        return [Generate(prompt=(turn,), sampling=Sampling(max_tokens=self.options.max_tokens))]

    def score(self, answered):
        return [
            self.scored(item, repeated=item.sample.inputs["word"] in item.responses[0].text)
            for item in answered
        ]
'''


@pytest.fixture
def parrot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "_LOADED", {})  # the files of this test are no benchmarks of the next
    path = tmp_path / "parrot.py"
    path.write_text(PARROT)
    return path


def test_a_benchmark_is_run_from_its_file_and_known_by_name_afterwards(parrot: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.jsonl"
    words.write_text("".join(f'{{"word": "word{number}"}}\n' for number in range(8)))
    runs = [tmp_path / "a", tmp_path / "b"]
    with Loopback() as server:
        for out in runs:
            done = evenkeel(
                "run", parrot, "--model", "openai:loop", "--base-url", server.url,
                "--data", words, "--say", "Say:", "--out", out,
            )  # fmt: skip
            assert done.code == 0, done.stderr
    assert "Words repeated" in done.stdout
    assert (runs[0] / "report.html").is_file()
    registered = {"EVENKEEL_BENCHMARKS": str(parrot)}
    assert "Can it repeat a word?" in evenkeel("list", "benchmarks", **registered).stdout
    assert "parrot" in evenkeel("list", "runs", tmp_path, **registered).stdout
    assert evenkeel("compare", *runs, **registered).code == 0
    assert evenkeel("report", runs[0], **registered).code == 0
    assert evenkeel("run", "parrot", "--help", **registered).code == 0


def test_an_option_without_a_default_is_required(parrot: Path) -> None:
    eager = parrot.with_name("eager.py")
    eager.write_text(PARROT.replace(' = "Repeat:"', ""))
    assert "Missing option '--say'" in evenkeel("run", eager, "--model", "embedded").stderr


def test_answers_recorded_elsewhere_are_scored(parrot: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"word": "keel", "answer": "keel"}\n{"word": "mast", "answer": "sail"}\n')
    scored = evenkeel("score", parrot, answers, "--out", tmp_path / "scored")
    assert scored.code == 0, scored.stderr
    assert "50%" in scored.stdout
