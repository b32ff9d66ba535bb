//! Selects the examples to run.

use std::collections::HashMap;
use std::path::Path;

use hotseat_document::Diagnostic;
use hotseat_engine::cases::test_lines;
use hotseat_engine::config::{SuitePart, split_part};
use hotseat_engine::run::{CaseFilter, CaseLabels, KnownLabels};

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
    /// Suggests another filter if none of the examples matches.
    pub suggestion: Option<String>,
}

/// Selects the examples to run. Fails if two examples have the same name, an example is focused despite
/// `--forbid-only`, or a filter is invalid.
pub(super) fn select_examples(
    examples: Vec<ExampleSpec>,
    arguments: &HarnessArguments,
    file: &str,
) -> Result<ExampleSelection, Vec<Diagnostic>> {
    let mut by_name: HashMap<&str, &ExampleSpec> = HashMap::new();
    let mut by_id: HashMap<&str, &ExampleSpec> = HashMap::new();
    let mut mistakes = Vec::new();
    for example in &examples {
        if let Some(other) = by_name.insert(&example.facts.name, example) {
            let message = format!("two examples have the name `{}`", example.facts.name);
            let wrong = Diagnostic::new(message)
                .at(example.facts.at.place())
                .with_related(other.facts.at.place(), "the other one");
            mistakes.push(wrong.help("rename one of them, or put them into different groups"));
        }
        if let Some(id) = example.settings.id()
            && let Some(other) = by_id.insert(id, example)
        {
            let wrong = Diagnostic::new(format!("two examples have the id `{id}`"))
                .at(example.facts.at.place())
                .with_related(other.facts.at.place(), "the other one");
            mistakes.push(wrong.help("set the id of each example, not of their group"));
        }
        if arguments.forbid_only && example.settings.focused {
            let message = format!("`{}` is focused, which --forbid-only does not allow", example.facts.name);
            let wrong = Diagnostic::new(message).at(example.facts.at.place());
            mistakes
                .push(wrong.help("remove `fit`, `fdescribe` and `only()` from the example and its groups"));
        }
    }
    let HarnessArguments { names, keywords, texts, tags, excluded_tags, .. } = arguments;
    let filter = CaseFilter::compile(names, keywords.as_deref(), texts, tags, excluded_tags);
    let filter = match filter {
        Ok(filter) if mistakes.is_empty() => filter,
        Ok(_) => return Err(mistakes),
        Err(words) => return Err(vec![Diagnostic::new(words)]),
    };
    let mut known = KnownLabels::default();
    examples.iter().for_each(|example| known.add(labels(example, file)));
    let known_lines: Vec<(String, u32)> = examples
        .iter()
        .map(|example| (example.facts.name.clone(), example.facts.at.place().line()))
        .collect();
    let of = examples.len();
    let mut examples = examples;
    let focused = examples.iter().any(|example| example.settings.focused);
    if focused {
        examples.retain(|example| example.settings.focused);
    }
    let left_out = focused && examples.len() < of;
    let in_focus = examples.len();
    examples.retain(|example| matches_name(arguments, example, file));
    let missed_line = examples.is_empty().then(|| missed_line(arguments, &known_lines, file)).flatten();
    let by_filter = examples.is_empty() && in_focus > 0 && missed_line.is_none();
    let named = examples.len();
    examples.retain(|example| filter.matches(labels(example, file)));
    let suggestion = (named > 0 && examples.is_empty()).then(|| known.suggest(&filter)).flatten();
    let suggestion = missed_line.or(suggestion);
    let remaining = examples.len();
    if arguments.ignored == IgnoredMode::Only {
        examples.retain(|example| example.settings.skip.is_some());
    }
    if arguments.ignored != IgnoredMode::Skipped {
        examples.iter_mut().for_each(|example| example.settings.skip = None);
    }
    // `--ignored` without skipped examples is not an error.
    let by_filter = by_filter || (examples.is_empty() && remaining > 0);
    Ok(ExampleSelection { examples, total: of, emptied_by_filter: by_filter, focused: left_out, suggestion })
}

fn labels<'a>(example: &'a ExampleSpec, file: &'a str) -> CaseLabels<'a> {
    CaseLabels { id: &example.facts.name, name: &example.facts.name, suite: file, tags: &example.facts.tags }
}

fn matches_name(arguments: &HarnessArguments, example: &ExampleSpec, file: &str) -> bool {
    let name = example.facts.name.as_str();
    let fits = |filter: &String| match (split_part(filter), arguments.exact) {
        // The compiler's path is relative to the workspace, a written one also to the package.
        (Some((written, SuitePart::Line(line))), _) if written.ends_with(".rs") => {
            is_this_file(written, file) && test_lines(&example.facts.at.place(), None).contains(&line)
        }
        (_, true) => name == filter,
        (_, false) => name.contains(filter.as_str()),
    };
    (arguments.filters.is_empty() || arguments.filters.iter().any(fits)) && !arguments.skip.iter().any(fits)
}

/// Returns true if a written path is that of the test file.
fn is_this_file(written: &str, file: &str) -> bool {
    Path::new(file).ends_with(written) || Path::new(written).ends_with(file)
}

/// Names the nearest example if a filter is a line of this test file, which no other test file can have meant.
fn missed_line(arguments: &HarnessArguments, examples: &[(String, u32)], file: &str) -> Option<String> {
    arguments.filters.iter().find_map(|filter| {
        let (written, SuitePart::Line(wanted)) = split_part(filter)? else { return None };
        let (name, line) = examples.iter().min_by_key(|(_, line)| line.abs_diff(wanted))?;
        is_this_file(written, file).then(|| format!("`{name}` is at {written}:{line}"))
    })
}
