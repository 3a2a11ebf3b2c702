"""Muniment: an embedded, event-sourced memory engine for AI agents, in which a memory is evidence."""
