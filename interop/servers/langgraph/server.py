"""The shop agent as a LangGraph graph, served by ag-ui-langgraph on 127.0.0.1:$PORT (8802).

POST /            default adapter: RAW events, interrupts only as CUSTOM event on_interrupt
POST /structured  no RAW events, interrupts also in the outcome of the run
POST /argsfirst   the model sends the call name and the first part of its arguments together; the adapter then
                                    omits that part from TOOL_CALL_ARGS, so only MESSAGES_SNAPSHOT has the complete arguments
GET  /health
"""
import json
import os
import sys
from typing import Iterator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_shared"))

import scenario
import uvicorn
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") if isinstance(part, dict) else str(part) for part in content)


def seen(messages):
    """The user texts, and the tool results after the last of them."""
    texts, results = [], []
    for message in messages:
        if isinstance(message, HumanMessage):
            texts.append(text_of(message.content))
            results = []
        elif isinstance(message, ToolMessage):
            results.append((message.name, text_of(message.content)))
    return texts, results


def call_piece(index, arguments, name=None, id=None):
    return {"name": name, "args": arguments, "id": id, "index": index, "type": "tool_call_chunk"}


class ScriptedModel(BaseChatModel):
    client_tools: list = []
    args_first: bool = False

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        names = [tool["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        return self.model_copy(update={"client_tools": [n for n in names if n not in scenario.TOOL_NAMES]})

    def _chunks(self, messages):
        """Stream of the model. Ids count the previous messages, so they are stable and unique in a thread."""
        step = scenario.decide(*seen(messages), self.client_tools)
        position = len(messages)
        if "raise" in step:
            raise RuntimeError(step["raise"])
        if "text" in step:
            for piece in scenario.pieces(step["text"]):
                yield AIMessageChunk(content=piece, id=f"msg_{position}")
            return
        for index, (name, arguments) in enumerate(step["calls"]):
            first, second = scenario.halves(json.dumps(arguments))
            id = f"call_{position}_{index}"
            if self.args_first:
                pieces = [call_piece(index, first, name, id), call_piece(index, second)]
            else:
                pieces = [call_piece(index, "", name, id), call_piece(index, first), call_piece(index, second)]
            for piece in pieces:
                yield AIMessageChunk(content="", id=f"msg_{position}", tool_call_chunks=[piece])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs) -> Iterator[ChatGenerationChunk]:
        for message in self._chunks(messages):
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(message.content, chunk=chunk)
            yield chunk

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        whole = None
        for chunk in self._stream(messages, stop, run_manager, **kwargs):
            whole = chunk if whole is None else whole + chunk
        said = whole.message
        message = AIMessage(content=said.content, id=said.id, tool_calls=said.tool_calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


class State(MessagesState):
    tools: list
    items: dict


def refund_order(order_id: str, amount: float) -> str:
    """Refund an order, once a person has approved it."""
    answer = interrupt({"question": f"Refund {amount} for {order_id}?"})
    return json.dumps({"refund_answer": answer})


TOOLS = [StructuredTool.from_function(tool) for tool in scenario.TOOLS if tool is not scenario.refund_order]
TOOLS.append(StructuredTool.from_function(refund_order))


def after_chat(state: State):
    calls = getattr(state["messages"][-1], "tool_calls", None) or []
    if calls and all(call["name"] in scenario.TOOL_NAMES for call in calls):
        return "tools"
    return END  # text, or a call of a client tool: the run ends and the client goes on


def shop(model):
    async def chat(state: State, config):
        bound = model.bind_tools(TOOLS + list(state.get("tools") or []))
        return {"messages": [await bound.ainvoke(state["messages"], config)]}

    graph = StateGraph(State)
    graph.add_node("chat", chat)
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "chat")
    graph.add_conditional_edges("chat", after_chat, ["tools", END])
    graph.add_edge("tools", "chat")
    return graph.compile(checkpointer=MemorySaver())


app = FastAPI()
add_langgraph_fastapi_endpoint(app, LangGraphAgent(name="plain", graph=shop(ScriptedModel())), "/")
add_langgraph_fastapi_endpoint(
    app,
    LangGraphAgent(
        name="structured", graph=shop(ScriptedModel()), emit_raw_events=False, emit_interrupt_outcome=True
    ),
    "/structured",
)
add_langgraph_fastapi_endpoint(
    app,
    LangGraphAgent(name="argsfirst", graph=shop(ScriptedModel(args_first=True)), emit_raw_events=False),
    "/argsfirst",
)

if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8802"))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)
