//! Every matcher, in every front-end: what a case file, a test in TypeScript and one in Rust record of the same assertion
//! about the same conversation is the same, and each front-end has all of them.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hotseat::dsl::prelude::*;
use hotseat::dsl::{Harness, Output, World};
use hotseat_testkit::agui::Run;
use hotseat_testkit::{FakeAgent, Request};
use serde_json::{Value, json};

use common::records::{same, title, told, unordered};
use common::typescript::IMPORTS;
use common::{HOTSEAT, LONG, Project};

/// Something that can be asserted, as each front-end writes it.
struct Entry {
    yaml: Value,
    typescript: String,
    rust: Rust,
    /// What a topic in TypeScript says for it, and for its contrary, where it has words of its own for that.
    of_topic: [Option<&'static str>; 2],
    negatable: bool,
}

/// Makes a matcher anew for each use.
type MakesMatcher<S> = Arc<dyn Fn() -> Box<dyn Matcher<S>> + Send + Sync>;

/// Asserts a matcher of a topic, softly or not.
type AssertsOfTopic = Arc<dyn Fn(&mut Topic, bool) + Send + Sync>;

/// A matcher of Rust, of all that it can be asserted of.
#[derive(Clone)]
struct Rust {
    /// As it is written.
    written: &'static str,
    of_agent: MakesMatcher<Agent>,
    of_conversation: MakesMatcher<Conversation>,
    of_topic: AssertsOfTopic,
}

/// A matcher whose type is not known.
struct Any<S: ?Sized>(Box<dyn Matcher<S>>);

impl<S: ?Sized> Matcher<S> for Any<S> {
    fn assertion(&self, subject: &S) -> Assertion {
        self.0.assertion(subject)
    }
}

macro_rules! rust {
    ($matcher:expr) => {
        Rust {
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

fn entry(yaml: Value, typescript: &str, rust: Rust) -> Entry {
    let typescript = typescript.to_string();
    let negatable = !yaml.is_array() && (yaml["match"] == "any" || !yaml["pattern"].is_array());
    Entry { yaml, typescript, rust, of_topic: [None, None], negatable }
}

impl Entry {
    fn in_topic(self, holds: &'static str, contrary: Option<&'static str>) -> Entry {
        Entry { of_topic: [Some(holds), contrary], ..self }
    }

    /// What case files say, of whole conversations with all turns where the others look at all.
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

/// Assertions that only case files have by name; programs hold them as data.
fn held() -> Vec<Entry> {
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
        {"type": "topic_history", "value": ["begin"]},
        {"type": "value", "of": "turn_count", "equals": 2},
        {"type": "max_tokens", "value": 10},
        {"type": "max_cost", "value": 10},
        {"type": "max_tool_calls", "value": 1},
        {"type": "regex", "pattern": "Blue", "turns": "all"},
    ]
}

/// Every matcher of the front-ends, with one pattern and with several, one name and several.
fn matchers() -> Vec<Entry> {
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
        // Which of several criteria must not hold nobody can tell.
        entry.negatable &= !entry.yaml["criteria"].is_array();
    }
    all.extend(held());
    all
}

/// Each with its contrary, where it has one.
fn assertions() -> Vec<(Entry, bool)> {
    let mut all: Vec<(Entry, bool)> = matchers().into_iter().map(|entry| (entry, false)).collect();
    all.extend(matchers().into_iter().filter(|entry| entry.negatable).map(|entry| (entry, true)));
    all
}

/// What the agent says and calls in the first two turns of a conversation: some assertions hold, of one turn or of both.
fn agent() -> FakeAgent {
    FakeAgent::start(|request: &Request| {
        let run = Run::of(request).started();
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

/// A judge whose judgement depends on whether a blue room was spoken of in what it is shown.
fn judge() -> FakeAgent {
    FakeAgent::start(|request: &Request| {
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
        Run::of(request).started().text(&answer.to_string()).finished()
    })
}

/// What the user says in the first two turns.
const TRACES: [[&str; 2]; 3] = [["blue 1", "blue 2"], ["red 1", "red 2"], ["mute 1", "leave mute 2"]];

/// What of a conversation assertions are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scope {
    Turn,
    Conversation,
    Visit,
}

const SCOPES: [Scope; 3] = [Scope::Turn, Scope::Conversation, Scope::Visit];

/// A project whose criteria code decides, in each front-end by a function of its own.
fn project(agent: &FakeAgent, judge: &FakeAgent) -> Project {
    let text = format!(
        "target: {{ endpoint: '{}' }}\nagents:\n  judge: {{ endpoint: '{}' }}\njudge: agents:judge\n",
        agent.url(),
        judge.url()
    );
    Project::with(&text).file(
        "src/code.ts",
        "export const talks = (messages) => messages.map((one) => one.role).join() === 'user,agent,user,agent' && messages[1].tool_calls.length > 0;
         export const books = (conversation) => conversation.turns.length > 1 && conversation.tool_calls.some((call) => call.name === 'book');",
    )
}

const FRIENDLY: &str = "The agent is friendly";

fn data(cases: Vec<Value>) -> String {
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

fn typescript(tests: &str) -> String {
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

fn declare(group: &mut Group) {
    group.classify_topics(ClassifyTopics::Triggers).decide_topics(DecideTopics::Always);
    group.criterion("friendly", FRIENDLY);
    group.criterion("talks", "").matches_messages(|messages| {
        let is_user: Vec<bool> = messages.iter().map(Message::is_user).collect();
        is_user == [true, false, true, false] && !messages[1].tool_calls.is_empty()
    });
    group
        .criterion("books", "")
        .matches(|conversation| conversation.turn_count() > 1 && conversation.has_tool_call("book"));
    group.topic("begin").characteristic("It begins");
    group.topic("end").trigger(on_user_match("leave"));
}

/// Results by the front-end that recorded them, in the order of their names.
struct Recorded {
    data: Vec<Value>,
    typescript: Vec<Value>,
    rust: Vec<Value>,
}

fn harness(project: &Project, report: &str) -> Harness {
    Harness {
        arguments: ["-o", report, "--quiet"].map(str::to_string).to_vec(),
        world: World {
            environment: Arc::default(),
            folder: project.workspace.path("."),
            color: false,
            width: 100,
            output: Output::Standard,
        },
        file: "every_matcher.rs",
    }
}

#[track_caller]
fn record(data: &str, typescript: &str, rust: impl FnOnce(&mut Group)) -> Recorded {
    let (agent, judge) = (agent(), judge());
    let project = project(&agent, &judge).file("a.test.yaml", data).file("a_test.ts", typescript);
    let [of_data, of_typescript] = ["a.test.yaml", "a_test.ts"].map(|suite| {
        // Hundreds of checks with a judge each take their time on a machine that is busy.
        let output = project.command(&["test", "-o", "report.json", suite]).timeout(4 * LONG).run();
        let report: Value = serde_json::from_str(&project.workspace.read("report.json")).unwrap();
        (output, report)
    });
    let code = harness(&project, "rust.json").run(rust);
    let codes = (of_data.0.code, of_typescript.0.code);
    assert_eq!(codes, (i32::from(code), i32::from(code)), "{}\n{}", of_data.0, of_typescript.0);
    let rust: Value = serde_json::from_str(&project.workspace.read("rust.json")).unwrap();
    let results = |report: &Value| {
        let mut results = report["results"].as_array().unwrap().clone();
        results.sort_by_key(|result| title(result).to_string());
        results
    };
    Recorded { data: results(&of_data.1), typescript: results(&of_typescript.1), rust: results(&rust) }
}

impl Recorded {
    /// All three are the same, and there are so many.
    #[track_caller]
    fn all_the_same(&self, count: usize) {
        assert_eq!((self.data.len(), self.typescript.len(), self.rust.len()), (count, count, count));
        for ((data, typescript), rust) in self.data.iter().zip(&self.typescript).zip(&self.rust) {
            let [data, typescript, rust] = [data, typescript, rust].map(|result| unordered(&told(result)));
            same(&typescript, &rust);
            same(&data, &rust);
        }
    }
}

/// What is measured of each trace in each scope: everything there is, and its contrary.
#[test]
fn everything_is_measured_alike() {
    let (mut cases, mut tests) = (Vec::new(), String::new());
    for [first, second] in TRACES {
        for scope in SCOPES {
            let name = format!("{first} {scope:?}");
            let measured: Vec<Value> = assertions()
                .iter()
                .flat_map(|(entry, negated)| match entry.data(*negated, scope == Scope::Conversation) {
                    Value::Array(several) => several,
                    one => vec![one],
                })
                .collect();
            let of_typescript =
                |entry: &Entry, negated: bool| match (scope, entry.of_topic[usize::from(negated)]) {
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
            let written: Vec<String> =
                assertions().iter().map(|(entry, negated)| of_typescript(entry, *negated)).collect();
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
    let recorded = record(&data(cases), &typescript(&tests), |s| {
        declare(s);
        for [first, second] in TRACES {
            for scope in SCOPES {
                let held = move |t: Test| async move {
                    t.expect_conversation_to(graph! { begin => end, end });
                    t.user.says(first).await;
                    t.user.says(second).await;
                    for (Entry { rust, .. }, negated) in assertions() {
                        match (scope, negated) {
                            (Scope::Turn, false) => {
                                evaluate!(t.agent, Any((rust.of_agent)()));
                            }
                            (Scope::Turn, true) => {
                                evaluate!(t.agent, not(Any((rust.of_agent)())));
                            }
                            (Scope::Conversation, false) => {
                                evaluate!(t.conversation, Any((rust.of_conversation)()));
                            }
                            (Scope::Conversation, true) => {
                                evaluate!(t.conversation, not(Any((rust.of_conversation)())));
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
                        for (entry, negated) in assertions() {
                            (entry.rust.of_topic)(topic, negated);
                        }
                    }
                    g.it(format!("{first} {scope:?}"), async move |t| held(t).await);
                });
            }
        }
    });
    recorded.all_the_same(TRACES.len() * SCOPES.len());
    every_one_holds_and_does_not(&recorded.rust);
}

/// Of each assertion some trace is an example, and another one a counter-example: one that always came to the same would
/// show nothing.
#[track_caller]
fn every_one_holds_and_does_not(results: &[Value]) {
    let mut came_to: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for result in results {
        let visits = result["topic_visits"].as_array().unwrap().iter();
        let turns = result["turns"].as_array().unwrap().iter();
        let own = visits
            .chain(turns)
            .chain([result])
            .flat_map(|of| of["assertions"].as_array().cloned().unwrap_or_default());
        // What nobody can decide, as tokens that nobody counts, comes to nothing.
        for check in own.filter(|check| check["error"].is_null()) {
            let expected = check["expected"].as_str().unwrap().to_string();
            came_to.entry(expected).or_default().insert(check["passed"] == true);
        }
    }
    let constant: Vec<&String> =
        came_to.iter().filter(|(_, came_to)| came_to.len() < 2).map(|(name, _)| name).collect();
    assert!(constant.is_empty(), "always the same: {constant:#?}");
}

/// What has to hold ends a test and fails it in the same words.
#[test]
fn everything_fails_alike() {
    let name =
        |number: usize, negated: bool| format!("{number:03} {}", if negated { "not" } else { "holds" });
    let (mut cases, mut tests) = (Vec::new(), String::new());
    for (number, (entry, negated)) in assertions().iter().enumerate() {
        let name = name(number, *negated);
        let asserted = entry.data(*negated, false);
        cases.push(json!({"name": name, "turns": [{"user": "red 1", "assert": asserted}]}));
        let not = if *negated { ".not" } else { "" };
        tests += &format!(
            "it({}, own, () => {{ expectConversationTo({{ begin: 'end', end: null }}); user.says('red 1'); expect(agent){not}.{}; }});\n",
            json!(name),
            entry.typescript
        );
    }
    let count = cases.len();
    let recorded = record(&data(cases), &typescript(&tests), |s| {
        declare(s);
        for (number, (entry, negated)) in assertions().into_iter().enumerate() {
            let rust = entry.rust;
            s.it(name(number, negated), async move |t| {
                t.expect_conversation_to(graph! { begin => end, end });
                t.user.says("red 1").await;
                match negated {
                    true => expect!(t.agent, not(Any((rust.of_agent)()))),
                    false => expect!(t.agent, Any((rust.of_agent)())),
                }
            });
        }
    });
    let statuses: BTreeSet<&str> =
        recorded.rust.iter().map(|result| result["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, BTreeSet::from(["failed", "passed"]));
    recorded.all_the_same(count);
}

/// Names of matchers that stand in the table.
fn names(of: impl Fn(&Entry) -> Vec<String>) -> BTreeSet<String> {
    matchers().iter().flat_map(of).collect()
}

/// What has a name in a front-end stands in the table, so that a matcher that is new in one of them is compared with the
/// others.
#[test]
fn every_matcher_of_every_front_end_is_compared() {
    let project = Project::empty();
    let schema: Value =
        serde_json::from_str(&project.workspace.command(HOTSEAT, &["schema", "suite"]).run().stdout).unwrap();
    let shapes = schema["$defs"].as_object().unwrap().values().map(|shape| &shape["properties"]);
    let typed = shapes.filter(|properties| properties["negate"].is_object());
    let types: BTreeSet<String> =
        typed.filter_map(|properties| Some(properties["type"]["const"].as_str()?.to_string())).collect();
    let of_data = names(|entry| {
        let several = entry.yaml.as_array().cloned().unwrap_or_else(|| vec![entry.yaml.clone()]);
        several.iter().map(|one| one["type"].as_str().unwrap().to_string()).collect()
    });
    // A judge of the project's own, and a function of a script: both say anything.
    let free = ["agent", "script"].map(str::to_string);
    assert_eq!(types, of_data.into_iter().chain(free).collect());

    let declared = include_str!("../../hotseat/src/typescript/hotseat.d.ts");
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
    let mut known = names(|entry| vec![before(&entry.typescript)]);
    // It needs a simulated user, whose tests compare it.
    known.insert("toHaveAchievedStatedGoal".to_string());
    assert_eq!(of_typescript, known);

    let exported = include_str!("../../hotseat/src/dsl/matcher/mod.rs");
    let of_agent = exported.split("pub use says::{").nth(1).unwrap().split('}').next().unwrap();
    let functions = |list: &str| {
        let names = list.split(',').map(str::trim).map(str::to_string);
        names.filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())).collect::<Vec<_>>()
    };
    let of_rust: BTreeSet<String> = functions(of_agent)
        .into_iter()
        .chain(["matches", "matches_any", "contains", "contains_any"].map(str::to_string))
        .collect();
    let mut known = names(|entry| vec![before(entry.rust.written)]);
    // The first needs a simulated user; the second is a function of the test, which has no type in a case file.
    known.extend(["achieve_stated_goal", "satisfies"].map(str::to_string));
    assert_eq!(of_rust, known);
}

/// What makes no sense is refused by each, and decides nothing.
#[test]
fn what_asserts_nothing_is_refused_by_all() {
    let refused: Vec<(Value, &str, Rust)> = vec![
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
        project.workspace.file("a.test.yaml", &data(vec![case]));
        let output = project.hotseat(&["test", "a.test.yaml"]);
        assert_eq!(output.code, 2, "{data_of}\n{output}");
        tests += &format!(
            "it('{number:03}', own, () => {{ expectConversationTo({{ begin: 'end', end: null }}); user.says('red 1'); evaluate(agent).{typescript_of}; }});\n"
        );
    }
    project.workspace.file("a_test.ts", &typescript(&tests));
    let of_typescript = project.test(&["a_test.ts"]);
    let code = harness(&project, "rust.json").run(|s| {
        declare(s);
        for (number, (.., rust)) in refused.iter().enumerate() {
            let rust = rust.clone();
            s.it(format!("{number:03}"), async move |t| {
                t.expect_conversation_to(graph! { begin => end, end });
                t.user.says("red 1").await;
                evaluate!(t.agent, Any((rust.of_agent)()));
            });
        }
    });
    assert_eq!(code, 1);
    let of_rust: Value = serde_json::from_str(&project.workspace.read("rust.json")).unwrap();
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
