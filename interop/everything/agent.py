"""An agent whose user names a tool and its arguments. It calls the tool with the official Python SDK.

Messages: `list`, or `call TOOL ARGUMENTS`. In arguments, the text "LARGE" is a megabyte and a half.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

LARGE = "0123456789abcdef" * 96 * 1024


def describe(block):
    """A short text for one block of content."""
    if block.type == "text":
        text = block.text
        return text if len(text) < 2000 else f"{len(text)} characters, {text.count(LARGE)} of them as sent"
    return f"{block.type} of {len(getattr(block, 'data', '') or '')} characters"


async def answer(session, text):
    if text == "list":
        tools = (await session.list_tools()).tools
        return ", ".join(sorted(tool.name for tool in tools))
    _, tool, arguments = text.split(" ", 2)
    arguments = {name: LARGE if value == "LARGE" else value for name, value in json.loads(arguments).items()}
    steps = []

    async def progress(done, total, message):
        steps.append(f"{done:g} of {total:g}")

    result = await session.call_tool(tool, arguments, progress_callback=progress)
    failed = "failed: " if result.is_error else ""
    parts = [failed + describe(block) for block in result.content]
    return "; ".join(parts + ([f"progress {', '.join(steps)}"] if steps else []))


async def main():
    async with streamable_http_client(os.environ["SERVER"], max_sse_event_size=None) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                text = await answer(session, json.loads(line)["text"])
                print(json.dumps({"type": "text", "text": text}))
                print(json.dumps({"type": "done"}), flush=True)


asyncio.run(main())
