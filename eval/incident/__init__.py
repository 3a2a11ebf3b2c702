"""A worked incident: what a responder types, and what comes back."""
