"""Hotseat: a test runner for conversational, tool-using AI agents.

The package contains the program `hotseat`, a pytest plugin, and a server for agents that are Python functions.
"""

from ._agent import AgentServer, ToolCall, Turn, serve
from ._binary import find_binary

__all__ = ["AgentServer", "ToolCall", "Turn", "find_binary", "serve"]
