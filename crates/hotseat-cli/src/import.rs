//! `hotseat import`.

use std::path::Path;

use hotseat::document::Diagnostic;
use hotseat::import::{Error, Expect, Imported, Options, openai_transcripts};
use hotseat::report::count;

use crate::args::{ExpectArg, ImportArgs, ImportFrom, TranscriptArgs};
use crate::exit::Exit;
use crate::world::World;

/// Makes cases and recordings of conversations.
pub fn run(args: ImportArgs, world: &World) -> Exit {
    let ImportFrom::OpenaiTranscripts(args) = args.from;
    let options = Options {
        expect: match args.expect {
            ExpectArg::Calls => Expect::Calls,
            ExpectArg::Order => Expect::Order,
            ExpectArg::None => Expect::Nothing,
        },
        writes: args.writes.clone(),
        cases_only: args.cases_only,
        skip_invalid: args.skip_invalid,
        force: args.force,
    };
    if options.expect == Expect::Nothing && !options.writes.is_empty() {
        world
            .complain_of("--writes says what else is not called, and --expect none that nothing is asserted");
        return Exit::Usage;
    }
    let shown = args.file.display().to_string();
    let (file, folder) = (world.folder.join(&args.file), world.folder.join(&args.output));
    match openai_transcripts(&file, &shown, &folder, &options) {
        Ok(imported) => {
            let words = told(&imported, &args);
            world.print(|out| writeln!(out, "{words}"))
        }
        Err(Error::Wrong(mistakes, more)) => {
            world.complain(mistakes);
            if more > 0 {
                world.say(&format!("… and {} more", count(more, "mistake")));
            }
            Exit::Usage
        }
        Err(Error::Exists(_)) => {
            let help = "--force replaces it; -o names another folder";
            let suite = args.output.join(suite_name(&args.file));
            world.complain([Diagnostic::new(format!("{} is there already", suite.display())).help(help)]);
            Exit::Usage
        }
        Err(Error::NotWritable(path, error)) => {
            world.complain_of(format!("cannot write {}: {error}", path.display()));
            Exit::Broken
        }
    }
}

/// What was done, what was left out, and what comes next.
fn told(imported: &Imported, args: &TranscriptArgs) -> String {
    let folder = args.output.display();
    let suite =
        imported.suite.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut lines = vec![format!(
        "{} with {} from {}",
        count(imported.conversations, "conversation"),
        count(imported.turns, "turn"),
        args.file.display()
    )];
    let left_out = imported.left_out;
    let mut note = |number: usize, what: &str, why: &str| {
        if number > 0 {
            lines.push(format!("- {}{why}", count(number, what)));
        }
    };
    note(
        imported.invalid,
        "conversation",
        " left out: something is wrong in it (run without --skip-invalid to see)",
    );
    note(left_out.instructions, "instruction", " to the agent (`system`, `developer`) left out");
    note(left_out.unanswered, "input", " left out: it is the last one, and the agent did not answer it");
    note(
        left_out.no_result,
        "tool call",
        " without a result: assertions about results of these calls can only fail",
    );
    note(left_out.empty, "message", " of the agent left out: nothing is said in it and no tool called");
    note(
        imported.expect_unknown,
        "conversation",
        ": the data does not say which calls are expected, so nothing is asserted",
    );
    note(
        imported.expect_no_call,
        "conversation",
        ": no call is expected, so nothing is asserted (--writes TOOL,… says which must not be called)",
    );
    let next = match &imported.recordings {
        Some(_) => format!("hotseat test -n replay:{folder}/recordings {folder}/{suite}"),
        None => format!("hotseat test {folder}/{suite}"),
    };
    lines.push(format!("\nNext:\n  {next}"));
    lines.join("\n")
}

fn suite_name(file: &Path) -> String {
    let stem = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    format!("{stem}.test.jsonl")
}
