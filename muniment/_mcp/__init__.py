"""
The MCP server, the hook and the installer: the doors that agents' hosts use.

Nothing here imports the engine before a client has been answered: `initialize` does not wait for numpy, the store or
the model. See docs/mcp.md.
"""
