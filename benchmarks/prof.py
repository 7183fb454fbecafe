import sys, torch, tempfile, time
from pathlib import Path
sys.argv=["x"]
import numpy as np, gpu
from evenkeel.models.registry import load_model
from evenkeel.types import *
rng=np.random.default_rng(0)
with tempfile.TemporaryDirectory() as f:
    m=load_model(f"hf:{gpu.causal_model(Path(f)/'c',Path('tok'))}",device="cuda")
    list(m.answer([Embed(text="x")])); m._causal().end_ids=frozenset()
    print("attn", m._causal().model.config._attn_implementation)
    def reqs(n,t,k): return [Generate(prompt=(Message("user",gpu.words(rng,20)),),sampling=Sampling(temperature=t,max_tokens=k,seed=i)) for i in range(n)]
    for n in (1,1000):
        for k in (16,64):
            gpu.timed(lambda: list(m.answer(reqs(n,0.7,k))), f"{n} rows {k} tokens")
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CPU,ProfilerActivity.CUDA]) as p:
        list(m.answer(reqs(1000,0.7,40)))
    print(p.key_averages().table(sort_by="cuda_time_total",row_limit=18,max_name_column_width=60))
    print(p.key_averages().table(sort_by="self_cpu_time_total",row_limit=14,max_name_column_width=60))
