//! What a file of tests declares becomes cases.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hotseat_document::{Diagnostic, Diagnostics, Kind, Place, Source};
use hotseat_script::{Context, Host, Limits, thread};
use serde_json::Value;

use super::engine::{File, MODULE};
use super::keys::keys_as_written;
use super::program::Program;
use crate::cases::shape::CASE;
use crate::cases::{
    Case, Decoding, GRAPH_TOPIC, Scenario, Suite, USER, Vocabulary, topic_is_sound, user_is_sound,
};
use crate::scripts::{Library, Places};
use crate::session::Redactor;

/// How long a file may take to declare its tests.
const LOADING: Duration = Duration::from_secs(10);

type Decoded = Result<Case, Diagnostics>;

/// The tests of a file, in its order. An entry is a case or all that is wrong with it; a file that cannot be run is one
/// mistake, and so is one without a test.
pub fn cases(suite: &Suite, library: &Library, places: &Places, decoding: Decoding<'_>) -> Vec<Decoded> {
    let declared = library.file(&suite.path, places).and_then(|(scripts, module)| {
        let folders = vec![suite.folder.clone(), places.root.clone(), PathBuf::new()];
        let file = File { scripts, module, folders };
        declared(&file, library, decoding).map(|declared| (file, declared))
    });
    let (file, declared) = match declared {
        Ok(declared) => declared,
        Err(mistake) => return vec![Err(mistake.into())],
    };
    if declared.is_empty() {
        let message = format!("no tests in {}", suite.shown);
        let help = "a test is `export function TestSomething(t) { … }`, or `it(\"does something\", () => { … })` of the module `hotseat`";
        return vec![Err(Diagnostic::new(message).help(help).into())];
    }
    let mut known: Vec<String> = Vec::new();
    let mut cases: Vec<Decoded> = Vec::with_capacity(declared.len());
    for test in declared {
        let case = test.case(&file, decoding);
        cases.push(case.and_then(|case| {
            if known.contains(&case.id) {
                let message = format!("another test in this file is called `{}`", case.id);
                return Err(Diagnostic::new(message)
                    .at(case.place.clone())
                    .help("give one of them another name")
                    .into());
            }
            known.push(case.id.clone());
            Ok(case)
        }));
    }
    cases
}

/// What a file of tests and the modules that it imports say, each behind its path.
///
/// # Errors
/// When it cannot be read.
pub fn sources(suite: &Suite, library: &Library, places: &Places) -> Result<Vec<String>, Diagnostic> {
    let (scripts, module) = library.file(&suite.path, places)?;
    Ok(scripts.sources(&module).into_iter().map(|(path, text)| format!("{path}\n{text}")).collect())
}

/// A test that a file declares.
struct Declared {
    kind: String,
    /// Its place among those that `it` declares, from 0.
    number: usize,
    name: String,
    place: Option<Place>,
    /// Its function, as it is written.
    source: String,
    /// Whether it is marked so that others are left out.
    only: bool,
    /// The scenario that it is declared for.
    scenario: Option<Scenario>,
    /// What a case file would say of it.
    written: Value,
}

/// Runs a file to see what it declares.
fn declared(file: &File, library: &Library, decoding: Decoding<'_>) -> Result<Vec<Declared>, Diagnostic> {
    let limits = Limits { time: LOADING, ..Limits::default() };
    let (of, library) = (file.clone(), library.clone());
    let run = thread::run(LOADING, move |stop| {
        let hidden =
            Host::new().function("ask", |_| Err("nothing can be asked while a file is loaded".to_string()));
        let mut context =
            Context::new(&of.scripts, limits, of.furnish(library.looking(), hidden))?.until(stop);
        context.enter(MODULE, "declared", &of.module, &[])
    });
    let found = run
        .and_then(|found| found)
        .map_err(|error| without_secrets(error.diagnostic(), decoding.redactor))?;
    for stated in found["stated"].as_array().into_iter().flatten() {
        is_sound(stated, file, &decoding.shared.vocabulary)?;
    }
    let tests = found["tests"].as_array().into_iter().flatten();
    let mut all: Vec<Declared> = tests.map(|one| Declared::read(one, file)).collect();
    let line = |test: &Declared| test.place.as_ref().map(|place| (place.line(), place.column()));
    all.sort_by_key(line);
    Ok(all)
}

/// Looks at a topic or a simulated user that a file declares, whether a test uses it or not.
fn is_sound(stated: &Value, file: &File, vocabulary: &Vocabulary) -> Result<(), Diagnostic> {
    let sound = match stated["topic"].as_str() {
        Some(name) => {
            let criteria = stated["criteria"].as_array().into_iter().flatten();
            let criteria: Vec<&str> = criteria.filter_map(Value::as_str).collect();
            let said = keys_as_written(&stated["said"], &Kind::Shape(&GRAPH_TOPIC));
            topic_is_sound(name, &said, &criteria, vocabulary)
        }
        None => user_is_sound(&keys_as_written(&stated["said"], &Kind::Shape(&USER))),
    };
    let frames = file.scripts.frames(stated["at"].as_str().unwrap_or_default());
    let place = frames.into_iter().next().map(|frame| frame.place);
    sound.map_err(|words| Diagnostic { place, ..Diagnostic::new(words) })
}

impl Declared {
    fn read(one: &Value, file: &File) -> Declared {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        let kind = text("kind").to_string();
        let place = match kind.as_str() {
            "test" => file.scripts.place_of(&file.module, text("source")),
            _ => file.scripts.frames(text("at")).into_iter().next().map(|frame| frame.place),
        };
        Declared {
            kind,
            number: one["place"].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0),
            name: one["case"]["name"].as_str().unwrap_or_default().to_string(),
            place,
            source: text("source").to_string(),
            only: one["only"].as_bool() == Some(true),
            scenario: serde_json::from_value(one["scenario"].clone()).ok(),
            written: keys_as_written(&one["case"], &Kind::Shape(&CASE)),
        }
    }

    fn case(self, file: &File, decoding: Decoding<'_>) -> Decoded {
        // A program says itself when a user is simulated.
        let decoding = Decoding { default_simulator: false, ..decoding };
        let Declared { kind, number, name, place, source: body, only, scenario, written } = self;
        let place = place.unwrap_or_else(|| {
            Place::new(&Source::new(file.module.path().to_string(), String::new(), 1), 0..0)
        });
        let program = Program { file: file.clone(), kind, place: number, name, source: body };
        let mut case = Case::of_program(&written, Arc::new(program), &place, decoding)?;
        case.only = only;
        Ok(match scenario {
            Some(scenario) => case.held_with(scenario, decoding.redactor),
            None => case,
        })
    }
}

/// A file may throw what it has read.
fn without_secrets(mistake: Diagnostic, redactor: &Redactor) -> Diagnostic {
    let message = redactor.text(&mistake.message).into_owned();
    let help = mistake.help.as_deref().map(|help| redactor.text(help).into_owned());
    Diagnostic { message, help, ..mistake }
}
