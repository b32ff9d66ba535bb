//! `hotseat import`.

use std::path::Path;

use hotseat_document::Diagnostic;
use hotseat_engine::import::{
    ExpectedCallsMode, ImportError, ImportOptions, ImportSummary, ReplacedIds, openai_transcripts,
};
use hotseat_report::reporters::{format_count, one_line, shell_word};

use crate::args::{ExpectedCallsArg, ImportArgs, ImportSource, TranscriptArgs};
use crate::context::CliContext;
use crate::exit::ExitStatus;

/// Maximum width of an id in a note.
const MAX_ID_COLUMNS: usize = 60;

/// Imports conversations as test cases and recordings.
pub fn run(args: ImportArgs, context: &CliContext) -> ExitStatus {
    let ImportSource::OpenaiTranscripts(args) = args.source;
    let options = ImportOptions {
        expect: match args.expect {
            ExpectedCallsArg::Calls => ExpectedCallsMode::Calls,
            ExpectedCallsArg::Order => ExpectedCallsMode::Order,
            ExpectedCallsArg::None => ExpectedCallsMode::Nothing,
        },
        writes: args.writes.clone(),
        cases_only: args.cases_only,
        skip_invalid: args.skip_invalid,
        force: args.force,
    };
    if options.expect == ExpectedCallsMode::Nothing && !options.writes.is_empty() {
        context
            .report_error("--writes cannot be used with --expect none: --writes adds assertions, --expect none disables them");
        return ExitStatus::Usage;
    }
    let (file, folder) = (context.folder.join(&args.file), context.folder.join(&args.output));
    let shown =
        |path: &Path| args.output.join(path.strip_prefix(&folder).unwrap_or(path)).display().to_string();
    match openai_transcripts(&file, &args.file.display().to_string(), &folder, &options) {
        Ok(imported) => {
            let words = describe_import(&imported, &args);
            context.print(|out| writeln!(out, "{words}"))
        }
        Err(ImportError::Invalid(diagnostics, more)) => {
            context.report_errors(diagnostics);
            if more > 0 {
                context.print_message(&format!("… and {} more", format_count(more, "mistake")));
            }
            ExitStatus::Usage
        }
        Err(ImportError::Exists(suite)) => {
            reject_existing(&format!("{} already exists", shown(&suite)), context)
        }
        Err(ImportError::Recorded(recording, id)) => {
            let recording = shown(&recording);
            let message = format!("{recording} records another conversation with the id `{}`", shown_id(&id));
            reject_existing(&message, context)
        }
        Err(ImportError::NotWritable(path, error)) => {
            context.report_error(format!("cannot write {}: {error}", path.display()));
            ExitStatus::RunError
        }
    }
}

/// Refuses to replace a file of an earlier import.
fn reject_existing(message: &str, context: &CliContext) -> ExitStatus {
    let help = "pass --force to replace it, or another folder with -o";
    context.report_errors([Diagnostic::new(message).help(help)]);
    ExitStatus::Usage
}

/// Summarises the import: written files, omitted messages and the next command.
fn describe_import(imported: &ImportSummary, args: &TranscriptArgs) -> String {
    let folder = args.output.display();
    let suite =
        imported.suite.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut lines = vec![format!(
        "{} with {} from {}",
        format_count(imported.conversations, "conversation"),
        format_count(imported.turns, "turn"),
        args.file.display()
    )];
    let left_out = imported.omitted;
    let mut note = |number: usize, what: &str, why: &str| {
        if number > 0 {
            lines.push(format!("- {}{why}", format_count(number, what)));
        }
    };
    note(imported.invalid, "conversation", " omitted as invalid (run without --skip-invalid for details)");
    note(imported.repeated_ids.count, "conversation", &repeated_ids_note(&imported.repeated_ids));
    note(imported.unusable_ids.count, "conversation", &unusable_ids_note(&imported.unusable_ids));
    note(left_out.instructions, "instruction", " to the agent (`system`, `developer`) omitted");
    note(
        left_out.unanswered,
        "input",
        " omitted: last message of the conversation, not answered by the agent",
    );
    note(
        left_out.no_result,
        "tool call",
        " without a result: assertions about the results of these calls always fail",
    );
    note(left_out.early_reasoning, "reasoning text", " before the first user message omitted");
    note(
        left_out.early_arguments,
        "tool call",
        " before the first user message imported without arguments: they are not valid JSON",
    );
    note(
        left_out.early_expected,
        "expected call",
        " not asserted: the agent made it before the first user message",
    );
    note(left_out.empty, "message", " of the agent omitted: no text and no tool call");
    note(
        imported.expect_unknown,
        "conversation",
        ": the data lists no expected calls, so nothing is asserted",
    );
    note(
        imported.expect_no_call,
        "conversation",
        ": no calls are expected, so nothing is asserted (--writes TOOL,… names tools that must not be called)",
    );
    if !imported.unknown_writes.is_empty() {
        let tools: Vec<String> = imported.unknown_writes.iter().map(|tool| format!("`{tool}`")).collect();
        lines.push(format!("- --writes: no conversation calls or expects {}", tools.join(", ")));
    }
    let path = format!("{folder}/{suite}");
    let next = match &imported.recordings {
        Some(_) => {
            let recordings = format!("replay:{folder}/recordings");
            format!("hotseat test -n {} {}", shell_word(&recordings), shell_word(&path))
        }
        None => format!("hotseat test {}", shell_word(&path)),
    };
    lines.push(format!("\nNext:\n  {next}"));
    lines.join("\n")
}

fn repeated_ids_note(repeated: &ReplacedIds) -> String {
    let example = match &repeated.first {
        Some((Some(given), id)) => format!(": `{}` became `{}`", shown_id(given), shown_id(id)),
        Some((None, _)) | None => String::new(),
    };
    format!(" renamed, because an earlier one has the same id{example}")
}

fn unusable_ids_note(unusable: &ReplacedIds) -> String {
    let example = unusable.first.as_ref().map(|(_, id)| format!(": the first is `{}`", shown_id(id)));
    format!(
        " numbered, because the id in the data is empty or no text and no number{}",
        example.unwrap_or_default()
    )
}

/// An id on a line, shortened.
fn shown_id(id: &str) -> String {
    one_line(id, MAX_ID_COLUMNS)
}
