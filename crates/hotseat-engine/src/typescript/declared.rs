//! Converts the tests that a file declares to cases.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Kind, SourceSpan, SourceText};
use hotseat_script::{ScriptContext, ScriptHost, ScriptLimits, thread};
use serde_json::Value;

use super::engine::{MODULE_NAME, TestFile};
use super::excerpts::{Declaration, DeclarationKind, TestExcerpts};
use super::keys::to_case_keys;
use super::program::TypeScriptTest;
use crate::cases::shape::CASE;
use crate::cases::{
    CaseProgram, CaseScenario, CheckVocabulary, DecodeSettings, GRAPH_TOPIC, Suite, TestCase, TestFocus,
    USER, check_group_keys, test_lines, validate_simulated_user, validate_topic,
};
use crate::scripts::{ScriptLibrary, ScriptSearchPath};
use crate::session::DrivenCase;
use hotseat_targets::recorder::SecretRedactor;

/// Time limit for a file to declare its tests.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

type Decoded = Result<DrivenCase, Diagnostics>;

/// Returns the tests of a file in order, each as a case or its errors. A file that cannot run, or has no
/// tests, is one error.
pub fn cases(
    suite: &Suite,
    library: &ScriptLibrary,
    places: &ScriptSearchPath,
    decoding: DecodeSettings<'_>,
) -> Vec<Decoded> {
    let declared = library.open_file(&suite.path, places).and_then(|(scripts, module)| {
        let folders = vec![suite.folder.clone(), places.root.clone(), PathBuf::new()];
        let file = TestFile { scripts, module, folders };
        collect_declarations(&file, library, decoding).map(|declared| (file, declared))
    });
    let (file, declared) = match declared {
        Ok(declared) => declared,
        Err(mistake) => return vec![Err(mistake.into())],
    };
    let unused = file.scripts.unused_tests(&file.module);
    if !unused.is_empty() {
        let refuse = |name: SourceSpan| {
            Diagnostic::new(format!(
                "the test function `{}` is not exported, so it does not run",
                name.text()
            ))
            .at(name)
            .help("write `export` before it, or give a helper another name")
        };
        return unused.into_iter().map(|name| Err(refuse(name).into())).collect();
    }
    if declared.is_empty() {
        let message = format!("no tests in {}", suite.shown);
        let help = "a test is `export function TestSomething(t) { … }`, or `it(\"does something\", () => { … })` of the module `hotseat`";
        return vec![Err(Diagnostic::new(message).help(help).into())];
    }
    let mut known: HashSet<String> = HashSet::new();
    let mut cases: Vec<Decoded> = Vec::with_capacity(declared.len());
    for test in declared {
        let case = test.case(&file, decoding);
        cases.push(case.and_then(|case| {
            if !known.insert(case.case.id.clone()) {
                let message = format!("another test in this file is called `{}`", case.case.id);
                return Err(Diagnostic::new(message)
                    .at(case.case.place.clone())
                    .help("give one of them another name")
                    .into());
            }
            Ok(case)
        }));
    }
    cases
}

/// Returns the sources of a test file and its imports, each after its path. Fails if the file cannot be read.
pub fn sources(
    suite: &Suite,
    library: &ScriptLibrary,
    places: &ScriptSearchPath,
) -> Result<Vec<String>, Diagnostic> {
    let (scripts, module) = library.open_file(&suite.path, places)?;
    Ok(scripts.sources(&module).into_iter().map(|(path, text)| format!("{path}\n{text}")).collect())
}

/// A test that a file declares.
struct DeclaredTest {
    kind: String,
    /// Index among the tests declared by `it` in the code that runs it, from 0.
    number: usize,
    /// The code that runs it, in place of the file, and its number there.
    excerpt: Option<(Arc<TestExcerpts>, usize)>,
    name: String,
    place: Option<SourceSpan>,
    /// Source text of its function.
    source: String,
    /// The line where the function ends.
    last_line: Option<u32>,
    focus: TestFocus,
    /// Scenario that the test is declared for.
    scenario: Option<CaseScenario>,
    /// The test as a case of a case file.
    written: Value,
}

/// Runs a file to collect its declarations.
fn collect_declarations(
    file: &TestFile,
    library: &ScriptLibrary,
    decoding: DecodeSettings<'_>,
) -> Result<Vec<DeclaredTest>, Diagnostic> {
    let limits = ScriptLimits { time: LOAD_TIMEOUT, ..ScriptLimits::default() };
    let (of, library) = (file.clone(), library.clone());
    let run = thread::run(LOAD_TIMEOUT, move |stop| {
        let hidden = ScriptHost::new()
            .function("ask", |_| Err("the session is not available while a file is loaded".into()))
            .function("wanted", |_| Ok(Value::Null));
        let mut context =
            ScriptContext::new(&of.scripts, limits, of.with_module(library.inspection_host(), hidden))?
                .with_stop(stop);
        context.run_entry(MODULE_NAME, "declared", &of.module, &[])
    });
    let found = run.and_then(|found| found).map_err(|error| {
        let mut wrong = error.diagnostic();
        // An error that ends a script has no place.
        if wrong.place.is_none() {
            wrong.message = format!("{}: {}", file.module.path(), wrong.message);
        }
        redact_diagnostic(wrong, decoding.redactor)
    })?;
    for stated in found["stated"].as_array().into_iter().flatten() {
        check_declaration(stated, file, &decoding.shared.vocabulary)?;
    }
    let excerpts = excerpts(&found, file).map(Arc::new);
    let code = FileCode::new(file);
    let tests = found["tests"].as_array().into_iter().flatten().enumerate();
    let mut all: Vec<DeclaredTest> = tests
        .map(|(number, one)| DeclaredTest::from_json(number, one, excerpts.as_ref(), &code, file))
        .collect();
    let line = |test: &DeclaredTest| test.place.as_ref().map(|place| (place.line(), place.column()));
    all.sort_by_cached_key(line);
    Ok(all)
}

/// Returns the code that each test needs, if others can be left out.
fn excerpts(found: &Value, file: &TestFile) -> Option<TestExcerpts> {
    let mut sources = file.scripts.sources(&file.module);
    let name = Path::new(file.module.path()).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    // A file that imports itself can use its exports without naming them.
    let imports_itself = sources.values().any(|text| text.contains(name));
    let entries = |key: &str| found[key].as_array().map(Vec::as_slice).unwrap_or_default();
    // A call in a function of the file could be repeated, also while a test runs: the functions of groups only.
    let offset = |one: &Value| {
        let groups = one["depth"].as_u64().and_then(|depth| usize::try_from(depth).ok())?;
        file.scripts.code_offset(&file.module, one["at"].as_str().unwrap_or_default(), groups + 1)
    };
    let tests = entries("tests").iter().map(|one| match one["kind"].as_str() {
        Some("test") => (one, DeclarationKind::Function),
        _ => (one, DeclarationKind::Test),
    });
    let groups = entries("groups").iter().map(|one| (one, DeclarationKind::Group));
    let hooks = entries("hooks").iter().map(|one| (one, DeclarationKind::Hook));
    let declarations = tests.chain(groups).chain(hooks).map(|(one, kind)| {
        let is_function = kind == DeclarationKind::Function;
        let source = one["source"].as_str().filter(|_| !is_function || !imports_itself);
        Declaration {
            kind,
            offset: if is_function { None } else { offset(one) },
            name: one["case"]["name"].as_str().unwrap_or_default(),
            source: source.unwrap_or_default(),
        }
    });
    let declarations: Vec<Declaration<'_>> = declarations.collect();
    sources.remove(file.module.path());
    let others: Vec<&str> = sources.values().map(String::as_str).collect();
    TestExcerpts::new(file.scripts.code(&file.module)?, &declarations, &others)
}

/// Validates a declared topic, simulated user or group, even if no test uses it.
fn check_declaration(
    stated: &Value,
    file: &TestFile,
    vocabulary: &CheckVocabulary,
) -> Result<(), Diagnostic> {
    let frames = file.scripts.frames(stated["at"].as_str().unwrap_or_default());
    let place = frames.into_iter().next().map(|frame| frame.place);
    if let (Some(options), Some(place)) = (stated.get("group"), &place) {
        return check_group_keys(&to_case_keys(options, &Kind::Shape(&CASE)), place);
    }
    let sound = match stated["topic"].as_str() {
        Some(name) => {
            let criteria = stated["criteria"].as_array().into_iter().flatten();
            let criteria: Vec<&str> = criteria.filter_map(Value::as_str).collect();
            let said = to_case_keys(&stated["said"], &Kind::Shape(&GRAPH_TOPIC));
            validate_topic(name, &said, &criteria, vocabulary)
        }
        None => validate_simulated_user(&to_case_keys(&stated["said"], &Kind::Shape(&USER))),
    };
    sound.map_err(|error| Diagnostic { place, ..Diagnostic::new(error) })
}

/// The JavaScript code of a file. It has the lines of the file.
struct FileCode<'a> {
    path: &'a str,
    text: String,
    /// Offset of each line, and of the end.
    line_starts: Vec<usize>,
}

impl<'a> FileCode<'a> {
    fn new(file: &'a TestFile) -> FileCode<'a> {
        let text = file.scripts.code(&file.module).unwrap_or_default();
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        line_starts.push(text.len());
        FileCode { path: file.module.path(), text, line_starts }
    }

    /// Returns the last line of the function of a test that is declared at a place. `None` if the function is elsewhere.
    fn last_line(&self, place: &SourceSpan, function: &str) -> Option<u32> {
        let declared = test_lines(place, None);
        let start = |line: u32| self.line_starts.get(usize::try_from(line).ok()?).copied();
        let from = start(place.line().checked_sub(1)?).filter(|_| place.file() == self.path)?;
        let to = start(*declared.end()).unwrap_or(self.text.len());
        let until = self.text.floor_char_boundary(to.saturating_add(function.len()));
        let end = self.text.get(from..until)?.find(function)? + from + function.len();
        u32::try_from(self.line_starts.partition_point(|start| *start < end)).ok()
    }
}

impl DeclaredTest {
    fn from_json(
        declaration: usize,
        one: &Value,
        excerpts: Option<&Arc<TestExcerpts>>,
        code: &FileCode<'_>,
        file: &TestFile,
    ) -> DeclaredTest {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        let kind = text("kind").to_string();
        let place = match kind.as_str() {
            "test" => file.scripts.place_of(&file.module, text("source")),
            _ => file.scripts.frames(text("at")).into_iter().next().map(|frame| frame.place),
        };
        let number = one["place"].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
        DeclaredTest {
            kind,
            number: excerpts.map_or(number, |excerpts| excerpts.tests_before(declaration)),
            excerpt: excerpts.map(|excerpts| (excerpts.clone(), declaration)),
            name: one["case"]["name"].as_str().unwrap_or_default().to_string(),
            last_line: place.as_ref().and_then(|place| code.last_line(place, text("source"))),
            place,
            source: text("source").to_string(),
            focus: match one["focus"].as_str() {
                Some("marked") => TestFocus::Marked,
                Some("leftOut") => TestFocus::LeftOut,
                Some(_) | None => TestFocus::Unmarked,
            },
            scenario: serde_json::from_value(one["scenario"].clone()).ok(),
            written: to_case_keys(&one["case"], &Kind::Shape(&CASE)),
        }
    }

    fn case(self, file: &TestFile, decoding: DecodeSettings<'_>) -> Decoded {
        // A test starts simulated users itself.
        let decoding = DecodeSettings { default_simulator: false, ..decoding };
        let DeclaredTest { kind, number, excerpt, name, place, source, last_line, focus, scenario, written } =
            self;
        let place = place.unwrap_or_else(|| {
            SourceSpan::new(&SourceText::new(file.module.path().to_string(), String::new(), 1), 0..0)
        });
        let body = TypeScriptTest { file: file.clone(), excerpt, kind, place: number, name };
        let program = CaseProgram { source: Some(source.into()), last_line };
        let mut case = TestCase::from_program(&written, program, &place, decoding)?;
        case.focus = focus;
        if let Some(scenario) = scenario {
            case = case.with_scenario(scenario, decoding.redactor);
        }
        Ok(DrivenCase { case: Arc::new(case), body: Some(Arc::new(body)) })
    }
}

/// Redacts secrets, because a file may throw data it has read.
fn redact_diagnostic(mistake: Diagnostic, redactor: &SecretRedactor) -> Diagnostic {
    let message = redactor.text(&mistake.message).into_owned();
    let help = mistake.help.as_deref().map(|help| redactor.text(help).into_owned());
    Diagnostic { message, help, ..mistake }
}
