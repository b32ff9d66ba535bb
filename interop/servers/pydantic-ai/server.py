"""The shop agent served by pydantic-ai's AG-UI adapter: POST /, GET /health, on 127.0.0.1:$PORT (8801)."""
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_shared"))

import scenario
import uvicorn
from ag_ui.core import CustomEvent, EventType, StateDeltaEvent, StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.messages import ModelRequest, RetryPromptPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.ui import StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


class State(BaseModel):
    items: dict[str, Any] = {}


def seen(messages):
    """The user texts, and the tool results after the last of them."""
    texts, results = [], []
    for message in messages:
        if not isinstance(message, ModelRequest):
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                texts.append(part.content if isinstance(part.content, str) else " ".join(map(str, part.content)))
                results = []
            elif isinstance(part, ToolReturnPart):
                results.append((part.tool_name, part.model_response_str()))
            elif isinstance(part, RetryPromptPart):
                results.append((part.tool_name, part.model_response()))
    return texts, results


async def model(messages, info: AgentInfo):
    client_tools = [tool.name for tool in info.function_tools if tool.name not in scenario.TOOL_NAMES]
    step = scenario.decide(*seen(messages), client_tools)
    if "raise" in step:
        raise RuntimeError(step["raise"])
    if "text" in step:
        if "think" in step["text"]:  # an echoed "think": reasoning comes before the text
            yield {0: DeltaThinkingPart(content="Let me ")}
            yield {0: DeltaThinkingPart(content="ponder.")}
            yield {0: DeltaThinkingPart(signature="sig-opaque")}
        for piece in scenario.pieces(step["text"]):
            yield piece
        return
    for index, (name, arguments) in enumerate(step["calls"]):
        first, second = scenario.halves(json.dumps(arguments))
        yield {index: DeltaToolCall(name=name, json_args=first, tool_call_id=f"call_{len(messages)}_{index}")}
        yield {index: DeltaToolCall(json_args=second)}


agent = Agent(
    FunctionModel(stream_function=model), deps_type=StateDeps[State], output_type=[str, DeferredToolRequests]
)
for tool in scenario.TOOLS:
    if tool not in (scenario.remember, scenario.refund_order):
        agent.tool_plain(tool)
agent.tool_plain(requires_approval=True)(scenario.refund_order)


@agent.tool
def remember(ctx: RunContext[StateDeps[State]], key: str, value: str) -> ToolReturn:
    """Store a value in the shared state."""
    ctx.deps.state.items[key] = value
    return ToolReturn(
        return_value=scenario.remember(key, value),
        metadata=[
            StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot=ctx.deps.state.model_dump()),
            StateDeltaEvent(type=EventType.STATE_DELTA, delta=[{"op": "add", "path": "/items/size", "value": "L"}]),
            CustomEvent(type=EventType.CUSTOM, name="remembered", value={"key": key}),
        ],
    )


async def run(request: Request):
    return await AGUIAdapter.dispatch_request(request, agent=agent, deps=StateDeps(State()))


def health(request: Request):
    return JSONResponse({"ok": True})


app = Starlette(routes=[Route("/", run, methods=["POST"]), Route("/health", health)])

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8801"))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)
