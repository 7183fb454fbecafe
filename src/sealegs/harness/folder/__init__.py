"""A run's folder, all that is known of it: what lies there (`layout.py`), the run's spec (`spec.py`), a run
that is read from it (`run.py`), and the one process that writes it (`writer.py`)."""

from sealegs.harness.folder.run import Run, load_run, shared_layout

__all__ = ["Run", "load_run", "shared_layout"]
