"""Building a MIRAE set from the questions of a user: what is refused, written, and asked again."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from commandline import evenkeel
from evenkeel.api import build
from evenkeel.benchmarks.mirae.files import TARGETS, read_questions
from evenkeel.benchmarks.mirae.make.builder import BuildOptions, MiraeBuilder, is_in_script, sentences
from evenkeel.benchmarks.mirae.make.questions import read_user_questions
from evenkeel.errors import DataError, UsageError
from evenkeel.make.builder import Built
from evenkeel.models.embedded import embedded_folder
from evenkeel.models.registry import token_counter
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Embed, Generate, Request, Response
from loopback import Loopback

GOOD = "How do noise-cancelling headphones work, and why do they do better with a hum than with voices?"
OTHER = "What should a small bakery consider before it begins to deliver bread in the neighbourhood?"


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    path = tmp_path / "messy.txt"
    path.write_text(f"{GOOD}\n\n{OTHER}\n{GOOD.upper()}\nWhy {'so long ' * 60}?\n")
    return path


def test_bad_rows_are_named_by_line_and_stop_the_build(messy: Path, tmp_path: Path) -> None:
    done = evenkeel("build", "mirae", "--questions", messy, "--out", tmp_path / "set.json")
    assert done.code == 2
    assert "line 2: this is blank." in done.stderr
    assert "line 4: the same question as in line 1." in done.stderr
    assert re.search(r"line 5: the question is \d+ tokens long; at most 48", done.stderr)
    assert not (tmp_path / "set.json").exists()


def test_bad_rows_are_left_out_where_the_flag_says_so(messy: Path, tmp_path: Path) -> None:
    done = evenkeel(
        "build", "mirae", "--questions", messy, "--out", tmp_path / "set.json", "--on-bad", "skip"
    )
    assert done.code == 0
    assert "line 5:" in done.stderr
    found = read_questions(tmp_path / "set.json")
    assert [question.texts[1] for question in found] == [GOOD, OTHER]


@pytest.mark.parametrize(
    ("name", "content", "good", "problem"),
    [
        (
            "a.csv",
            f'question,domain\n"{GOOD}",SOUND\nbroken\n',
            [(2, GOOD, "SOUND")],
            "line 3: this row has 1 cells, the first line 2",
        ),
        ("a.csv", f'question\n"{GOOD}"\n"open', [(2, GOOD, "OWN")], "line 3: this row and all rows after it"),
        (
            "a.jsonl",
            f'{{"question": "{GOOD}"}}\n{{"q": 1}}\n',
            [(1, GOOD, "OWN")],
            "line 2: expected an object with",
        ),
        ("a.jsonl", '{"question": 5}\nnope\n', [], "line 1: expected an object with 'question'"),
        ("a.txt", f"\ufeff{GOOD}\n", [(1, GOOD, "OWN")], None),
        ("a.csv", f'question\n\n"{GOOD}"\n', [(3, GOOD, "OWN")], "line 2: this is blank"),
        ("a.jsonl", f'{{"question": "One\u2028{OTHER}"}}\n', [(1, f"One\u2028{OTHER}", "OWN")], None),
    ],
)
def test_every_format_names_the_line_of_a_broken_row(
    tmp_path: Path, name: str, content: str, good: list[tuple[int, str, str]], problem: str | None
) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found, problems = read_user_questions(path, count=estimate_tokens, longest=48)
    assert [tuple(question) for question in found] == good
    assert problems[0].startswith(problem) if problem else not problems


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"frage\nWarum?\n", "expected a column 'question'"),
        ("a.docx", b"", "expected a file that ends in"),
        ("a.txt", b"fine\nnot \xff text\n", "line 2: this is not UTF-8"),
        ("a.txt", b"", "no question that can be used"),
    ],
)
def test_a_file_that_cannot_be_used_at_all_says_why(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        build("mirae", tmp_path / "set.json", questions=str(path))


def test_the_composer_needs_no_model_and_keeps_the_lengths(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(f"{GOOD}\n{OTHER}\n")
    (written,), built = build("mirae", tmp_path / "set.json", questions=str(path), seed=5)
    assert built.failures == []
    for question in read_questions(written):
        for level, target in list(enumerate(TARGETS, 1))[1:]:
            assert question.texts[1] in question.texts[level]
            assert abs(estimate_tokens(question.texts[level]) - target) <= 0.15 * target
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.txt", "set.json"]


def test_another_seed_gives_another_starter_set(tmp_path: Path) -> None:
    first, second = (build("mirae", tmp_path / f"{seed}.json", seed=seed)[0][0] for seed in (1, 2))
    assert len(read_questions(first)) == 40
    assert first.read_bytes() != second.read_bytes()


# A model that writes: requests are answered here instead of by the runner


def model(write: Callable[[Generate], str]) -> Callable[[Sequence[Request]], list[Response]]:
    """Answers requests: texts by `write`, embeddings by the words that a text has."""

    def answer(requests: Sequence[Request]) -> list[Response]:
        return [
            Response(status="ok", text=write(request))
            if isinstance(request, Generate)
            else Response(status="ok", vector=words(request))
            for request in requests
        ]

    def words(request: Request) -> bytes:
        assert isinstance(request, Embed)
        vector = np.zeros(64, "<f4")
        for word in request.text.lower().split():
            vector[sum(word.encode()) % 64] += 1
        return vector.tobytes()

    return answer


def driven(builder: MiraeBuilder, answer: Callable[[Sequence[Request]], list[Response]]) -> tuple[Built, int]:
    """What is built, and how many texts were asked for."""
    asking: Generator[Sequence[Request], Sequence[Response], Built] = builder.build()
    texts = 0
    try:
        requests = next(asking)
        while True:
            texts += sum(isinstance(request, Generate) for request in requests)
            requests = asking.send(answer(requests))
    except StopIteration as done:
        return done.value, texts


def target_of(request: Generate) -> int:
    prompt = request.prompt[0]
    assert not isinstance(prompt, str)
    return int(prompt.content.partition(" tokens)")[0].rpartition("(")[2])


def padded(question: str, target: int) -> str:
    text = question
    while estimate_tokens(text) < target:
        text += " More is said here." if estimate_tokens(text) + 5 <= target else " So"
    return text


@pytest.fixture
def builder(tmp_path: Path) -> Callable[..., MiraeBuilder]:
    path = tmp_path / "mine.txt"
    path.write_text(f"{GOOD}\n{OTHER}\n")

    def make(**options: Any) -> MiraeBuilder:
        return MiraeBuilder(BuildOptions(questions=str(path), model="openai:x", **options))

    return make


def asked_question(request: Generate) -> str:
    prompt = request.prompt[0]
    assert not isinstance(prompt, str)
    return prompt.content.rstrip().splitlines()[-1].removeprefix("Question: ")


def test_a_good_writer_is_asked_once_for_each_level(builder: Callable[..., MiraeBuilder]) -> None:
    built, texts = driven(builder(), model(lambda r: padded(asked_question(r), target_of(r))))
    assert built.failures == []
    assert texts == 12
    content = msgspec.json.decode(built.files["English"])
    assert content["metadata"]["generator"] == "openai:x"
    assert len(content["questions"]) == 2


def test_a_level_of_the_wrong_length_is_asked_for_again(builder: Callable[..., MiraeBuilder]) -> None:
    def write(request: Generate) -> str:
        short = request.repeat == 0 and target_of(request) == 250
        return padded(asked_question(request), 100 if short else target_of(request))

    built, texts = driven(builder(), model(write))
    assert built.failures == []
    assert texts == 12 + 2


def test_a_level_that_lost_the_question_is_reported(builder: Callable[..., MiraeBuilder]) -> None:
    def write(request: Generate) -> str:
        lost = target_of(request) == 500 and asked_question(request) == GOOD
        return padded(
            "Completely different matters." if lost else asked_question(request), target_of(request)
        )

    built, texts = driven(builder(), model(write))
    assert texts == 12 + 3
    (failure,) = built.failures
    assert failure.startswith(
        "line 1, en, level 5: the question is not in it (the nearest sentence has a cosine of 0."
    )
    content = msgspec.json.decode(built.files["English"])
    assert content["metadata"]["augmentation_status"] == {"successful": 1, "total_questions": 2}


def test_a_reworded_question_counts_as_present(builder: Callable[..., MiraeBuilder]) -> None:
    def write(request: Generate) -> str:
        close = asked_question(request).replace("small", "little").replace("hum", "drone")
        return padded(close, target_of(request))

    assert driven(builder(), model(write))[0].failures == []


def test_translations_are_checked_for_their_script(builder: Callable[..., MiraeBuilder]) -> None:
    korean = {
        GOOD: "잡음 제거 헤드폰은 어떻게 작동합니까?",
        OTHER: "작은 빵집이 배달을 시작하기 전에 무엇을 고려해야 합니까?",
    }

    def write(request: Generate) -> str:
        prompt = request.prompt[0]
        assert not isinstance(prompt, str)
        if prompt.content.startswith("Translate"):
            asked = asked_question(request)
            return korean[asked] if asked == GOOD or request.repeat else "I would rather answer in English."
        return padded(asked_question(request), target_of(request))

    built, _ = driven(builder(translate="ko"), model(write))
    assert built.failures == []
    assert list(built.files) == ["English", "Korean"]
    questions = msgspec.json.decode(built.files["Korean"])["questions"]
    assert [question["level_1_text"] for question in questions] == list(korean.values())


def test_what_a_model_answered_is_not_asked_again(tmp_path: Path) -> None:
    """A server that never writes well: every failure is named, exit code 1, and a second build is free."""
    path = tmp_path / "mine.txt"
    path.write_text(f"{GOOD}\n")
    with Loopback() as server:
        command = (
            "build", "mirae", "--questions", path, "--model", "openai:x", "--base-url", server.url,
            "--embedder", "openai:y", "--out", tmp_path / "set.json",
        )  # fmt: skip
        done = evenkeel(*command)
        assert done.code == 1
        assert "line 1, en, level 7:" in done.stderr
        assert "tokens instead of about 2000" in done.stderr
        asked = server.requests
        assert evenkeel(*command).code == 1
        assert server.requests == asked
    assert (tmp_path / "set.journal.sqlite").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"translate": "ko"}, "--translate needs a --model"),
        ({"lang": "tlh"}, "unknown language 'tlh'"),
        ({"model": "openai:x"}, "--model writes levels for your --questions"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build("mirae", tmp_path / "set.json", **options)


def test_lengths_can_be_counted_by_another_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Why is the sky blue?\n")
    spec = f"hf:{embedded_folder()}"
    asking = MiraeBuilder(BuildOptions(questions=str(path), tokenizer=spec)).build()
    with pytest.raises(StopIteration) as done:
        next(asking)
    content = msgspec.json.decode(done.value.value.files["English"])
    assert content["metadata"]["token_counter"] == spec
    assert abs(token_counter(spec).count(content["questions"][0]["level_6_text"]) - 1000) <= 150


def test_sentences_and_scripts_are_recognised_in_every_language() -> None:
    assert sentences("One. Two?\n\nThree") == ["One.", "Two?", "Three"]
    assert sentences("第一句。第二句！") == ["第一句。", "第二句！"]
    assert is_in_script("안녕하세요 AI", "ko")
    assert is_in_script("你好吗", "zh")
    assert not is_in_script("hello", "zh")


def test_the_questions_themselves_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(f"{GOOD}\n")
    with pytest.raises(UsageError, match="is a file that you gave to build from"):
        build("mirae", path, questions=str(path))
    assert path.read_text() == f"{GOOD}\n"
