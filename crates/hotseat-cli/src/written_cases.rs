//! Checks of cases that are written to a file.

use std::collections::HashSet;
use std::path::Path;

use hotseat_document::Diagnostic;
use hotseat_engine::cases::{Suite, TestCase};
use hotseat_engine::config::{Project, display_path};
use hotseat_engine::run::RunPlan;

use crate::context::CliContext;
use crate::input_files::resolve_path;

/// Checks that the written cases of a plan test the same in the file of a flag as in their suites.
///
/// # Errors
/// The first case that would be another one there, or have the id of another one.
pub fn check_destination(
    (flag, path): (&str, &Path),
    plan: &RunPlan,
    is_written: impl Fn(&TestCase) -> bool,
    project: &Project,
    context: &CliContext,
) -> Result<(), Vec<Diagnostic>> {
    let file = resolve_path(&context.folder.join(path));
    let destination = Suite::new(file, path.to_string_lossy());
    let shown = &destination.shown;
    let mut ids = HashSet::new();
    for selected in plan.cases(project) {
        let selected = selected?;
        let case = &selected.case;
        if !is_written(case) {
            continue;
        }
        let refused = |words: String, help: String| {
            let message = format!("{flag} {shown}: this case cannot be written there: {words}");
            Err(vec![Diagnostic::new(message).at(case.place.clone()).help(help)])
        };
        if let Some(difference) = selected.difference_in(&destination, project) {
            let beside = selected.suite.folder.join(path.file_name().unwrap_or_default());
            let beside = display_path(&beside, &context.folder);
            return refused(difference, format!("write it beside its suite: `{flag} {beside}`"));
        }
        if plan.selected_suites > 1 && !ids.insert(case.id.clone()) {
            let words = format!("a case of another suite has the id `{}`, too", case.id);
            return refused(words, "write the cases of each suite to a file of its own".to_string());
        }
    }
    Ok(())
}
