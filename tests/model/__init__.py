"""A second opinion: "What is current", and what is admitted, again in plain Python, and what drives it."""
