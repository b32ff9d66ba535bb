"""Serves a Python function as an agent over AG-UI, on a free local port."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
import traceback
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Callable, Optional, Union

# Largest request, as a protection against a wrong length.
MAX_REQUEST_BYTES = 64 * 1024 * 1024


@dataclass
class ToolCall:
    """A tool call of the agent, with its result or error."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    error: Optional[str] = None


@dataclass
class Turn:
    """Input of one turn of a conversation."""

    text: str
    """The message of the user."""
    conversation_id: str
    """The same in all turns of a conversation."""
    messages: list[dict[str, Any]]
    """All messages of the conversation, the last one included, as in AG-UI."""
    state: Any
    """The state that the test case sets."""
    options: dict[str, Any]
    """`forwardedProps` of the request: options and the user identity."""


Part = Union[str, ToolCall]
Answer = Union[Part, Iterable[Part], AsyncIterator[Part], Awaitable[Union[Part, Iterable[Part]]]]
Agent = Callable[[Turn], Answer]


class AgentServer:
    """A running server for one agent. Its threads end when it is closed."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._loop = asyncio.new_event_loop()
        server = self

        class Handler(_RequestHandler):
            agent_server = server

        self._http = _HttpServer(("127.0.0.1", 0), Handler)
        self._threads = [
            threading.Thread(target=self._http.serve_forever, name="hotseat-agent", daemon=True),
            threading.Thread(target=self._run_loop, name="hotseat-agent-loop", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def url(self) -> str:
        """Endpoint of the agent."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/"

    def close(self) -> None:
        """Stops the server."""
        self._http.shutdown()
        self._http.server_close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        for thread in self._threads:
            thread.join(timeout=5)

    def __enter__(self) -> AgentServer:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def parts(self, turn: Turn) -> Iterator[Part]:
        """Calls the agent and yields the parts of its answer as soon as they exist. There is at least one."""
        is_empty = True
        for part in self._parts(turn):
            is_empty = is_empty and part == ""
            yield part
        if is_empty:
            raise ValueError("the answer of the agent is empty: no text and no tool call")

    def _parts(self, turn: Turn) -> Iterator[Part]:
        answer: Any = self.agent(turn)
        if inspect.isawaitable(answer):
            answer = self._wait(answer)
        if hasattr(answer, "__aiter__"):
            items = answer.__aiter__()
            while True:
                try:
                    yield self._wait(items.__anext__())
                except StopAsyncIteration:
                    return
        elif answer is None:
            raise TypeError("the agent returned None, perhaps without a `return`; expected text and tool calls")
        elif isinstance(answer, (str, ToolCall)):
            yield answer
        elif isinstance(answer, Iterable) and not isinstance(answer, (dict, bytes)):
            yield from answer
        else:
            raise TypeError(f"the agent returned {type(answer).__name__}; expected text and tool calls")

    def _run_loop(self) -> None:
        """Runs the loop until it is stopped.

        `SystemExit` in a task leaves the loop, and all other conversations would wait for ever.
        """
        while True:
            try:
                self._loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                continue
            return

    def _wait(self, awaitable: Awaitable[Any]) -> Any:
        """Runs an awaitable on the loop that all conversations share."""

        async def run() -> Any:
            return await awaitable

        future: Future[Any] = asyncio.run_coroutine_threadsafe(run(), self._loop)
        return future.result()


def serve(agent: Agent) -> AgentServer:
    """Serves an agent until the returned server is closed.

    The agent is a function of a `Turn`. It returns text or `ToolCall` objects, one or several, or yields
    them. It may be asynchronous. Conversations run in parallel, each in a thread of its own. An exception is
    a failure of the agent.
    """
    return AgentServer(agent)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Cancelled(Exception):
    """The runner cancelled the turn. An agent's own connections raise the same errors of the system."""


class _RequestHandler(BaseHTTPRequestHandler):
    agent_server: AgentServer

    def do_POST(self) -> None:
        try:
            turn, run_id = self._read_turn()
        except ValueError as error:
            self.send_error(400, str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        run = {"threadId": turn.conversation_id, "runId": run_id}
        try:
            self._send("RUN_STARTED", **run)
            try:
                for part in self.agent_server.parts(turn):
                    self._send_part(part)
            except _Cancelled:
                raise
            # Also `SystemExit`, which would end this thread without a word.
            except BaseException as error:
                self._send("RUN_ERROR", message=f"{type(error).__name__}: {error}{_place(error)}")
            else:
                self._send("RUN_FINISHED", **run)
        except _Cancelled:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing: the runner records every request."""

    def _read_turn(self) -> tuple[Turn, str]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 < length <= MAX_REQUEST_BYTES:
            raise ValueError("expected a run input as JSON")
        request = json.loads(self.rfile.read(length))
        if not isinstance(request, dict):
            raise ValueError("expected a run input as JSON")
        messages = request.get("messages") or []
        spoken = [message for message in messages if message.get("role") == "user"]
        turn = Turn(
            text=_text(spoken[-1].get("content")) if spoken else "",
            conversation_id=str(request.get("threadId", "")),
            messages=messages,
            state=request.get("state"),
            options=request.get("forwardedProps") or {},
        )
        return turn, str(request.get("runId", ""))

    def _send_part(self, part: Part) -> None:
        if isinstance(part, ToolCall):
            call = str(uuid.uuid4())
            self._send("TOOL_CALL_START", toolCallId=call, toolCallName=part.name)
            self._send("TOOL_CALL_ARGS", toolCallId=call, delta=_json(part.arguments))
            self._send("TOOL_CALL_END", toolCallId=call)
            result = part.result if isinstance(part.result, str) else _json(part.result)
            failed = {} if part.error is None else {"error": part.error}
            self._send("TOOL_CALL_RESULT", messageId=str(uuid.uuid4()), toolCallId=call, content=result, **failed)
        elif isinstance(part, str):
            if part:
                message = str(uuid.uuid4())
                self._send("TEXT_MESSAGE_START", messageId=message, role="assistant")
                self._send("TEXT_MESSAGE_CONTENT", messageId=message, delta=part)
                self._send("TEXT_MESSAGE_END", messageId=message)
        else:
            raise TypeError(f"the agent yielded {type(part).__name__}; expected text or a ToolCall")

    def _send(self, kind: str, **members: Any) -> None:
        event = json.dumps({"type": kind, **members})
        try:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()
        except OSError as error:
            raise _Cancelled from error


def _json(value: Any) -> str:
    """JSON, which has neither NaN nor infinity."""
    return json.dumps(value, allow_nan=False)


def _place(error: BaseException) -> str:
    """The line that raised an error, unless it is of this module."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename == __file__:
        return ""
    return f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno}, in {frames[-1].name})"


def _text(content: Any) -> str:
    """Text of a message, which may have several parts."""
    if isinstance(content, list):
        texts = [part.get("text", "") for part in content if part.get("type") == "text"]
        return "\n".join(texts)
    return content if isinstance(content, str) else ""
