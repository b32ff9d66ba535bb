//! `--record-cassettes` and `--cassettes`: answers of relayed models, proxied MCP servers, simulators and judges.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hotseat_testkit::{
    FakeAgent, FakeReply, FakeRequest, McpClient, ModelClient, TestWorkspace, post_within,
};
use serde_json::{Value, json};

use crate::common::http_agents::{asked_text, bank_client, http_agent, model_client};
use crate::common::{Project, TestRun, echo_agent};
use crate::mcp_command::ServedMcp;

/// Key of the provider, which no cassette may contain.
const KEY: &str = "provider-key-1";

/// An agent that lets its model call tools of the bank, all calls of a reply at the same time.
fn agent() -> FakeAgent {
    http_agent(|request| converse(&model_client(request), &bank_client(request), &asked_text(request)))
}

fn converse(model: &ModelClient, bank: &McpClient, text: &str) -> String {
    let mut messages = vec![json!({"role": "user", "content": text})];
    for _ in 0..5 {
        let reply = match model.call_with_retries(&messages, &["charge_card"]) {
            Ok(reply) => reply,
            Err((status, words)) => return format!("failed with {status}: {words}"),
        };
        let calls = reply["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            return reply["content"].as_str().unwrap_or_default().to_string();
        }
        messages.push(reply);
        thread::scope(|scope| {
            let call = |call: &Value| {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                let arguments = serde_json::from_str(arguments).unwrap_or_default();
                let result =
                    bank.call("charge_card", &arguments).unwrap_or_else(|error| error.to_string().into());
                let content = result.to_string();
                json!({"role": "tool", "tool_call_id": call["id"], "content": content})
            };
            let running: Vec<_> = calls.iter().map(|one| scope.spawn(move || call(one))).collect();
            messages.extend(running.into_iter().map(|call| call.join().expect("a result")));
        });
    }
    "gave up".to_string()
}

/// A provider that charges three orders at once and then tells the results. Its ids differ in each reply.
fn provider() -> FakeAgent {
    let replies = AtomicUsize::new(0);
    FakeAgent::start(move |request: &FakeRequest| {
        if request.header("authorization") != Some(&format!("Bearer {KEY}")) {
            return FakeReply::json(401, &json!({"error": {"message": "the key is wrong"}}));
        }
        let messages = request.json()["messages"].as_array().cloned().unwrap_or_default();
        let results = messages.iter().filter(|message| message["role"] == "tool");
        let results: Vec<&str> = results.filter_map(|message| message["content"].as_str()).collect();
        let number = replies.fetch_add(1, Ordering::Relaxed);
        let message = match results.is_empty() {
            false => json!({"role": "assistant", "content": format!("Paid: {}.", results.join(", "))}),
            true => {
                let call = |order: &str| {
                    let arguments = json!({"order_id": order}).to_string();
                    json!({"id": format!("call-{number}-{order}"), "type": "function", "function": {"name": "charge_card", "arguments": arguments}})
                };
                let calls = ["o-1", "o-2", "o-1"].map(call);
                json!({"role": "assistant", "content": null, "tool_calls": calls})
            }
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3});
        FakeReply::json(
            200,
            &json!({"id": format!("chatcmpl-{number}"), "choices": [choice], "usage": usage}),
        )
    })
}

/// A role whose answers are numbered, so that each can be told from the others.
fn role(answer: impl Fn(usize) -> Value + Send + Sync + 'static) -> FakeAgent {
    let asked = AtomicUsize::new(0);
    FakeAgent::with_run(move |run, _| {
        let answer = answer(asked.fetch_add(1, Ordering::Relaxed)).to_string();
        run.text(&answer).finished()
    })
}

fn user() -> FakeAgent {
    role(|number| json!({"input": format!("Pay my orders, please ({number})"), "goal_achieved": false}))
}

fn judge() -> FakeAgent {
    role(|number| json!({"passed": true, "score": 1.0, "reason": format!("reason {number}")}))
}

/// The servers that a project contacts besides its agent.
struct Others {
    provider: FakeAgent,
    user: FakeAgent,
    judge: FakeAgent,
    bank: ServedMcp,
}

impl Others {
    fn start(workspace: &TestWorkspace) -> Others {
        let tool = json!({"name": "charge_card", "answer": "charged ${arguments.order_id}"});
        workspace.file("bank.json", &json!({"name": "bank", "tools": [tool]}).to_string());
        let bank = ServedMcp::start(workspace, &["bank.json"]);
        Others { provider: provider(), user: user(), judge: judge(), bank }
    }

    fn config(&self, agent: &FakeAgent) -> String {
        format!(
            "target:
  type: http
  endpoint: {agent}
  headers: {{ x-model: '${{MODELS.main.url}}', x-bank: '${{MCP.bank.url}}' }}
  body: {{ text: '{{{{message}}}}' }}
  map: {{ reply: $.reply }}
agents: {{ user: {{ endpoint: '{}' }}, judge: {{ endpoint: '{}' }} }}
judge: agents:judge
models: {{ main: {{ type: relay, url: '{}', headers: {{ authorization: 'Bearer {KEY}' }} }} }}
mcp: {{ bank: {{ type: proxy, url: '{}' }} }}
",
            self.user.url(),
            self.judge.url(),
            self.provider.url(),
            self.bank.url
        )
    }
}

/// Two cases with a simulated user and a judge, and one without.
const SUITE: &str = "name: a
simulator: { use: user, options: { metadata: { goal: Pay all orders } } }
checkpoints: [{ id: paid, assertion: { type: contains, value: charged o-2 } }]
max_turns: 3
assert: [{ type: agent, criteria: Pays each order }]
---
name: b
turns:
  - user: Pay my orders
    assert: [{ type: agent, criteria: Is polite }, { type: agent, criteria: Is brief }]
---
name: c
turns: [{ user: Pay my orders, assert: { text: { must_match: 'charged o-1.*charged o-2.*charged o-1' } } }]
";

/// What a conversation consists of, without ids and times. Calls at the same time have no order.
fn digest(conversation: &Value) -> String {
    let turns = conversation["turns"].as_array().into_iter().flatten();
    let shown = turns.map(|turn| {
        let calls = turn["tool_calls"].as_array().into_iter().flatten();
        let mut calls: Vec<String> = calls
            .map(|call| format!("{} {} {} {}", call["name"], call["args"], call["server"], call["result"]))
            .collect();
        calls.sort_unstable();
        let roles = turn["roles"].as_array().into_iter().flatten();
        let roles: Vec<String> = roles.map(|role| format!("{} {}", role["agent"], role["answer"])).collect();
        format!("{} {} {} {calls:?} {roles:?}", turn["input"], turn["output"], turn["spent"]["total_tokens"])
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn folders(project: &Project) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project.workspace.path("cassettes")).expect("the folder");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    folders.sort();
    folders
}

/// Records the cassettes of `suite`.
fn recorded(agent: &FakeAgent, suite: &str) -> (Project, TestRun) {
    let workspace = TestWorkspace::new();
    let others = Others::start(&workspace);
    let project = Project::with_config(&others.config(agent)).suite("a", suite);
    let run = project.test(&["--record-cassettes", "cassettes", "--parallel", "1"]);
    run.assert_all_passed();
    (project, run)
}

#[test]
fn a_cassette_answers_for_the_model_the_tools_the_user_and_the_judge() {
    let agent = agent();
    let (project, recorded) = recorded(&agent, SUITE);
    for folder in folders(&project) {
        for (part, words) in [("models.jsonl", "chatcmpl-"), ("bank.mcp.jsonl", "charged o-2")] {
            let text = std::fs::read_to_string(folder.join(part)).expect(part);
            assert!(text.contains(words) && !text.contains(KEY), "{text}");
        }
        let roles = std::fs::read_to_string(folder.join("roles.jsonl")).expect("the roles");
        assert!(!roles.contains("session_id"), "{roles}");
    }
    assert_eq!(folders(&project).len(), 3, "{:?}", folders(&project));

    // The others are gone; the agent is the real one.
    let requests = agent.requests().len();
    let replayed = project.test(&["--cassettes", "cassettes", "--runs", "100", "--parallel", "32"]);
    replayed.assert_all_passed();
    assert_eq!(agent.requests().len(), requests + 300);
    for name in ["a", "b", "c"] {
        let first = digest(recorded.case(name));
        assert!(first.contains("charged o-2"), "{first}");
        let runs = replayed.case(name)["run_details"].as_array().cloned().unwrap_or_default();
        assert_eq!(runs.len(), 100, "{}", replayed.output);
        for run in &runs {
            assert_eq!(digest(run), first, "{name}");
        }
    }
    assert!(digest(recorded.case("a")).contains("Pay my orders, please (0)"));
    assert!(digest(recorded.case("b")).contains("reason 2"));
    // The failed cases run again with the cassettes.
    assert!(!recorded.output.stdout.contains("--record-cassettes"), "{}", recorded.output);
}

/// Calls keep their place among the messages however fast they arrive, and have no order between two messages.
#[test]
fn questions_to_judges_depend_neither_on_pace_nor_on_the_order_of_parallel_calls() {
    let agent = |orders: [&str; 2], pause: &str| {
        let call = |order: &str| json!({"type": "tool_call", "id": order, "name": "charge_card", "arguments": {"order": order}});
        let result =
            |order: &str| json!({"type": "tool_result", "id": order, "result": format!("charged {order}")});
        let mut lines = vec![json!({"type": "text", "text": "It costs 40 EUR."})];
        lines.extend(orders.map(call));
        lines.extend(orders.map(result));
        lines.extend([json!({"type": "text", "text": "Both are paid."}), json!({"type": "done"})]);
        let line = |line: Value| format!("echo '{line}'\n{pause}");
        match pause {
            // A single write.
            "" => format!(
                "read -r message\ncat <<'END'\n{}\nEND\n",
                lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
            ),
            _ => format!("read -r message\n{}", lines.into_iter().map(line).collect::<String>()),
        }
    };
    let suite = "name: a\nturns:\n  - user: Pay my orders\n    assert: [{ type: satisfy, criteria: The agent is honest about both }]\n";
    let project = Project::with_config(
        "target: { type: command, command: [sh, agent.sh] }\nconnectors: { judge: { type: scripted, script: judge.yaml } }\njudge: connectors:judge\n",
    )
    .file("judge.yaml", "use: always\nrules: [{ reply: '{\"reasoning\": \"r\", \"satisfied\": true}' }]\n")
    .file("agent.sh", &agent(["o-1", "o-2"], ""))
    .suite("a", suite);
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    let roles = std::fs::read_to_string(folders(&project)[0].join("roles.jsonl")).expect("the roles");
    let place = |words: &str| roles.find(words).unwrap_or_else(|| panic!("{words}: {roles}"));
    let places = ["40 EUR", "charged o-1", "charged o-2", "Both are paid"].map(place);
    assert!(places.is_sorted() && roles.contains("<evidence>\\n"), "{roles}");
    for (orders, pause) in
        [(["o-1", "o-2"], "sleep 0.02\n"), (["o-2", "o-1"], ""), (["o-2", "o-1"], "sleep 0.02\n")]
    {
        project.workspace.file("agent.sh", &agent(orders, pause));
        project.test(&["--cassettes", "cassettes"]).assert_all_passed();
    }
    let told = agent(["o-1", "o-2"], "").replace("It costs 40 EUR.", "Both are paid, too.");
    project.workspace.file("agent.sh", &told);
    let missing =
        ["the cassette has no answer of connectors:judge to this question", "line 2: /message: recorded"];
    project.test(&["--cassettes", "cassettes"]).assert_failure("a", "judge_error", &missing);
}

/// Line numbers are those of an edited file, and a key that is written twice is a mistake.
#[test]
fn edited_cassettes_are_read_line_by_line() {
    let agent = agent();
    let (project, _) = recorded(&agent, SUITE);
    let edit = |change: &dyn Fn(&str) -> String| {
        for folder in folders(&project) {
            for file in ["roles.jsonl", "models.jsonl"] {
                let path = folder.join(file);
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                std::fs::write(&path, change(&text)).expect("the cassette");
            }
        }
    };
    edit(&|text| text.replace('\n', "\n\n"));
    let changed = SUITE.replace("Is brief", "Is very brief").replace("Pay all orders", "Pay one order");
    project.workspace.file("a.test.yaml", &changed);
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("a", "simulator_error", &["the nearest one is in line 3: "]);
    project.workspace.file("a.test.yaml", SUITE);
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
    edit(&|text| text.replace("{\"role\":", "{\"role\":\"x\",\"role\":"));
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("a", "test_error", &["jsonl: line 3: duplicate key"]);
}

/// The votes of a recording are no majority of more votes.
#[test]
fn a_vote_that_was_not_recorded_is_an_error_of_the_judge() {
    let config = |votes: usize| {
        format!(
            "target: {{ type: command, command: [sh, agent.sh] }}\nconnectors: {{ judge: {{ type: scripted, script: judge.yaml }} }}\njudge: {{ use: connectors:judge, votes: {votes} }}\n"
        )
    };
    let agent = r#"read -r message
echo '{"type": "text", "text": "Hello"}'
echo '{"type": "done"}'
"#;
    let check = "- { type: satisfy, criteria: It is kind. }";
    let suite = format!(
        "name: once\nturns:\n  - user: Hi\n    assert: [{{ type: satisfy, criteria: It is kind. }}]\n---\nname: repeated\nturns:\n  - user: Hi\n    assert:\n    {check}\n    {check}\n"
    );
    let project = Project::with_config(&config(2))
        .file(
            "judge.yaml",
            "use: always\nrules: [{ reply: '{\"reasoning\": \"r\", \"satisfied\": true}' }]\n",
        )
        .file("agent.sh", agent)
        .suite("a", &suite);
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
    project.workspace.file("hotseat.yaml", &config(3));
    let tested = project.test(&["--cassettes", "cassettes"]);
    for name in ["once", "repeated"] {
        let missing = "the cassette has no answer of connectors:judge to this question";
        tested.assert_failure(name, "judge_error", &[missing, "it has no further answer to this question"]);
    }
}

#[test]
fn what_a_cassette_does_not_contain_is_an_error_with_the_nearest_recorded_question() {
    let agent = agent();
    let (project, _) = recorded(&agent, SUITE);
    let changed = SUITE.replace("Is brief", "Is very brief").replace("Pay all orders", "Pay one order");
    project.workspace.file("a.test.yaml", &changed.replace("user: Pay my orders\n", "user: Pay my order\n"));
    let run = project.test(&["--cassettes", "cassettes"]);
    let missing = "the cassette has no answer of agents:user to this question; the nearest one is in line 2";
    run.assert_failure("a", "simulator_error", &[missing, "goal: recorded", "Pay all orders"]);
    let words = ["served model `main` has no reply", "/messages/0/content: recorded"];
    run.assert_failure("b", "test_error", &words);
    assert_eq!(run.case("c")["status"], "passed", "{}", run.output);

    project.workspace.file("a.test.yaml", &SUITE.replace("Is brief", "Is very brief"));
    let run = project.test(&["--cassettes", "cassettes", "--run", "^b$"]);
    let missing = "the cassette has no answer of agents:judge to this question; the nearest one is in line 3";
    run.assert_failure("b", "judge_error", &[missing, "criteria: recorded", "Is very brief"]);

    // A case without a cassette, and a folder that does not exist.
    project.workspace.file("a.test.yaml", &SUITE.replace("name: c", "name: d"));
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("d", "test_error", &["no cassette", "models.jsonl", "--record-cassettes"]);
    // A cassette that was changed is not missing.
    project.workspace.file("a.test.yaml", SUITE);
    let folder = project.workspace.path("cassettes");
    let parts = std::fs::read_dir(folder).expect("cassettes").map(|entry| entry.expect("a folder").path());
    for part in parts.map(|folder| folder.join("models.jsonl")).filter(|path| path.exists()) {
        std::fs::write(part, "{ no JSON").expect("a changed cassette");
    }
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("b", "test_error", &["the cassette is damaged: ", "models.jsonl: line 1"]);
    let requests = agent.requests().len();
    project
        .hotseat(&["test", "--cassettes", "casettes"])
        .assert_stderr(2, &["--cassettes casettes: no such folder"]);
    assert_eq!(agent.requests().len(), requests);
}

/// An agent whose calls have results of their own, which a word of the user swaps.
fn paying_agent(is_swapped: Arc<std::sync::atomic::AtomicBool>) -> FakeAgent {
    FakeAgent::with_run(move |run, _| {
        let results = match is_swapped.load(Ordering::Relaxed) {
            true => ["declined", "paid"],
            false => ["paid", "declined"],
        };
        let run = run.tool("c1", "pay", &json!({"account": "A"}), Some(json!(results[0])));
        run.tool("c2", "pay", &json!({"account": "B"}), Some(json!(results[1]))).text("A is paid.").finished()
    })
}

#[test]
fn results_that_belong_to_other_calls_are_another_question() {
    let is_swapped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (agent, judge) = (paying_agent(is_swapped.clone()), judge());
    let config = format!(
        "target: {{ endpoint: '{agent}' }}\nagents: {{ judge: {{ endpoint: '{judge}' }} }}\njudge: agents:judge\n"
    );
    let suite = "name: a\nturns:\n  - user: Pay\n  - user: Well\n    assert: [{ type: agent, criteria: Tells the truth }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
    is_swapped.store(true, Ordering::Relaxed);
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("a", "judge_error", &["the cassette has no answer of agents:judge to this question"]);
}

/// The agent answers differently, so the simulated user is no excuse.
#[test]
fn a_simulated_user_without_a_recorded_answer_fails_the_case() {
    let is_changed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changed = is_changed.clone();
    let agent = FakeAgent::with_run(move |run, request| {
        let text = if changed.load(Ordering::Relaxed) { "Which one?" } else { "Which room?" };
        match request.last_user_text().contains("(0)") {
            true => run.text("Booked.").finished(),
            false => run.text(text).finished(),
        }
    });
    let user = user();
    let config = format!("target: {{ endpoint: '{agent}' }}\nagents: {{ user: {{ endpoint: '{user}' }} }}\n");
    let suite = "name: a\nsimulator: { use: user }\nturns: [{ user: A room }]\nassert: [{ type: contains, value: Booked }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
    is_changed.store(true, Ordering::Relaxed);
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_failure("a", "simulator_error", &["the cassette has no answer of agents:user"]);
}

#[test]
fn answers_of_roles_that_a_replay_does_not_use_are_listed() {
    let agent = agent();
    let (project, _) = recorded(&agent, SUITE);
    let fewer = SUITE.replace(", { type: agent, criteria: Is brief }", "");
    project.workspace.file("a.test.yaml", &fewer);
    let run = project.test(&["--cassettes", "cassettes"]);
    run.assert_all_passed();
    let warning = "the conversation did not use these answers of its cassette: agents:judge in line 3";
    assert_eq!(run.case("b")["warnings"], json!([warning]), "{}", run.output);
    assert!(run.output.stdout.contains(warning), "{}", run.output);
    for name in ["a", "c"] {
        assert_eq!(run.case(name).get("warnings"), None, "{:#}", run.case(name));
    }
}

#[test]
fn a_conversation_that_a_failed_check_stops_keeps_the_cassette_of_its_case() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let order = asked_text(request);
        bank.call("charge_card", &json!({"order_id": order})).unwrap_or_else(|error| error.to_string().into())
    });
    let workspace = TestWorkspace::new();
    let others = Others::start(&workspace);
    let config = |record: &str| {
        let without_models: Vec<String> = others
            .config(&agent)
            .lines()
            .filter(|line| !line.starts_with("models:"))
            .map(str::to_string)
            .collect();
        let config = without_models.join("\n") + "\n";
        config
            .replace("x-model: '${MODELS.main.url}', ", "")
            .replace("type: proxy,", &format!("type: proxy,{record}"))
    };
    let suite = |check: &str| {
        format!(
            "name: c\nturns:\n  - user: o-1\n    assert: {{ text: {{ must_match: '{check}' }} }}\n  - user: o-2\n"
        )
    };
    let project = Project::with_config(&config("")).suite("a", &suite("charged o-1"));
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    let recorded = || std::fs::read_to_string(folders(&project)[0].join("bank.mcp.jsonl")).expect("the bank");
    let before = recorded();
    assert!(before.contains("o-2"), "{before}");
    project.workspace.file("a.test.yaml", &suite("charged o-9"));
    let run = project.test(&["--record-cassettes", "cassettes"]);
    run.assert_failure("c", "assertion", &[]);
    let warning = "the cassette of this case was not written: the conversation did not reach its end";
    assert!(run.output.stdout.contains(warning), "{}", run.output);
    assert_eq!(recorded(), before);

    // A check of the last turn ends nothing early.
    let fails_at_end = suite("charged o-1") + "    assert: { text: { must_match: charged o-9 } }\n";
    project.workspace.file("a.test.yaml", &fails_at_end);
    std::fs::remove_dir_all(&folders(&project)[0]).expect("the cassette is removed");
    let run = project.test(&["--record-cassettes", "cassettes"]);
    run.assert_failure("c", "assertion", &[]);
    assert!(!run.output.stdout.contains(warning), "{}", run.output);
    assert!(recorded().contains("o-2"), "{}", recorded());

    // The same of the file of a server.
    project.workspace.file("hotseat.yaml", &config(" record: bank.mcp.jsonl,"));
    project.workspace.file("a.test.yaml", &suite("charged o-1"));
    project.test(&[]).assert_all_passed();
    let before = project.workspace.read("bank.mcp.jsonl");
    assert!(before.contains("o-2"), "{before}");
    project.workspace.file("a.test.yaml", &suite("charged o-9"));
    project.test(&[]).assert_failure("c", "assertion", &[]);
    assert_eq!(project.workspace.read("bank.mcp.jsonl"), before);
}

#[test]
fn a_conversation_that_breaks_off_keeps_the_cassette_of_its_case() {
    let fails = Arc::new(AtomicUsize::new(0));
    let broken = fails.clone();
    let agent = FakeAgent::start(move |request: &FakeRequest| {
        let model = model_client(request);
        let bank = bank_client(request);
        let reply = converse(&model, &bank, "Pay my orders");
        match broken.load(Ordering::Relaxed) {
            0 => FakeReply::json(200, &json!({"reply": reply})),
            _ => FakeReply::json(500, &json!({"error": "broken"})),
        }
    });
    let workspace = TestWorkspace::new();
    let others = Others::start(&workspace);
    let suite = "name: c\nturns: [{ user: hello }]\n";
    let project = Project::with_config(&others.config(&agent)).suite("a", suite);
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    let models = || std::fs::read_to_string(folders(&project)[0].join("models.jsonl")).expect("the models");
    let before = models();
    fails.store(1, Ordering::Relaxed);
    let run = project.test(&["--record-cassettes", "cassettes"]);
    assert_eq!(run.case("c")["status"], "failed", "{}", run.output);
    let warning = "the cassette of this case was not written: the conversation did not reach its end";
    assert!(run.output.stdout.contains(warning), "{}", run.output);
    assert_eq!((models(), folders(&project).len()), (before, 1));
}

#[test]
fn cassettes_that_cannot_be_written_are_an_error_of_the_run() {
    let project = Project::with_config("target: { type: embedded, agent: agent.yaml }\n")
        .file("agent.yaml", "name: A\n")
        .file("script.yaml", "use: always\nrules: [{ reply: Hi. }]\n")
        .suite("a", "name: c\nturns: [{ user: hello }]\n");
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    let folder = folders(&project).remove(0);
    std::fs::remove_dir_all(&folder).expect("the cassette is removed");
    std::fs::write(&folder, "no folder").expect("a file is in its place");
    project
        .hotseat(&["test", "--record-cassettes", "cassettes"])
        .assert_stderr(3, &["1 cassette in", "could not be written"]);
}

#[test]
fn a_request_that_the_agent_gives_up_leaves_no_cassette() {
    let patience = Duration::from_millis(300);
    let agent = http_agent(move |request| {
        let model = request.header("x-model").expect("the address of the model");
        let bank = bank_client(request);
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).to_string();
        match request.json()["text"].as_str() {
            Some("ask") => {
                let asked = post_within(patience, &format!("{model}/chat/completions"), &[], &body);
                format!("{:?}", asked.map(|_| "answered"))
            }
            _ => format!("{:?}", bank.impatient(patience).call("charge_card", &json!({}))),
        }
    });
    let provider = FakeAgent::start(|_: &FakeRequest| FakeReply::never());
    let config = format!(
        "target:
  type: http
  endpoint: {agent}
  headers: {{ x-model: '${{MODELS.main.url}}', x-bank: '${{MCP.bank.url}}' }}
  body: {{ text: '{{{{message}}}}' }}
  map: {{ reply: $.reply }}
models: {{ main: {{ type: relay, url: '{provider}' }} }}
mcp: {{ bank: {{ type: proxy, command: [sh, -c, 'while read -r line; do :; done'] }} }}
"
    );
    let suite = "name: model\nturns: [{ user: ask }]\n---\nname: server\nturns: [{ user: pay }]\n";
    let project = Project::with_config(&config).suite("a", suite);
    let run = project.test(&["--record-cassettes", "cassettes"]);
    let words = "the agent cancelled a request to `chat/completions`";
    run.assert_failure("model", "test_error", &["cannot record", words]);
    let warning = "was not written: a call of charge_card was cancelled";
    assert!(run.output.stdout.contains(warning), "{}", run.output);
    let written: Vec<PathBuf> = match std::fs::read_dir(project.workspace.path("cassettes")) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry").path()).collect(),
        Err(_) => Vec::new(),
    };
    assert_eq!(written, Vec::<PathBuf>::new());
}

#[test]
fn a_provider_without_an_answer_is_named() {
    let agent = http_agent(|request| {
        let model = model_client(request);
        let answer = model.call(&[json!({"role": "user", "content": "hello"})], &[]);
        format!("{answer:?}")
    });
    let provider = FakeAgent::start(|_: &FakeRequest| FakeReply::refused());
    let config = format!(
        "target:
  type: http
  endpoint: {agent}
  headers: {{ x-model: '${{MODELS.main.url}}' }}
  body: {{ text: '{{{{message}}}}' }}
  map: {{ reply: $.reply }}
models: {{ main: {{ type: relay, url: '{provider}v1?key=secret-1' }} }}
"
    );
    let project = Project::with_config(&config).suite("a", "name: a\nturns: [{ user: ask }]\n");
    let run = project.test(&["--record-cassettes", "cassettes"]);
    let address = format!("the provider at {provider}v1 did not answer: ");
    let words = ["cannot record", "a request to `chat/completions` has no answer: ", &address];
    run.assert_failure("a", "test_error", &words);
    assert!(!run.failure("a").to_string().contains("secret-1"), "{:#}", run.failure("a"));
}

/// Files of the user beside the parts of a cassette stay; parts of servers that the case no longer has go.
#[test]
fn other_files_in_the_folder_of_a_cassette_stay() {
    let agent = agent();
    let workspace = TestWorkspace::new();
    let others = Others::start(&workspace);
    let project = Project::with_config(&others.config(&agent)).suite("a", SUITE);
    let record = || {
        let run = project.test(&["--record-cassettes", "cassettes", "--parallel", "1"]);
        run.assert_all_passed();
    };
    record();
    let folder = folders(&project)[0].clone();
    std::fs::write(folder.join("notes.txt"), "mine").expect("a note");
    std::fs::create_dir(folder.join("drafts")).expect("a folder");
    std::fs::write(folder.join("old.mcp.jsonl"), "").expect("a part");
    std::fs::write(folder.join("models.jsonl"), "").expect("a part");
    record();
    assert_eq!(std::fs::read_to_string(folder.join("notes.txt")).expect("the note"), "mine");
    assert!(folder.join("drafts").exists() && !folder.join("old.mcp.jsonl").exists());
    assert_eq!(folders(&project).len(), 3, "{:?}", folders(&project));
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
}

/// What the case no longer asks is not part of its cassette.
#[test]
fn answers_of_relays_that_are_gone_are_removed() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hello }]\n");
    let record = || project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    record();
    let folder = folders(&project)[0].clone();
    std::fs::write(folder.join("models.jsonl"), "").expect("a part");
    record();
    assert!(folder.join("roles.jsonl").exists() && !folder.join("models.jsonl").exists());
}

#[test]
fn a_fault_is_no_answer_of_the_server() {
    let agent = http_agent(|request| {
        let bank = bank_client(request);
        let answers: Vec<String> =
            (0..2).map(|_| format!("{:?}", bank.call("charge_card", &json!({})))).collect();
        answers.join(" ")
    });
    let program = r#"while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"charged\"}]}}"
done
"#;
    let config = format!(
        "target:
  type: http
  endpoint: {agent}
  headers: {{ x-bank: '${{MCP.bank.url}}' }}
  body: {{ text: '{{{{message}}}}' }}
  map: {{ reply: $.reply }}
mcp: {{ bank: {{ type: proxy, command: [sh, bank.sh] }} }}
"
    );
    let suite = ["is_error", "rpc_error", "http", "disconnect", "lost_answer"].map(|fault| {
        format!(
            "name: {fault}\nfaults: [{{ do: {fault} }}]\nturns: [{{ user: pay, assert: {{ text: {{ must_match: '^Err.*Ok.*charged' }} }} }}]\n"
        )
    });
    let project = Project::with_config(&config).file("bank.sh", program).suite("a", &suite.join("---\n"));
    project.test(&["--record-cassettes", "cassettes"]).assert_all_passed();
    project.test(&["--cassettes", "cassettes"]).assert_all_passed();
}
