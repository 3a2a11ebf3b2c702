"""Disposable views of the log: the register, beliefs, tombstones and recall, each a fold and nothing else."""
