"""A bank: a real MCP server, on standard input and output or at a port of this machine."""
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("bank")


@server.tool()
def charge_card(order_id: str) -> str:
    """Charges the card of the customer for an order."""
    return f"charged {order_id}"


if sys.argv[1:]:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
