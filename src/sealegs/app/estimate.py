"""How long a run would take, by the pace of an earlier one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealegs.api.so_far import pace
from sealegs.app.settings import AppSettings
from sealegs.harness.folder import load_run
from sealegs.harness.registry import benchmark_class
from sealegs.harness.stored.listing import list_runs
from sealegs.page.format import duration

if TYPE_CHECKING:
    from sealegs.app.run_form import RunRequest


def expected_time(settings: AppSettings, chosen: RunRequest, requests: int) -> str:
    """`about 3 min at the pace of RUN`, where a run of this model with answers as long is there."""
    longest = getattr(benchmark_class(chosen.benchmark).Options(), "max_tokens", None)
    for listed in list_runs(settings.runs) if requests else ():
        if listed.state != "finished" or listed.benchmark != chosen.benchmark:
            continue
        spec = load_run(listed.path).spec
        same = spec.models.get("model", {}).get("spec") == chosen.model
        as_long = spec.options.get("max_tokens") == chosen.options.get("max_tokens", longest)
        if same and as_long and (rate := pace(listed.path)):
            return f"about {duration(requests / rate)} at the pace of {listed.name}"
    return "time unknown until the first answers"
