//! `hotseat test --dry-run`: validates everything and contacts only case generators.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use hotseat_document::Diagnostic;
use hotseat_engine::config::Project;
use hotseat_engine::run::RunPlan;
use hotseat_report::reporters::{self, CommandGuard, ReportFormat, ReportWriteError, format_count};
use serde_json::Value;

use crate::args::TestArgs;
use crate::context::CliContext;
use crate::exit::{CommandResult, ExitStatus};
use crate::written_cases::check_destination;

/// Prints a summary of the selected cases. Each `-o FILE.jsonl` receives the cases. Generated cases are printed if no such file is given, since they exist nowhere else.
pub fn run(
    args: &TestArgs,
    made_up: bool,
    plan: &RunPlan,
    project: &Project,
    context: &CliContext,
) -> CommandResult {
    let invalid = |diagnostics: Vec<Diagnostic>| context.reject(diagnostics);
    let files =
        args.output.iter().filter(|path| ReportFormat::from_path(path) == Some(ReportFormat::JsonLines));
    let head = shared_head(plan, project, made_up || files.clone().next().is_some()).map_err(invalid)?;
    for path in files.clone() {
        check_destination(("-o", path), plan, |_| true, project, context).map_err(invalid)?;
    }
    for path in files.clone() {
        let not_writable = |error| context.fail(ExitStatus::RunError, ReportWriteError::new(path, error));
        let file = reporters::create_file(&context.folder.join(path)).map_err(not_writable)?;
        let mut out = BufWriter::new(CommandGuard::json(file));
        write_cases(head.as_ref(), plan, project, &mut out).map_err(not_writable)?.map_err(invalid)?;
    }
    if args.json {
        return write_case_events(plan, project).map(|()| ExitStatus::Passed).map_err(invalid);
    }
    if made_up && files.count() == 0 {
        let mut diagnostics = None;
        let printed = context.print_json(|out| {
            write_cases(head.as_ref(), plan, project, out).map(|read| diagnostics = read.err())
        });
        return diagnostics.map_or(Ok(printed), |diagnostics| Err(invalid(diagnostics)));
    }
    let (cases, suites) = (format_count(plan.selected, "case"), format_count(plan.selected_suites, "suite"));
    let contacted = if made_up { "the agent was not contacted" } else { "no agent was contacted" };
    Ok(context.print(|out| writeln!(out, "no errors in {cases} in {suites}; {contacted}")))
}

/// Returns the head of the only suite, which applies to its cases. Fails for cases that a file of cases cannot contain.
fn shared_head(
    plan: &RunPlan,
    project: &Project,
    writes_cases: bool,
) -> Result<Option<Value>, Vec<Diagnostic>> {
    if !writes_cases {
        return Ok(None);
    }
    let (mut suites, mut head): (Vec<Arc<str>>, Option<Value>) = (Vec::new(), None);
    for selected in plan.cases(project) {
        let selected = selected?;
        if selected.case.program.is_some() {
            let message = format!("`{}` is a program, which cannot be written as a case", selected.case.name);
            let wrong = Diagnostic::new(message).at(selected.case.place.clone());
            return Err(vec![wrong.help("select suites without tests in TypeScript")]);
        }
        if suites.last() != Some(&selected.suite_name) {
            head = head.or_else(|| selected.suite.written_head());
            suites.push(selected.suite_name.clone());
        }
        if head.is_some() && suites.len() > 1 {
            let message = "one of these suites has shared settings (`suite`), which do not apply to the cases of the others";
            return Err(vec![
                Diagnostic::new(message).help("write the cases of each suite to a file of its own"),
            ]);
        }
    }
    Ok(head)
}

/// Writes the head, if there is one, and the source of each case, one JSON object per line.
fn write_cases(
    head: Option<&Value>,
    plan: &RunPlan,
    project: &Project,
    out: &mut dyn Write,
) -> io::Result<Result<(), Vec<Diagnostic>>> {
    if let Some(head) = head {
        writeln!(out, "{head}")?;
    }
    for selected in plan.cases(project) {
        match selected {
            Ok(selected) => writeln!(out, "{}", selected.case_ref.case.to_single_json())?,
            Err(diagnostics) => return Ok(Err(diagnostics)),
        }
    }
    out.flush().map(Ok)
}

/// Writes an event for each case that would run.
fn write_case_events(plan: &RunPlan, project: &Project) -> Result<(), Vec<Diagnostic>> {
    for selected in plan.cases(project) {
        // Ignores errors: the reader may have closed the pipe.
        let _ = reporters::write_dry_run_case(&mut std::io::stdout(), &selected?);
    }
    Ok(())
}
