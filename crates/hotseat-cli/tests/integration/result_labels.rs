//! Every output says with the same word, in the same colour, whether the agent, the test, a role or the machine is at fault.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use hotseat_engine::run::{CaseOutcome, RunEvent, RunSettings, RunSummary};
use hotseat_report::reporters::{
    ConsoleOptions, ConsoleReporter, EventsReporter, GitHubReporter, ReportFormat, Reporter, open_report,
};
use hotseat_report::store::RunStore;
use hotseat_testkit::FakeAgent;
use hotseat_trace::{AttemptFailure, FailureKind, ResultLabel, Verdict};
use serde_json::{Value, json};

use crate::common::{Project, echo_agent, unreachable_address};

/// Reason of all failures.
const REASON: &str = "the reason";

/// Output in memory.
#[derive(Clone, Default)]
struct SharedOutput(Arc<Mutex<Vec<u8>>>);

impl SharedOutput {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("UTF-8")
    }
}

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A saved run of one case with one turn, whose outcome can be changed.
struct SavedRun {
    project: Project,
    setting: Arc<RunSettings>,
    store: RunStore,
}

impl SavedRun {
    fn new() -> SavedRun {
        let agent = echo_agent();
        let project = Project::with_agent(&agent).suite("a", "name: a\nturns: [{ user: hi }]\n");
        project.test(&[]);
        let store = RunStore::open(&project.workspace.path(".hotseat/runs.db")).expect("a store");
        let setting = store.find("last").expect("a run").metadata.setting;
        SavedRun { project, setting, store }
    }

    /// Returns the outcome with another verdict.
    fn outcome(&self, verdict: &Verdict) -> CaseOutcome {
        let head = self.store.find("last").expect("a run");
        let mut outcome =
            self.store.outcomes(&head).expect("cases").next().expect("a case").expect("readable");
        outcome.verdict = verdict.clone();
        Arc::get_mut(&mut outcome.attempts[0]).expect("not shared").result.verdict = verdict.clone();
        outcome
    }

    /// Passes a run with this verdict to a reporter.
    fn report(&self, reporter: &mut dyn Reporter, verdict: &Verdict) {
        let outcome = self.outcome(verdict);
        let mut summary = RunSummary::default();
        summary.count_outcome(&outcome);
        for event in [
            RunEvent::Started { total: 1, parallel: 1, at: 0 },
            RunEvent::CaseEnded(Arc::new(outcome)),
            RunEvent::Ended(Box::new(summary)),
        ] {
            reporter.report(&event).expect("written");
        }
    }

    /// Returns the text of a report file.
    fn file(&self, format: ReportFormat, verdict: &Verdict) -> String {
        let path = self.project.workspace.path("report");
        let file = File::create(&path).expect("a file");
        let mut reporter =
            open_report(file.into(), format, "report", self.setting.clone()).expect("a report");
        self.report(&mut *reporter, verdict);
        drop(reporter);
        std::fs::read_to_string(&path).expect("text")
    }

    /// Returns the output of the console.
    fn console(&self, color: bool, verdict: &Verdict) -> String {
        let out = SharedOutput::default();
        let options = ConsoleOptions { color, width: 100, progress: false, verbose: false, wraps: true };
        self.report(&mut ConsoleReporter::new(out.clone(), options, self.setting.clone()), verdict);
        out.text()
    }
}

/// Labels other than `expected` that a text contains as a whole, in this form.
fn other_labels(
    text: &str,
    expected: ResultLabel,
    form: impl Fn(ResultLabel) -> String,
) -> Vec<&'static str> {
    let others = ResultLabel::ALL.iter().copied().filter(|label| *label != expected);
    others.filter(|label| text.contains(&form(*label))).map(ResultLabel::name).collect()
}

#[test]
fn every_reporter_uses_the_word_and_the_color_of_every_kind_of_failure() {
    let saved = SavedRun::new();
    for kind in FailureKind::ALL.iter().copied() {
        let label = ResultLabel::from(kind.fault());
        let word = label.name();
        let verdict = Verdict::failed(AttemptFailure::new(kind, REASON));
        let name = kind.name();

        let console = saved.console(true, &verdict);
        let painted =
            |label: ResultLabel| format!("\x1b[{}m{}\x1b[0m", label.color().ansi_code(), label.capitals());
        let case = console.split("  Summary").next().expect("the case");
        assert!(case.contains(&painted(label)), "{name}: {console}");
        assert_eq!(other_labels(case, label, painted), [""; 0], "{name}: {console}");
        let plain = saved.console(false, &verdict);
        assert!(plain.contains(label.capitals()) && !plain.contains('\x1b'), "{name}: {plain}");
        let counted = label == ResultLabel::Failed || plain.contains(&format!("             1 {word}\n"));
        assert!(counted, "{name}: {plain}");

        let json: Value = serde_json::from_str(&saved.file(ReportFormat::Json, &verdict)).expect("JSON");
        let labels = (&json["results"][0]["label"], &json["summary"]["labels"]);
        assert_eq!(labels, (&json!(word), &json!({ word: 1 })), "{name}");
        let lines = saved.file(ReportFormat::JsonLines, &verdict);
        let result = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let found: Vec<Value> =
            result.map(|line| line["label"].clone()).filter(|label| !label.is_null()).collect();
        assert_eq!(found, [json!(word)], "{name}");
        let out = SharedOutput::default();
        saved.report(&mut EventsReporter::new(out.clone(), saved.setting.clone()), &verdict);
        assert!(out.text().contains(&format!("\"label\":\"{word}\"")), "{name}");

        let junit = saved.file(ReportFormat::JUnit, &verdict);
        assert!(junit.contains(&format!("type=\"{word}: {name}\"")), "{name}: {junit}");
        assert!(junit.contains(&format!("message=\"{word}: {REASON}\"")), "{name}: {junit}");

        let markdown = saved.file(ReportFormat::Markdown, &verdict);
        let written = name.replace('_', "&#95;");
        assert!(
            markdown.contains(&format!(" · **{word}** · <code>{written}</code> · ")),
            "{name}: {markdown}"
        );
        assert!(markdown.contains(&format!("**1 {word}**")), "{name}: {markdown}");

        let page = saved.file(ReportFormat::Html, &verdict);
        assert!(page.contains(&format!("\"label\":\"{word}\"")), "{name}");
        assert!(page.contains(&format!("\"{word}\":\"{}\"", label.color().name())), "{name}");
        assert!(page.contains(&format!(".{} {{ --label: ", label.color().name())), "{name}");

        let out = SharedOutput::default();
        saved.report(&mut GitHubReporter::new(out.clone(), None), &verdict);
        assert!(out.text().contains(&format!("::{word}: {REASON}")), "{name}: {}", out.text());
    }
}

#[test]
fn every_kind_of_failure_is_in_the_row_of_its_word_in_the_documentation() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-it-works.md");
    let page = std::fs::read_to_string(folder).expect("the page");
    for kind in FailureKind::ALL {
        let label = ResultLabel::from(kind.fault());
        let row = format!("| `{}` | {} |", label.name(), label.color().name());
        let row = page.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("{row}: {page}"));
        assert!(row.contains(&format!("`{}`", kind.name())), "{}: {row}", kind.name());
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `") && line.contains(&format!("`{}`", kind.name())));
        assert_eq!(rows.count(), 1, "{}", kind.name());
    }
}

/// A case for each label: its id and its word.
const LABELS: [(&str, ResultLabel); 7] = [
    ("good", ResultLabel::Passed),
    ("wrong", ResultLabel::Failed),
    ("hook", ResultLabel::TestError),
    ("judge", ResultLabel::JudgeError),
    ("simulator", ResultLabel::SimulatorError),
    ("dead", ResultLabel::InfrastructureError),
    ("skipped", ResultLabel::Skipped),
];

fn project() -> (FakeAgent, FakeAgent, Project) {
    let agent = echo_agent();
    let role = FakeAgent::with_text("no JSON");
    let config = format!(
        "agents:\n  live: {{ endpoint: '{agent}' }}\n  dead: {{ endpoint: '{}' }}\n  role: {{ endpoint: '{role}' }}\ntarget: live\n",
        unreachable_address()
    );
    let cases = [
        json!({"id": "good", "input": "hi", "assert": [{"type": "contains", "value": "hi"}]}),
        json!({"id": "wrong", "input": "hi", "assert": [{"type": "contains", "value": "bye"}]}),
        json!({"id": "hook", "input": "hi", "hooks": [{"cmd": ["false"]}]}),
        json!({"id": "judge", "input": "hi", "assert": [{"type": "agent", "use": "agents:role", "value": "polite"}]}),
        json!({"id": "simulator", "turns": [{"input": "hi"}], "simulator": {"use": "dead"},
            "checkpoints": [{"id": "x", "assertion": {"type": "contains", "value": "nowhere"}}]}),
        json!({"id": "dead", "input": "hi", "agent": "dead"}),
        json!({"id": "skipped", "input": "hi", "skip": "later"}),
    ];
    let project = Project::with_config(&config).cases(&cases);
    (agent, role, project)
}

#[test]
fn a_run_with_every_label_is_counted_by_them() {
    let (_agent, _role, project) = project();
    let tested = project.test(&["--color", "always"]);
    for (id, label) in LABELS {
        assert_eq!(tested.case(id)["label"], label.name(), "{id}: {}", tested.output);
        let console = &tested.output.stdout;
        let begin = console.find(&format!("► [{id}]")).unwrap_or_else(|| panic!("{id}: {console}"));
        let case = console[begin + "► ".len()..].split("► ").next().expect("a case");
        let painted = format!("\x1b[{}m{}\x1b[0m", label.color().ansi_code(), label.capitals());
        assert!(case.contains(&painted), "{id}: {painted:?} is not in {case:?}");
    }
    let counts = json!({
        "passed": 1, "failed": 1, "test error": 1, "judge error": 1, "simulator error": 1,
        "infrastructure error": 1, "skipped": 1,
    });
    assert_eq!(tested.report["summary"]["labels"], counts);
    let listed = "1 passed, 1 failed, 1 test error, 1 judge error, 1 simulator error, 1 infrastructure error, 1 skipped";
    let runs = project.command(&["runs"]).env("COLUMNS", "300").run();
    assert!(runs.stdout.contains(listed), "{runs}");
    let runs = project.hotseat(&["runs", "--json"]);
    let run: Value = serde_json::from_str(runs.stdout.lines().next().expect("a run")).expect("JSON");
    assert_eq!(run["labels"], counts);
    let shown = project.hotseat(&["show", "last", "--color", "never"]);
    assert!(shown.stdout.contains("             1 judge error\n"), "{shown}");
}

#[test]
fn a_comparison_names_the_labels_of_invalid_attempts() {
    let (_agent, _role, project) = project();
    project.test(&[]);
    project.test(&[]);
    let compared = project.command(&["compare", "last~1", "last"]).env("COLUMNS", "300").run();
    let note = "4 invalid attempts in the second run, not counted: 1 test error, 1 judge error, 1 simulator error, 1 infrastructure error";
    assert!(compared.stdout.contains(note), "{compared}");
}
