//! Feature list of all front ends.

use std::time::Duration;

use hotseat::dsl::prelude::*;
use serde_json::json;

use super::fixture::{ENCODED, FrontEndSupport, FrontEndTest, Observations, TestSource};

/// A feature of tests.
pub struct Feature {
    pub name: &'static str,
    /// Spelling in each front end that supports it, in table order.
    pub spellings: [&'static str; 3],
    pub data: FrontEndSupport,
    pub typescript: FrontEndSupport,
    pub rust: FrontEndSupport,
    /// Expected result of the last run if the feature is supported.
    pub code: i32,
    /// Returns true if the feature had its effect.
    pub effect: fn(&Observations) -> bool,
}

impl Feature {
    /// Spelling in a front end.
    pub fn spelling(&self, front_end: &str) -> &'static str {
        let [data, typescript, rust] = self.spellings;
        match front_end {
            "TypeScript" => typescript,
            "Rust" => rust,
            _ => data,
        }
    }
}

type RunArguments = &'static [&'static [&'static str]];

const SINGLE_RUN: RunArguments = &[&[]];

const fn data(text: &'static str, runs: RunArguments) -> FrontEndSupport {
    FrontEndSupport::Supported(FrontEndTest { test: TestSource::Data(text), runs })
}

const fn script(text: &'static str, runs: RunArguments) -> FrontEndSupport {
    FrontEndSupport::Supported(FrontEndTest { test: TestSource::TypeScript(text), runs })
}

const fn rust(declare: fn(&mut Group), runs: RunArguments) -> FrontEndSupport {
    FrontEndSupport::Supported(FrontEndTest { test: TestSource::Rust(declare), runs })
}

const fn no_data(text: &'static str, runs: RunArguments, words: &'static str) -> FrontEndSupport {
    FrontEndSupport::Unsupported(FrontEndTest { test: TestSource::Data(text), runs }, words)
}

const fn no_script(text: &'static str, runs: RunArguments, words: &'static str) -> FrontEndSupport {
    FrontEndSupport::Unsupported(FrontEndTest { test: TestSource::TypeScript(text), runs }, words)
}

const fn no_rust(declare: fn(&mut Group), runs: RunArguments, words: &'static str) -> FrontEndSupport {
    FrontEndSupport::Unsupported(FrontEndTest { test: TestSource::Rust(declare), runs }, words)
}

/// A test that says hello.
fn hello(g: &mut Group) -> &mut ExampleBuilder {
    g.it("a", async |t| {
        t.user.says("hello").await;
    })
}

pub const FEATURES: &[Feature] = &[
    Feature {
        name: "agent of a group",
        spellings: ["`suite: { agent }`", "`describe(…, { agent })`", "`g.agent(…)`"],
        data: data("suite: { agent: two }\n---\nname: a\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { describe, it, user } from "hotseat"; describe("g", { agent: "two" }, () => { it("a", () => { user.says("hello"); }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.describe("g", |g| {
                    g.agent("two");
                    hello(g);
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.request_counts() == (0, 1),
    },
    Feature {
        name: "agent of a test",
        spellings: ["`agent`", "`it(…, { agent })`", "`g.it(…).agent(…)`"],
        data: data("suite: { agent: one }\n---\nname: a\nagent: two\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { describe, it, user } from "hotseat"; describe("g", { agent: "one" }, () => { it("a", { agent: "two" }, () => { user.says("hello"); }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.agent("one");
                hello(s).agent("two");
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.request_counts() == (0, 1),
    },
    Feature {
        name: "agent in the same program",
        spellings: ["", "", "`replies(…)`, `factory(…)`"],
        data: no_data(
            "name: a\nagent: { replies: hello }\nturns: [{ user: hello }]\n",
            SINGLE_RUN,
            "`agent` must be",
        ),
        typescript: no_script(
            r#"import { it, user } from "hotseat"; it("a", { agent: { replies: "hello" } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
            "`agent` must be",
        ),
        rust: rust(
            |s| {
                s.agent(replies(async |_| "hello yourself"));
                s.it("a", async |t| {
                    assert_eq!(t.user.says("hello").await.text(), "hello yourself");
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.request_counts() == (0, 0),
    },
    Feature {
        name: "MCP servers and faults",
        spellings: ["`mcp`, `faults`", "`it(…, { mcp, faults })`", "`g.it(…).case_key(\"mcp\", …)`"],
        data: data(
            "name: a\nmcp: { bank: { type: mock, tools: [{ name: pay, answers: [{ args_match: { n: '1' }, content: ok }] }] } }\nfaults: [{ tool: pay, do: lost_answer }]\nforwardedProps: { bank: '${MCP.bank.url}' }\nturns: [{ user: hello, assert: { tools: { forbid_calls: [{ name: pay, server: bank }] } } }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { mcp: { bank: { type: "mock", tools: [{ name: "pay", answers: [{ argsMatch: { n: "1" }, content: "ok" }] }] } }, faults: [{ tool: "pay", do: "lost_answer" }], forwardedProps: { bank: "${MCP.bank.url}" } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s)
                    .case_key(
                        "mcp",
                        json!({"bank": {"type": "mock", "tools": [{"name": "pay", "answers": [{"args_match": {"n": "1"}, "content": "ok"}]}]}}),
                    )
                    .case_key("faults", json!([{"tool": "pay", "do": "lost_answer"}]))
                    .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        // No call reaches the fault.
        code: 1,
        effect: |seen| {
            let address = seen.one[0]["forwardedProps"]["bank"].as_str().unwrap_or_default();
            let failure = &seen.results()[0]["failure"];
            address.contains("/mcp/bank/")
                && failure["kind"] == "test_error"
                && failure["message"].as_str().is_some_and(|words| words.contains("was not reached"))
        },
    },
    Feature {
        name: "functions of scripts that answer tools",
        spellings: ["`answers: [{ use }]`", "`answers: [{ use }]`", "`.case_key(\"mcp\", …)`"],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"use\": \"scripts:bank.charge\"}]}]}}\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"use": "scripts:bank.charge"}]}]}}, forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge").await;
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"use": "scripts:bank.charge"}]}]}}))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.results()[0].to_string().contains("charged o-1"),
    },
    Feature {
        name: "served models and their faults",
        spellings: ["`models`", "`it(…, { models })`", "`g.it(…).case_key(\"models\", …)`"],
        data: data(
            "name: a\nmodels: {\"main\": {\"rules\": [{\"reply\": \"I am scripted.\"}], \"faults\": [{\"nth\": 1, \"do\": {\"rate_limit_ms\": 1}}]}}\nforwardedProps: {\"model\": \"${MODELS.main.url}\"}\nturns: [{ user: ask your model }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { models: {"main": {"rules": [{"reply": "I am scripted."}], "faults": [{"nth": 1, "do": {"rate_limit_ms": 1}}]}}, forwardedProps: {"model": "${MODELS.main.url}"} }, () => { user.says("ask your model"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("ask your model").await;
                })
                .case_key("models", json!({"main": {"rules": [{"reply": "I am scripted."}], "faults": [{"nth": 1, "do": {"rate_limit_ms": 1}}]}}))
                .case_key("forwardedProps", json!({"model": "${MODELS.main.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.results()[0].to_string().contains("I am scripted."),
    },
    Feature {
        name: "questions of mocked MCP servers to the user",
        spellings: ["`answers: [{ ask }]`", "`answers: [{ ask }]`", "`.case_key(\"mcp\", …)`"],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"content\": \"ok\", \"ask\": {\"sure\": {\"message\": \"Sure?\"}}}]}]}}\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge and answer }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok", "ask": {"sure": {"message": "Sure?"}}}]}]}}, forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge and answer"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge and answer").await;
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok", "ask": {"sure": {"message": "Sure?"}}}]}]}}))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.results()[0]["turns"][0]["interrupts"][0]["status"] == "resolved",
    },
    Feature {
        name: "tools of mocked MCP servers that appear later",
        spellings: ["`tools: [{ offered_after }]`", "`tools: [{ offeredAfter }]`", "`.case_key(\"mcp\", …)`"],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"content\": \"ok\"}]}, {\"name\": \"refund\", \"offered_after\": \"charge\", \"answers\": [{\"content\": \"back\"}]}]}}\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge and list }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "offered_after": "charge", "answers": [{"content": "back"}]}]}}, forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge and list"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge and list").await;
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "offered_after": "charge", "answers": [{"content": "back"}]}]}}))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.results()[0]["turns"][0]["output"].to_string().contains("charge,refund"),
    },
    Feature {
        name: "effects that happen twice",
        spellings: [
            "`type: idempotent`",
            "`toHold({ type: \"idempotent\" })`",
            "`holds(json!({\"type\": \"idempotent\"}))`",
        ],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"content\": \"ok\"}]}, {\"name\": \"refund\", \"answers\": [{\"content\": \"ok\"}]}]}}\nfaults: [{\"tool\": \"charge\", \"do\": \"lost_answer\"}]\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge }]\nassert: [{\"type\": \"idempotent\", \"tool\": \"charge\", \"key\": \"order\"}]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { conversation, expect, it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}, faults: [{"tool": "charge", "do": "lost_answer"}], forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge"); expect(conversation).toHold({"type": "idempotent", "tool": "charge", "key": "order"}); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge").await;
                    expect!(t.conversation, holds(json!({"type": "idempotent", "tool": "charge", "key": "order"})));
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}))
                .case_key("faults", json!([{"tool": "charge", "do": "lost_answer"}]))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 1,
        effect: |seen| {
            let failure = &seen.results()[0]["failure"];
            failure["kind"] == "assertion" && failure.to_string().contains("2 effects for order")
        },
    },
    Feature {
        name: "bounded retries after a fault",
        spellings: [
            "`type: after_fault`, `max_retries`",
            "`toHold({ type: \"after_fault\" })`",
            "`holds(json!({\"type\": \"after_fault\"}))`",
        ],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"content\": \"ok\"}]}, {\"name\": \"refund\", \"answers\": [{\"content\": \"ok\"}]}]}}\nfaults: [{\"tool\": \"charge\", \"do\": \"is_error\"}]\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge }]\nassert: [{\"type\": \"after_fault\", \"max_retries\": 0}]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { conversation, expect, it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}, faults: [{"tool": "charge", "do": "is_error"}], forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge"); expect(conversation).toHold({"type": "after_fault", "max_retries": 0}); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge").await;
                    expect!(t.conversation, holds(json!({"type": "after_fault", "max_retries": 0})));
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}))
                .case_key("faults", json!([{"tool": "charge", "do": "is_error"}]))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 1,
        effect: |seen| {
            let failure = &seen.results()[0]["failure"];
            failure["kind"] == "assertion" && failure.to_string().contains("at most 0 retries")
        },
    },
    Feature {
        name: "forbidden calls after a fault",
        spellings: [
            "`type: after_fault`, `forbid`",
            "`toHold({ type: \"after_fault\" })`",
            "`holds(json!({\"type\": \"after_fault\"}))`",
        ],
        data: data(
            "name: a\nmcp: {\"bank\": {\"type\": \"mock\", \"tools\": [{\"name\": \"charge\", \"answers\": [{\"content\": \"ok\"}]}, {\"name\": \"refund\", \"answers\": [{\"content\": \"ok\"}]}]}}\nfaults: [{\"tool\": \"charge\", \"do\": \"is_error\"}]\nforwardedProps: {\"bank\": \"${MCP.bank.url}\"}\nturns: [{ user: charge or refund }]\nassert: [{\"type\": \"after_fault\", \"forbid\": [\"refund\"]}]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { conversation, expect, it, user } from "hotseat"; it("a", { mcp: {"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}, faults: [{"tool": "charge", "do": "is_error"}], forwardedProps: {"bank": "${MCP.bank.url}"} }, () => { user.says("charge or refund"); expect(conversation).toHold({"type": "after_fault", "forbid": ["refund"]}); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("charge or refund").await;
                    expect!(t.conversation, holds(json!({"type": "after_fault", "forbid": ["refund"]})));
                })
                .case_key("mcp", json!({"bank": {"type": "mock", "tools": [{"name": "charge", "answers": [{"content": "ok"}]}, {"name": "refund", "answers": [{"content": "ok"}]}]}}))
                .case_key("faults", json!([{"tool": "charge", "do": "is_error"}]))
                .case_key("forwardedProps", json!({"bank": "${MCP.bank.url}"}));
            },
            SINGLE_RUN,
        ),
        code: 1,
        effect: |seen| {
            let failure = &seen.results()[0]["failure"];
            failure["kind"] == "assertion" && failure.to_string().contains("no call of refund")
        },
    },
    Feature {
        name: "judge and votes of a group",
        spellings: ["`suite: { judge }`", "`describe(…, { judge })`", "`g.judge(…)`"],
        data: data(
            "suite: { judge: { use: connectors:strict, votes: 3 } }\n---\nname: a\nturns: [{ user: hello, assert: [{ type: satisfy, criteria: It is kind }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { agent, describe, expect, it, user } from "hotseat"; describe("g", { judge: { use: "connectors:strict", votes: 3 } }, () => { it("a", () => { user.says("hello"); expect(agent).toSatisfy("It is kind"); }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.describe("g", |g| {
                    g.judge(Judge::new("connectors:strict").votes(3));
                    g.it("a", async |t| {
                        t.user.says("hello").await;
                        expect!(t.agent, satisfy("It is kind"));
                    });
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.judged == ["strict"; 3],
    },
    Feature {
        name: "judge and votes of a test, added to those of its group",
        spellings: ["`judge`", "`it(…, { judge })`", "`g.it(…).judge(…)`"],
        data: data(
            "suite: { judge: connectors:strict }\n---\nname: a\njudge: { votes: 5 }\nturns: [{ user: hello, assert: [{ type: satisfy, criteria: It is kind }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { agent, describe, expect, it, user } from "hotseat"; describe("g", { judge: "connectors:strict" }, () => { it("a", { judge: { votes: 5 } }, () => { user.says("hello"); expect(agent).toSatisfy("It is kind"); }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.judge("connectors:strict");
                s.it("a", async |t| {
                    t.user.says("hello").await;
                    expect!(t.agent, satisfy("It is kind"));
                })
                .judge(Judge::default().votes(5));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.judged == ["strict"; 5],
    },
    Feature {
        name: "user and team",
        spellings: ["`user`, `team`", "`{ user, team }`", "`.user(…)`, `.team(…)`"],
        data: data("name: a\nagent: two\nuser: mary\nteam: nurses\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { agent: "two", user: "mary", team: "nurses" }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.team("nurses");
                hello(s).agent("two").user("mary");
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| {
            seen.two.len() == 1 && seen.two[0]["user"] == "mary" && seen.two[0]["team"] == "nurses"
        },
    },
    Feature {
        name: "metadata of a test",
        spellings: ["`metadata`", "`{ metadata }`", "`.metadata(…)`"],
        data: data("name: a\nagent: two\nmetadata: { ticket: T-7 }\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { agent: "two", metadata: { ticket: "T-7" } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s).agent("two").metadata(json!({"ticket": "T-7"}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| {
            seen.two.len() == 1
                && seen.two[0]["options"]["metadata"]["ticket"] == "T-7"
                && seen.results()[0]["metadata"]["ticket"] == "T-7"
        },
    },
    Feature {
        name: "options of a test and of a turn",
        spellings: ["`options`", "`{ options }`", "`.options(…)`, `says(…).with_options(…)`"],
        data: data(
            "name: a\nagent: two\noptions: { tone: kind, size: 1 }\nturns: [{ user: hello, options: { size: 2 } }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { agent: "two", options: { tone: "kind", size: 1 } }, () => { user.says("hello", { options: { size: 2 } }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("hello").with_options(json!({"size": 2})).await;
                })
                .agent("two")
                .options(json!({"tone": "kind", "size": 1}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.two.len() == 1 && seen.two[0]["options"] == json!({"tone": "kind", "size": 2}),
    },
    Feature {
        name: "attachments",
        spellings: ["`attachments`", "`says(…, { attachments })`", "`says(…).attach(…)`"],
        data: data(
            "name: a\nturns: [{ user: hello, attachments: [{ type: image, source: 'file://receipt.png' }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("hello", { attachments: [{ type: "image", source: "file://receipt.png" }] }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("hello").attach(Attachment::image("receipt.png")).await;
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1 && seen.one[0].to_string().contains(ENCODED),
    },
    Feature {
        name: "expected errors",
        spellings: ["`expect_error`", "`says(…, { expectError })`", "`says(…).expect_error(…)`"],
        data: data(
            "name: a\nturns: [{ user: fail, expect_error: { message: paper, code: E7 } }, { user: hello }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("fail", { expectError: { message: /paper/, code: "E7" } }); user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("fail").expect_error("paper").expect_error_code("E7").await;
                    t.user.says("hello").await;
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 2,
    },
    Feature {
        name: "failure if an expected error does not occur",
        spellings: ["`expect_error`", "`says(…, { expectError })`", "`says(…).expect_error(…)`"],
        data: data("name: a\nturns: [{ user: hello, expect_error: paper }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("hello", { expectError: /paper/ }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("hello").expect_error("paper").await;
                });
            },
            SINGLE_RUN,
        ),
        code: 1,
        effect: |seen| seen.results()[0]["status"] == "failed",
    },
    Feature {
        name: "answers to a paused agent",
        spellings: ["`resume`", "`says(…, { resume })`", "`says(…).resume(…)`"],
        data: data(
            "name: a\nturns: [{ user: pay, resume: [{ message: Pay, payload: { ok: true } }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("pay", { resume: [{ message: "Pay", payload: { ok: true } }] }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    let answer = json!({"message": "Pay", "payload": {"ok": true}});
                    let said = t.user.says("pay").resume(answer).await;
                    expect!(said.text(), contains("paid"));
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 2 && seen.one[1]["resume"][0]["payload"] == json!({"ok": true}),
    },
    Feature {
        name: "earlier messages of the conversation",
        spellings: ["`messages`", "`{ messages }`", "`.case_key(\"messages\", …)`"],
        data: data(
            "name: a\nmessages: [{ role: assistant, content: Welcome }]\nturns: [{ user: hello }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { messages: [{ role: "assistant", content: "Welcome" }] }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s).case_key("messages", json!([{"role": "assistant", "content": "Welcome"}]));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1 && seen.one[0]["messages"][0]["content"] == "Welcome",
    },
    Feature {
        name: "client tools, state, context",
        spellings: ["`tools`, `state`, …", "`{ tools, state, … }`", "`.case_key(\"tools\", …)`"],
        data: data(
            "name: a\ntools: [{ name: confirm }]\nstate: { step: 3 }\nturns: [{ user: hello }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { tools: [{ name: "confirm" }], state: { step: 3 } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.case_key("tools", json!([{"name": "confirm"}]));
                hello(s).case_key("state", json!({"step": 3}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| {
            seen.one.len() == 1
                && seen.one[0]["tools"][0]["name"] == "confirm"
                && seen.one[0]["state"]["step"] == 3
        },
    },
    Feature {
        name: "hooks of the project file",
        spellings: ["`before`, `after`", "`{ before, after }`", "`.case_key(\"before\", …)`"],
        data: data("name: a\nbefore: prepare\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { before: "prepare" }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s).case_key("before", "prepare");
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1 && seen.prepared == 1,
    },
    Feature {
        name: "tags, retries, time limits",
        spellings: [
            "`tags`, `retries`, `timeout`",
            "`{ tags, retries, timeout }`",
            "`.tag(…)`, `.retries(…)`, `.timeout(…)`",
        ],
        data: data(
            "name: a\ntags: [slow]\nretries: 1\ntimeout: 1m\nturns: [{ user: hello, assert: [{ type: contains, value: nothing }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { agent, expect, it, user } from "hotseat"; it("a", { tags: ["slow"], retries: 1, timeout: "1m" }, () => { user.says("hello"); expect(agent).toContain("nothing"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("hello").await;
                    expect!(t.agent, matches("nothing"));
                })
                .tag("slow")
                .retries(1)
                .timeout(Duration::from_secs(60));
            },
            SINGLE_RUN,
        ),
        code: 1,
        effect: |seen| seen.one.len() == 2 && seen.results()[0]["tags"] == json!(["slow"]),
    },
    Feature {
        name: "declared reliability",
        spellings: ["`reliability`", "`{ reliability }`", "`.case_key(\"reliability\", …)`"],
        data: data(
            "name: a\nreliability: { rate: 0.5, confidence: 0.6, max_runs: 5 }\nturns: [{ user: hello }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", { reliability: { rate: 0.5, confidence: 0.6, maxRuns: 5 } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s).case_key("reliability", json!({"rate": 0.5, "confidence": 0.6, "max_runs": 5}));
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() > 1,
    },
    Feature {
        name: "scenarios",
        spellings: ["`scenarios`", "`scenarioSet(…)`", "`g.scenario_set(…)`"],
        data: data(
            "id: a\nname: a\nscenarios: rooms.json\nturns: [{ user: \"${scenario.goal}\" }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, scenarioSet, user } from "hotseat"; scenarioSet("rooms", "rooms.json", (scenario) => { it(scenario.name, () => { user.says(scenario.goal); }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.scenario_set("rooms", load("rooms.json"), |g, scenario| {
                    g.it(scenario.str("name"), async move |t| {
                        t.user.says(scenario.str("goal")).await;
                    });
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 2 && seen.results().len() == 2,
    },
    Feature {
        name: "simulated users",
        spellings: ["`simulate`, `simulator`", "`user.simulate(…)`", "`user.simulate(…)`"],
        data: data(
            "name: a\nsimulate: { use: connectors:planner, goal: Plan a day, max_turns: 2 }\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.simulate({ use: "connectors:planner", goal: "Plan a day", maxTurns: 2 }); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.simulator().played_by("connectors:planner");
                s.it("a", async |t| {
                    t.user
                        .simulate(|s| {
                            s.goal("Plan a day").max_turns(2);
                        })
                        .await;
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| !seen.one.is_empty() && seen.results()[0]["status"] == "passed",
    },
    Feature {
        name: "topics defined inside the graph",
        spellings: [
            "`graph: { NAME: { … } }`",
            "`expectConversationTo({ NAME: { … } })`",
            "`Graph::topic_of(…)`",
        ],
        data: data(
            "name: a\nclassify_topics: triggers\ngraph: { start: { characteristic: It begins, next: looking }, looking: { characteristic: Rooms, triggers: [{ on_tool_call: look_up }] } }\nturns: [{ user: hello }, { user: look, assert: [{ type: topic, name: looking }] }]\n",
            SINGLE_RUN,
        ),
        typescript: script(
            r#"import { agent, expect, expectConversationTo, it, user } from "hotseat"; it("a", { classifyTopics: "triggers" }, () => { expectConversationTo({ start: { characteristic: "It begins", next: "looking" }, looking: { characteristic: "Rooms", triggers: [{ onToolCall: "look_up" }] } }); user.says("hello"); user.says("look"); expect(agent).toBeInTopic("looking"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.case_key("classify_topics", "triggers");
                s.it("a", async |t| {
                    let mut graph = Graph::new();
                    graph
                        .topic_of("start", |topic| {
                            topic.characteristic("It begins");
                        })
                        .next("looking");
                    graph.topic_of("looking", |topic| {
                        topic.characteristic("Rooms").trigger(on_tool_call("look_up"));
                    });
                    t.expect_conversation_to(graph);
                    t.user.says("hello").await;
                    t.user.says("look").await;
                    expect!(t.agent, in_topic("looking"));
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 2,
    },
    Feature {
        name: "metadata of user messages, in conditions in code",
        spellings: ["", "`userMessage.metadata`", "`user_message().metadata`"],
        data: no_data(
            "name: a\nturns: [{ user: hello, assert: [{ type: satisfy, criteria: { match: { type: metadata } } }] }]\n",
            SINGLE_RUN,
            "metadata",
        ),
        typescript: script(
            r#"import { conversation, expect, it, user } from "hotseat"; it("a", { agent: "two" }, () => { user.says("hello", { options: { size: 2 } }); expect(conversation.turns[0].userMessage.metadata.size).toBe(2); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                s.criterion("small", "It is small").matches(|conversation| {
                    conversation.last_turn().unwrap().user_message().metadata["size"] == 2
                });
                s.it("a", async |t| {
                    t.user.says("hello").with_options(json!({"size": 2})).await;
                    expect!(t.conversation.turns()[0].user_message().metadata, eq(json!({"size": 2})));
                    expect!(t.agent, satisfy("small"));
                })
                .agent("two");
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.two.len() == 1,
    },
    Feature {
        name: "values created for each test",
        spellings: ["", "", "`g.fixture(…)`"],
        data: no_data(
            "name: a\nfixture: shop\nturns: [{ user: hello }]\n",
            SINGLE_RUN,
            "unknown key `fixture`",
        ),
        typescript: no_script(
            r#"import { fixture, it, user } from "hotseat"; const shop = fixture(() => 7); it("a", () => { user.says("hello"); });"#,
            SINGLE_RUN,
            "fixture",
        ),
        rust: rust(
            |s| {
                let shop = s.fixture(async |_| 7);
                s.it("a", async move |t| {
                    let shop = t.get(shop).await;
                    t.user.says(format!("shop {shop}")).await;
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1 && seen.one[0].to_string().contains("shop 7"),
    },
    Feature {
        name: "one test for each row of a list in the code",
        spellings: ["", "`it.each`, `describe.each`", "a loop around `g.it(…)`"],
        data: no_data("name: a\neach: [1]\nturns: [{ user: hello }]\n", SINGLE_RUN, "unknown key `each`"),
        typescript: script(
            r#"import { it, user } from "hotseat"; it.each([["shop", 7], ["bar", 8]])("%s", (word, number) => { user.says(`${word} ${number}`); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                for (word, number) in [("shop", 7), ("bar", 8)] {
                    s.it(word, async move |t| {
                        t.user.says(format!("{word} {number}")).await;
                    });
                }
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 2 && seen.one.iter().any(|said| said.to_string().contains("shop 7")),
    },
    Feature {
        name: "running only selected tests during development",
        spellings: ["", "`it.only`, `describe.only`", "`fit`, `fdescribe`, `.only()`"],
        data: no_data("name: a\nonly: true\nturns: [{ user: hello }]\n", SINGLE_RUN, "unknown key `only`"),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("hello"); }); it.only("b", () => { user.says("hello"); });"#,
            SINGLE_RUN,
        ),
        rust: rust(
            |s| {
                hello(s);
                s.fit("b", async |t| {
                    t.user.says("hello").await;
                });
            },
            SINGLE_RUN,
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1,
    },
    Feature {
        name: "written conversation",
        spellings: ["`turns`, `input`", "", ""],
        data: data("name: a\nturns: [{ user: hello }]\n", SINGLE_RUN),
        typescript: no_script(
            r#"import { it } from "hotseat"; it("a", { turns: [{ user: "hello" }] }, () => {});"#,
            SINGLE_RUN,
            "`turns` is not supported for tests in code",
        ),
        rust: no_rust(
            |s| {
                s.it("a", async |_| {}).case_key("turns", json!([{"user": "hello"}]));
            },
            SINGLE_RUN,
            "`turns` is not supported for tests in code",
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1,
    },
    Feature {
        name: "commands that set variables of a test",
        spellings: ["`hooks`", "", ""],
        data: data(
            "name: a\nhooks: [{ cmd: [echo, '{\"room\": \"Blue\"}'] }]\nturns: [{ user: \"${room}\" }]\n",
            SINGLE_RUN,
        ),
        typescript: no_script(
            r#"import { it, user } from "hotseat"; it("a", { hooks: [{ cmd: ["echo", "{}"] }] }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
            "`hooks` is not supported for tests in code",
        ),
        rust: no_rust(
            |s| {
                hello(s).case_key("hooks", json!([{"cmd": ["echo", "{}"]}]));
            },
            SINGLE_RUN,
            "`hooks` is not supported for tests in code",
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1 && seen.one[0].to_string().contains("Blue"),
    },
    Feature {
        name: "a human who answers",
        spellings: ["`interactive`", "", ""],
        data: data(
            "name: a\ninteractive: { enabled: true }\nturns: [{ user: hello }]\n",
            &[&["--skip-interactive"]],
        ),
        typescript: no_script(
            r#"import { it, user } from "hotseat"; it("a", { interactive: { enabled: true } }, () => { user.says("hello"); });"#,
            SINGLE_RUN,
            "`interactive` is not supported for tests in code",
        ),
        rust: no_rust(
            |s| {
                hello(s).case_key("interactive", json!({"enabled": true}));
            },
            SINGLE_RUN,
            "`interactive` is not supported for tests in code",
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1,
    },
    Feature {
        name: "saved runs and `--last-failed`",
        spellings: ["yes", "yes", "yes"],
        data: data(
            "name: a\nturns: [{ user: hello, assert: [{ type: contains, value: nothing }] }]\n---\nname: b\nturns: [{ user: hello }]\n",
            &[&[], &["--last-failed"]],
        ),
        typescript: script(
            r#"import { agent, expect, it, user } from "hotseat"; it("a", () => { user.says("hello"); expect(agent).toContain("nothing"); }); it("b", () => { user.says("hello"); });"#,
            &[&[], &["--last-failed"]],
        ),
        rust: rust(
            |s| {
                s.it("a", async |t| {
                    t.user.says("hello").await;
                    expect!(t.agent, matches("nothing"));
                });
                s.it("b", async |t| {
                    t.user.says("hello").await;
                });
            },
            &[&[], &["--last-failed"]],
        ),
        code: 1,
        effect: |seen| {
            let names = seen.results().iter().map(|result| &result["name"]).collect::<Vec<_>>();
            seen.one.len() == 3 && names == ["a"] && seen.runs.matches("1 failed").count() == 2
        },
    },
    Feature {
        name: "re-evaluation of saved runs, `hotseat recheck`",
        spellings: ["yes", "yes", ""],
        data: data("name: a\nturns: [{ user: hello }]\n", &[&[], &["recheck", "last"]]),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("hello"); });"#,
            &[&[], &["recheck", "last"]],
        ),
        rust: no_rust(
            |s| {
                hello(s);
            },
            &[&[], &["recheck", "last"]],
            "was made by the Rust tests of tests/a.rs",
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1,
    },
    Feature {
        name: "runs split over several machines, `--shard`",
        spellings: ["yes", "yes", ""],
        data: data("name: a\nturns: [{ user: hello }]\n", &[&["--shard", "1/1"]]),
        typescript: script(
            r#"import { it, user } from "hotseat"; it("a", () => { user.says("hello"); });"#,
            &[&["--shard", "1/1"]],
        ),
        rust: no_rust(
            |s| {
                hello(s);
            },
            &[&["--shard", "1/1"]],
            "unknown argument `--shard`",
        ),
        code: 0,
        effect: |seen| seen.one.len() == 1,
    },
];
