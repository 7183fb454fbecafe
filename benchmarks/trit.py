import torch, triton
import triton.language as tl
@triton.jit
def kernel(q, k, v, m, o, L, skb, skh, svb, svh, smb, scale, H: tl.constexpr, K: tl.constexpr, D: tl.constexpr, N: tl.constexpr):
    pid = tl.program_id(0)
    b = pid // H
    h = pid % H
    g = h // (H // K)
    d = tl.arange(0, D)
    n = tl.arange(0, N)
    qv = tl.load(q + pid * D + d).to(tl.float32) * scale
    top = float("-inf")
    total = 0.0
    acc = tl.zeros([D], tl.float32)
    kp = k + b.to(tl.int64) * skb + g * skh
    vp = v + b.to(tl.int64) * svb + g * svh
    for start in range(0, L, N):
        at = start + n
        ok = at < L
        vis = tl.load(m + b * smb + at, mask=ok, other=0) != 0
        kk = tl.load(kp + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        s = tl.where(vis, tl.sum(kk * qv[None, :], 1), -1e30)
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp(s - new)
        shrink = tl.exp(top - new)
        vv = tl.load(vp + at[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(p[:, None] * vv, 0)
        total = total * shrink + tl.sum(p, 0)
        top = new
    tl.store(o + pid * D + d, (acc / total).to(o.dtype.element_ty))
def triton_attention(q, k, v, mask):
    B, H, _, D = q.shape
    o = torch.empty_like(q)
    kernel[(B * H,)](q, k, v, mask, o, k.shape[2], k.stride(0), k.stride(1), v.stride(0), v.stride(1), mask.stride(0), D**-0.5, H=H, K=k.shape[1], D=D, N=32, num_warps=2)
    return o.transpose(1, 2)
