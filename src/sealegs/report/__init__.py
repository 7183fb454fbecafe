"""What people see of runs: terminal, HTML page, notebook, charts, comparison, scorecard, export, progress."""
