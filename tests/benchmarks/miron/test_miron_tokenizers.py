"""MIRON on real models: the published formula written out naively, string probabilities, tokenizers alone."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import sealegs as sl
from benchmarks.miron.test_miron_scoring import levenshtein
from commandline import sealegs
from jsonlines import write_lines
from loopback import Loopback
from models.tiny import tiny_model
from present import present
from sealegs.benchmarks.miron import strings
from sealegs.benchmarks.miron.benchmark import Miron
from sealegs.benchmarks.miron.make.generator import compose
from sealegs.benchmarks.miron.tokenizers import shown_names
from sealegs.models.embedded import embedded_folder
from sealegs.page.view import Tokens
from sealegs.types import Response, StringProbability

pytestmark = pytest.mark.slow

KINDS = ("bytes", "bpe", "sentencepiece")


class Planted(NamedTuple):
    """An example, and what becomes of its boundary where a tokenizer has the word as one piece."""

    lang: str
    prefix: str
    target: str
    merged: bool = False
    lost: bool = False
    """Whether nothing of the target is left."""


PLANTED = [
    Planted("en", "The captain sees the", " ships"),
    Planted("en", "The captain sees the ship", "s", merged=True, lost=True),
    Planted("en", "One city is Par", "is", merged=True, lost=True),
    Planted("en", "One city is Par", "is, the other is not", merged=True),
    Planted("en", "The hull is", " unsinkable"),
    Planted("ru", "Капитан видит", " море"),
    Planted("ru", "Капитан видит мор", "е", merged=True, lost=True),
    Planted("ru", "Капитан не видит", " корабль"),
]
WORDS = (" ships", " ship", " Paris", " Par", " the", " море", " мор")


# Three tokenizers


def spelt(word: str) -> list[tuple[str, str]]:
    """The merges that make one piece of a word, letter by letter."""
    from tokenizers.pre_tokenizers import ByteLevel

    ((letters, _),) = ByteLevel(add_prefix_space=False).pre_tokenize_str(word)
    return [(letters[:end], letters[end]) for end in range(1, len(letters))]


def byte_level(merges: list[tuple[str, str]]) -> Any:
    """Every byte is a piece, and so is what merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = ["<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    made = Tokenizer(models.BPE(vocab={piece: place for place, piece in enumerate(pieces)}, merges=merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def unigram() -> Any:
    """As SentencePiece does it: spaces are letters of the words after them, and `<s>` stands in front."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    letters = sorted({letter for example in PLANTED for letter in example.prefix + example.target} - {" "})
    pieces = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", -50.0), ("▁", -9.0)]
    pieces += [(letter, -8.0) for letter in letters]
    pieces += [(word.replace(" ", "▁"), -4.0) for word in WORDS]
    made = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return made


MAKERS: dict[str, Callable[[], Any]] = {
    "bytes": lambda: byte_level([]),
    "bpe": lambda: byte_level(list(dict.fromkeys(merge for word in WORDS for merge in spelt(word)))),
    "sentencepiece": unigram,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny model with random weights for each kind of tokenizer."""
    from transformers import PreTrainedTokenizerFast

    made = {}
    for kind, make in MAKERS.items():
        tokenizer = make()
        ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
        folder = tmp_path_factory.mktemp(kind)
        made[kind] = tiny_model(folder, vocab_size=tokenizer.get_vocab_size(), **ends)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
        ).save_pretrained(folder)
    return made


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "planted.jsonl"
    rows = [
        {"prefix": row.prefix, "target": row.target, "category": "Logic", "lang": row.lang} for row in PLANTED
    ]
    return write_lines(path, rows)


@pytest.fixture(scope="module")
def runs(
    folders: dict[str, Path], planted: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, sl.Run]:
    args = {"device": "cpu"}
    return {
        kind: sl.run("miron", f"hf:{folder}", model_args=args, data=planted, out=tmp_path_factory.mktemp("r"))
        for kind, folder in folders.items()
    }


# The published formula, naively: one example at a time, the full softmax, and a table for Levenshtein


class Naive(NamedTuple):
    text: str
    """Written greedily, for longer than any target."""
    target_confidence: float
    tokens: int


class Published:
    """A model of transformers, asked as the published script asks it."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()

    def __call__(self, prefix: str, target: str) -> Naive:
        import torch

        before = self.tokenizer(prefix)["input_ids"]
        whole = self.tokenizer(prefix + target)["input_ids"]
        count = len(whole) - len(before)
        with torch.inference_mode():
            odds = self.model(torch.tensor([whole])).logits[0].double().softmax(-1)
            new = self.model.generate(
                torch.tensor([before]),
                attention_mask=torch.ones(1, len(before), dtype=torch.long),
                max_new_tokens=3 * count + 8,
                do_sample=False,
                pad_token_id=0,
            )[0].tolist()
        logs = [math.log(odds[place - 1, whole[place]]) for place in range(len(before), len(whole))]
        confidence = math.exp(sum(logs) / len(logs)) * 100 if logs else 0.0
        # What is new, with the space in front that SentencePiece drops from a text's beginning.
        text = self.text(new).removeprefix(self.text(before)).split("\n")[0]
        return Naive(text, confidence, count)

    def text(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def check(run: sl.Run, published: Published) -> int:
    """Compare every example of a run; how many there were."""
    records = list(run.records())
    for record in records:
        target = record.sample.inputs.target
        naive = published(record.sample.inputs.prefix, target)
        values, generated = record.score.values, record.score.detail.generated
        assert naive.text.startswith(generated), record.sample.id
        assert len(generated.split()) <= len(target.split())
        longest = max(len(generated), len(target))
        score = (1 - levenshtein(generated, target) / longest) * 100
        assert values["lev_score"] == pytest.approx(score, abs=1e-9)
        assert values["target_confidence"] == pytest.approx(naive.target_confidence, abs=0.02)
        assert values["target_tokens"] == naive.tokens
    return len(records)


@pytest.mark.full  # tiny models of every kind of tokenizer are looked at below
def test_examples_on_the_embedded_model_score_as_the_published_formula_does(tmp_path: Path) -> None:
    sets = [compose(lang, seed=3, per_category=8) for lang in ("en", "ru")]
    rows = [row for each in sets for row in sorted(each, key=lambda row: len(row.prefix + row.target))[:1]]
    run = sl.run("miron", "embedded", data=write_lines(tmp_path / "m.jsonl", rows), out=tmp_path / "run")
    assert run.headline.coverage == 1.0
    assert check(run, Published(embedded_folder())) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tokenizer_scores_as_the_published_formula_does(
    kind: str, runs: dict[str, sl.Run], folders: dict[str, Path]
) -> None:
    """And boundary merges are found exactly where they are planted."""
    assert runs[kind].headline.coverage == 1.0
    assert check(runs[kind], Published(folders[kind])) == len(PLANTED)
    for record, row in zip(runs[kind].records(), PLANTED, strict=True):
        merges, lost = (row.merged, row.lost) if kind != "bytes" else (False, False)
        values = record.score.values
        assert values["boundary_merges"] == float(merges), row
        assert values["targets_merged_into_prefix"] == float(lost), row
        assert (values["target_confidence"] == 0.0) == lost
        assert (values["bits_per_byte"] is None) == merges
        assert (values["target_tokens"] == 0) == lost
    warned = [note.text for note in Miron.notes(runs[kind].spec, runs[kind].summary) if note.warning]
    warning = "3 targets merge wholly into the prefix: confidence 0 there."
    assert warned == ([] if kind == "bytes" else [warning])


def test_a_folder_called_model_does_not_name_a_tokenizer(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = tmp_path / "model" / "tokenizer.json"
    path.write_bytes((folders["bpe"] / "tokenizer.json").read_bytes())
    assert shown_names([str(path)]) == ["model/tokenizer.json"]


# The target as a string, in whatever tokens


@pytest.fixture(scope="module")
def strings_run(folders: dict[str, Path], planted: Path, tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
    out, args = tmp_path_factory.mktemp("strings") / "run", {"device": "cpu"}
    spec = f"hf:{folders['bpe']}"
    return sl.run("miron", spec, model_args=args, data=planted, out=out, string_probability=True)


def test_every_target_has_its_costs_and_a_merged_one_only_that_of_its_boundary(strings_run: sl.Run) -> None:
    for record, row in zip(strings_run.records(), PLANTED, strict=True):
        values: dict[str, Any] = record.score.values
        string = present(record.answers[0].string)
        assert (string.own is None) == ("tokenizer_cost" not in values) == row.merged
        assert values["strings_known"] == 1
        assert values["boundary_cost"] == pytest.approx(
            (present(string.healed_low) - string.low) / math.log(2)
        )
        shown = [block for block in Miron.view(record).blocks if isinstance(block, Tokens)]
        assert [block.tokens for block in shown] == ([] if row.lost else [record.score.detail.tokens])
        if string.own is not None:
            bits = values["bits_per_byte"] * len(row.target.encode())
            assert -string.own / math.log(2) == pytest.approx(bits, abs=1e-4)
            assert values["tokenizer_cost"] == pytest.approx(bits + string.low / math.log(2), abs=1e-4)
            # No two letters of " unsinkable" are one token, so that it has a single spelling.
            assert (values["tokenizer_cost"] > 1e-6) == (row.target != " unsinkable")
    figure = strings_run.summary["tokenizer_cost"]
    assert (figure.n, figure.coverage, figure.unit) == (4, 1.0, "bits")
    assert strings_run.summary["boundary_cost/category=Logic,lang=ru"].n == 3


def test_a_string_probability_is_neither_asked_nor_lost_again(
    strings_run: sl.Run, planted: Path, tmp_path: Path
) -> None:
    spec = f"replay:{strings_run.path}"
    again = sl.run("miron", spec, data=planted, out=tmp_path / "replayed", string_probability=True)
    assert again.summary["tokenizer_cost"] == strings_run.summary["tokenizer_cost"]
    assert sl.rescore(again.path).summary == again.summary


def test_a_server_is_refused_with_what_can_give_it(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with Loopback() as server:
        args = ["run", "miron", "--model", "openai:x", "--base-url", server.url, "--data", planted]
        assert sealegs(*args, "--string-probability").code == 2
    assert "give the probability of a string, as models on this machine can" in " ".join(
        capsys.readouterr().err.split()
    )


def test_bounds_are_no_values_and_a_failure_is_none() -> None:
    loose = StringProbability(own=-3.0, low=-2.5, high=-2.0, healed_low=-2.4, healed_high=-2.3)
    values = strings.values_of(Response(status="ok", string=loose), " ship")
    assert (values["strings_known"], values["boundary_cost"]) == (0, None)
    assert values["tokenizer_cost"] == pytest.approx(0.5 / math.log(2))
    failed = strings.values_of(Response(status="error", reason="out of memory"), " ship")
    assert {failed[name] for name in strings.NAMES} == {None}


def test_a_target_without_a_spelling_counts_as_uncovered(
    folders: dict[str, Path], planted: Path, tmp_path: Path
) -> None:
    """A target with a special token in it; its score and log-likelihood are as they were."""
    broken = tmp_path / "broken.jsonl"
    broken.write_text(planted.read_text().replace('" ships"', '" ships</s>"'))
    run = sl.run(
        "miron", f"hf:{folders['bpe']}", model_args={"device": "cpu"}, data=broken, out=tmp_path / "run",
        string_probability=True,
    )  # fmt: skip
    assert run.summary["strings_known"].coverage == pytest.approx(7 / 8)
    assert run.summary["lev_score"].coverage == run.summary["target_confidence"].coverage == 1


# Tokenizers by themselves


@pytest.fixture
def light(folders: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """The model folders without their weights."""
    for kind, folder in folders.items():
        shutil.copytree(folder, tmp_path / kind, ignore=shutil.ignore_patterns("*.safetensors"))
    return {kind: tmp_path / kind for kind in folders}


def test_tokenizers_are_compared_without_their_models(
    light: dict[str, Path], planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = [f"hf:{light[kind]}" for kind in KINDS]
    assert sealegs("tokenizers", *specs, "--data", planted, "--json").code == 0
    compared = msgspec.json.decode(capsys.readouterr().out)
    assert list(compared) == specs
    naive, bpe, sentencepiece = (compared[spec] for spec in specs)
    assert naive["boundary_merges"]["value"] == 0
    assert bpe["boundary_merges"]["value"] == sentencepiece["boundary_merges"]["value"] == 4 / 8
    assert bpe["boundary_merges/category=Logic,lang=ru"]["value"] == pytest.approx(1 / 3)
    # A byte is a token, whatever the language; a start token is none.
    whole = [row.prefix + row.target for row in PLANTED]
    by_hand = [len(text.encode()) / len(text.split()) for text in whole]
    assert naive["tokens_per_word"]["value"] == pytest.approx(sum(by_hand) / 8)
    assert bpe["tokens_per_word"]["value"] < naive["tokens_per_word"]["value"]
    assert naive["whole_words"]["value"] == 0
    # "The captain sees the ships": of five words two are tokens, in the first example.
    words = [re.findall(r"[^\W\d_]+", text) for text in whole]
    shares = [sum(f" {word}" in WORDS for word in each) / len(each) for each in words]
    assert bpe["whole_words"]["value"] == pytest.approx(sum(shares) / 8)


def test_a_page_has_charts_and_texts_as_the_tokens_of_each_tokenizer(
    light: dict[str, Path], tmp_path: Path
) -> None:
    row = {"prefix": "The captain sees <b> the", "target": " ships", "category": "Logic", "lang": "en"}
    data, out = tmp_path / "data.jsonl", tmp_path / "t.html"
    data.write_bytes(msgspec.json.encode(row))
    assert sealegs("tokenizers", *map(str, light.values()), "--data", data, "--out", out).code == 0
    page = out.read_text()
    assert page.count("<svg") == 6  # each chart is drawn for a desktop and for a phone
    assert f"Fewest tokens per word: {light['bpe'].name} in en" in page
    assert f'title="{light["bpe"]}"' in page
    cells = re.findall(r'<div dir="auto">(.*?)</div>', page)
    shown = dict(zip(light, ([re.findall(">([^<]*)</bdi>", cell) for cell in cells[:3]]), strict=True))
    assert shown["bpe"][-2:] == ["␣the", "␣ships"]
    assert shown["bytes"][17:20] == ["&lt;", "b", "&gt;"]


def test_a_model_on_a_server_has_no_tokenizer(planted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sealegs("tokenizers", "openai:gpt-4o", "--data", planted).code == 2
    assert "'openai:gpt-4o' has no tokenizer" in capsys.readouterr().err
