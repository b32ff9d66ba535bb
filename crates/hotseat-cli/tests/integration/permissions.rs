//! Permissions of script functions: granted and denied operations.

use std::time::{Duration, Instant};

use hotseat_testkit::{FakeAgent, FakeReply, FakeRequest};
use serde_json::{Value, json};

use crate::common::{Lifeline, Project, TestRun, echo, echo_agent, exists};

/// A project with one case decided by the function `judge` of `src/checks.ts`. `granted` is the content of
/// `scripts:`.
fn project(agent: &FakeAgent, granted: &str, script: &str) -> Project {
    let target = format!("target: {{ endpoint: '{agent}' }}\n");
    Project::with_config(&format!("{target}{granted}"))
        .file("src/checks.ts", script)
        .file("a.test.jsonl", CASE)
}

const CASE: &str =
    r#"{"id": "a", "input": "hi", "assert": [{"type": "script", "use": "scripts:checks.judge"}]}"#;

/// Value of an expression in a judge function, as text.
#[track_caller]
fn evaluate(agent: &FakeAgent, granted: &str, expression: &str) -> Value {
    let script = format!(
        "export async function judge() {{ const value = await (async () => {expression})(); \
         return {{ pass: true, message: JSON.stringify({{ value }}) }}; }}"
    );
    let tested = project(agent, granted, &script).test(&[]);
    tested.assert_all_passed();
    let told = tested.case("a")["assertions"][0]["actual"].as_str().unwrap().to_string();
    serde_json::from_str::<Value>(&told).unwrap().get("value").cloned().unwrap_or_default()
}

/// Error message of an expression.
#[track_caller]
fn evaluation_error(agent: &FakeAgent, granted: &str, expression: &str) -> String {
    let script = format!("export async function judge() {{\n  {expression};\n  return true;\n}}\n");
    let tested = project(agent, granted, &script).test(&[]);
    let failure = tested.failure("a");
    assert_eq!(failure["kind"], "script_error", "{failure}");
    let message = failure["message"].as_str().unwrap().to_string();
    assert!(message.contains("src/checks.ts:2:"), "it is told where: {message}");
    message
}

/// A plain HTTP server.
fn http_server() -> FakeAgent {
    FakeAgent::start(|request: &FakeRequest| match request.path.as_str() {
        "/sent" => FakeReply::json(
            201,
            &json!({
                "method": request.method, "type": request.header("content-type"), "x": request.header("x-a"),
                "body": String::from_utf8_lossy(&request.body),
            }),
        )
        .header("x-answer", "one"),
        "/text" => FakeReply::text(404, "not here"),
        "/here" => FakeReply::status(302).header("location", "/sent"),
        "/away" => FakeReply::status(307).header("location", "http://localhost:1/"),
        "/loop" => FakeReply::status(302).header("location", "/loop"),
        "/large" => FakeReply::text(200, &"x".repeat(9 * 1024 * 1024)),
        "/never" => FakeReply::never(),
        "/process" => FakeReply::json(200, &json!({"told": request.json(), "key": request.header("x-key")})),
        "/broken" => FakeReply::text(500, "it hurts"),
        _ => FakeReply::status(204),
    })
}

fn host_grants(server: &FakeAgent) -> String {
    format!("scripts: {{ hosts: ['127.0.0.1:{}'] }}\n", server.port())
}

#[test]
fn fetch_follows_web_standard() {
    let (agent, server) = (echo_agent(), http_server());
    let granted = host_grants(&server);
    let base = format!("http://127.0.0.1:{}", server.port());
    let got = evaluate(
        &agent,
        &granted,
        &format!(
            "{{ const r = await fetch('{base}/sent', {{ method: 'post', headers: {{ 'content-type': 'application/json', 'X-A': 'b' }}, body: JSON.stringify([1]) }});
               return [r.status, r.ok, r.headers.get('X-Answer'), r.headers.has('nothing'), await r.json(), JSON.parse(await r.text()).x]; }}"
        ),
    );
    let sent = json!({"method": "POST", "type": "application/json", "x": "b", "body": "[1]"});
    assert_eq!(got, json!([201, true, "one", false, sent, "b"]));

    // The result is synchronous; `await` and `then` work too.
    let got = evaluate(
        &agent,
        &granted,
        &format!(
            "[fetch('{base}/text').text(), fetch({{ url: '{base}/text' }}).status, await fetch('{base}/text').then((r) => r.text()).then((t) => t.length)]"
        ),
    );
    assert_eq!(got, json!(["not here", 404, 8]));

    let got = evaluate(
        &agent,
        &granted,
        &format!(
            "{{ const r = fetch('{base}/here', {{ method: 'POST', body: 'x', headers: [['X-A', 'kept']] }}); return [r.status, r.redirected, r.json().method, r.json().x]; }}"
        ),
    );
    assert_eq!(got, json!([201, true, "GET", "kept"]));
    let got = evaluate(&agent, &granted, &format!("fetch('{base}/here', {{ redirect: 'manual' }}).status"));
    assert_eq!(got, 302);
}

#[test]
fn unlisted_hosts_are_blocked() {
    let (agent, server) = (echo_agent(), http_server());
    let base = format!("http://127.0.0.1:{}", server.port());
    let message = evaluation_error(&agent, "", &format!("fetch('{base}/sent')"));
    assert!(
        message.contains("127.0.0.1 is not permitted") && message.contains("`scripts: hosts:`"),
        "{message}"
    );
    let other = "scripts: { hosts: [api.example.com, '127.0.0.1:1', localhost] }\n";
    let message = evaluation_error(&agent, other, &format!("await fetch('{base}/sent')"));
    let at_port = format!("127.0.0.1:{} is not permitted", server.port());
    assert!(message.contains(&at_port), "a host that is listed with another port: {message}");
    assert_eq!(server.requests().len(), 0);

    let message = evaluation_error(
        &agent,
        &host_grants(&server),
        &format!("fetch('{base}/away', {{ method: 'POST', body: 'secret' }})"),
    );
    assert!(message.contains("localhost, to which it is redirected, is not permitted"), "{message}");
    for (path, words) in [("/loop", "more than 10 redirects"), ("/large", "more than 8388608 bytes")] {
        let message = evaluation_error(&agent, &host_grants(&server), &format!("fetch('{base}{path}')"));
        assert!(message.contains(words), "{message}");
    }
    for (expression, words) in [
        ("fetch('ftp://127.0.0.1/')", "unsupported scheme, expected http or https"),
        ("fetch('/sent')", "relative URL"),
        ("fetch('http://a.test/', { body: { a: 1 } })", "JSON.stringify"),
        (
            "fetch('http://a.test/', { method: 'POST', headers: { 'a b': 'c' } })",
            "`a b` is not a valid header name",
        ),
        (
            "fetch('http://a.test/', { headers: { Host: 'b.test' } })",
            "the header `host` belongs to the connection",
        ),
        ("fetch('http://a.test/', { headers: [['Transfer-Encoding', 'chunked']] })", "`transfer-encoding`"),
    ] {
        let message = evaluation_error(&agent, &host_grants(&server), expression);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn reads_and_writes_granted_project_files() {
    let agent = echo_agent();
    let granted = "scripts: { read: [data], write: [out/made] }\n";
    let script = "export function judge() {
        const text = files.read('data/a.txt') + files.read('./data/deep/../a.txt');
        files.write('out/made/b.txt', text);
        files.append('out/made/b.txt', '!');
        const seen = [files.exists('data/a.txt'), files.exists('data/none'), files.list('data'), files.read('out/made/b.txt')];
        files.write('out/made/gone.txt', 'x');
        return { pass: true, message: JSON.stringify([...seen, files.remove('out/made/gone.txt'), files.remove('out/made/gone.txt')]) };
      }";
    let project = project(&agent, granted, script).file("data/a.txt", "ü").file("data/deep/x.txt", "x");
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let seen = tested.case("a")["assertions"][0]["actual"].as_str().unwrap();
    assert_eq!(seen, r#"[true,false,["a.txt","deep/"],"üü!",true,false]"#);
    assert_eq!(project.workspace.read("out/made/b.txt"), "üü!");
    assert!(!exists(&project.workspace, "out/made/gone.txt"));
}

#[test]
fn ungranted_paths_are_blocked() {
    let agent = echo_agent();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    let secret = outside.path().join("secret.txt").display().to_string();
    let granted = "scripts: { read: ['.'], write: [out] }\n";
    let tries = [
        (format!("files.read('{secret}')"), "is outside the project folder"),
        ("files.read('../secret.txt')".to_string(), "is outside the project folder"),
        ("files.read('src/../../secret.txt')".to_string(), "is outside the project folder"),
        ("files.read('link.txt')".to_string(), "is outside the project folder"),
        ("files.read('linked/secret.txt')".to_string(), "is outside the project folder"),
        ("files.list('linked')".to_string(), "is outside the project folder"),
        ("files.write('out/link.txt', 'x')".to_string(), "is outside the project folder"),
        ("files.write('out/dangling.txt', 'x')".to_string(), "is outside the project folder"),
        ("files.write('out/../made.txt', 'x')".to_string(), "may not be written"),
        ("files.remove('data.txt')".to_string(), "may not be written"),
        ("files.write('hotseat.yaml', 'x')".to_string(), "may not be written"),
        ("files.read('pipe')".to_string(), "is not a file"),
        ("files.write('out/x.txt', { a: 1 })".to_string(), "JSON.stringify"),
    ];
    for (expression, words) in tries {
        let script = format!("export async function judge() {{\n  {expression};\n  return true;\n}}\n");
        let project = project(&agent, granted, &script).file("data.txt", "kept").file("out/own.txt", "x");
        let link = |to: &std::path::Path, from: &str| {
            std::os::unix::fs::symlink(to, project.workspace.path(from)).unwrap();
        };
        link(&outside.path().join("secret.txt"), "link.txt");
        link(outside.path(), "linked");
        link(&outside.path().join("secret.txt"), "out/link.txt");
        link(&outside.path().join("new.txt"), "out/dangling.txt");
        assert_eq!(project.workspace.run("mkfifo", &["pipe"]).code, 0);
        let tested = project.test(&[]);
        let message = tested.failure("a")["message"].as_str().unwrap().to_string();
        assert!(message.contains(words), "{expression}: {message}");
        assert!(project.workspace.read("hotseat.yaml").contains("target:"));
        assert_eq!(project.workspace.read("data.txt"), "kept");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("secret.txt")).unwrap(), "secret");
    assert!(!outside.path().join("new.txt").exists());

    let message = evaluation_error(&agent, "", "files.read('src/checks.ts')");
    assert!(message.contains("`scripts: read:`"), "nothing is granted by itself: {message}");
    let message =
        evaluation_error(&agent, "scripts: { write: ['.'] }\n", "files.append('./hotseat.yaml', 'x')");
    assert!(
        message.contains("may not be changed by scripts, because it contains their permissions"),
        "{message}"
    );
    for path in [".hotseat/runs.db", "sub/hotseat.yaml", "aguitest.config.yaml", ".env"] {
        for deed in [format!("files.write('{path}', 'x')"), format!("files.remove('{path}')")] {
            let message = evaluation_error(&agent, "scripts: { write: ['.'] }\n", &deed);
            assert!(message.contains("may not be changed by scripts, because later runs read"), "{message}");
        }
    }
}

#[test]
fn listed_environment_variables_are_available() {
    let agent = echo_agent();
    let granted = "scripts: { env: [SHOP, NOT_SET] }\n";
    let script = "const shop = process.env.SHOP;
        export function judge() {
          return { pass: true, message: JSON.stringify([shop, process.env.NOT_SET ?? 'none', 'OTHER' in process.env, Object.keys(process.env), { ...process.env }]) };
        }";
    let tested = project(&agent, granted, script).test_in(&[("SHOP", "corner"), ("OTHER", "x")], &[]);
    tested.assert_all_passed();
    let seen = tested.case("a")["assertions"][0]["actual"].as_str().unwrap();
    assert_eq!(seen, r#"["corner","none",false,["SHOP"],{"SHOP":"corner"}]"#);

    let message = evaluation_error(&agent, granted, "process.env.OTHER");
    assert!(message.contains("`OTHER` may not be read") && message.contains("`scripts: env:`"), "{message}");
    evaluation_error(&agent, granted, "process.env.SHOP = 'mine'");

    let secret = "export const judge = () => { console.log(process.env.API_TOKEN); throw new Error(process.env.API_TOKEN) };";
    let tested = project(&agent, "scripts: { env: [API_TOKEN] }\n", secret)
        .test_in(&[("API_TOKEN", "sesame-open-1")], &["-v"]);
    let all = format!("{}{}", tested.report, tested.output);
    assert!(!all.contains("sesame") && all.contains("[redacted:ENV.API_TOKEN]"), "{all}");
}

#[test]
fn calls_project_commands_and_requests() {
    let (agent, server) = (echo_agent(), http_server());
    let granted = format!(
        "scripts:\n  processes:\n    models.user.Create: {{ cmd: [sh, -c, 'cat > told.json; echo \"{{\\\"id\\\": 7}}\"'] }}\n    models.*: {{ cmd: [sh, -c, 'exit 0'] }}\n    broken: {{ cmd: [sh, -c, 'echo no database >&2; exit 3'] }}\n    words: {{ cmd: [echo, hello] }}\n    knowledge.Index: {{ url: 'http://127.0.0.1:{port}/process', headers: {{ X-Key: '${{ENV.KEY}}' }} }}\n    down: {{ url: 'http://127.0.0.1:{port}/broken' }}\n",
        port = server.port()
    );
    let script = "export function judge() {
        const user = Process('models.user.Create', { name: 'Ada' }, 2);
        const nothing = Process('models.migrate');
        const answer = Process('knowledge.Index', { documents: [] });
        return { pass: true, message: JSON.stringify([user, nothing, answer.told.name, answer.told.args, answer.key.length]) };
      }";
    let project = project(&agent, &granted, script);
    let tested = project.test_in(&[("KEY", "open sesame")], &["--user", "ada"]);
    tested.assert_all_passed();
    let seen = tested.case("a")["assertions"][0]["actual"].as_str().unwrap();
    assert_eq!(seen, r#"[{"id":7},null,"knowledge.Index",[{"documents":[]}],11]"#);
    let told = project.workspace.read_json("told.json");
    assert_eq!((&told["name"], &told["args"]), (&json!("models.user.Create"), &json!([{"name": "Ada"}, 2])));
    assert_eq!(told["ctx"]["authorized"]["user_id"], "ada");

    for (expression, words) in [
        ("Process('broken')", "failed (exit status: 3)"),
        ("Process('words')", "not JSON"),
        ("Process('down')", "HTTP 500"),
        ("Process('model.user.Create')", "did you mean `models.user.Create`?"),
        ("Process('knowledge.Index')", "environment variable `KEY` is not set"),
        ("Process()", "the first argument of Process must be a name"),
    ] {
        let message = evaluation_error(&agent, &granted, expression);
        assert!(message.contains(words), "{expression}: {message}");
    }
    let caught = evaluate(
        &agent,
        &granted,
        "{ try { Process('broken') } catch (error) { return error.message.includes('no database') } }",
    );
    assert_eq!(caught, true);
}

#[test]
fn talks_to_project_agents() {
    let agent = FakeAgent::start(|request: &FakeRequest| echo(request));
    let text = format!(
        "target: it\nagents:\n  it: {{ endpoint: '{agent}' }}\n  helpers.other: {{ endpoint: '{agent}' }}\n  started: {{ endpoint: '{agent}', start: {{ command: [sleep, '9'] }} }}\n"
    );
    let script = "export function judge(output: string, input: string, expected: unknown, ctx: unknown) {
        const messages = [
          { role: 'user', content: 'I want to submit an expense' },
          { role: 'assistant', content: 'What type of expense?' },
          { role: 'user', content: 'Travel, $500' },
        ];
        const all = [
          Process('agents.it.Stream', ctx, messages), Process('agents.helpers.other', 'hello'),
          Process('agent.Call', { assistant_id: 'it', messages: [{ role: 'user', content: 'called' }] }),
        ];
        return { pass: true, message: JSON.stringify(all.map((one) => [one.content, one.tool_calls.length])) };
      }";
    let project = Project::with_config(&text).file("src/checks.ts", script).file("a.test.jsonl", CASE);
    let tested = project.test(&[]);
    tested.assert_all_passed();
    let seen = tested.case("a")["assertions"][0]["actual"].as_str().unwrap();
    assert_eq!(seen, r#"[["You said: Travel, $500",0],["You said: hello",0],["You said: called",0]]"#);
    let told: Vec<usize> =
        agent.requests().iter().map(|request| request.json()["messages"].as_array().unwrap().len()).collect();
    assert_eq!(told, [1, 3, 1, 1]);

    for (call, words) in [
        ("Process('agents.ti', 'x')", "unknown agent `ti` (did you mean `it`?)"),
        ("Process('agents.it')", "no messages: pass a string or a list of messages"),
        ("Process('agents.it', [])", "list"),
        ("Process('agents.started', 'x')", "is started only in runs that test it or use it as a role"),
        (
            "Process('agents.it', [{ role: 'assistant', content: 'x' }])",
            "the last message must have the role `user`",
        ),
        ("Process('agents.it', [{ role: 'user', contents: 'x' }])", "contents"),
    ] {
        let script = format!("export async function judge() {{\n  {call};\n  return true;\n}}\n");
        let project = Project::with_config(&text).file("src/checks.ts", &script).file("a.test.jsonl", CASE);
        let message = project.test(&[]).failure("a")["message"].as_str().unwrap().to_string();
        assert!(message.contains(words), "{call}: {message}");
    }
}

#[test]
fn scripts_call_each_other_with_process() {
    let agent = echo_agent();
    let script = "export const judge = () => { const got = Process('scripts.tests.more.twice', 4); console.log('got', got); return { pass: got === 8 }; };
        export const again = (n: number): number => Process('scripts.checks.again', n + 1);";
    let more =
        "export async function twice(n: number) { console.warn('twice', n); await null; return 2 * n; }
        export const fails = () => { throw new Error('of the other') };";
    let project = |script: &str| project(&agent, "", script).file("src/tests/more.ts", more);
    let tested = project(script).test(&[]);
    tested.assert_all_passed();
    assert_eq!(tested.case("a")["assertions"][0]["logs"], json!(["warn: twice 4", "got 8"]));
    for (call, words) in [
        ("Process('scripts.tests.more.fails')", "Error: of the other"),
        ("Process('scripts.tests.more.thrice')", "did you mean `twice`?"),
        ("Process('scripts.nowhere.at')", "looked for src/nowhere.ts"),
        ("Process('scripts.checks.again', 1)", "more than 8 levels deep"),
    ] {
        let script = script.replace(
            "const got = Process('scripts.tests.more.twice', 4);",
            &format!("const got: any = {call};"),
        );
        let message = project(&script).test(&[]).failure("a")["message"].as_str().unwrap().to_string();
        assert!(message.contains(words), "{call}: {message}");
    }
}

#[test]
fn discovery_has_no_side_effects() {
    let (agent, server) = (echo_agent(), http_server());
    let granted = "scripts: { hosts: ['127.0.0.1'], read: ['.'], write: ['.'], processes: { touch: { cmd: [touch, ran.txt] } } }\n";
    let read = "const config = JSON.parse(files.read('data.json')); export const judge = () => config.pass;";
    project(&agent, granted, read).file("data.json", "{\"pass\": true}").test(&[]).assert_all_passed();
    for statement in [
        format!("fetch('http://127.0.0.1:{}/sent')", server.port()),
        "Process('touch')".to_string(),
        "files.write('ran.txt', 'x')".to_string(),
    ] {
        let project = project(&agent, granted, &format!("{statement};\nexport const judge = () => true;\n"));
        project
            .hotseat(&["test"])
            .assert_stderr(2, &["cannot be called at the top level of a script", "src/checks.ts:1:"]);
        assert!(!exists(&project.workspace, "ran.txt"));
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn grants_are_validated_before_run() {
    let agent = echo_agent();
    for (granted, words) in [
        ("scripts: { hosts: ['https://a.test'] }\n", "is not a host"),
        ("scripts: { read: [/etc] }\n", "is outside the project folder"),
        ("scripts: { write: [../x] }\n", "is outside the project folder"),
        ("scripts: { host: [a.test] }\n", "did you mean `hosts`?"),
        ("scripts: { processes: { a: { timeout_ms: 1 } } }\n", "a process needs either `cmd` or `url`"),
        (
            "scripts: { processes: { a: { cmd: [x], headers: {} } } }\n",
            "a command does not support `headers`",
        ),
        ("scripts: { processes: { agents.x: { cmd: [x] } } }\n", "rename the process"),
        ("scripts: { hosts: ['${ENV.NOT_THERE}'] }\n", "`NOT_THERE` is not set"),
    ] {
        let output = project(&agent, granted, "export const judge = () => true;").hotseat(&["test"]);
        assert_eq!(output.code, 2, "{granted}: {output}");
        assert!(
            output.stderr.contains(words) && output.stderr.contains("hotseat.yaml:2:"),
            "{granted}: {output}"
        );
    }
    assert_eq!(agent.requests().len(), 0);
}

#[test]
fn function_time_limit_is_configurable() {
    let agent = echo_agent();
    let script = "export function judge() { for (;;) {} }\n";
    let took = |tested: &TestRun, limit: &str| {
        let failure = tested.failure("a");
        assert_eq!(failure["kind"], "script_error");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains(&format!("did not finish within {limit} ms")), "{message}");
    };
    took(&project(&agent, "scripts: { timeout_ms: 150 }\n", script).test(&[]), "150");
    for (key, value, limit) in [("timeout", json!("250ms"), "250"), ("timeout_ms", json!(350), "350")] {
        let mut case: Value = serde_json::from_str(CASE).unwrap();
        case["assert"][0][key] = value;
        let project =
            project(&agent, "scripts: { timeout_ms: 150 }\n", script).file("a.test.jsonl", &case.to_string());
        took(&project.test(&[]), limit);
    }
    let hook = json!({"id": "a", "input": "hi", "before": "checks.judge"}).to_string();
    let project = project(&agent, "scripts: { timeout_ms: 150 }\n", script).file("a.test.jsonl", &hook);
    let failure = project.test(&[]).failure("a").clone();
    assert!(failure["message"].as_str().unwrap().contains("did not finish within 150 ms"), "{failure}");
}

#[test]
fn function_memory_limit_is_configurable() {
    let agent = echo_agent();
    let script = "export const judge = () => 'x'.repeat(8 * 1024 * 1024).length > 0;";
    project(&agent, "", script).test(&[]).assert_all_passed();
    let failure = project(&agent, "scripts: { memory_mb: 4 }\n", script).test(&[]).failure("a").clone();
    assert!(failure["message"].as_str().unwrap().contains("more than 4 MiB of memory"), "{failure}");
}

#[test]
fn time_limit_interrupts_every_wait() {
    let (agent, server) = (echo_agent(), http_server());
    let granted = "scripts: { timeout_ms: 2000, hosts: ['127.0.0.1'], processes: { holds: { cmd: [sh, -c, 'exec 3> life; sleep 1000'] } } }\n";
    for waits in
        [format!("fetch('http://127.0.0.1:{}/never')", server.port()), "Process('holds')".to_string()]
    {
        let script = format!("export function judge() {{\n  for (;;) try {{ {waits} }} catch {{}}\n}}\n");
        let project = project(&agent, granted, &script);
        let lifeline = Lifeline::new(&project.workspace, "life");
        let began = Instant::now();
        let failure = project.test(&[]).failure("a").clone();
        assert!(failure["message"].as_str().unwrap().contains("did not finish within 2000 ms"), "{failure}");
        assert!(began.elapsed() < Duration::from_secs(20));
        if waits.contains("holds") {
            lifeline.wait_for_start();
            lifeline.wait_for_end();
        }
    }
    server.wait_for_abandoned(1, crate::common::TEST_TIMEOUT);
}

#[test]
fn script_does_not_outlive_its_case() {
    let (agent, server) = (echo_agent(), http_server());
    let granted = "scripts: { timeout_ms: 600000, write: ['.'], hosts: ['127.0.0.1'], processes: { holds: { cmd: [sh, -c, 'exec 3> life; sleep 1000'] } } }\n";
    let script = format!(
        "export function judge() {{\n  try {{ fetch('http://127.0.0.1:{}/never') }} catch {{}}\n  files.write('outlived.txt', 'x');\n  return true;\n}}\nexport const before = () => {{ for (;;) try {{ Process('holds') }} catch {{}} }};\n",
        server.port()
    );
    // The second interrupt cancels the request of the first case and the process of the second.
    let project = project(&agent, granted, &script)
        .file("b.test.jsonl", r#"{"id": "b", "input": "hi", "before": "checks.before"}"#);
    let lifeline = Lifeline::new(&project.workspace, "life");
    let mut running = project.command(&["test", "-o", "out/report.json"]).spawn();
    server.wait_for_requests(1, crate::common::TEST_TIMEOUT);
    lifeline.wait_for_start();
    running.press_ctrl_c();
    running.wait_for_stdout("no new cases");
    running.press_ctrl_c();
    server.wait_for_abandoned(1, crate::common::TEST_TIMEOUT);
    lifeline.wait_for_end();
    running.wait().assert_code(130);
    let report = project.workspace.read_json("out/report.json");
    for result in report["results"].as_array().unwrap() {
        assert_eq!(result["failure"]["kind"], "cancelled", "{result}");
    }
    assert!(!exists(&project.workspace, "outlived.txt"), "the abandoned script has no further effect");
}
