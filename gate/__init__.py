"""Who may say what, and what may justify an action: admission of writes and the guard of uses."""
