//! Matcher parity: case files, TypeScript and Rust record the same result for the same assertion on the same
//! conversation, and every front end has every matcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat::dsl::Harness;
use hotseat::dsl::prelude::*;
use hotseat_testkit::FakeAgent;
use serde_json::{Value, json};

use crate::common::records::{assert_same, comparable, title, unordered};
use crate::common::typescript::IMPORTS;
use crate::common::{HOTSEAT, Project, TEST_TIMEOUT};

/// An assertion in the spelling of each front end.
struct MatcherEntry {
    yaml: Value,
    typescript: String,
    rust: RustMatcher,
    /// Key of a TypeScript topic for this assertion and for its negation, if they have dedicated keys.
    of_topic: [Option<&'static str>; 2],
    negatable: bool,
}

/// Creates a matcher for each use.
type MatcherFactory<S> = Arc<dyn Fn() -> Box<dyn Matcher<S>> + Send + Sync>;

/// Adds a matcher to a topic, hard or soft.
type TopicAssertion = Arc<dyn Fn(&mut Topic, bool) + Send + Sync>;

/// A Rust matcher for each supported subject.
#[derive(Clone)]
struct RustMatcher {
    /// Source spelling.
    written: &'static str,
    of_agent: MatcherFactory<Agent>,
    of_conversation: MatcherFactory<Conversation>,
    of_topic: TopicAssertion,
}

/// A type-erased matcher.
struct AnyMatcher<S: ?Sized>(Box<dyn Matcher<S>>);

impl<S: ?Sized> Matcher<S> for AnyMatcher<S> {
    fn assertion(&self, subject: &S) -> Assertion {
        self.0.assertion(subject)
    }
}

macro_rules! rust {
    ($matcher:expr) => {
        RustMatcher {
            written: stringify!($matcher),
            of_agent: Arc::new(|| Box::new($matcher)),
            of_conversation: Arc::new(|| Box::new($matcher)),
            of_topic: Arc::new(|topic, negated| {
                match negated {
                    true => topic.evaluate(not($matcher)),
                    false => topic.evaluate($matcher),
                };
            }),
        }
    };
}

fn entry(yaml: Value, typescript: &str, rust: RustMatcher) -> MatcherEntry {
    let typescript = typescript.to_string();
    let negatable = !yaml.is_array() && (yaml["match"] == "any" || !yaml["pattern"].is_array());
    MatcherEntry { yaml, typescript, rust, of_topic: [None, None], negatable }
}

impl MatcherEntry {
    fn in_topic(self, holds: &'static str, contrary: Option<&'static str>) -> MatcherEntry {
        MatcherEntry { of_topic: [Some(holds), contrary], ..self }
    }

    /// Case file form; whole conversations use `all turns` where the others check everything.
    fn data(&self, negated: bool, whole: bool) -> Value {
        let one = |assertion: &Value| {
            let mut assertion = assertion.clone();
            if negated {
                match assertion.as_object_mut().unwrap().shift_remove("negate") {
                    Some(_) => {}
                    None => assertion["negate"] = true.into(),
                }
            }
            let reads_words = ["regex", "contains"].iter().any(|word| assertion["type"] == *word);
            if whole && reads_words && !self.typescript.starts_with("toHold") {
                assertion["turns"] = "all".into();
            }
            assertion
        };
        match &self.yaml {
            Value::Array(several) => several.iter().map(one).collect(),
            assertion => one(assertion),
        }
    }
}

/// Assertions with a name only in case files; programs use their data form.
fn named_assertions() -> Vec<MatcherEntry> {
    macro_rules! held {
        ($($json:tt),* $(,)?) => {
            vec![$(entry(json!($json), &format!("toHold({})", json!($json)), rust!(holds(json!($json))))),*]
        };
    }
    held![
        {"type": "not_contains", "value": "Red"},
        {"type": "equals", "value": "Booked: R-1, a café"},
        {"type": "json_path", "path": "$.free", "value": true},
        {"type": "type", "value": "integer"},
        {"type": "schema", "schema": {"type": "integer"}},
        {"type": "tool_result", "tool": "book", "result": {"free": true}},
        {"type": "tool_sequence", "calls": ["look_up", "book"]},
        {"type": "idempotent", "tool": "book", "key": "room"},
        {"type": "after_fault", "max_retries": 1},
        {"type": "after_fault", "tool": "book", "max_retries": 0, "forbid": ["cancel"]},
        {"type": "valid_arguments"},
        {"type": "topic_history", "value": ["begin"]},
        {"type": "value", "of": "turn_count", "equals": 2},
        {"type": "max_tokens", "value": 10},
        {"type": "max_cost", "value": 10},
        {"type": "max_tool_calls", "value": 1},
        {"type": "regex", "pattern": "café", "turns": "last"},
    ]
}

/// Every matcher, with one and several patterns and names.
fn matchers() -> Vec<MatcherEntry> {
    let called = |more: Value| {
        let mut written = json!({"type": "tool_called", "name": "book"});
        for (key, value) in more.as_object().unwrap() {
            written[key] = value.clone();
        }
        written
    };
    let mut all = vec![
        entry(
            json!({"type": "regex", "pattern": "[Bb]lue"}),
            "toMatch(/[Bb]lue/)",
            rust!(matches("[Bb]lue")),
        )
        .in_topic("{ match: /[Bb]lue/ }", Some("{ notMatch: /[Bb]lue/ }")),
        entry(
            json!({"type": "regex", "pattern": ["Blue", "R-\\d"], "match": "all"}),
            r"toMatch(/Blue/, /R-\d/)",
            rust!(matches(["Blue", r"R-\d"])),
        )
        .in_topic(r"{ match: [/Blue/, /R-\d/] }", None),
        entry(
            json!({"type": "regex", "pattern": ["Blue", "R-\\d"], "match": "any"}),
            r"toMatchAny(/Blue/, /R-\d/)",
            rust!(matches_any(["Blue", r"R-\d"])),
        )
        .in_topic(r"{ matchAny: [/Blue/, /R-\d/] }", Some(r"{ notMatch: [/Blue/, /R-\d/] }")),
        entry(
            json!({"type": "regex", "pattern": r"\bcafé\b"}),
            r"toMatch(/\bcafé\b/)",
            rust!(matches(r"\bcafé\b")),
        ),
        entry(
            json!({"type": "regex", "pattern": "(?i)CAFÉ"}),
            "toMatch(/CAFÉ/i)",
            rust!(matches("(?i)CAFÉ")),
        ),
        entry(json!({"type": "contains", "value": "Blue"}), "toContain('Blue')", rust!(contains("Blue")))
            .in_topic("{ contain: 'Blue' }", None),
        entry(
            json!([{"type": "contains", "value": "Blue"}, {"type": "contains", "value": "R-1"}]),
            "toContain('Blue', 'R-1')",
            rust!(contains(["Blue", "R-1"])),
        )
        .in_topic("{ contain: ['Blue', 'R-1'] }", None),
        entry(
            json!({"type": "regex", "pattern": ["a\\.b", "\\/x"], "match": "any"}),
            "toMatchAny('a.b', '/x')",
            rust!(contains_any(["a.b", "/x"])),
        ),
        entry(called(json!({})), "toCallTool('book')", rust!(call_tool("book")))
            .in_topic("{ toolCall: 'book' }", Some("{ forbidToolCall: 'book' }")),
        entry(called(json!({})), "toHaveToolCall('book')", rust!(have_tool_call("book"))),
        entry(
            called(json!({"count": {"exact": 2}})),
            "toCallTool('book', undefined, { times: 2 })",
            rust!(call_tool("book").times(2)),
        ),
        entry(
            called(json!({"count": {"min": 1, "max": 3}})),
            "toCallTool('book', undefined, { times: { min: 1, max: 3 } })",
            rust!(call_tool("book").at_least(1).at_most(3)),
        ),
        entry(
            called(json!({"arguments": {"room": "Blue Room", "people": 12}})),
            "toCallTool('book', { room: 'Blue Room', people: 12 })",
            rust!(call_tool("book").with("room", "Blue Room").with("people", 12)),
        ),
    ];
    macro_rules! conditions {
        ($($name:literal $condition:tt $typescript:literal $rust:expr;)*) => {
            all.extend([$(entry(
                called(json!({"where": {$name: $condition}})),
                &format!("toCallTool('book', {{ {}: {} }})", $name, $typescript),
                rust!(call_tool("book").with($name, $rust)),
            )),*]);
        };
    }
    conditions! {
        "people" {"at_least": 12} "gte(12)" ge(12);
        "people" {"more_than": 11} "gt(11)" gt(11);
        "people" {"at_most": 12} "lte(12)" le(12);
        "people" {"less_than": 12} "lt(12)" lt(12);
        "people" {"one_of": [11, 12]} "oneOf(11, 12)" one_of([11, 12]);
        "room" {"regex": "^Blue"} "/^Blue/" matches("^Blue");
    }
    all.extend([
        entry(
            json!({"type": "satisfy", "criteria": "friendly"}),
            "toSatisfy('friendly')",
            rust!(satisfy("friendly")),
        )
        .in_topic("{ satisfy: 'friendly' }", None),
        entry(
            json!({"type": "satisfy", "criteria": ["friendly", "It names a room"]}),
            "toSatisfy('friendly', 'It names a room')",
            rust!(satisfy(["friendly", "It names a room"])),
        ),
        entry(json!({"type": "satisfy", "criteria": "talks"}), "toSatisfy('talks')", rust!(satisfy("talks")))
            .in_topic("{ satisfy: 'talks' }", None),
        entry(json!({"type": "satisfy", "criteria": "books"}), "toSatisfy('books')", rust!(satisfy("books")))
            .in_topic("{ satisfy: 'books' }", None),
        entry(
            json!({"type": "grounded", "types": ["prices"], "from_tools": ["book"]}),
            "toBeGroundedIn(['prices'], { fromTools: ['book'] })",
            rust!(grounded_in(["prices"]).from_tools(["book"])),
        )
        .in_topic("{ grounded: ['prices'], fromTools: ['book'] }", None),
        entry(
            json!({"type": "claims", "forbid": ["prices", "rooms"], "negate": true}),
            "toClaim('prices', 'rooms')",
            rust!(claim(["prices", "rooms"])),
        ),
        entry(
            json!({"type": "claims", "forbid": ["prices"], "absolute": true, "negate": true}),
            "toClaim(['prices'], { absolute: true })",
            rust!(claim(["prices"]).absolute()),
        ),
        entry(
            json!({"type": "intent", "intent": "to_book", "described_as": "books a room"}),
            "toHaveIntent('to_book', { describedAs: 'books a room' })",
            rust!(intent("to_book").described_as("books a room")),
        ),
        entry(
            json!({"type": "goal", "goal": "a room"}),
            "toHaveAchievedGoal('a room')",
            rust!(achieve_goal("a room")),
        ),
        entry(json!({"type": "topic", "name": "begin"}), "toBeInTopic('begin')", rust!(in_topic("begin"))),
        entry(
            json!({"type": "reached_topic", "name": "end"}),
            "toHaveReachedTopic('end')",
            rust!(reached_topic("end")),
        ),
    ]);
    for entry in &mut all {
        // Negating several criteria is ambiguous.
        entry.negatable &= !entry.yaml["criteria"].is_array();
    }
    all.extend(named_assertions());
    all
}

/// Every matcher with its negation, where one exists.
fn entries_with_negation() -> Vec<(MatcherEntry, bool)> {
    let mut all: Vec<(MatcherEntry, bool)> = matchers().into_iter().map(|entry| (entry, false)).collect();
    all.extend(matchers().into_iter().filter(|entry| entry.negatable).map(|entry| (entry, true)));
    all
}

/// An agent with prepared text and calls in the first two turns, so that assertions pass for one turn, both
/// or none.
fn agent() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let free = |free: bool| Some(json!({"free": free}));
        let blue = json!({"room": "Blue Room", "people": 12});
        match request.last_user_text().as_str() {
            "blue 1" => run.tool("c1", "look_up", &json!({}), free(true)).text("The Blue Room is free."),
            "blue 2" => run.tool("c2", "book", &blue, free(true)).text("Booked: R-1, a café"),
            "red 1" => run
                .tool("c1", "book", &json!({"room": "Red", "people": 3}), free(false))
                .text("Blue is not. See a.b"),
            "red 2" => run
                .tool("c2", "book", &json!({"room": "Red", "people": "12"}), free(false))
                .text("Red cafés at /x")
                .text("[1]"),
            "mute 1" => run.tool("c1", "book", &json!({"people": 12}), free(true)),
            "leave mute 2" => run.text("Nothing").text("7"),
            _ => run.text("Bye"),
        }
        .finished()
    })
}

/// A judge that decides by whether its evidence mentions a blue room.
fn judge() -> FakeAgent {
    FakeAgent::with_run(|run, request| {
        let asked = request.json().to_string();
        let holds = asked.contains("Blue Room");
        let mut answer = match () {
            () if asked.contains("observed_intent") => {
                json!({"observed_intent": "to help", "matches": holds})
            }
            () if asked.contains("violations") && holds => {
                json!({"claims_found": [], "violations": [], "grounded": true})
            }
            () if asked.contains("violations") => {
                let claim = json!({"type": "prices", "claim": "5 EUR", "grounded": false, "source": "none"});
                json!({"claims_found": [claim], "violations": ["5 EUR"], "grounded": false})
            }
            () if asked.contains("violated") && holds => json!({"claims_found": [], "violated": false}),
            () if asked.contains("violated") => {
                let claim = json!({"type": "prices", "claim": "5 EUR", "grounded": false});
                json!({"claims_found": [claim], "violated": true})
            }
            () if asked.contains("achieved") => json!({"achieved": holds}),
            () => json!({"satisfied": holds}),
        };
        answer["reasoning"] = format!("blue: {holds}").into();
        run.text(&answer.to_string()).finished()
    })
}

/// User text of the first two turns.
const USER_TEXTS: [[&str; 2]; 3] = [["blue 1", "blue 2"], ["red 1", "red 2"], ["mute 1", "leave mute 2"]];

/// Part of the conversation that assertions apply to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    Turn,
    Conversation,
    Visit,
}

const SCOPES: [Scope; 3] = [Scope::Turn, Scope::Conversation, Scope::Visit];

/// A project with code criteria, implemented in each front end by its own function.
fn project(agent: &FakeAgent, judge: &FakeAgent) -> Project {
    let text = format!(
        "target: {{ endpoint: '{agent}' }}\nagents:\n  judge: {{ endpoint: '{judge}' }}\njudge: agents:judge\n"
    );
    Project::with_config(&text).file(
        "src/code.ts",
        "export const talks = (messages) => messages.map((one) => one.role).join() === 'user,agent,user,agent' && messages[1].tool_calls.length > 0;
         export const books = (conversation) => conversation.turns.length > 1 && conversation.tool_calls.some((call) => call.name === 'book');",
    )
}

const FRIENDLY: &str = "The agent is friendly";

fn case_file_suite(cases: Vec<Value>) -> String {
    let criteria = json!({
        "friendly": FRIENDLY,
        "talks": {"match_messages": "scripts:code.talks"},
        "books": {"match": "scripts:code.books"},
    });
    let whole = |case: Value| {
        let mut whole = json!({
            "classify_topics": "triggers",
            "decide_topics": "always",
            "criteria": criteria,
            "topics": {"begin": {"characteristic": "It begins"}, "end": {"triggers": [{"on_user_match": "leave"}]}},
            "graph": {"begin": "end", "end": null},
        });
        for (key, value) in case.as_object().unwrap() {
            whole[key] = value.clone();
        }
        whole.to_string()
    };
    cases.into_iter().map(whole).collect::<Vec<_>>().join("\n---\n")
}

fn typescript_file(tests: &str) -> String {
    format!(
        "{IMPORTS}
         criterion('friendly', '{FRIENDLY}');
         criterion('talks', {{ matchMessages: (messages) => messages.map((one) => one.role).join() === 'user,agent,user,agent' && messages[1].toolCalls.length > 0 }});
         criterion('books', {{ match: (conversation) => conversation.turns.length > 1 && conversation.hasToolCall('book') }});
         topic('begin', {{ characteristic: 'It begins' }});
         topic('end', {{ triggers: [{{ onUserMatch: /leave/ }}] }});
         const own = {{ classifyTopics: 'triggers', decideTopics: 'always' }};
         {tests}"
    )
}

fn declare_topics(group: &mut Group) {
    group.classify_topics(ClassifyTopics::Triggers).decide_topics(DecideTopics::Always);
    group.criterion("friendly", FRIENDLY);
    group.criterion("talks", "").matches_messages(|messages| {
        let is_user: Vec<bool> = messages.iter().map(Message::is_user).collect();
        is_user == [true, false, true, false] && !messages[1].tool_calls().is_empty()
    });
    group
        .criterion("books", "")
        .matches(|conversation| conversation.turn_count() > 1 && conversation.has_tool_call("book"));
    group.topic("begin").characteristic("It begins");
    group.topic("end").trigger(on_user_match("leave"));
}

/// Results by front end, in the order of their names.
struct Recorded {
    data: Vec<Value>,
    typescript: Vec<Value>,
    rust: Vec<Value>,
}

fn harness(project: &Project, report: &str) -> Harness {
    project.harness("matcher_parity.rs", &["-o", report, "--quiet"]).0
}

#[track_caller]
fn run_front_ends(data: &str, typescript: &str, rust: impl FnOnce(&mut Group)) -> Recorded {
    let (agent, judge) = (agent(), judge());
    let project = project(&agent, &judge).file("a.test.yaml", data).file("a_test.ts", typescript);
    let [of_data, of_typescript] = ["a.test.yaml", "a_test.ts"].map(|suite| {
        // Hundreds of checks with one judge each are slow on a busy machine.
        let output = project.command(&["test", "-o", "report.json", suite]).timeout(4 * TEST_TIMEOUT).run();
        let report = project.workspace.read_json("report.json");
        (output, report)
    });
    let code = harness(&project, "rust.json").run(rust);
    let codes = (of_data.0.code, of_typescript.0.code);
    assert_eq!(codes, (i32::from(code), i32::from(code)), "{}\n{}", of_data.0, of_typescript.0);
    let rust = project.workspace.read_json("rust.json");
    let results = |report: &Value| {
        let mut results = report["results"].as_array().unwrap().clone();
        results.sort_by_key(|result| title(result).to_string());
        results
    };
    Recorded { data: results(&of_data.1), typescript: results(&of_typescript.1), rust: results(&rust) }
}

impl Recorded {
    /// Asserts that all three have this number of results and agree.
    #[track_caller]
    fn assert_all_same(&self, count: usize) {
        assert_eq!((self.data.len(), self.typescript.len(), self.rust.len()), (count, count, count));
        for ((data, typescript), rust) in self.data.iter().zip(&self.typescript).zip(&self.rust) {
            let [data, typescript, rust] =
                [data, typescript, rust].map(|result| unordered(&comparable(result)));
            assert_same(&typescript, &rust);
            assert_same(&data, &rust);
        }
    }
}

/// Soft evaluation of every matcher and its negation, on each trace and scope.
#[test]
fn matchers_agree_as_soft_checks() {
    let (mut cases, mut tests) = (Vec::new(), String::new());
    for [first, second] in USER_TEXTS {
        for scope in SCOPES {
            let name = format!("{first} {scope:?}");
            let measured: Vec<Value> = entries_with_negation()
                .iter()
                .flat_map(|(entry, negated)| match entry.data(*negated, scope == Scope::Conversation) {
                    Value::Array(several) => several,
                    one => vec![one],
                })
                .collect();
            let of_typescript =
                |entry: &MatcherEntry, negated: bool| match (scope, entry.of_topic[usize::from(negated)]) {
                    (Scope::Visit, Some(own)) => own.to_string(),
                    (Scope::Visit, None) => match entry.data(negated, false) {
                        Value::Array(several) => {
                            several.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
                        }
                        one => one.to_string(),
                    },
                    _ => {
                        let subject = if scope == Scope::Turn { "agent" } else { "conversation" };
                        let not = if negated { ".not" } else { "" };
                        format!("evaluate({subject}){not}.{};", entry.typescript)
                    }
                };
            let written: Vec<String> = entries_with_negation()
                .iter()
                .map(|(entry, negated)| of_typescript(entry, *negated))
                .collect();
            let graph = "expectConversationTo({ begin: 'end', end: null });";
            let said = format!("user.says('{first}'); user.says('{second}');");
            let quoted = json!(name);
            let turns = json!([{"user": first}, {"user": second}]);
            let mut case = json!({"name": name, "turns": turns});
            match scope {
                Scope::Turn => case["turns"][1]["evaluate"] = measured.into(),
                Scope::Conversation => case["evaluate"] = measured.into(),
                Scope::Visit => {
                    case["turns"].as_array_mut().unwrap().push(json!({"user": "leave"}));
                    case["topics"] = json!({
                        "begin": {"characteristic": "It begins", "evaluate": measured},
                        "end": {"triggers": [{"on_user_match": "leave"}]},
                    });
                }
            }
            cases.push(case);
            tests += &match scope {
                Scope::Visit => format!(
                    "describe('visits', () => {{\n  topic('begin', {{ characteristic: 'It begins', evaluate: [\n{}\n] }});\n  it({quoted}, own, () => {{ {graph} {said} user.says('leave'); }});\n}});\n",
                    written.join(",\n")
                ),
                _ => format!("it({quoted}, own, () => {{ {graph} {said}\n{} }});\n", written.join("\n")),
            };
        }
    }
    let recorded = run_front_ends(&case_file_suite(cases), &typescript_file(&tests), |s| {
        declare_topics(s);
        for [first, second] in USER_TEXTS {
            for scope in SCOPES {
                let held = move |t: Test| async move {
                    t.expect_conversation_to(graph! { begin => end, end });
                    t.user.says(first).await;
                    t.user.says(second).await;
                    for (MatcherEntry { rust, .. }, negated) in entries_with_negation() {
                        match (scope, negated) {
                            (Scope::Turn, false) => {
                                evaluate!(t.agent, AnyMatcher((rust.of_agent)()));
                            }
                            (Scope::Turn, true) => {
                                evaluate!(t.agent, not(AnyMatcher((rust.of_agent)())));
                            }
                            (Scope::Conversation, false) => {
                                evaluate!(t.conversation, AnyMatcher((rust.of_conversation)()));
                            }
                            (Scope::Conversation, true) => {
                                evaluate!(t.conversation, not(AnyMatcher((rust.of_conversation)())));
                            }
                            (Scope::Visit, _) => {}
                        }
                    }
                    if scope == Scope::Visit {
                        t.user.says("leave").await;
                    }
                };
                s.describe("measured", |g| {
                    if scope == Scope::Visit {
                        let topic = g.topic("begin").characteristic("It begins");
                        for (entry, negated) in entries_with_negation() {
                            (entry.rust.of_topic)(topic, negated);
                        }
                    }
                    g.it(format!("{first} {scope:?}"), async move |t| held(t).await);
                });
            }
        }
    });
    recorded.assert_all_same(USER_TEXTS.len() * SCOPES.len());
    assert_every_matcher_passes_and_fails(&recorded.rust);
}

/// Parts of the descriptions of assertions that need an MCP server of the test, which these conversations do not have.
/// The tests of MCP servers cover both of their results.
const ABOUT_SERVERS: [&str; 2] = ["after a fault", "satisfy the input schema"];

/// Every assertion passes on some trace and fails on another, so no comparison is trivial.
#[track_caller]
fn assert_every_matcher_passes_and_fails(results: &[Value]) {
    let mut came_to: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for result in results {
        let visits = result["topic_visits"].as_array().unwrap().iter();
        let turns = result["turns"].as_array().unwrap().iter();
        let own = visits
            .chain(turns)
            .chain([result])
            .flat_map(|of| of["assertions"].as_array().cloned().unwrap_or_default());
        // Undecidable checks, such as unreported tokens, have no result.
        for check in own.filter(|check| check["error"].is_null()) {
            let expected = check["expected"].as_str().unwrap().to_string();
            came_to.entry(expected).or_default().insert(check["passed"] == true);
        }
    }
    let constant: Vec<&String> = came_to
        .iter()
        .filter(|(name, came_to)| came_to.len() < 2 && !ABOUT_SERVERS.iter().any(|part| name.contains(part)))
        .map(|(name, _)| name)
        .collect();
    assert!(constant.is_empty(), "always the same: {constant:#?}");
}

/// Hard assertions end and fail a test with the same message.
#[test]
fn matchers_agree_on_failures() {
    let name =
        |number: usize, negated: bool| format!("{number:03} {}", if negated { "not" } else { "holds" });
    // Without a fault in the case, a case file with this assertion is refused.
    let entries = || {
        let all = entries_with_negation().into_iter();
        all.filter(|(entry, _)| entry.yaml["type"] != "after_fault")
    };
    let (mut cases, mut tests) = (Vec::new(), String::new());
    for (number, (entry, negated)) in entries().enumerate() {
        let name = name(number, negated);
        let asserted = entry.data(negated, false);
        cases.push(json!({"name": name, "turns": [{"user": "red 1", "assert": asserted}]}));
        let not = if negated { ".not" } else { "" };
        tests += &format!(
            "it({}, own, () => {{ expectConversationTo({{ begin: 'end', end: null }}); user.says('red 1'); expect(agent){not}.{}; }});\n",
            json!(name),
            entry.typescript
        );
    }
    let count = cases.len();
    let recorded = run_front_ends(&case_file_suite(cases), &typescript_file(&tests), |s| {
        declare_topics(s);
        for (number, (entry, negated)) in entries().enumerate() {
            let rust = entry.rust;
            s.it(name(number, negated), async move |t| {
                t.expect_conversation_to(graph! { begin => end, end });
                t.user.says("red 1").await;
                match negated {
                    true => expect!(t.agent, not(AnyMatcher((rust.of_agent)()))),
                    false => expect!(t.agent, AnyMatcher((rust.of_agent)())),
                }
            });
        }
    });
    let statuses: BTreeSet<&str> =
        recorded.rust.iter().map(|result| result["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, BTreeSet::from(["failed", "passed"]));
    recorded.assert_all_same(count);
}

/// Matcher names in the table.
fn matcher_names(of: impl Fn(&MatcherEntry) -> Vec<String>) -> BTreeSet<String> {
    matchers().iter().flat_map(of).collect()
}

/// Every named matcher of a front end must be in the table, so that new matchers are compared too.
#[test]
fn every_matcher_is_covered() {
    let project = Project::empty();
    let schema: Value =
        serde_json::from_str(&project.workspace.command(HOTSEAT, &["schema", "suite"]).run().stdout).unwrap();
    let shapes = schema["$defs"].as_object().unwrap().values().map(|shape| &shape["properties"]);
    let typed = shapes.filter(|properties| properties["negate"].is_object());
    let types: BTreeSet<String> =
        typed.filter_map(|properties| Some(properties["type"]["const"].as_str()?.to_string())).collect();
    let of_data = matcher_names(|entry| {
        let several = entry.yaml.as_array().cloned().unwrap_or_else(|| vec![entry.yaml.clone()]);
        several.iter().map(|one| one["type"].as_str().unwrap().to_string()).collect()
    });
    // Judges and script functions of the project return arbitrary results.
    let free = ["agent", "script"].map(str::to_string);
    assert_eq!(types, of_data.into_iter().chain(free).collect());

    let declared = include_str!("../../../hotseat-engine/src/typescript/hotseat.d.ts");
    let own = declared
        .split("interface ConversationMatchers<Judged> {")
        .nth(1)
        .unwrap()
        .split("\n  }")
        .next()
        .unwrap();
    let methods = own.lines().filter_map(|line| line.trim().strip_prefix("to")?.split_once('('));
    let of_typescript: BTreeSet<String> = methods.map(|(name, _)| format!("to{name}")).collect();
    let before = |text: &str| text.split('(').next().unwrap().trim().to_string();
    let mut known = matcher_names(|entry| vec![before(&entry.typescript)]);
    // Requires a simulated user; compared in its own tests.
    known.insert("toHaveAchievedStatedGoal".to_string());
    assert_eq!(of_typescript, known);

    let exported = include_str!("../../../hotseat/src/dsl/matcher/mod.rs");
    let of_agent = exported.split("pub use agent_matchers::{").nth(1).unwrap().split('}').next().unwrap();
    let functions = |list: &str| {
        let names = list.split(',').map(str::trim).map(str::to_string);
        names.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())).collect::<Vec<_>>()
    };
    let of_rust: BTreeSet<String> = functions(of_agent)
        .into_iter()
        .chain(["matches", "matches_any", "contains", "contains_any"].map(str::to_string))
        .collect();
    let mut known = matcher_names(|entry| vec![before(entry.rust.written)]);
    // The first requires a simulated user; the second is a test function without a type in case files.
    known.extend(["achieve_stated_goal", "satisfies"].map(str::to_string));
    assert_eq!(of_rust, known);
}

/// Every front end rejects meaningless assertions without deciding them.
#[test]
fn empty_assertions_are_rejected_everywhere() {
    let refused: Vec<(Value, &str, RustMatcher)> = vec![
        (json!({"type": "regex", "pattern": ""}), "toMatch('')", rust!(matches(""))),
        (json!({"type": "regex", "pattern": "(?:)"}), "toMatch(new RegExp(''))", rust!(matches("(?:)"))),
        (json!({"type": "regex", "pattern": "a|"}), "toMatch(/a|/)", rust!(matches("a|"))),
        (
            json!({"type": "regex", "pattern": ["a", ""]}),
            "toMatchAny(/a/, '')",
            rust!(matches_any(["a", ""])),
        ),
        (json!({"type": "regex", "pattern": []}), "toMatch()", rust!(matches(Vec::<String>::new()))),
        (json!({"type": "regex", "pattern": "(?=a)"}), "toMatch(/(?=a)/)", rust!(matches("(?=a)"))),
        (json!({"type": "regex", "pattern": "(a)\\1"}), r"toMatch(/(a)\1/)", rust!(matches(r"(a)\1"))),
        (
            json!({"type": "regex", "pattern": ["a", "b"], "negate": true}),
            "not.toMatch(/a/, /b/)",
            rust!(not(matches(["a", "b"]))),
        ),
        (
            json!({"type": "regex", "pattern": ["red", "gone"], "negate": true}),
            "not.toHold({ type: 'regex', pattern: ['red', 'gone'] })",
            rust!(not(holds(json!({"type": "regex", "pattern": ["red", "gone"]})))),
        ),
        (
            json!({"type": "value", "of": "tool_names", "contains": ["a", "b"], "negate": true}),
            "not.toHold({ type: 'value', of: 'tool_names', contains: ['a', 'b'] })",
            rust!(not(holds(json!({"type": "value", "of": "tool_names", "contains": ["a", "b"]})))),
        ),
        (json!({"type": "contains", "value": ""}), "toContain('')", rust!(contains(""))),
        (json!({"type": "satisfy", "criteria": ""}), "toSatisfy('')", rust!(satisfy(""))),
        (json!({"type": "satisfy", "criteria": " "}), "toSatisfy(' ')", rust!(satisfy(" "))),
        (json!({"type": "satisfy", "criteria": []}), "toSatisfy()", rust!(satisfy(Vec::<String>::new()))),
        (
            json!({"type": "satisfy", "criteria": "freindly"}),
            "toSatisfy('freindly')",
            rust!(satisfy("freindly")),
        ),
        (json!({"type": "goal", "goal": ""}), "toHaveAchievedGoal('')", rust!(achieve_goal(""))),
        (json!({"type": "goal", "goal": " "}), "toHaveAchievedGoal(' ')", rust!(achieve_goal(" "))),
        (json!({"type": "goal"}), "toHaveAchievedStatedGoal()", rust!(achieve_stated_goal())),
        (json!({"type": "intent", "intent": ""}), "toHaveIntent('')", rust!(intent(""))),
        (
            json!({"type": "grounded", "types": []}),
            "toBeGroundedIn([])",
            rust!(grounded_in(Vec::<String>::new())),
        ),
        (json!({"type": "grounded", "types": [""]}), "toBeGroundedIn([''])", rust!(grounded_in([""]))),
        (json!({"type": "claims", "forbid": []}), "toClaim([])", rust!(claim(Vec::<String>::new()))),
        (json!({"type": "topic", "name": "begn"}), "toBeInTopic('begn')", rust!(in_topic("begn"))),
        (json!({"type": "reached_topic", "name": ""}), "toHaveReachedTopic('')", rust!(reached_topic(""))),
        (json!({"type": "tool_called", "name": ""}), "toCallTool('')", rust!(call_tool(""))),
        (
            json!({"type": "tool_called", "name": "book", "where": {"people": {"one_of": []}}}),
            "toCallTool('book', { people: oneOf() })",
            rust!(call_tool("book").with("people", one_of(Vec::<i32>::new()))),
        ),
        (
            json!({"type": "tool_called", "name": "book", "where": {"people": {"at_least": null}}}),
            "toCallTool('book', { people: gte(NaN) })",
            rust!(call_tool("book").with("people", ge(f64::NAN))),
        ),
        (
            json!({"type": "tool_called", "name": "book", "where": {"people": {}}}),
            "toCallTool('book', { people: undefined })",
            rust!(call_tool("book").with("people", f64::NAN)),
        ),
        (
            json!({"type": "tool_called", "name": "book", "where": {"room": {"contains": ""}}}),
            "toCallTool('book', { room: new RegExp('') })",
            rust!(call_tool("book").with("room", contains(""))),
        ),
    ];
    let (agent, judge) = (agent(), judge());
    let project = project(&agent, &judge);
    let mut tests = String::new();
    for (number, (data_of, typescript_of, _)) in refused.iter().enumerate() {
        let case = json!({"name": "x", "turns": [{"user": "red 1", "evaluate": data_of}]});
        project.workspace.file("a.test.yaml", &case_file_suite(vec![case]));
        let output = project.hotseat(&["test", "a.test.yaml"]);
        assert_eq!(output.code, 2, "{data_of}\n{output}");
        tests += &format!(
            "it('{number:03}', own, () => {{ expectConversationTo({{ begin: 'end', end: null }}); user.says('red 1'); evaluate(agent).{typescript_of}; }});\n"
        );
    }
    project.workspace.file("a_test.ts", &typescript_file(&tests));
    let of_typescript = project.test(&["a_test.ts"]);
    let code = harness(&project, "rust.json").run(|s| {
        declare_topics(s);
        for (number, (.., rust)) in refused.iter().enumerate() {
            let rust = rust.clone();
            s.it(format!("{number:03}"), async move |t| {
                t.expect_conversation_to(graph! { begin => end, end });
                t.user.says("red 1").await;
                evaluate!(t.agent, AnyMatcher((rust.of_agent)()));
            });
        }
    });
    assert_eq!(code, 1);
    let of_rust = project.workspace.read_json("rust.json");
    for (number, (_, typescript_of, rust)) in refused.iter().enumerate() {
        for (report, written) in [(&of_typescript.report, *typescript_of), (&of_rust, rust.written)] {
            let results = report["results"].as_array().unwrap();
            let result = results.iter().find(|result| title(result) == format!("{number:03}")).unwrap();
            assert_eq!(
                (&result["status"], &result["failure"]["fault"]),
                (&json!("failed"), &json!("test")),
                "{written}: {result:#}"
            );
        }
    }
}
