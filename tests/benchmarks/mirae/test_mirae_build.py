"""Building a MIRAE set from the questions of a user: what is refused, written, and asked again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from commandline import sealegs
from loopback import Loopback
from sealegs.api import build
from sealegs.benchmarks.mirae.data import read_questions
from sealegs.benchmarks.mirae.make.builder import BuildOptions, MiraeBuilder
from sealegs.benchmarks.mirae.make.generator import VERSION
from sealegs.benchmarks.mirae.make.questions import read_user_questions
from sealegs.errors import DataError, UsageError
from sealegs.harness.scoring import complete
from sealegs.make.builder import Built
from sealegs.models.embedded import embedded_folder
from sealegs.models.registry import token_counter
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import Generate, Request, Response

pytestmark = pytest.mark.slow

GOOD = "How do noise-cancelling headphones work, and why do they do better with a hum than with voices?"
OTHER = "What should a small bakery consider before it begins to deliver bread in the neighbourhood?"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", f"{GOOD}\n\n{OTHER}\n{GOOD.upper()}\n", "line 4: the same question as in line 1."),
        ("a.txt", f"{GOOD}\nWhy {'so long ' * 60}?\n", r"line 2: the question is \d+ tokens long"),
        ("a.txt", "\n", "there is no question in it"),
        ("a.csv", "frage\nWarum?\n", "the field 'question' is missing"),
        ("a.jsonl", f'{{"question": "{GOOD}"}}\n{{"question": " "}}\n', "line 2: the question is blank"),
    ],
)
def test_a_row_that_cannot_be_used_stops_the_build(
    tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        build("mirae", tmp_path / "set", questions=str(tmp_path / name))
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize(
    ("name", "content", "line", "domain", "expected"),
    [
        ("a.txt", f"\ufeff\n{GOOD}\n", 2, "OWN", ()),
        ("a.csv", f'question,domain\n"{GOOD}",SOUND\n', 2, "SOUND", ()),
        ("a.csv", f'question,domain,expected\n"{GOOD}",,phase\n', 2, "OWN", (("phase",),)),
        ("a.csv", f'question,expected\n"{GOOD}","[[""phase"", ""anti""], ""42""]"\n', 2, "OWN",
         (("phase", "anti"), ("42",))),
    ],
)  # fmt: skip
def test_questions_are_read_in_every_format(
    tmp_path: Path, name: str, content: str, line: int, domain: str, expected: tuple[tuple[str, ...], ...]
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    (question,) = read_user_questions(tmp_path / name, count=estimate_tokens, longest=48)
    assert question[:4] == (line, GOOD, domain, expected)


# A model that writes: requests are answered here instead of by the runner

LANGUAGES = {"en": "English", "ko": "Korean", "zh": "Chinese"}
QUESTIONS = {
    "en": [GOOD, OTHER],
    "ko": [
        "소음 제거 헤드폰은 어떻게 작동하며 왜 목소리보다 낮은 소리에 더 효과적입니까?",
        "작은 빵집이 동네에 빵을 배달하기 전에 무엇을 고려해야 합니까?",
    ],
    "zh": [
        "降噪耳机是如何工作的，为什么它对低沉的声音比对人声更有效？",
        "小面包店在开始送货之前应该考虑什么？",
    ],
}
FILLING = {
    "en": ("My neighbour asked me this on the way home. ", "So "),
    "ko": ("집에 오는 길에 이웃이 나에게 이것을 물었습니다. ", "음 "),
    "zh": ("回家的路上邻居问了我这个问题。", "嗯"),
}


def content_of(request: Generate) -> str:
    prompt = request.prompt[0]
    assert not isinstance(prompt, str)
    return prompt.content


def target_of(request: Generate) -> int:
    return int(content_of(request).partition(" tokens)")[0].rpartition("(")[2])


def asked_question(request: Generate) -> str:
    return next(line for line in content_of(request).splitlines() if line.startswith("Question: "))[10:]


def padded(text: str, target: int, lang: str = "en") -> str:
    sentence, word = FILLING[lang]
    text += " "
    while estimate_tokens(text) + estimate_tokens(sentence) / 2 <= target:
        text += sentence
    return text + word


def good_level(request: Generate, lang: str = "en") -> str:
    return padded(asked_question(request), target_of(request), lang)


def model(write: Callable[[Generate], str]) -> Callable[[Sequence[Request]], list[Response]]:
    def answer(requests: Sequence[Request]) -> list[Response]:
        return [Response(status="ok", text=write(r)) for r in requests if isinstance(r, Generate)]

    return answer


class Session(NamedTuple):
    built: Built
    orders: list[Generate]
    """The texts that were asked for."""


def driven(builder: MiraeBuilder, answer: Callable[[Sequence[Request]], list[Response]]) -> Session:
    asked: list[Generate] = []

    def noted(requests: Sequence[Request]) -> list[Response]:
        asked.extend(request for request in requests if isinstance(request, Generate))
        return answer(requests)

    return Session(complete(builder.build(), noted), asked)


@pytest.fixture
def builder(tmp_path: Path) -> Callable[..., MiraeBuilder]:
    def make(lang: str = "en", **options: Any) -> MiraeBuilder:
        path = tmp_path / "mine.txt"
        path.write_text("\n".join(QUESTIONS[lang]))
        return MiraeBuilder(BuildOptions(questions=str(path), lang=lang, **{"model": "openai:x"} | options))

    return make


def test_a_good_writer_is_asked_once_for_each_level(builder: Callable[..., MiraeBuilder]) -> None:
    session = driven(builder(padding="both"), model(good_level))
    assert session.built.failures == []
    assert ["Add no wish" in content_of(order) for order in session.orders] == [True] * 12 + [False] * 12
    content = msgspec.json.decode(session.built.files["questions_english.json"])
    assert content["metadata"]["generator"] == "openai:x"
    assert "generator_version" not in content["metadata"]
    assert [(row["question_id"], row["padding"]) for row in content["questions"]] == [
        (1, "neutral"), (2, "neutral"), (1, "elaborate"), (2, "elaborate"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lang", "fault", "write"),
    [
        (
            "en",
            "the question is not in it",
            lambda r: padded("The microphone hears the noise and the loudspeaker mirrors it.", target_of(r)),
        ),
        ("ko", "it is not in ", lambda r: padded(QUESTIONS["zh"][0], target_of(r), "zh")),
        ("zh", "tokens instead of about 500, ", lambda r: padded(asked_question(r), 2 * target_of(r), "zh")),
    ],
)
def test_a_bad_writer_is_caught_in_every_language_and_asked_again(
    builder: Callable[..., MiraeBuilder], lang: str, fault: str, write: Callable[[Generate], str]
) -> None:
    def stubborn(request: Generate) -> str:
        bad = target_of(request) == 500 and asked_question(request) == QUESTIONS[lang][0]
        return write(request) if bad else good_level(request, lang)

    session = driven(builder(lang, padding="elaborate"), model(stubborn))
    (failure,) = session.built.failures
    assert failure.startswith(f"line 1, {lang}, level 5, elaborate: ")
    assert fault in failure
    (content,) = session.built.files.values()
    questions = msgspec.json.decode(content)["questions"]
    assert [question["level_1_text"] for question in questions] == QUESTIONS[lang][1:]
    retries = [request for request in session.orders if request.repeat]
    assert len(retries) == 3
    assert all(fault in content_of(request) for request in retries)


def test_neutral_padding_takes_the_question_word_for_word(builder: Callable[..., MiraeBuilder]) -> None:
    def reworded(request: Generate) -> str:
        return padded(
            asked_question(request).replace("small", "little").replace("hum", "drone"), target_of(request)
        )

    session = driven(builder(padding="neutral"), model(reworded))
    assert {failure.partition(": ")[2] for failure in session.built.failures} == {
        "the question is not in it word for word"
    }
    assert driven(builder(padding="elaborate"), model(reworded)).built.failures == []


# Translations


def translated(request: Generate) -> str:
    """What a good translator answers."""
    order = content_of(request)
    lang = next(lang for lang, name in LANGUAGES.items() if f"into {name}." in order)
    at = next(at for at, question in enumerate(QUESTIONS["en"]) if question in order)
    return QUESTIONS[lang][at]


def test_a_model_that_translates_does_not_write_levels(builder: Callable[..., MiraeBuilder]) -> None:
    session = driven(builder(translate="ko,zh"), model(translated))
    assert session.built.failures == []
    assert len(session.orders) == 4
    names = ["questions_english.json", "questions_korean.json", "questions_chinese.json"]
    assert list(session.built.files) == names
    for lang, name in zip(LANGUAGES, names, strict=True):
        content = msgspec.json.decode(session.built.files[name])
        assert content["metadata"]["generator"] == "sealegs-mirae"
        assert content["metadata"]["generator_version"] == VERSION
        assert content["metadata"].get("translated_by") == (None if lang == "en" else "openai:x")
        assert [question["level_1_text"] for question in content["questions"]] == QUESTIONS[lang]


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        ("I would rather answer in English.", "it is not in Korean"),
        (GOOD, "it is the question as it was"),
        ("", "it is empty"),
        (QUESTIONS["ko"][0] * 3, "tokens, "),
    ],
    ids=["script", "unchanged", "empty", "too long"],
)
def test_a_bad_translation_is_asked_for_again_with_what_was_wrong(
    builder: Callable[..., MiraeBuilder], bad: str, fault: str
) -> None:
    def stubborn(request: Generate) -> str:
        return bad if GOOD in content_of(request) else translated(request)

    session = driven(builder(translate="ko"), model(stubborn))
    (failure,) = session.built.failures
    assert failure.startswith("line 1, ko, translation: ")
    assert fault in failure
    (korean,) = msgspec.json.decode(session.built.files["questions_korean.json"])["questions"]
    assert (korean["question_id"], korean["level_1_text"]) == (2, QUESTIONS["ko"][1])
    retries = [content_of(request) for request in session.orders if request.repeat]
    assert all(fault in retry for retry in retries)


# Wordings


def reworded(request: Generate, *, says: str = "true") -> str:
    """What a good writer of wordings, and a judge, answer."""
    if request.schema:
        return f'{{"asks_the_same": {says}, "difference": "it asks for a price too"}}'
    question = content_of(request).splitlines()[2]
    return f"Somebody wonders ({request.repeat}): {question}"


def test_each_wording_is_asked_for_checked_by_the_judge_and_written(
    builder: Callable[..., MiraeBuilder], tmp_path: Path
) -> None:
    session = driven(builder(paraphrase=2, judge="openai:y"), model(reworded))
    assert session.built.failures == []
    assert [request.role for request in session.orders] == ["model"] * 4 + ["judge"] * 4
    assert len({content_of(request) for request in session.orders[:4]}) == 4, "in two ways, each question"
    content = msgspec.json.decode(session.built.files["questions_english.json"])
    assert content["metadata"]["paraphrased_by"] == "openai:x"
    assert content["metadata"]["wordings_checked_by"] == "openai:y"
    rows = content["questions"]
    assert [(row["question_id"], row["wording"]) for row in rows] == [
        (n, w) for n in (1, 2) for w in (1, 2, 3)
    ]
    assert [row["level_1_text"] for row in rows[::3]] == [GOOD, OTHER]
    assert all(row["level_1_text"].endswith(GOOD) for row in rows[:3])
    stories = {row["level_7_text"].removeprefix(row["level_1_text"])[:5000] for row in rows[:3]}
    assert len(stories) == 1, "the wording is all that differs"
    (tmp_path / "questions_english.json").write_bytes(session.built.files["questions_english.json"])
    questions = read_questions(tmp_path / "questions_english.json")
    assert [question.wording for question in questions] == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("write", "fault"),
    [
        (lambda request: reworded(request, says="false"), "does not ask the same: it asks for a price too"),
        (
            lambda request: GOOD if GOOD in content_of(request) else reworded(request),
            "the question as it was",
        ),
        (
            lambda request: "never JSON" if request.schema else reworded(request),
            "the judge's verdict is unparsed",
        ),
        (lambda request: "The same?" if not request.schema else reworded(request), "there is already"),
    ],
    ids=["changed", "unchanged", "no verdict", "twice"],
)
def test_a_wording_that_does_not_pass_is_left_out_and_named(
    builder: Callable[..., MiraeBuilder], write: Callable[[Generate], str], fault: str
) -> None:
    session = driven(builder(paraphrase=2), model(write))
    assert {request.role for request in session.orders} == {"model"}, "without --judge the model checks"
    assert session.built.failures
    for failure in session.built.failures:
        assert re.match(r"line [12], en, wording [23]: ", failure)
        assert fault in failure
    rows = msgspec.json.decode(session.built.files["questions_english.json"])["questions"]
    assert [row["wording"] for row in rows].count(1) == 2, "the person's own wordings stay"


def test_what_a_model_answered_is_not_asked_again(tmp_path: Path) -> None:
    """A server that never writes well: every failure is named, exit code 1, and a second build is free."""
    path = tmp_path / "mine.txt"
    path.write_text(f"{GOOD}\n")
    with Loopback() as server:
        command = (
            "build", "mirae", "--questions", path, "--model", "openai:x", "--base-url", server.url,
            "--out", tmp_path / "set",
        )  # fmt: skip
        done = sealegs(*command)
        assert done.code == 1
        assert "line 1, en, level 7, elaborate:" in done.stderr
        assert "the question is not in it" in done.stderr
        asked = server.requests
        assert sealegs(*command).code == 1
        assert server.requests == asked
    assert (tmp_path / "set" / "journal.sqlite").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"translate": "ko"}, "translate needs a --model"),
        ({"questions": "q.txt", "padding": "elaborate"}, "needs a --model that writes it"),
        ({"lang": "tlh"}, "unknown language 'tlh'"),
        ({"questions": "q.txt", "model": "openai:x", "translate": "en"}, "are in that language already"),
        ({"questions": "q.txt", "paraphrase": 2}, "paraphrase needs a --model"),
        ({"questions": "q.txt", "model": "openai:x", "judge": "openai:y"}, "give --paraphrase N"),
        ({"questions": "q.txt", "model": "openai:x", "paraphrase": 2, "padding": "both"}, "that writes it"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build("mirae", tmp_path / "set", **options)


def test_lengths_can_be_counted_by_another_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Why is the sky blue?\n")
    spec = f"hf:{embedded_folder()}"
    asking = MiraeBuilder(BuildOptions(questions=str(path), tokenizer=spec)).build()
    with pytest.raises(StopIteration) as done:
        next(asking)
    content = msgspec.json.decode(done.value.value.files["questions_english.json"])
    assert content["metadata"]["token_counter"] == spec
    assert abs(token_counter(spec).count(content["questions"][0]["level_6_text"]) - 1000) <= 150


def test_the_questions_themselves_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "questions_english.json"
    path.write_text(f'[{{"question": "{GOOD}"}}]')
    with pytest.raises(UsageError, match="is a file that you gave to build from"):
        build("mirae", tmp_path, questions=str(path))
    assert GOOD in path.read_text()
