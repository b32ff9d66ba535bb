//! Converts recorded conversations to a suite, and to recordings that the suite can run on.

mod message;
mod suite;
mod transcript;

use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, json};

use hotseat_targets::recording;
pub use transcript::OmittedParts;
use transcript::{ReplacedId, TranscriptReader};

/// Number of errors that are listed.
const MAX_REPORTED_ERRORS: usize = 20;
/// Folder of the recordings, beside the suite.
const RECORDINGS_FOLDER: &str = "recordings";

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Assertions to generate.
    pub expect: ExpectedCallsMode,
    /// Tools with side effects. Calls that are not expected are asserted to be absent.
    pub writes: Vec<String>,
    /// True to write only the suite.
    pub cases_only: bool,
    /// True to omit invalid conversations.
    pub skip_invalid: bool,
    /// True to replace an existing suite and recordings of other conversations.
    pub force: bool,
}

/// Assertions for a conversation whose data lists the expected calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedCallsMode {
    /// Each call is made, in any order; other calls are allowed.
    Calls,
    /// The calls are made in order; other calls are allowed.
    Order,
    /// No assertions.
    Nothing,
}

/// Written files and statistics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Path of the suite.
    pub suite: PathBuf,
    /// Folder of the recordings, if any were written.
    pub recordings: Option<PathBuf>,
    /// Number of conversations.
    pub conversations: usize,
    /// Number of turns.
    pub turns: usize,
    /// Number of conversations omitted as invalid.
    pub invalid: usize,
    /// Number of conversations without assertions because their data expects no call.
    pub expect_no_call: usize,
    /// Number of conversations without assertions because their data lists no expected calls.
    pub expect_unknown: usize,
    /// Tools with side effects that no conversation calls or expects.
    pub unknown_writes: Vec<String>,
    /// Conversations whose id an earlier one has.
    pub repeated_ids: ReplacedIds,
    /// Conversations whose id is no text and no number.
    pub unusable_ids: ReplacedIds,
    /// Statistics of omitted parts.
    pub omitted: OmittedParts,
}

/// Conversations that did not keep their id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplacedIds {
    /// Number of conversations.
    pub count: usize,
    /// The id in the data, if it can be shown, and the new id of the first one.
    pub first: Option<(Option<String>, String)>,
}

impl ReplacedIds {
    fn add(&mut self, given: Option<String>, id: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (given, id.to_string()));
    }
}

/// Reason why the import failed.
#[derive(Debug)]
pub enum ImportError {
    /// Errors in the file, and the number of further errors.
    Invalid(Vec<Diagnostic>, usize),
    /// The suite already exists.
    Exists(PathBuf),
    /// The recording of a case, with this id, is that of another conversation.
    Recorded(PathBuf, String),
    /// A file cannot be written.
    NotWritable(PathBuf, io::Error),
}

/// Imports conversations in OpenAI's message format into a folder. The file is read twice, one conversation
/// at a time: to find all errors, then to write. Fails if the file is invalid or a file of another import would be replaced, in
/// which case nothing is written, or if a file cannot be written.
pub fn openai_transcripts(
    path: &Path,
    shown: &str,
    folder: &Path,
    options: &ImportOptions,
) -> Result<ImportSummary, ImportError> {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let suite = folder.join(format!("{stem}.test.jsonl"));
    if suite.exists() && !options.force {
        return Err(ImportError::Exists(suite));
    }
    let open = || {
        let file = hotseat_document::open_file(path).map_err(|error| unreadable(shown, &error))?;
        let values = json::values(Arc::from(shown), BufReader::new(file), "conversations");
        Ok(TranscriptReader::new(values.allow_after_lists()))
    };
    let recordings = (!options.cases_only).then(|| folder.join(RECORDINGS_FOLDER));
    check_all(open()?, shown, recordings.as_deref(), options)?;

    let not_writable = |path: &Path| {
        let path = path.to_path_buf();
        move |error: io::Error| ImportError::NotWritable(path, error)
    };
    let made = recordings.as_deref().unwrap_or(folder);
    std::fs::create_dir_all(made).map_err(not_writable(made))?;
    let unknown_writes = options.writes.clone();
    let mut imported =
        ImportSummary { suite: suite.clone(), recordings, unknown_writes, ..ImportSummary::default() };
    let mut file = recording::create_temporary(folder).map_err(not_writable(&suite))?;
    let mut out = BufWriter::new(file.as_file_mut());
    for transcript in open()? {
        let Ok(transcript) = transcript else {
            imported.invalid += 1;
            continue;
        };
        imported.conversations += 1;
        imported.turns += transcript.turns.len();
        imported.omitted.add(transcript.omitted);
        match transcript.replaced_id.clone() {
            Some(ReplacedId::Repeated { given }) => imported.repeated_ids.add(Some(given), &transcript.id),
            Some(ReplacedId::Unusable) => imported.unusable_ids.add(None, &transcript.id),
            None => {}
        }
        imported.unknown_writes.retain(|tool| !transcript.mentions(tool));
        if options.expect != ExpectedCallsMode::Nothing {
            match transcript.expected.as_deref() {
                None => imported.expect_unknown += 1,
                Some([]) if options.writes.is_empty() => imported.expect_no_call += 1,
                Some(_) => {}
            }
        }
        writeln!(out, "{}", suite::build_case(&transcript, options)).map_err(not_writable(&suite))?;
        if let Some(folder) = &imported.recordings {
            recording::write(folder, &transcript.into_recording()).map_err(not_writable(folder))?;
        }
    }
    out.flush().map_err(not_writable(&suite))?;
    drop(out);
    file.persist(&suite).map_err(|error| ImportError::NotWritable(suite, error.error))?;
    Ok(imported)
}

/// Reads all conversations and reports their errors, or the first one that would replace another recording.
fn check_all<R: io::BufRead>(
    mut transcripts: TranscriptReader<R>,
    shown: &str,
    recordings: Option<&Path>,
    options: &ImportOptions,
) -> Result<(), ImportError> {
    let (mut mistakes, mut more, mut usable) = (Vec::new(), 0, 0);
    let mut replaced = None;
    let kept = recordings.filter(|_| !options.force);
    for transcript in &mut transcripts {
        match transcript {
            Ok(transcript) => {
                usable += 1;
                if let (Some(folder), None) = (kept, &replaced) {
                    let recording = transcript.into_recording();
                    let other = recording::find_other(folder, &recording);
                    let other = other.map_err(|error| ImportError::NotWritable(folder.into(), error))?;
                    replaced = other.map(|path| ImportError::Recorded(path, recording.case));
                }
            }
            Err(found) => {
                for mistake in found {
                    if mistakes.len() < MAX_REPORTED_ERRORS {
                        mistakes.push(mistake);
                    } else {
                        more += 1;
                    }
                }
            }
        }
    }
    if usable == 0 && mistakes.is_empty() {
        let help = "expected lists of messages, or objects with `messages`, `conversation` or `traj`";
        mistakes.push(Diagnostic::new(format!("no conversations found in {shown}")).help(help));
    }
    let can_skip = options.skip_invalid && usable > 0 && !transcripts.is_broken();
    let accepted = mistakes.is_empty() || can_skip;
    match replaced {
        _ if !accepted => Err(ImportError::Invalid(mistakes, more)),
        Some(replaced) => Err(replaced),
        None => Ok(()),
    }
}

fn unreadable(shown: &str, why: &dyn std::fmt::Display) -> ImportError {
    ImportError::Invalid(vec![Diagnostic::new(format!("cannot read {shown}: {why}"))], 0)
}
