"""The devices that torch can compute on, for `sealegs doctor`."""

from __future__ import annotations

import warnings

from sealegs.page.format import nouns


def devices() -> dict[str, str]:
    """Each device with its description; `CUDA` alone says that there is no such GPU, and why."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch

        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    described = {"CPU": nouns(torch.get_num_threads(), "threads")}
    for number in range(gpus):
        gpu = torch.cuda.get_device_properties(number)
        described[f"CUDA {number}"] = f"{gpu.name}, {gpu.total_memory / 2**30:.0f} GiB"
    if not gpus:
        reason = next((f": {str(warning.message).splitlines()[0]}" for warning in caught), "")
        described["CUDA"] = f"none{reason}"
    if torch.backends.mps.is_available():
        described["MPS"] = "available"
    return described
