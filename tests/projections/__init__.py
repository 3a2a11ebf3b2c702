"""Rules of the projections."""
