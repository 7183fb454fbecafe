"""`hf:` against transformers itself, on small models with random weights and on the embedded one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from models.hostile import Recorder
from models.tiny import TEXTS, ask, chat, logprobs_of, naive_ids, open_hf, say, shapes_read
from present import present
from sealegs.errors import UsageError
from sealegs.models.hf import HuggingFace
from sealegs.models.local.generation import Generation, TokenisedPrompt, generate
from sealegs.models.local.responses import generate_response
from sealegs.models.local.steps.sampling import Sampler
from sealegs.types import Generate, LogLikelihood, Message

# Loading


def test_it_is_quiet(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = open_hf(folder)
    ask(model, say("Hello", temperature=1.0), LogLikelihood(prefix="a", continuation=" b" * 200))
    model.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "there is nothing at nowhere"),
        ("/no/such/model.gguf", "there is nothing at /no/such/model.gguf"),
        ("no-such-owner/no-such-model", "the Hub cannot give it"),
    ],
)
def test_a_model_that_is_not_there(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match=message) as error:
        open_hf(name).identity()
    assert "\n" not in str(error.value)


def test_it_says_whether_it_reads_or_writes(folder: Path) -> None:
    model, watcher = open_hf(folder), Recorder()
    model.watch(watcher)
    ask(model, say("Once upon a time", max_tokens=4))
    model.close()
    loading, loaded, reading, *writing = watcher.waits
    assert (loading, loaded, reading) == ("loading the model", "loaded", "reading prompts: 4 tokens")
    assert writing[0] == "writing answers: 1 token"


# Identity


def test_identity_follows_the_files_and_the_chosen_options(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "copied")
    first, same = open_hf(folder).identity(), open_hf(copied).identity()
    assert first["sha256"] == same["sha256"]
    assert (first["chat"], first["spec"]) == ("template", f"hf:{folder}")
    assert open_hf(folder, concurrency=3, batch_tokens=99).identity() == first
    assert open_hf(folder, dtype="bfloat16").identity() != first
    (copied / "trainer_state.json").write_text("{}")
    assert open_hf(copied).identity() == same
    (copied / "generation_config.json").write_text('{"eos_token_id": 5}')
    assert open_hf(copied).identity()["sha256"] != same["sha256"]


def test_a_gguf_file_is_a_model(gguf: Path) -> None:
    model = open_hf(gguf)
    assert model.identity()["chat"] == "template"
    written, logprobs = ask(model, say("Hello", max_tokens=4), LogLikelihood(prefix="a b", continuation=" c"))
    assert (written.status, written.tokens_out) == ("truncated", 4)
    assert logprobs_of(logprobs).tokens == (" c",)


# Generation


def test_greedy_text_is_that_of_transformers(each: HuggingFace) -> None:
    """Though repeats share one reading, lengths differ, and short rows leave the batch early."""
    causal = each.causal()
    prompts = [
        TokenisedPrompt(
            tuple(causal.tokenise(text)), temperature=0, top_p=1, seed=0, max_tokens=14 - 4 * row, stop=()
        )
        for row, text in enumerate(TEXTS)
        for _ in range(2)
    ]
    batches = [prompts] if causal.can_pad else [[prompt] for prompt in prompts]
    generations = [generation for batch in batches for generation in generate(causal, batch)]
    for prompt, generation in zip(prompts, generations, strict=True):
        alone = naive_ids(each, list(prompt.ids), prompt.max_tokens)
        assert generation.ids == [token for token in alone if token not in causal.end_ids]


def test_every_distinct_prompt_is_read_once(shared: HuggingFace) -> None:
    with shapes_read(shared) as shapes:
        ask(shared, *(say(text, repeat=repeat, temperature=1.0) for text in TEXTS for repeat in range(5)))
    reads = shapes[: shapes.index((5 * len(TEXTS), 1))]
    assert sum(rows for rows, _ in reads) == len(TEXTS)


def test_a_stop_string_ends_the_text_and_is_not_part_of_it(shared: HuggingFace) -> None:
    [whole] = ask(shared, say("Hello", max_tokens=12))
    stop = whole.text[10:14]
    [stopped] = ask(shared, say("Hello", max_tokens=12, stop=("never this", stop)))
    assert stopped.status == "ok"
    assert stopped.text == whole.text[: whole.text.index(stop)]
    assert present(stopped.tokens_out) < 12


def test_the_end_token_ends_the_text(folder: Path) -> None:
    model = open_hf(folder)
    third = naive_ids(model, model.causal().tokenise("Hello"), 3)[2]
    model.causal().end_ids = frozenset({third})
    [response] = ask(model, say("Hello", max_tokens=12))
    assert (response.status, response.tokens_out) == ("ok", 3)


def test_a_prompt_longer_than_the_context_is_an_error_not_a_cut(shared: HuggingFace) -> None:
    long, nearly, logprobs = ask(
        shared, say("word " * 200), say("word " * 120), LogLikelihood(prefix="word " * 150, continuation=" x")
    )
    assert (long.status, logprobs.status) == ("error", "error")
    assert "more than the model's context of 128" in long.reason
    assert nearly.status == "truncated"
    assert present(nearly.tokens_in) + present(nearly.tokens_out) == 128


# Sampling


def test_sampled_tokens_have_the_frequencies_of_the_softmax() -> None:
    draws, temperature = 20_000, 0.7
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 1.5, 0.3])
    expected = (logits / temperature).softmax(-1) * draws
    prompts = [TokenisedPrompt((1,), temperature, 1.0, seed, 1, ()) for seed in range(draws)]
    tokens = Sampler(prompts, torch.device("cpu")).pick(logits.expand(draws, -1), 0)
    seen = torch.bincount(tokens, minlength=len(logits))
    chi_square = float(((seen - expected) ** 2 / expected).sum())
    assert chi_square < 25.7  # the 99.99 % point for five degrees of freedom


@pytest.mark.parametrize(("top_p", "top_k", "tokens"), [(0.7, 0, {0, 1}), (1.0, 3, {0, 1, 2})])
def test_the_likeliest_tokens_are_sampled_from(top_p: float, top_k: int, tokens: set[int]) -> None:
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    prompts = [TokenisedPrompt((1,), 1.0, top_p, seed, 1, (), top_k=top_k) for seed in range(2_000)]
    picked = Sampler(prompts, torch.device("cpu")).pick(logits.expand(2_000, -1), 0).tolist()
    assert set(picked) == tokens
    expected = 0.5 / sum((0.5, 0.3, 0.15, 0.05)[token] for token in tokens)
    assert picked.count(0) / 2_000 == pytest.approx(expected, abs=0.04)


def test_sampling_of_the_run_takes_the_place_of_the_requests_own(folder: Path) -> None:
    [greedy] = ask(open_hf(folder), say("Hello"))
    request = say("Hello", temperature=1.0)
    assert ask(open_hf(folder, top_k=1), request)[0].text == greedy.text
    assert ask(open_hf(folder, top_p=1e-9), request)[0].text == greedy.text


# Chats


def test_a_chat_goes_through_the_template(shared: HuggingFace) -> None:
    ids = shared.causal().chat([Message("user", "Hi")])
    text = shared.causal().tokenizer.decode(ids)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    [response] = ask(shared, chat(("user", "Hi")))
    assert response.tokens_in == len(ids)


def test_without_a_template_a_chat_is_lines(folder: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("*.jinja"))
    model = open_hf(bare)
    assert model.identity()["chat"] == "fallback"
    lines = "System: Be brief.\nUser: Hi\nAssistant:"
    answer, plain = ask(model, chat(("system", "Be brief."), ("user", "Hi")), say(lines))
    assert answer == plain


def test_a_template_without_a_system_role_gets_it_in_the_first_turn(folder: Path, tmp_path: Path) -> None:
    strict = shutil.copytree(folder, tmp_path / "strict")
    (strict / "chat_template.jinja").write_text(
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "<{{ m.role }}>{{ m.content }}{% endfor %}"
    )
    model = open_hf(strict)
    folded, same, refused = ask(
        model,
        chat(("system", "Be brief."), ("user", "Hi")),
        chat(("user", "Be brief.\n\nHi")),
        chat(("user", "Hi"), ("system", "Be brief.")),
    )
    assert folded == same
    assert (refused.status, "no system" in refused.reason) == ("error", True)


def ended(request: Generate, text: str, *, finished: bool, thinking: bool = False) -> tuple[str, str, str]:
    prompt = TokenisedPrompt((1, 2), temperature=0, top_p=1, seed=0, max_tokens=4, stop=(), thinking=thinking)
    response = generate_response(request, prompt, Generation([1] * 4, tokens=4, text=text, ended=finished))
    return response.status, response.text, response.reason


@pytest.mark.parametrize(
    ("text", "finished", "thinking", "expected"),
    [
        ("", True, False, ("unparsed", "", "empty answer")),
        ("hm, so", False, True, ("truncated", "", "length inside the reasoning")),  # opened by the template
        ("hm, so", True, True, ("unparsed", "", "reasoning block not closed")),
        ("hm</think>Paris", True, True, ("ok", "Paris", "")),
        ("Paris", False, False, ("truncated", "Paris", "length")),
    ],
)
def test_a_chat_that_ends_without_text_is_no_answer(
    text: str, finished: bool, thinking: bool, expected: tuple[str, str, str]
) -> None:
    assert ended(chat(("user", "Where?")), text, finished=finished, thinking=thinking) == expected


def test_an_empty_continuation_is_one_where_the_model_ended_it() -> None:
    assert ended(say("Once"), "", finished=True) == ("ok", "", "")
    assert ended(say("Once"), "", finished=False) == ("truncated", "", "length before any text")


def test_texts_that_are_read_ahead_have_the_tokens_that_each_has_alone(shared: HuggingFace) -> None:
    causal = shared.causal()
    texts, messages = ["", "Hello", "  Привет  мир\n", "敏捷的狐狸 <|im_end|>"], (Message("user", "Who?"),)

    def tokens() -> list[list[int]]:
        plain = [causal.tokenise(text, special=special) for text in texts for special in (True, False)]
        return [*plain, causal.chat(messages)]

    causal.read_ahead([])
    alone = tokens()
    causal.read_ahead(
        [causal.chat_text(messages), *((text, flag) for text in texts for flag in (True, False))]
    )
    assert tokens() == alone
    causal.read_ahead([])


def test_bfloat16_on_a_cpu_without_it_differs_by_rounding_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where products are taken in float32, because the CPU has none in bfloat16."""
    requests = [LogLikelihood(prefix=text, continuation=" and more") for text in ("Hello", "The quick brown")]
    values = []
    for supported in (True, False):
        monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda has=supported: has)
        model = open_hf(folder, dtype="bfloat16")
        values.append([value for response in ask(model, *requests) for value in logprobs_of(response).values])
        model.close()
    assert values[0] == pytest.approx(values[1], abs=0.2)
