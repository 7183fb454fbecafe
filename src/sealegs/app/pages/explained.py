"""What each metric of a benchmark means."""

from __future__ import annotations

from multidict import MultiMapping

from sealegs.app.rendering import render_page
from sealegs.app.settings import AppSettings
from sealegs.harness.registry import benchmark_class, benchmark_names


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    names = benchmark_names()
    asked = query.get("benchmark", "")
    name = asked if asked in names else names[0]
    return render_page(
        settings, "explained.html", "/explained",
        title="Explained", name=name, names=names, metrics=benchmark_class(name).layout.metrics,
    )  # fmt: skip
