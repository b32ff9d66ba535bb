//! User identity: flags, cases and context files, and the requests that carry it.
use crate::common::http_agents::http_agent;
use crate::common::{Project, echo_agent};
use hotseat_testkit::FakeAgent;
use hotseat_testkit::completions::ChatCompletion;
use serde_json::{Value, json};

const HELLO: &str = "name: a\nturns: [{ user: hello }]\n";
/// A case with a user identity.
const MARY: &str = "name: mary\nuser: mary\nteam: nurses\nturns: [{ user: hello }]\n";

/// A context file with every section.
fn context() -> Value {
    json!({
        "chat_id": "chat-7",
        "authorized": {"user_id": "file-user", "team_id": "file-team", "scope": "read", "constraints": {"team_only": true, "extra": {"region": "EU"}}},
        "metadata": {"scenario": "file", "level": 1},
        "client": {"type": "web"},
        "locale": "de-de",
    })
}

fn http_server() -> FakeAgent {
    http_agent(|_| "fine")
}

/// A project whose agent receives all identity fields.
fn http_project(server: &FakeAgent) -> Project {
    Project::with_config(&format!(
        "target:
  type: http
  endpoint: '{server}chat/{{{{user}}}}'
  headers: {{ X-Team: '{{{{team}}}}', Accept-Language: '{{{{locale}}}}' }}
  body: {{ m: '{{{{message}}}}', user: '{{{{user}}}}', ctx: '{{{{ctx}}}}', scope: '{{{{ctx.authorized.scope}}}}', options: '{{{{options}}}}', id: '{{{{conversation_id}}}}' }}
  map: {{ reply: $.reply }}
"
    ))
}

#[test]
fn template_receives_default_identity() {
    let server = http_server();
    http_project(&server).suite("a", HELLO).test(&[]).assert_all_passed();
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!(request.path, "/chat/test-user");
    assert_eq!(
        (request.header("x-team"), request.header("accept-language")),
        (Some("test-team"), Some("en-us"))
    );
    let body = request.json();
    assert_eq!(
        body["ctx"],
        json!({
            "authorized": {"user_id": "test-user", "team_id": "test-team"}, "locale": "en-us", "referer": "test",
            "client": {"type": "test", "ip": "127.0.0.1", "user_agent": concat!("hotseat/", env!("CARGO_PKG_VERSION"))},
        })
    );
    assert_eq!((&body["options"], &body["scope"]), (&Value::Null, &Value::Null));
}

#[test]
fn identity_precedence_is_flag_case_file() {
    for (flags, expected) in [
        (&[][..], ["mary", "nurses", "en-us"]),
        (&["--ctx", "ctx.json"], ["mary", "nurses", "de-de"]),
        (&["-u", "ann"], ["ann", "nurses", "en-us"]),
        (&["--ctx", "ctx.json", "-u", "ann", "-t", "ops", "--locale", "fr-fr"], ["ann", "ops", "fr-fr"]),
    ] {
        let server = http_server();
        let project = http_project(&server).suite("a", MARY).file("ctx.json", &context().to_string());
        project.test(flags).assert_all_passed();
        let body = server.requests()[0].json();
        let told = [
            &body["ctx"]["authorized"]["user_id"],
            &body["ctx"]["authorized"]["team_id"],
            &body["ctx"]["locale"],
        ];
        assert_eq!(told, expected, "{flags:?}");
        assert_eq!(body["user"], expected[0], "{flags:?}");
    }
    let server = http_server();
    let project = http_project(&server).suite("a", HELLO).file("ctx.json", &context().to_string());
    project.test(&["--ctx", "ctx.json"]).assert_all_passed();
    let body = server.requests()[0].json();
    assert_eq!(
        (&body["user"], &body["scope"], &body["id"]),
        (&json!("file-user"), &json!("read"), &json!("chat-7"))
    );
    assert_eq!(body["ctx"]["authorized"]["constraints"]["extra"]["region"], "EU");
    assert_eq!(
        (&body["ctx"]["client"]["type"], &body["ctx"]["client"]["ip"]),
        (&json!("web"), &json!("127.0.0.1"))
    );
}

#[test]
fn reports_contain_user_identity() {
    let server = http_server();
    let project = http_project(&server).suite("a", HELLO).file("ctx.json", &context().to_string());
    for (flags, expected) in [
        (&[][..], json!({"user_id": "test-user", "team_id": "test-team", "locale": "en-us"})),
        (
            &["--ctx", "ctx.json", "-u", "ann"],
            json!({"user_id": "ann", "team_id": "file-team", "locale": "de-de"}),
        ),
    ] {
        let tested = project.test(&[&["-o", "out/lines.jsonl"], flags].concat());
        assert_eq!(tested.report["environment"], expected);
        let lines = project.workspace.read("out/lines.jsonl");
        let start: Value = serde_json::from_str(lines.lines().next().unwrap_or_default()).expect("JSON");
        assert_eq!((&start["type"], &start["environment"]), (&json!("start"), &expected));
    }
}

#[test]
fn warns_if_flag_overrides_file() {
    let server = http_server();
    let project = http_project(&server).suite("a", HELLO).file("ctx.json", &context().to_string());
    let output = project.hotseat(&["test", "--ctx", "ctx.json", "-u", "ann", "--locale", "de-de"]);
    let note = "note: -u ann overrides `authorized.user_id` of --ctx (file-user)";
    output.assert_stderr(0, &[note]);
    assert!(!output.stderr.contains("--locale"), "they agree: {output}");
}

#[test]
fn merges_metadata_from_all_levels() {
    let case = json!({
        "id": "a", "metadata": {"level": 2, "owner": "case"}, "options": {"metadata": {"owner": "options"}, "skip": {"history": false}},
        "turns": [{"input": "1"}, {"input": "2", "options": {"metadata": {"level": 3}}}],
    });
    let first =
        json!({"metadata": {"scenario": "file", "level": 2, "owner": "options"}, "skip": {"history": false}});
    let second =
        json!({"metadata": {"scenario": "file", "level": 3, "owner": "options"}, "skip": {"history": false}});
    let with_files = |project: Project| {
        project.file("a.test.json", &case.to_string()).file("ctx.json", &context().to_string())
    };

    let server = http_server();
    with_files(http_project(&server)).test(&["--ctx", "ctx.json"]).assert_all_passed();
    let sent: Vec<Value> =
        server.requests().iter().map(|request| request.json()["options"].clone()).collect();
    assert_eq!(sent, [first.clone(), second]);

    let agent = echo_agent();
    with_files(Project::with_agent(&agent)).test(&["--ctx", "ctx.json"]).assert_all_passed();
    assert_eq!(agent.requests()[0].json()["forwardedProps"]["options"], first);

    // Metadata of the target is merged, and other options become members of the body.
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Fine.").finish("stop"));
    let target = format!(
        "target:\n  type: openai\n  base_url: '{server}v1'\n  model: m\n  body: {{ metadata: {{ chat: '{{{{conversation_id}}}}', level: 0 }} }}\n"
    );
    with_files(Project::with_config(&target)).test(&["--ctx", "ctx.json"]).assert_all_passed();
    let body = server.requests()[0].json();
    assert_eq!(
        body["metadata"],
        json!({"chat": "chat-7", "level": 2, "scenario": "file", "owner": "options"})
    );
    assert_eq!(body["skip"], json!({"history": false}));
}

#[test]
fn ag_ui_forwards_only_explicit_identity() {
    let agent = echo_agent();
    Project::with_agent(&agent).suite("a", HELLO).test(&[]).assert_all_passed();
    assert_eq!(agent.requests()[0].json()["forwardedProps"], json!({}));
    Project::with_agent(&agent).suite("a", HELLO).test(&["-t", "ops"]).assert_all_passed();
    let ctx = &agent.requests()[1].json()["forwardedProps"]["ctx"];
    assert_eq!(ctx["authorized"], json!({"user_id": "test-user", "team_id": "ops"}));
    Project::with_agent(&agent).suite("a", MARY).test(&[]).assert_all_passed();
    let ctx = &agent.requests()[2].json()["forwardedProps"]["ctx"];
    assert_eq!(ctx["authorized"], json!({"user_id": "mary", "team_id": "nurses"}));
    let project = Project::with_agent(&agent).suite("a", HELLO).file("ctx.json", &context().to_string());
    project.test(&["--ctx", "ctx.json"]).assert_all_passed();
    assert_eq!(agent.requests()[3].json()["threadId"], "chat-7");
    // The case overrides the context file.
    let own = "name: a\nthreadId: own\nturns: [{ user: hello }]\n";
    Project::with_agent(&agent)
        .suite("a", own)
        .file("ctx.json", &context().to_string())
        .test(&["--ctx", "ctx.json"])
        .assert_all_passed();
    assert_eq!(agent.requests()[4].json()["threadId"], "own");
}

#[test]
fn chat_completions_sends_explicit_user() {
    let server = FakeAgent::start(|_| ChatCompletion::new().text("Fine.").finish("stop"));
    let target = |body: &str| {
        Project::with_config(&format!(
            "target: {{ type: openai, base_url: '{server}v1', model: m, body: {body} }}\n"
        ))
    };
    target("{}").suite("a", HELLO).test(&[]).assert_all_passed();
    assert_eq!(server.requests()[0].json().get("user"), None);
    let tested = target("{}").suite("a", HELLO).test(&["-u", "ann", "-t", "ops"]);
    tested.assert_all_passed();
    assert_eq!(server.requests()[1].json()["user"], "ann");
    let note = "note: -t: not supported by the agent";
    assert!(
        tested.output.stderr.contains(note) && !tested.output.stderr.contains("-u:"),
        "{}",
        tested.output
    );
    target("{ team: '{{team}}' }").suite("a", MARY).test(&[]).assert_all_passed();
    let body = server.requests()[2].json();
    assert_eq!((&body["user"], &body["team"]), (&json!("mary"), &json!("nurses")));
    // A case with identity that its agent cannot receive is rejected.
    target("{}")
        .suite("a", MARY)
        .hotseat(&["test"])
        .assert_stderr(2, &["this case sets `team`, which its agent does not support"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn process_receives_explicit_identity() {
    let agent = "while read -r message; do\n  printf '%s\\n' \"$message\" >> seen.jsonl\n  echo '{\"type\":\"text\",\"text\":\"fine\"}'\n  echo '{\"type\":\"done\"}'\ndone\n";
    let project =
        Project::with_config("target: { type: command, command: [sh, agent.sh] }\n").file("agent.sh", agent);
    let project = project.suite("a", HELLO).suite("b", MARY);
    project.test(&["--parallel", "1"]).assert_all_passed();
    let seen = project.workspace.read("seen.jsonl");
    let seen: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(seen[0].get("ctx"), None);
    assert_eq!(seen[1]["ctx"]["authorized"], json!({"user_id": "mary", "team_id": "nurses"}));

    let text = Project::with_config(
        "target: { type: command, protocol: text, command: [echo, '{{user}} of {{ctx.authorized.team_id}}:', '{{message}}'] }\n",
    );
    let tested = text.suite("b", MARY).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("mary")["turns"][0]["output"], "mary of nurses: hello");
}

#[test]
fn embedded_agent_receives_identity() {
    let project = |suite: &str| {
        Project::with_config("target: { type: embedded, agent: . }\n")
            .file("agent.yaml", "name: Clerk\n")
            .file(
                "script.yaml",
                "use: always\nrules:\n  - when: { system: '- user: (?<who>\\S+)\\n- team: (?<team>\\S+)\\n- locale: (?<locale>\\S+)' }\n    reply: '{{ who }} {{ team }} {{ locale }}'\n  - when: { system: '- team: nurses\\n- level: 2\\n- tags: \\[\"a\"\\]' }\n    reply: told\n  - reply: I know nothing.\n",
            )
            .suite("a", suite)
    };
    let said = |tested: &crate::common::TestRun, case: &str| tested.case(case)["turns"][0]["output"].clone();
    let nobody = project(HELLO).test(&[]);
    assert_eq!(said(&nobody, "a"), "I know nothing.");
    let ops = project(HELLO);
    let tested = ops.test(&["-u", "ann", "-t", "ops", "--locale", "fr-fr"]);
    assert_eq!(said(&tested, "a"), "ann ops fr-fr");
    let metadata = format!("{MARY}metadata: {{ level: 2, tags: [a] }}\n");
    assert_eq!(said(&project(&metadata).test(&[]), "mary"), "told");
}

#[test]
fn hooks_receive_identity() {
    let suite = "name: a\nuser: mary\nhooks: [{ cmd: [sh, -c, 'echo \"$HOTSEAT_USER $HOTSEAT_TEAM $HOTSEAT_LOCALE\" >> who.txt'] }]\nturns: [{ user: hello }]\n";
    let server = http_server();
    let project = http_project(&server).suite("a", suite).file("ctx.json", &context().to_string());
    project.test(&["--ctx", "ctx.json"]).assert_all_passed();
    project.test(&["--ctx", "ctx.json", "-u", "ann", "-t", "ops"]).assert_all_passed();
    assert_eq!(project.workspace.read("who.txt"), "mary file-team de-de\nann ops de-de\n");
}

#[test]
fn rejects_invalid_context_file_with_location() {
    let server = http_server();
    for (text, words) in [
        ("{\"authorised\": {}}", "did you mean `authorized`?"),
        ("{\n  \"authorized\": {\"user\": \"ann\"}\n}", "ctx.json:2:18"),
        ("{\"locale\": 7}", "`locale` must be a text"),
        ("{\"metadata\": []}", "`metadata` must be a mapping"),
        ("{\"chat_id\": \"\"}", "`chat_id` must"),
        ("{\"metadata\": {\"key\": \"${ENV.NOT_SET}\"}}", "environment variable `NOT_SET` is not set"),
        ("{\"locale\": \"de\",}", "ctx.json:1:"),
        ("", "ctx.json"),
    ] {
        let project = http_project(&server).suite("a", HELLO).file("ctx.json", text);
        let output = project.hotseat(&["test", "--ctx", "ctx.json"]);
        assert!(output.code == 2 && output.stderr.contains(words), "{words}: {output}");
    }
    http_project(&server)
        .suite("a", HELLO)
        .hotseat(&["test", "--ctx", "nothing.json"])
        .assert_stderr(2, &["cannot read --ctx nothing.json"]);
    for flag in ["-u", "-t", "--locale", "-c"] {
        let output = http_project(&server).suite("a", HELLO).hotseat(&["test", flag, ""]);
        assert_eq!(output.code, 2, "{flag}: {output}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn later_attempts_have_their_own_chat_id() {
    let server = http_server();
    let case = "name: a\nretries: 1\nturns: [{ user: hello, assert: { text: { must_match: never } } }]\n";
    let project = http_project(&server).suite("a", case).file("ctx.json", &context().to_string());
    project.hotseat(&["test", "--ctx", "ctx.json"]).assert_code(1);
    let ids = |body: Value| [body["id"].clone(), body["ctx"]["chat_id"].clone()];
    let sent: Vec<[Value; 2]> = server.requests().iter().map(|request| ids(request.json())).collect();
    assert_eq!(json!(sent), json!([["chat-7", "chat-7"], ["chat-7-2", "chat-7-2"]]));
    let project = project.suite("b", case);
    let output = project.hotseat(&["test", "--ctx", "ctx.json"]);
    let note = "all cases of this run use the conversation id chat-7, further attempts chat-7-2 and so on";
    assert!(output.stderr.contains(note), "{output}");
}

#[test]
fn redacts_context_file_secrets() {
    let server = http_agent(|request| request.json().to_string());
    let file = json!({"metadata": {
        "api_token": "plain-0123456789",
        "from": "${ENV.MY_PASSWORD}",
        "Authorization": "header-0123456789",
        "pin_password": 1_234_567_890_123_u64,
        "session_tokens": ["listed-0123456789"],
        "credentials": {"login": "nested-0123456789"},
    }});
    let suite = "name: a\nturns: [{ user: hello }]\nassert: { text: { must_match: impossible } }\n";
    let project = http_project(&server).suite("a", suite).file("ctx.json", &file.to_string());
    let tested = project.test_in(
        &[("MY_PASSWORD", "hidden-0123456789")],
        &["--ctx", "ctx.json", "-v", "--trace", "out/t.jsonl"],
    );
    assert_eq!(tested.failure("a")["kind"], "assertion");
    let sent = server.requests()[0].json().to_string();
    let all = format!("{}{}{}", tested.output, tested.report, project.workspace.read("out/t.jsonl"));
    for secret in [
        "plain-0123456789",
        "hidden-0123456789",
        "header-0123456789",
        "1234567890123",
        "listed-0123456789",
        "nested-0123456789",
    ] {
        assert!(sent.contains(secret) && !all.contains(secret), "{secret}: {all}");
    }
    assert!(all.contains("[redacted:ctx.metadata.api_token]"), "{all}");
}

#[test]
fn warns_once_about_unsupported_identity() {
    let server = http_server();
    let target = format!("target: {{ type: http, endpoint: '{server}', body: '{{{{message}}}}' }}\n");
    let project =
        Project::with_config(&target).suite("a", HELLO).suite("b", &HELLO.replace("name: a", "name: b"));
    let project = project.file("ctx.json", &context().to_string());
    let output = project.hotseat(&["test", "--ctx", "ctx.json", "-u", "ann"]);
    for shown in ["-u", "`authorized.team_id` of --ctx", "`chat_id` of --ctx", "`locale` of --ctx"] {
        let note = format!("note: {shown}: not supported by the agent");
        assert_eq!(output.stderr.matches(&note).count(), 1, "{note}: {output}");
    }
    assert_eq!(output.code, 0, "{output}");
}
