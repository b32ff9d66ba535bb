//! Selects the examples to run.

use std::collections::HashMap;

use hotseat_document::Diagnostic;

use super::super::tree::ExampleSpec;
use super::arguments::{HarnessArguments, IgnoredMode};

/// The selected examples.
pub(super) struct ExampleSelection {
    pub examples: Vec<ExampleSpec>,
    /// Number of declared examples.
    pub total: usize,
    /// True if a filter removed all examples. It may be meant for another test file.
    pub emptied_by_filter: bool,
    /// True if examples were skipped because others are focused.
    pub focused: bool,
}

/// Selects the examples to run.
///
/// # Errors
/// If two examples have the same name, or an example is focused despite `--forbid-only`.
pub(super) fn select_examples(
    examples: Vec<ExampleSpec>,
    arguments: &HarnessArguments,
) -> Result<ExampleSelection, Vec<Diagnostic>> {
    let mut known: HashMap<&str, &ExampleSpec> = HashMap::new();
    let mut mistakes = Vec::new();
    for example in &examples {
        if let Some(other) = known.insert(&example.name, example) {
            let message = format!("two examples have the name `{}`", example.name);
            let wrong = Diagnostic::new(message)
                .at(example.at.place())
                .with_related(other.at.place(), "the other one");
            mistakes.push(wrong.help("rename one of them, or put them into different groups"));
        }
        if arguments.forbid_only && example.settings.focused {
            let message = format!("`{}` is focused, which --forbid-only does not allow", example.name);
            let wrong = Diagnostic::new(message).at(example.at.place());
            mistakes
                .push(wrong.help("remove `fit`, `fdescribe` and `only()` from the example and its groups"));
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let of = examples.len();
    let mut examples = examples;
    let focused = examples.iter().any(|example| example.settings.focused);
    if focused {
        examples.retain(|example| example.settings.focused);
    }
    let left_out = focused && examples.len() < of;
    let in_focus = examples.len();
    examples.retain(|example| matches_name(arguments, &example.name));
    let by_filter = examples.is_empty() && in_focus > 0;
    examples.retain(|example| {
        arguments.tags.is_empty() || example.settings.tags.iter().any(|tag| arguments.tags.contains(tag))
    });
    let remaining = examples.len();
    if arguments.ignored == IgnoredMode::Only {
        examples.retain(|example| example.settings.skip.is_some());
    }
    if arguments.ignored != IgnoredMode::Skipped {
        examples.iter_mut().for_each(|example| example.settings.skip = None);
    }
    // `--ignored` without skipped examples is not an error.
    let by_filter = by_filter || (examples.is_empty() && remaining > 0);
    Ok(ExampleSelection { examples, total: of, emptied_by_filter: by_filter, focused: left_out })
}

fn matches_name(arguments: &HarnessArguments, name: &str) -> bool {
    let fits = |filter: &String| match arguments.exact {
        true => name == filter,
        false => name.contains(filter.as_str()),
    };
    (arguments.filters.is_empty() || arguments.filters.iter().any(fits)) && !arguments.skip.iter().any(fits)
}
