import sys, tempfile, torch
from pathlib import Path
sys.path.insert(0, "tests")
import models.tiny as tiny
tiny.embedded_folder = lambda: Path("tok")
from evenkeel.models.registry import load_model
from evenkeel.types import *
TEXTS = ["The quick brown fox jumps over the lazy dog and runs", "Hello", "Once upon a time there was", "A " * 40]
def naive(causal, ids, n):
    ids = list(ids)
    start = len(ids)
    for _ in range(n):
        with torch.inference_mode():
            ids.append(int(causal.model(input_ids=torch.tensor([ids], device=causal.device)).logits[0, -1].argmax()))
        if ids[-1] in causal.end_ids: break
    return ids[start:]
print(torch.__version__, __import__("transformers").__version__)
for name, extra in {**tiny.ARCHITECTURES, "Qwen2Config": {}, "FalconConfig": {"alibi": True, "new_decoder_architecture": False}, "BloomConfig": {}, "Qwen3MoeConfig": {"num_experts": 4, "moe_intermediate_size": 32}}.items():
    with tempfile.TemporaryDirectory() as f:
        try:
            tiny.tiny_model(Path(f), name, **extra)
            out = []
            for dev in ("cpu", "cuda"):
                m = load_model(f"hf:{f}", device=dev, dtype="float32")
                c = m._causal()
                say = [Generate(prompt=t, sampling=Sampling(max_tokens=20), repeat=r) for t in TEXTS for r in range(2)]
                sam = [Generate(prompt=t, sampling=Sampling(max_tokens=20, temperature=1.0), repeat=r) for t in TEXTS for r in range(60)]
                ll = [LogLikelihood(prefix=t, continuation=" and more of it") for t in TEXTS]
                g = dict(m.answer(say)); s = dict(m.answer(sam)); l = dict(m.answer(ll))
                couple = dict(m.answer([x for t in TEXTS for x in (LogLikelihood(prefix=t, continuation=" and more of it"), Generate(prompt=t, sampling=Sampling(length_of=" and more of it")))]))
                alone = load_model(f"hf:{f}", device=dev, dtype="float32", concurrency=1)
                s1 = dict(alone.answer(sam[::7]))
                bad = sum(s[r].text != s1[r].text for r in sam[::7])
                ref = [c.text(naive(c, c.tokenise(t), 20), after=c.tokenise(t)) for t in TEXTS]
                wrong = sum(g[r].text != ref[i // 2] for i, r in enumerate(say))
                out.append((c.model.config._attn_implementation, c.pads, "greedy!=naive", wrong, "sampled!=alone", f"{bad}/{len(sam[::7])}", [g[r].text for r in say], [s[r].text for r in sam], [v for r in ll for v in l[r].logprobs.values], [couple[r].text for r in couple if isinstance(r, Generate)]))
            a, b = out
            print(name, a[:6], b[:6], "cpu=gpu greedy", a[6] == b[6], "sampled", sum(x == y for x, y in zip(a[7], b[7])), "/", len(a[7]), "logprob", max(abs(x - y) for x, y in zip(a[8], b[8])), "couples", a[9] == b[9], flush=True)
            m = load_model(f"hf:{f}", device="cuda", dtype="bfloat16"); r = list(m.answer(say + sam)); print("   bf16", len(r), {x.status for _, x in r}, m.notes()[:1], flush=True)
        except Exception as e:
            import traceback; traceback.print_exc(limit=-4); print(name, "FAILED", repr(e)[:300], flush=True)
