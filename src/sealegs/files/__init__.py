"""Files that people give and that are kept: JSON, CSV, Parquet, YAML, data sets, the cache, locks."""
