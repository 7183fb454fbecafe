"""Models for MIRAE that answer questions of yes or no: how often each is right is set beforehand.

A model that flips a coin and one that always says the same differ in one word of their answers. So the
similarity of the texts hardly sees the difference, and a judge of meanings and the expected answers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from known_models.server import KnownModel, in_chance_order
from sealegs import api
from sealegs.harness.folder import Run

REPEATS = 5
FORMS = (
    "<said>, <claim>.",
    "<said>. In short, <claim>, as far as is generally known.",
    "**<said>.** Put simply, <claim>.",
    "<said>: <claim>, and that is well established.",
    "Great question! <said>, <claim>.",
    "Based on what is generally known: **<said>**, <claim>.",
)


class Fact(NamedTuple):
    """A question of yes or no, with the claim that answers it in each way."""

    question: str
    expected: Literal["yes", "no"]
    yes: str
    no: str


FACTS = (
    Fact(
        "Is Canberra the capital of Australia?",
        "yes",
        "Canberra is the capital",
        "Canberra is not the capital",
    ),
    Fact("Is a whale a fish?", "no", "a whale is a fish", "a whale is not a fish"),
    Fact(
        "Does sound travel faster in water than in air?", "yes", "it is faster in water", "it is not faster"
    ),
    Fact("Is 91 a prime number?", "no", "91 is a prime number", "91 is not a prime number"),
    Fact("Is Mercury closer to the Sun than Venus?", "yes", "Mercury is closer", "Mercury is not closer"),
    Fact(
        "Did the Second World War end before 1940?",
        "no",
        "it ended before that",
        "it did not end before that",
    ),
    Fact("Is glass an electrical insulator at room temperature?", "yes", "glass insulates", "glass conducts"),
    Fact("Do penguins live wild in the Arctic?", "no", "penguins live there", "penguins do not live there"),
    Fact("Does the Danube flow into the Black Sea?", "yes", "the Danube flows into it", "it flows elsewhere"),
    Fact(
        "Is the boiling point of water higher on a mountain?", "no", "it is higher there", "it is lower there"
    ),
    Fact("Is Portuguese spoken in Brazil?", "yes", "Portuguese is spoken there", "it is not spoken there"),
    Fact(
        "Can an adult human breathe pure nitrogen to survive?",
        "no",
        "that is possible",
        "that is not possible",
    ),
)


def replies(right: float, facts: Sequence[Fact] = FACTS) -> dict[str, list[str]]:
    """The replies to each question, by the question: of `REPEATS` the share that is right, in mixed order."""
    listed: dict[str, list[str]] = {}
    for number, fact in enumerate(facts):
        turns = in_chance_order([f"{fact.question}{turn}" for turn in range(REPEATS)], str)
        count = round(right * REPEATS)
        other: Literal["yes", "no"] = "no" if fact.expected == "yes" else "yes"
        places = [turns.index(f"{fact.question}{turn}") for turn in range(REPEATS)]
        said = [fact.expected if place < count else other for place in places]
        listed[fact.question] = [
            FORMS[(number + turn) % len(FORMS)]
            .replace("<said>", said[turn].capitalize())
            .replace("<claim>", getattr(fact, said[turn]))
            for turn in range(REPEATS)
        ]
    return listed


def question_file(folder: Path, facts: Sequence[Fact] = FACTS) -> Path:
    """A person's questions with their answers, as `build mirae --questions` reads them."""
    path = folder / "questions.jsonl"
    lines = [msgspec.json.encode({"question": f.question, "expected": f.expected}) for f in facts]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def same_meaning(prompt: str, _: int) -> str:
    """A judge that never errs: two answers mean the same where both say yes, or both say no."""
    sides = [word in prompt for word in ("Yes", "No")]
    same = not all(sides)
    return msgspec.json.encode({"first_entails_second": same, "second_entails_first": same}).decode()


def play(folder: Path, right: float, **options: Any) -> Run:
    """A run of the model that is right so often, on the questions that it was built from."""
    api.build("mirae", folder / "data", questions=str(question_file(folder)))
    given = replies(right)

    def answer(prompt: str, time: int) -> str:
        question = next(each for each in given if each in prompt)
        return given[question][time % REPEATS]

    with KnownModel(answer) as server, KnownModel(same_meaning) as judge:
        address = f"base_url={judge.url}&api_key_env=NO_KEY"
        if options.pop("judged", False):
            options["judge"] = f"openai:judge?{address}"
        return api.run(
            "mirae", model="openai:known", base_url=server.url, data=str(folder / "data"),
            repeats=REPEATS, out=folder / "run",
            **{"levels": "1", "embedder": f"openai:embed?{address}", **options},
        )  # fmt: skip
