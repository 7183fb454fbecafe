import sys, torch, tempfile, time, cProfile, pstats, io
from pathlib import Path
import numpy as np, gpu
import torch.nn.functional as F
from evenkeel.models.local.steps.attention import step_attention
which = sys.argv[1:] or ["attn", "mm", "answers", "embed"]
torch.backends.cuda.enable_cudnn_sdp(False)
D="cuda"
def bench(f, n=10):
    f(); f(); torch.cuda.synchronize()
    a=torch.cuda.Event(enable_timing=True); b=torch.cuda.Event(enable_timing=True); a.record()
    for _ in range(n): f()
    b.record(); torch.cuda.synchronize(); return a.elapsed_time(b)/n*1e3
def head(t): print("=====",t,flush=True)
if "attn" in which:
    head("decode attention parts, us a layer")
    for (B,H,K,d) in ((1000,32,32,64),(1000,32,8,128)):
        for L in (99,130,181,250,306):
            P=(L+63)//64*64; out={}; lim=B*K*L*d*2/4e12*1e6
            g=H//K; q=torch.randn(B*K,g,d,device=D,dtype=torch.bfloat16); f32=dict(out_dtype=torch.float32)
            for S in ((L+127)//128*128,):
                k=torch.randn(B*K,S,d,device=D,dtype=torch.bfloat16); kt=k.mT.contiguous()
                for n in sorted({L,(L+7)//8*8,(L+15)//16*16,P}):
                    kk,kkt=k[:,:n],kt[:,:,:n]; w=torch.rand(B*K,g,n,device=D,dtype=torch.bfloat16)
                    out[n]={"q@kT":bench(lambda:torch.bmm(q,kk.mT,**f32)),"k@q":bench(lambda:torch.bmm(kk,q.mT,**f32)),
                     "q@kt":bench(lambda:torch.bmm(q,kkt,**f32)),"ktT@q":bench(lambda:torch.bmm(kkt.mT,q.mT,**f32)),"w@v":bench(lambda:torch.bmm(w,kk)),"vT@w":bench(lambda:torch.bmm(kk.mT,w.mT))}
            print((B,H,K,d,L), f"limit {lim:.0f}", {n:{x:round(y) for x,y in o.items()} for n,o in out.items()}, flush=True)
            s=torch.randn(B,H,1,P,device=D); m=torch.ones(B,1,1,P,dtype=torch.bool,device=D)
            print("   mul", round(bench(lambda:s.mul_(1.0))), "fill", round(bench(lambda:s.masked_fill_(~m,-1e9))), "softmax", round(bench(lambda:s.softmax(-1))), "to", round(bench(lambda:s.to(torch.bfloat16))))
            del k,kt,kk,kkt,w
if "mm" in which:
    head("linear, us")
    for M in (1000,1024,2000):
        r=[]
        for n,k in ((2048,2048),(6144,2048),(8192,2048),(16384,2048),(2048,8192),(49152,2048)):
            x=torch.randn(M,k,device=D,dtype=torch.bfloat16); w=torch.randn(n,k,device=D,dtype=torch.bfloat16)
            t=bench(lambda: F.linear(x,w)); r.append(f"{n}x{k}: {t:.0f} ({2*M*n*k/t/1e6:.0f} TF)")
        print(M,r,flush=True)
    x=torch.randn(65536,384,device=D); r=[]
    for n,k in ((384,384),(1536,384),(384,1536)):
        x=torch.randn(65536,k,device=D); w=torch.randn(n,k,device=D); b=torch.randn(n,device=D)
        t=bench(lambda: F.linear(x,w,b)); r.append(f"{n}x{k}: {t:.0f} ({2*65536*n*k/t/1e6:.0f} TF)")
    print("float32 65536", r)
rng=np.random.default_rng(0)
from evenkeel.models.registry import load_model
from evenkeel.types import *
from torch.profiler import profile, ProfilerActivity
def py(f, n=22):
    p=cProfile.Profile(); p.enable(); f(); p.disable(); o=io.StringIO(); pstats.Stats(p,stream=o).sort_stats("tottime").print_stats(n); print("\n".join(l[:150] for l in o.getvalue().splitlines()[4:]),flush=True)
with tempfile.TemporaryDirectory() as f:
    if "answers" in which:
        head("answers")
        m=load_model(f"hf:{gpu.causal_model(Path(f)/'c',Path('tok'))}",device="cuda")
        gpu.timed(lambda: list(m.answer([Embed(text="x")])),"load"); m._causal().end_ids=frozenset()
        print("attn", m._causal().model.config._attn_implementation, m._budget)
        def reqs(n,t,k): return [Generate(prompt=(Message("user",gpu.words(rng,20)),),sampling=Sampling(temperature=t,max_tokens=k,seed=i)) for i in range(n)]
        for n,k in ((1,64),(1000,1),(1000,256)):
            for t in (0.7,0.0): gpu.timed(lambda: list(m.answer(reqs(n,t,k))), f"{n} rows {k} tokens T {t}")
        with profile(activities=[ProfilerActivity.CUDA]) as p: list(m.answer(reqs(1000,0.7,64)))
        print(p.key_averages().table(sort_by="cuda_time_total",row_limit=22,max_name_column_width=70).replace("-"*20,""))
        py(lambda: list(m.answer(reqs(1000,0.7,64))))
        m.close()
    if "embed" in which:
        head("embed")
        texts=[gpu.words(rng,200)+f" {i}" for i in range(12600)]
        gpu.sbert_model(Path(f)/"s",Path("tok"))
        m=load_model(f"sbert:{Path(f)/'s'}",device="cuda")
        gpu.timed(lambda: list(m.answer([Embed(text="x")])),"load")
        e=m._embedder; print("packer",e._packer, "attn", e.model[0].auto_model.config._attn_implementation if hasattr(e.model[0],"auto_model") else "")
        run=lambda: list(m.answer(map(gpu.embed,texts)))
        for _ in range(3): gpu.timed(run,"pass")
        gpu.timed(lambda: e.measure(texts),"measure")
        ms=e.measure(texts); print("tokens", sum(t.tokens for t in ms)/len(ms), sum(t.cut for t in ms))
        for tok in (16384,32768,65536,131072,262144):
            e.budget.tokens=tok; gpu.timed(run,f"pass {tok}")
        e.budget.tokens=65536
        ms.sort(key=lambda t:-t.tokens); parts=[ms[i:i+256] for i in range(0,len(ms),256)]
        def forward():
            with torch.inference_mode():
                for x in parts: r=e.model(e._features(x))["sentence_embedding"]
        gpu.timed(forward,"features+forward, no copy"); 
        feats=[e._features(x) for x in parts]
        def only():
            with torch.inference_mode():
                for x in feats: r=e.model(dict(x))["sentence_embedding"]
        gpu.timed(only,"forward only")
        def nomask():
            with torch.inference_mode():
                for x in feats: r=e.model[0].auto_model(input_ids=x["input_ids"])
        try: gpu.timed(nomask,"forward, no mask")
        except Exception as x: print(repr(x))
        with profile(activities=[ProfilerActivity.CUDA]) as p: run()
        print(p.key_averages().table(sort_by="cuda_time_total",row_limit=16,max_name_column_width=70).replace("-"*20,""))
        py(run)
