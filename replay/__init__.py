"""Time travel and maintenance: replay to a moment, verify, explain, trace, diff, rebuild."""
