"""The LangGraph adapters; `muniment.langgraph` gives what hosts use. Nothing else imports this package."""
