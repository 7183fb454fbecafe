"""What the backends that run models on this machine share: files, batches, torch models."""
