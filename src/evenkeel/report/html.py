"""How every page is made: templates of this folder, escaped throughout, with the figures' own filters."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from evenkeel.page import format as text


def environment() -> Environment:
    """Everything that is put into a template is escaped, and what is missing is an error."""
    made = Environment(
        loader=PackageLoader("evenkeel.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        counted=text.counted,
        value=text.value,
        interval=text.interval,
        share=text.share,
        visible=text.visible,
        p_value=text.p_value,
        probability=text.probability,
    )
    made.globals.update(floor=text.FLOOR)
    return made
