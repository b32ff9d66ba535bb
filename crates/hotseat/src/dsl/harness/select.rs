//! Which examples run.

use std::collections::HashMap;

use hotseat_document::Diagnostic;

use super::super::tree::Example;
use super::arguments::{Arguments, Ignored};

/// What is selected.
pub(super) struct Selected {
    pub examples: Vec<Example>,
    /// How many examples there are.
    pub of: usize,
    /// Whether it is a filter, which may concern other test files, that fits nothing here.
    pub by_filter: bool,
    /// Whether examples are left out because others are focused.
    pub focused: bool,
}

/// Selects examples.
///
/// # Errors
/// Examples that cannot be told apart, and focused ones where there must be none.
pub(super) fn select(examples: Vec<Example>, arguments: &Arguments) -> Result<Selected, Vec<Diagnostic>> {
    let mut known: HashMap<&str, &Example> = HashMap::new();
    let mut mistakes = Vec::new();
    for example in &examples {
        if let Some(other) = known.insert(&example.name, example) {
            let message = format!("two examples are called `{}`", example.name);
            let wrong =
                Diagnostic::new(message).at(example.at.place()).also(other.at.place(), "the other one");
            mistakes.push(wrong.help("give one of them another name, or put them into groups"));
        }
        if arguments.forbid_only && example.settings.focused {
            let message = format!("`{}` is focused, and --forbid-only is given", example.name);
            let wrong = Diagnostic::new(message).at(example.at.place());
            mistakes.push(wrong.help("take away `fit`, `fdescribe` and `only()` of it and its groups"));
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
    examples.retain(|example| by_name(arguments, &example.name));
    let by_filter = examples.is_empty() && in_focus > 0;
    examples.retain(|example| {
        arguments.tags.is_empty() || example.settings.tags.iter().any(|tag| arguments.tags.contains(tag))
    });
    let left = examples.len();
    if arguments.ignored == Ignored::Only {
        examples.retain(|example| example.settings.skip.is_some());
    }
    if arguments.ignored != Ignored::Skipped {
        examples.iter_mut().for_each(|example| example.settings.skip = None);
    }
    // That nothing is skipped is as well.
    let by_filter = by_filter || (examples.is_empty() && left > 0);
    Ok(Selected { examples, of, by_filter, focused: left_out })
}

fn by_name(arguments: &Arguments, name: &str) -> bool {
    let fits = |filter: &String| match arguments.exact {
        true => name == filter,
        false => name.contains(filter.as_str()),
    };
    (arguments.filters.is_empty() || arguments.filters.iter().any(fits)) && !arguments.skip.iter().any(fits)
}
