//! Agents over HTTP that answer with a text and use models and MCP servers of the test.

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest, McpClient, ModelClient};
use serde_json::{Value, json};

/// Header with the address of the model `main`, for [`http_target`].
pub const MODEL_HEADER: &str = "x-model: '${MODELS.main.url}'";

/// An agent whose reply is the result of this function.
pub fn http_agent<V: Into<Value>>(reply: impl Fn(&FakeRequest) -> V + Send + Sync + 'static) -> FakeAgent {
    FakeAgent::start(move |request: &FakeRequest| {
        let reply: Value = reply(request).into();
        FakeReply::json(200, &json!({"reply": reply}))
    })
}

/// The target of an [`http_agent`] that gets these headers.
pub fn http_target(agent: &FakeAgent, headers: &str) -> String {
    format!(
        "target:\n  type: http\n  endpoint: {agent}\n  headers: {{ {headers} }}\n  body: {{ text: '{{{{message}}}}' }}\n  map: {{ reply: $.reply }}\n"
    )
}

/// The target of an [`http_agent`] that uses the MCP server `bank`.
pub fn bank_target(agent: &FakeAgent) -> String {
    http_target(agent, "x-bank: '${MCP.bank.url}'")
}

/// The target of an [`http_agent`] that uses the model `main`.
pub fn model_target(agent: &FakeAgent) -> String {
    http_target(agent, MODEL_HEADER)
}

/// The message that an agent got.
pub fn asked_text(request: &FakeRequest) -> String {
    request.json()["text"].as_str().unwrap_or_default().to_string()
}

/// A client of the MCP server whose address the agent gets from [`bank_target`].
pub fn bank_client(request: &FakeRequest) -> McpClient {
    McpClient::new(request.header("x-bank").expect("the address of the bank"))
}

/// A client of the model whose address the agent gets from [`model_target`].
pub fn model_client(request: &FakeRequest) -> ModelClient {
    ModelClient::new(request.header("x-model").expect("the address of the model"))
}
