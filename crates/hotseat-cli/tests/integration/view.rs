//! Runs in a browser: responses of `hotseat view` and `hotseat test --view` during a run, and access control.
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use hotseat_testkit::agui::FakeRun;
use hotseat_testkit::{FakeAgent, SpawnedProgram};
use serde_json::{Value, json};

use crate::common::{Project, TEST_TIMEOUT, echo_agent};

/// An agent that answers `good`, and blocks on `wait`.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| match request.last_user_text().as_str() {
        "wait" => run.gate("open").text("good").finished(),
        said => run.text(&format!("good, and you said {said}")).finished(),
    })
}

/// A case that expects `word` in the answer.
fn case(id: &str, said: &str, word: &str) -> String {
    format!("---\nid: {id}\nturns: [{{ user: '{said}', assert: {{ text: {{ must_match: {word} }} }} }}]\n")
}

/// Three cases, the second of which blocks.
fn suite() -> String {
    [case("first", "hello", "good"), case("second", "wait", "bad"), case("third", "HELLO there", "good")]
        .concat()
}

/// A server by its address.
struct ViewServer {
    host: String,
}

struct HttpReply {
    status: u16,
    head: String,
    body: String,
}

impl HttpReply {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}\n{}", self.head, self.body);
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).expect("JSON")
    }

    #[track_caller]
    fn error(&self) -> String {
        let told: Value =
            serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body));
        told["error"].as_str().expect("an error in words").to_string()
    }
}

impl ViewServer {
    /// The server at the address printed by a program, `http://127.0.0.1:PORT/`.
    #[track_caller]
    fn from_output(words: &str) -> ViewServer {
        let (_, rest) = words.split_once("http://").expect("an address");
        let (host, _) = rest.split_once('/').expect("an address ends with a slash");
        assert!(host.starts_with("127.0.0.1:"), "{host} is this machine");
        ViewServer { host: host.to_string() }
    }

    fn port(&self) -> &str {
        self.host.split_once(':').expect("a port").1
    }

    #[track_caller]
    fn request(&self, request: &str) -> HttpReply {
        let mut socket = TcpStream::connect(&self.host).expect("somebody listens");
        socket.set_read_timeout(Some(TEST_TIMEOUT)).expect("a time is taken");
        socket.write_all(request.as_bytes()).expect("somebody reads");
        let mut all = Vec::new();
        socket.read_to_end(&mut all).expect("an answer");
        let all = String::from_utf8(all).expect("text");
        let (head, body) = all.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        HttpReply { status, head: head.to_ascii_lowercase(), body: body.to_string() }
    }

    /// Sends a request like a page of the server.
    #[track_caller]
    fn get(&self, path: &str) -> HttpReply {
        self.get_with_host(&self.host, path)
    }

    /// Sends a request with another host name.
    #[track_caller]
    fn get_with_host(&self, host: &str, path: &str) -> HttpReply {
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }
}

/// A page that follows a run: keeps the received state and requests updates.
struct RunPage<'a> {
    site: &'a ViewServer,
    path: String,
    position: i64,
    seen: Option<String>,
    run: Value,
    /// Received status of cases, by id.
    cases: BTreeMap<String, Value>,
    /// Number of cases in each response.
    told: Vec<usize>,
}

impl<'a> RunPage<'a> {
    fn follow(site: &'a ViewServer, path: &str) -> RunPage<'a> {
        let (path, cases, told) = (path.to_string(), BTreeMap::new(), Vec::new());
        RunPage { site, path, position: 0, seen: None, run: Value::Null, cases, told }
    }

    /// Requests updates until the condition is met. Each response waits for new data.
    #[track_caller]
    fn poll_until(&mut self, enough: impl Fn(&RunPage) -> bool) {
        let begin = std::time::Instant::now();
        while !enough(self) {
            assert!(begin.elapsed() < TEST_TIMEOUT, "{} {:?}", self.run, self.cases);
            let seen = self.seen.as_ref().map_or_else(String::new, |seen| format!("&seen={seen}"));
            let news = self.site.get(&format!("{}?after={}{seen}", self.path, self.position)).json();
            let rows = news["rows"].as_array().expect("rows");
            self.told.push(rows.len());
            for row in rows {
                self.cases.insert(row["id"].as_str().expect("a text").to_string(), row.clone());
            }
            let position = news["position"].as_i64().expect("a place");
            assert!(position >= self.position, "places grow");
            self.position = position;
            self.seen = (news["more"] == false).then(|| news["seen"].as_str().expect("a text").to_string());
            self.run = news["run"].clone();
        }
    }

    fn state(&self) -> &str {
        self.run["kept"]["state"].as_str().unwrap_or_default()
    }

    fn case(&self, id: &str) -> &str {
        self.cases.get(id).and_then(|row| row["status"].as_str()).unwrap_or_default()
    }
}

/// Starts `hotseat view` and returns its address.
#[track_caller]
fn start_view(project: &Project, args: &[&str]) -> (SpawnedProgram, ViewServer) {
    let mut viewing = project.command(&[&["view"], args].concat()).spawn();
    let said = viewing.wait_for_stdout("Ctrl-C stops it.");
    (viewing, ViewServer::from_output(&said))
}

#[track_caller]
fn assert_stops(viewing: SpawnedProgram) {
    viewing.interrupt();
    let output = viewing.wait();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
}

#[test]
fn live_run_can_be_followed() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", &suite());
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    running.wait_for_stdout("Running Tests");
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let (viewing, site) = start_view(&project, &[]);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.case("second") == "running");
    assert_eq!((page.state(), page.case("first"), page.case("third")), ("running", "passed", ""));
    assert_eq!(page.run["kept"]["total"], 3);
    assert_eq!(page.run["start"]["agent_id"], agent.url());
    let id = page.run["kept"]["id"].as_str().expect("an id").to_string();
    let first = site.get(&format!("/api/runs/{id}/cases/0")).json();
    assert_eq!(first["result"]["id"], "first");
    assert!(first["attempts"][0]["events"].as_array().is_some_and(|events| events.len() > 3), "{first}");
    let second = site.get(&format!("/api/runs/{id}/cases/1"));
    assert!(
        second.status == 404 && second.error().contains("has no finished case number 1"),
        "{}",
        second.body
    );

    page.told.clear();
    agent.release("open");
    page.poll_until(|page| page.state() == "ended");
    assert_eq!((page.case("second"), page.case("third")), ("failed", "passed"));
    assert!(page.told.iter().all(|told| *told <= 2), "only what is new is told: {:?}", page.told);
    assert_eq!(page.run["summary"]["failed"], 1);
    assert_eq!(running.wait().code, 1);
    let second = site.get(&format!("/api/runs/{id}/cases/1")).json();
    assert_eq!(second["result"]["failure"]["kind"], "assertion");
    assert_stops(viewing);
}

#[test]
fn attempts_of_running_case_are_counted() {
    let agent = FakeAgent::start(|request| match request.index {
        2 => FakeRun::for_request(request).started().gate("open").text("good").finished(),
        _ => FakeRun::for_request(request).started().text("good").finished(),
    });
    let project = Project::with_agent(&agent).suite("a", &case("steady", "hello", "good"));
    let mut running = project.command(&["test", "--runs", "3", "--parallel", "1"]).spawn();
    running.wait_for_stdout("Running Tests");
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let (viewing, site) = start_view(&project, &[]);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.cases.get("steady").is_some_and(|row| row["attempts"] == 2));
    assert_eq!(page.case("steady"), "running");
    agent.release("open");
    page.poll_until(|page| page.state() == "ended" && page.case("steady") == "passed");
    assert_eq!(running.wait().code, 0);
    assert_stops(viewing);
}

#[test]
fn killed_run_is_incomplete_and_resumed_run_is_running() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", &suite());
    let mut running = project.command(&["test", "--parallel", "1"]).spawn();
    running.wait_for_stdout("Running Tests");
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let (viewing, site) = start_view(&project, &[]);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.case("second") == "running");
    let position = page.position;
    let shown = project.hotseat(&["show"]);
    assert!(shown.stdout.contains("⚠ THE RUN HAS NOT ENDED"), "{shown}");
    assert!(shown.stderr.contains("this run is still running"), "{shown}");
    project.workspace.run("kill", &["-9", &running.id().to_string()]);
    page.poll_until(|page| page.state() == "killed");
    assert_eq!(page.case("second"), "running", "the case was running when the process was killed");
    assert_eq!(running.wait().code, 137);
    let shown = project.hotseat(&["show"]);
    assert!(shown.stdout.contains("⚠ THE RUN HAS NOT ENDED"), "{shown}");
    assert!(shown.stderr.contains("this run is incomplete"), "{shown}");
    assert!(!shown.stdout.contains("COULD NOT BE CARRIED OUT"), "{shown}");
    let second = project.hotseat(&["show", "last", "second"]);
    second.assert_stderr(2, &["`second` was interrupted with run"]);
    let started = project.hotseat(&["show", "--json"]).stdout;
    assert_eq!(started.matches(r#""type":"test_start""#).count(), 2, "reported events are stored: {started}");
    let summary: Value = serde_json::from_str(started.lines().last().expect("a line")).expect("a summary");
    assert_eq!((&summary["passed"], &summary["total"]), (&json!(1), &json!(1)), "{summary}");
    assert!(summary["duration_ms"].as_f64() > Some(0.0), "{summary}");

    agent.release("open");
    assert_eq!(project.hotseat(&["resume"]).code, 1);
    page.poll_until(|page| page.state() == "ended");
    assert_eq!((page.case("first"), page.case("second"), page.case("third")), ("passed", "failed", "passed"));
    assert!(page.position > position);
    assert_stops(viewing);
}

#[test]
fn rejects_requests_from_other_origins() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    project.hotseat(&["test"]);
    let (viewing, site) = start_view(&project, &[]);
    let port = site.port();
    for own in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(site.get_with_host(&own, "/api/run").status, 200, "{own}");
    }
    let foreign = [
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("10.0.0.1:{port}"),
        format!("x.localhost:{port}"),
        "127.0.0.1".to_string(),
        "127.0.0.1:1".to_string(),
        "localhost".to_string(),
        String::new(),
    ];
    for host in foreign {
        for path in ["/", "/api/run", "/api/runs"] {
            let refused = site.get_with_host(&host, path);
            assert_eq!(refused.status, 403, "{host} {path}");
            assert!(refused.error().contains("rejects requests for the host"), "{}", refused.body);
        }
    }
    assert_eq!(site.request("GET /api/run HTTP/1.0\r\n\r\n").status, 403, "who names no host");

    let own = site.request(&format!(
        "GET /api/run HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n",
        site.host
    ));
    assert!(!own.head.contains("access-control"), "nobody else may read it: {}", own.head);
    for (site_of_asker, path, status) in [
        ("cross-site", "/api/run", 403),
        ("same-site", "/api/runs/last/search?q=hello", 403),
        ("same-origin", "/api/run", 200),
        ("none", "/api/run", 200),
        // Links from other sites may point here.
        ("cross-site", "/", 200),
    ] {
        let reply = site.request(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nSec-Fetch-Site: {site_of_asker}\r\nConnection: close\r\n\r\n",
            site.host
        ));
        assert_eq!(reply.status, status, "{site_of_asker} {path}: {}", reply.body);
    }
    let head = site.request(&format!("HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.host));
    assert!(head.status == 200 && head.head.contains("content-type: text/html"), "{}", head.head);
    assert_eq!(head.body, "", "the response to HEAD has no body");
    let own = &site.host;
    for hosts in [format!("Host: {own}\r\nHost: evil.example"), format!("Host: evil.example\r\nHost: {own}")]
    {
        let refused = site.request(&format!("GET / HTTP/1.1\r\n{hosts}\r\nConnection: close\r\n\r\n"));
        assert_eq!(refused.status, 400, "{hosts}");
        assert!(refused.error().contains("the header `host` occurs several times"), "{}", refused.body);
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let refused = site.request(&format!(
            "{method} /api/run HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            site.host
        ));
        assert!(
            refused.status == 405 && refused.head.contains("\r\nallow: get"),
            "{method}: {}",
            refused.head
        );
        assert!(!refused.head.contains("access-control"), "{}", refused.head);
    }
    assert_stops(viewing);
}

#[test]
fn errors_are_json_and_name_the_mistake() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    project.hotseat(&["test"]);
    let (viewing, site) = start_view(&project, &[]);
    for (path, status, says) in [
        ("/nowhere", 404, "the page of a run is /runs/ID"),
        ("/api/runs/last/cases/-1", 404, "the case must be a whole number, counted from 0; got \"-1\""),
        ("/api/runs/last/cases/99", 404, "no finished case number 99"),
        ("/api/runs/last/cases/%FF", 400, "must be UTF-8"),
        ("/api/runs/%FF", 400, "must be UTF-8"),
        ("/api/runs/zzzz", 404, "zzzz"),
        ("/api/runs/last/running?case=x", 400, "`case` must be a whole number"),
        ("/api/runs?most=-1", 400, "`most` must be a whole number"),
        ("/api/run?after=x", 400, "`after` must be a whole number"),
        ("/api/runs/last/search?after=x", 400, "`after` must be a whole number"),
        ("/api/compare", 400, "`before` must name a run"),
    ] {
        let refused = site.get(path);
        assert_eq!(refused.status, status, "{path}: {}", refused.body);
        assert!(refused.head.contains("content-type: application/json"), "{path}: {}", refused.head);
        assert!(refused.error().contains(says), "{path}: {}", refused.body);
    }
    assert_stops(viewing);
}

#[test]
fn responses_have_security_headers() {
    let agent = FakeAgent::with_text("</script><script>alert(1)</script>");
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    project.hotseat(&["test"]);
    let (viewing, site) = start_view(&project, &[]);
    let always = [
        "x-content-type-options: nosniff",
        "cross-origin-resource-policy: same-origin",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ];
    for path in [
        "/",
        "/runs/last",
        "/api/run",
        "/api/runs",
        "/api/runs/last/cases/0",
        "/nothing",
        "/api/runs/last/cases/x",
    ] {
        let reply = site.get(path);
        for header in always {
            assert!(reply.head.contains(header), "{path}: {header}\n{}", reply.head);
        }
        assert!(reply.head.contains("content-security-policy: default-src 'none'"), "{path}\n{}", reply.head);
        assert!(reply.head.contains("frame-ancestors 'none'"), "{path}\n{}", reply.head);
        assert!(!reply.head.contains("unsafe"), "{path}\n{}", reply.head);
    }
    let page = site.get("/");
    assert!(page.head.contains("content-type: text/html; charset=utf-8"), "{}", page.head);
    assert!(page.head.contains("connect-src 'self'; img-src data:; style-src 'sha256-"), "{}", page.head);
    assert!(page.body.starts_with("<!doctype html>") && !page.body.contains("alert(1)"), "{}", page.body);
    assert_eq!(page.body, site.get("/runs/last").body, "nothing of a run stands in the page");
    let told = site.get("/api/runs/last/cases/0");
    assert!(
        told.head.contains("content-type: application/json") && told.body.contains("alert(1)"),
        "{}",
        told.head
    );
    assert_stops(viewing);
}

#[test]
fn serves_no_files() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent)
        .suite("a", &case("hello", "hello", "hello"))
        .file("secret.txt", "top secret");
    project.hotseat(&["test"]);
    let (viewing, site) = start_view(&project, &[]);
    for path in [
        "/secret.txt",
        "/../secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e/secret.txt",
        "/runs/../../secret.txt",
        "/runs/..%2f..%2fsecret.txt",
        "/runs/%2e%2e%2fsecret.txt",
        "/api/runs/..%2f..%2fsecret.txt",
        "/api/runs/last/cases/..%2fsecret.txt",
        "//secret.txt",
        "/.hotseat/runs.db",
    ] {
        let reply = site.get(path);
        assert!(
            !reply.body.contains("top secret") && !reply.body.contains("SQLite"),
            "{path}: {}",
            reply.body
        );
        let is_page = path.starts_with("/runs/..%2f") || path.starts_with("/runs/%2e");
        assert_eq!(reply.status == 200, is_page, "{path}: {}", reply.body);
    }
    let named = site.get("/api/runs/%25");
    assert!(named.status == 404 && named.error().contains("there is no run `%`"), "{}", named.body);
    assert_stops(viewing);
}

#[test]
fn lists_and_names_runs() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    project.hotseat(&["view"]).assert_stderr(2, &["`hotseat test` saves them there"]);
    project.hotseat(&["test"]);
    let project = project.suite("b", &case("bye", "bye", "hello"));
    assert_eq!(project.hotseat(&["test"]).code, 1);
    project.hotseat(&["view", "last~7"]).assert_stderr(2, &["fewer runs are saved"]);

    let (viewing, site) = start_view(&project, &["last~1"]);
    let earlier = site.get("/api/run").json();
    assert_eq!(
        (&earlier["run"]["kept"]["total"], &earlier["run"]["kept"]["state"]),
        (&Value::from(1), &Value::from("ended"))
    );
    assert_ne!(earlier["run"]["kept"]["id"], earlier["newest"]);
    let listed = site.get("/api/runs").json();
    let lines: Vec<Value> = project
        .hotseat(&["runs", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a run"))
        .collect();
    assert_eq!(listed["runs"], Value::from(lines), "as `hotseat runs --json` has them");
    assert_eq!(listed["more"], false);
    let one = site.get("/api/runs?most=1").json();
    assert_eq!((one["runs"].as_array().map(Vec::len), &one["more"]), (Some(1), &Value::from(true)));
    let last = site.get("/api/runs/last").json();
    assert_eq!(last["run"]["kept"]["id"], listed["runs"][0]["id"]);
    assert_eq!(site.get("/api/runs?most=x").status, 400);

    project.hotseat(&["view", "--port", site.port()]).assert_stderr(3, &["omit --port to pick a free port"]);
    assert_stops(viewing);
}

#[test]
fn compares_runs_and_names_editor() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    assert_eq!(project.hotseat(&["test"]).code, 0);
    let project = project.suite("b", &case("bye", "bye", "hello"));
    assert_eq!(project.hotseat(&["test"]).code, 1);
    for wrong in ["javascript://{file}", "data://{file}", "editor://x", "emacs"] {
        let refused = project.hotseat(&["view", "--editor", wrong]);
        assert!(
            refused.code == 2 && refused.stderr.contains("expected vscode, cursor"),
            "{wrong}: {refused}"
        );
    }
    let (viewing, site) = start_view(&project, &["--editor", "editor://open?file={file}"]);
    let run = site.get("/api/run").json();
    assert_eq!(run["editor"], "editor://open?file={file}");
    let folder = run["run"]["folder"].as_str().expect("a folder");
    assert!(std::path::Path::new(folder).join("hotseat.yaml").is_file(), "{folder}");
    let compared = site.get("/api/compare?before=last~1&after=last").json();
    let command = project.hotseat(&["compare", "last~1", "last", "--json"]);
    let command: Value = serde_json::from_str(&command.stdout).expect("JSON");
    assert_eq!(compared, command);
    assert_eq!(site.get("/api/compare?before=last").status, 400);
    assert_eq!(site.get("/api/compare?before=last&after=ffffffffffff").status, 404);
    assert_stops(viewing);
}

#[test]
fn searches_conversation_text() {
    let agent = echo_agent();
    let suite = [case("first", "a \"Quoted\" word", "said"), case("second", "nothing", "said")].concat();
    let project = Project::with_agent(&agent).suite("a", &suite);
    assert_eq!(project.hotseat(&["test", "--parallel", "1"]).code, 0);
    let (viewing, site) = start_view(&project, &[]);
    let found =
        |words: &str, after: i64| site.get(&format!("/api/runs/last/search?q={words}&after={after}")).json();
    let all = found("you+SAID", 0);
    assert_eq!(all["found"], serde_json::json!([0, 1]));
    assert_eq!(found("said%3A+nothing", 0)["found"], serde_json::json!([1]));
    assert_eq!(found("%22quoted%22", 0)["found"], serde_json::json!([0]));
    assert_eq!(found(".*", 0)["found"], serde_json::json!([]), "words are no pattern");
    assert_eq!(found("said", all["position"].as_i64().expect("a place"))["found"], serde_json::json!([]));
    assert_stops(viewing);
}

#[test]
fn many_cases_are_paginated() {
    let agent = echo_agent();
    let suite: String = (0..620).map(|n| case(&format!("c{n}"), "hello", "said")).collect();
    let project = Project::with_agent(&agent).suite("a", &suite);
    assert_eq!(project.hotseat(&["test"]).code, 0);
    let (viewing, site) = start_view(&project, &[]);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.cases.len() == 620);
    assert_eq!(page.told, [500, 120]);
    assert_stops(viewing);
}

#[test]
fn store_errors_show_in_page_and_terminal() {
    let agent = echo_agent();
    let project = Project::with_agent(&agent).suite("a", &case("hello", "hello", "hello"));
    project.hotseat(&["test"]);
    let (mut viewing, site) = start_view(&project, &[]);
    assert_eq!(site.get("/api/run").status, 200);
    let store = project.workspace.path(".hotseat/runs.db");
    let whole = std::fs::read(&store).expect("it is there");
    // Offset of the schema version.
    let mut later = whole.clone();
    later[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&store, later).expect("it can be written");
    let refused = site.get("/api/run");
    assert!(
        refused.status == 500 && refused.error().contains("later version of Hotseat (tables 99"),
        "{}",
        refused.body
    );
    viewing.wait_for_stderr("later version of Hotseat (tables 99");

    std::fs::write(&store, whole).expect("it can be written");
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.state() == "ended");
    // A waiting page is notified too.
    std::fs::remove_dir_all(project.workspace.path(".hotseat")).expect("it is there");
    let seen = page.seen.clone().expect("all is told");
    let gone = site.get(&format!("/api/run?after={}&seen={seen}", page.position));
    assert!(gone.status == 404 && gone.error().contains("there are no saved runs in"), "{}", gone.body);
    site.get("/api/run");
    let said = viewing.wait_for_stderr("`hotseat test` saves them there");
    assert_eq!(said.matches("saves them there").count(), 1, "once: {said}");
    // Shows the next run.
    assert_eq!(project.hotseat(&["test"]).code, 0);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.state() == "ended");
    viewing.interrupt();
    assert_eq!(viewing.wait().code, 0);
}

#[test]
fn test_view_serves_run_and_exits_normally() {
    let agent = agent();
    let project = Project::with_agent(&agent).suite("a", &suite());
    let mut running = project.command(&["test", "--parallel", "1", "--view"]).spawn();
    let site = ViewServer::from_output(&running.wait_for_stderr("/\n"));
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.case("second") == "running");
    agent.release("open");
    page.poll_until(|page| page.case("second") == "failed");
    let id = page.run["kept"]["id"].as_str().expect("an id").to_string();
    let with = running.wait();
    let said = format!(
        "view: http://{}/\nview: ended with the run; `hotseat view {}` shows it\n",
        site.host,
        &id[..8]
    );
    assert_eq!((with.code, with.stderr.as_str()), (1, said.as_str()), "{with}");
    assert!(TcpStream::connect(&site.host).is_err(), "the server has stopped");
    let without = project.hotseat(&["test", "--parallel", "1"]);
    let is_timed = |line: &&str| line.contains("ms") || line.contains("µs");
    let lines =
        |text: &str| text.lines().filter(|line| !is_timed(line)).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(lines(&with.stdout), lines(&without.stdout));
    assert_eq!(without.code, 1);
}

#[test]
fn terminal_view_stays_until_ctrl_c() {
    let agent = agent();
    agent.release("open");
    let project = Project::with_agent(&agent).suite("a", &suite());
    let mut running = project.command(&["test", "--view"]).terminal(100).spawn();
    let site = ViewServer::from_output(&running.wait_for_stdout("stays available until Ctrl-C"));
    let mut page = RunPage::follow(&site, "/api/run");
    page.poll_until(|page| page.state() == "ended");
    assert_eq!(site.get("/api/runs/last/cases/1").json()["result"]["status"], "failed");
    running.press_ctrl_c();
    assert_eq!(running.wait().code, 1, "what the run came to");

    // On a CI server there is no keyboard input.
    project
        .command(&["test", "--view"])
        .env("CI", "true")
        .terminal(100)
        .run()
        .assert_stdout(1, &["view: ended with the run"]);
}

#[test]
fn missing_store_serves_no_page() {
    let agent = echo_agent();
    let suite = case("hello", "hello", "hello");
    let off =
        Project::with_config(&format!("target:\n  endpoint: {agent}\nstore: false\n")).suite("a", &suite);
    let on = Project::with_agent(&agent).suite("a", &suite);
    for (project, args, what) in [
        (&off, &["test", "--view"][..], "`store: false` in the project file disables saving"),
        (&on, &["test", "--view", "--no-store"], "--no-store disables saving"),
    ] {
        project.hotseat(args).assert_stderr(2, &[what, "`-o report.html`"]);
    }
    assert_eq!(agent.requests().len(), 0, "the agent was not contacted");
}

/// Requests the running conversations until the condition is met.
#[track_caller]
fn running_until(site: &ViewServer, path: &str, enough: impl Fn(&Value) -> bool) -> Value {
    let begin = std::time::Instant::now();
    loop {
        let found = site.get(path).json();
        if enough(&found) {
            return found;
        }
        assert!(begin.elapsed() < TEST_TIMEOUT, "{path}: {found}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn running_conversation_is_shown_turn_by_turn() {
    let long = "x".repeat(5_000);
    let answer = format!("</script><img src=x onerror=alert(1)> s3cr3t-token {long}");
    let agent = FakeAgent::with_run(move |run, request| match request.last_user_text().as_str() {
        "wait" => run.gate("open").text("good").finished(),
        _ => run
            .tool("c", "look_up", &serde_json::json!({"q": "rooms"}), Some(serde_json::json!("two")))
            .text(&answer)
            .finished(),
    });
    let config =
        format!("target: {{ endpoint: '{agent}', headers: {{ authorization: '${{ENV.TOKEN}}' }} }}\n");
    let turns = "id: talks\nturns: [{ user: hello }, { user: wait }]\n";
    let project = Project::with_config(&config).suite("a", turns);
    let mut running = project.command(&["test"]).env("TOKEN", "s3cr3t-token").spawn();
    running.wait_for_stdout("Running Tests");
    agent.wait_at_gate("open", TEST_TIMEOUT);
    let locks = project.workspace.path(".hotseat/locks");
    let live_files = || {
        let files = std::fs::read_dir(&locks).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some()).count()
    };
    assert_eq!(live_files(), 0, "nothing is written without a viewer");

    let (viewing, site) = start_view(&project, &[]);
    let whole = running_until(&site, "/api/runs/last/running?case=0", |found| {
        found["conversations"][0]["turns"].as_array().is_some_and(|turns| turns.len() == 2)
    });
    let talks = &whole["conversations"][0];
    assert_eq!(
        (&whole["total"], &talks["attempt"], &talks["total_turns"]),
        (&1.into(), &1.into(), &2.into())
    );
    assert!(talks["elapsed_ms"].as_i64().is_some_and(|elapsed| elapsed >= 0), "{whole}");
    let types = |turn: usize| -> Vec<&str> {
        let items = talks["turns"][turn]["items"].as_array().expect("items");
        items.iter().map(|item| item["type"].as_str().expect("a type")).collect()
    };
    let answered = vec!["message.user", "tool.invoked", "message.assistant"];
    assert_eq!((types(0), types(1)), (answered, vec!["message.user"]), "{whole}");
    let call = &talks["turns"][0]["items"][1]["call"];
    assert_eq!((&call["args"], &call["result"]), (&json!({"q": "rooms"}), &"two".into()));
    assert_eq!((&talks["turns"][0]["open"], &talks["turns"][1]["open"]), (&false.into(), &true.into()));
    let text = talks["turns"][0]["items"][2]["payload"]["content"].as_str().expect("a text");
    assert!(text.starts_with("</script><img") && text.ends_with(" …") && text.len() < 2_000, "{text}");
    assert!(!whole.to_string().contains("s3cr3t"), "secrets do not leave the session: {whole}");
    let all = site.get("/api/runs/last/running").json();
    assert_eq!(all["conversations"][0]["last"], "wait", "{all}");
    assert_eq!(all["conversations"][0]["turns"], serde_json::json!([]), "{all}");
    for (path, status) in [
        ("/api/runs/last/running?case=x", 400),
        ("/api/runs/ffffffffffff/running", 404),
        ("/api/runs/..%2F..%2Fx/running", 404),
    ] {
        assert_eq!(site.get(path).status, status, "{path}");
    }

    agent.release("open");
    assert_eq!(running.wait().code, 0);
    let ended = site.get("/api/runs/last/running").json();
    assert_eq!(ended, serde_json::json!({"total": 0, "conversations": []}));
    assert_eq!(live_files(), 0, "the files are removed with the run");
    assert_stops(viewing);
}
