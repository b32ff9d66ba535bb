//! Conversations that others held become a suite, and recordings that the suite can be run on.

mod message;
mod suite;
mod transcript;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotseat_document::{Diagnostic, json};

use crate::recording;
use transcript::Transcripts;

/// How many mistakes are told; whoever has more knows enough.
const TOLD: usize = 20;
/// The folder of the recordings, beside the suite.
const RECORDINGS: &str = "recordings";

/// What becomes of conversations.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is asserted of them.
    pub expect: Expect,
    /// Tools that change something: besides the calls that are expected, none of theirs is made.
    pub writes: Vec<String>,
    /// Whether the suite alone is written.
    pub cases_only: bool,
    /// Whether conversations in which something is wrong are left out.
    pub skip_invalid: bool,
    /// Whether a suite that is there is replaced.
    pub force: bool,
}

/// What is asserted of a conversation whose data says which calls are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// That each of them is made, in whatever order, among whatever others.
    Calls,
    /// That they are made in this order, among whatever others.
    Order,
    /// Nothing.
    Nothing,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// The suite.
    pub suite: PathBuf,
    /// The folder of the recordings, if they were written.
    pub recordings: Option<PathBuf>,
    /// How many conversations there are.
    pub conversations: usize,
    /// How many turns they have.
    pub turns: usize,
    /// How many conversations were left out because something is wrong in them.
    pub invalid: usize,
    /// Of how many conversations nothing is asserted, because their data expects no call.
    pub expect_no_call: usize,
    /// Of how many conversations nothing is asserted, because their data does not say what is expected.
    pub expect_unknown: usize,
    /// What is no part of the suite.
    pub left_out: LeftOut,
}

/// What of conversations has no place in a suite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Instructions: messages of `system` and `developer`.
    pub instructions: usize,
    /// What users said at the end and nobody answered.
    pub unanswered: usize,
    /// Messages of the agent that say and do nothing.
    pub empty: usize,
    /// Calls of tools whose result is not in the data. They are kept, without a result.
    pub no_result: usize,
}

/// Why nothing was written, or not all.
#[derive(Debug)]
pub enum Error {
    /// These mistakes are in the file; the number says how many more there are.
    Wrong(Vec<Diagnostic>, usize),
    /// There is a suite already, of this name.
    Exists(PathBuf),
    /// Something cannot be written.
    NotWritable(PathBuf, io::Error),
}

/// Imports conversations of OpenAI's messages from a file, which is shown as `shown`, into a folder. The file is read
/// twice, a conversation at a time: once to find every mistake, and once more to write.
///
/// # Errors
/// When something in it is wrong, and nothing was written; or when something cannot be written.
pub fn openai_transcripts(
    path: &Path,
    shown: &str,
    folder: &Path,
    options: &Options,
) -> Result<Imported, Error> {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let suite = folder.join(format!("{stem}.test.jsonl"));
    if suite.exists() && !options.force {
        return Err(Error::Exists(suite));
    }
    let open = || {
        let file = File::open(path).map_err(|error| unreadable(shown, &error))?;
        let is_folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_folder {
            return Err(unreadable(shown, &"it is a folder"));
        }
        let values = json::values(Arc::from(shown), BufReader::new(file), "conversations");
        Ok(Transcripts::new(values.behind_lists()))
    };
    check(open()?, shown, options)?;

    let not_writable = |path: &Path| {
        let path = path.to_path_buf();
        move |error: io::Error| Error::NotWritable(path, error)
    };
    let recordings = (!options.cases_only).then(|| folder.join(RECORDINGS));
    let made = recordings.as_deref().unwrap_or(folder);
    std::fs::create_dir_all(made).map_err(not_writable(made))?;
    let mut imported = Imported { suite: suite.clone(), recordings, ..Imported::default() };
    let mut file = recording::temporary(folder).map_err(not_writable(&suite))?;
    let mut out = BufWriter::new(file.as_file_mut());
    for transcript in open()? {
        let Ok(transcript) = transcript else {
            imported.invalid += 1;
            continue;
        };
        imported.conversations += 1;
        imported.turns += transcript.turns.len();
        imported.left_out.add(transcript.left_out);
        if options.expect != Expect::Nothing {
            match transcript.expected.as_deref() {
                None => imported.expect_unknown += 1,
                Some([]) if options.writes.is_empty() => imported.expect_no_call += 1,
                Some(_) => {}
            }
        }
        writeln!(out, "{}", suite::case(&transcript, options)).map_err(not_writable(&suite))?;
        if let Some(folder) = &imported.recordings {
            recording::write(folder, &transcript.into_recording()).map_err(not_writable(folder))?;
        }
    }
    out.flush().map_err(not_writable(&suite))?;
    drop(out);
    file.persist(&suite).map_err(|error| Error::NotWritable(suite, error.error))?;
    Ok(imported)
}

/// Reads everything and tells what is wrong with it.
fn check<R: io::BufRead>(
    mut transcripts: Transcripts<R>,
    shown: &str,
    options: &Options,
) -> Result<(), Error> {
    let (mut mistakes, mut more, mut usable) = (Vec::new(), 0, 0);
    for transcript in &mut transcripts {
        match transcript {
            Ok(_) => usable += 1,
            Err(found) => {
                for mistake in found {
                    if mistakes.len() < TOLD {
                        mistakes.push(mistake);
                    } else {
                        more += 1;
                    }
                }
            }
        }
    }
    if usable == 0 && mistakes.is_empty() {
        let help =
            "a conversation is a list of messages, or an object with `messages`, `conversation` or `traj`";
        mistakes.push(Diagnostic::new(format!("no conversations found in {shown}")).help(help));
    }
    let can_skip = options.skip_invalid && usable > 0 && !transcripts.is_broken();
    let accepted = mistakes.is_empty() || can_skip;
    if accepted { Ok(()) } else { Err(Error::Wrong(mistakes, more)) }
}

fn unreadable(shown: &str, why: &dyn std::fmt::Display) -> Error {
    Error::Wrong(vec![Diagnostic::new(format!("cannot read {shown}: {why}"))], 0)
}

impl LeftOut {
    fn add(&mut self, other: LeftOut) {
        self.instructions += other.instructions;
        self.unanswered += other.unanswered;
        self.empty += other.empty;
        self.no_result += other.no_result;
    }
}
