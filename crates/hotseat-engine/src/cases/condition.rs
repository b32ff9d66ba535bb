//! Decodes conditions on arguments of tool calls.

use serde_json::Value;

use super::patterns::read_patterns;
use hotseat_checks::{ArgumentCondition, MatchMode, ValueRelation};
use hotseat_document::{Diagnostic, Diagnostics, Kind, MapView, NodeView, document_shape};

const LIMIT: Kind = Kind::OneOf(&[Kind::Number, Kind::NonEmptyText]);
const PATTERNS: Kind = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]);

/// Conditions by argument name.
pub(super) const CONDITIONS: Kind = Kind::Map(&Kind::Shape(&CONDITION));

document_shape! {
    /// Condition on an argument of a call. All keys must match. A missing argument never matches, and an
    /// argument of an incomparable type matches neither a condition nor its negation.
    pub static CONDITION "Condition" {
        /// This value.
        optional "equals" = Kind::Json,
        /// One of these values.
        optional "one_of" = Kind::NonEmptyList(&Kind::Json),
        /// A greater number, or a text after this one in alphabetical order.
        optional "more_than" = LIMIT,
        /// This or more.
        optional "at_least" = LIMIT,
        /// Less than this.
        optional "less_than" = LIMIT,
        /// This or less.
        optional "at_most" = LIMIT,
        /// A text that matches the pattern, or all of several. Other values are matched as compact JSON.
        optional "regex" = PATTERNS,
        /// Like `regex`, but one matching pattern is enough.
        optional "regex_any" = PATTERNS,
        /// A text with this part, or a list with this entry; of a list of parts, all of them.
        optional "contains" = Kind::Json,
        /// Like `contains`, but one matching part is enough.
        optional "contains_any" = Kind::NonEmptyList(&Kind::Json),
        /// `true`: anything but null; `false`: null.
        optional "given" = Kind::Bool,
        /// An object whose members match conditions; other members are allowed.
        optional "members" = Kind::Map(&Kind::Shape(&CONDITION)),
        /// A list of exactly this length whose entries match conditions.
        optional "entries" = Kind::List(&Kind::Shape(&CONDITION)),
        /// All of these conditions match.
        optional "all" = Kind::NonEmptyList(&Kind::Shape(&CONDITION)),
        /// Not this.
        optional "not" = Kind::Shape(&CONDITION),
    }
}

/// Decodes conditions by argument name.
pub(super) fn read_conditions(
    view: NodeView<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<(String, ArgumentCondition)> {
    let entries = view.entries().into_iter().flatten();
    entries.filter_map(|(key, _, view)| Some((key.to_string(), read_condition(view, diagnostics)?))).collect()
}

/// Decodes a condition. Returns `None` after reporting an error.
pub(super) fn read_condition(view: NodeView<'_>, diagnostics: &mut Diagnostics) -> Option<ArgumentCondition> {
    let map = view.map(&CONDITION)?;
    let mut all = Vec::new();
    all.extend(map.json("equals").map(ArgumentCondition::Equals));
    all.extend(values(&map, "one_of", diagnostics).map(ArgumentCondition::OneOf));
    for relation in ValueRelation::ALL {
        all.extend(map.json(relation.name()).map(|limit| ArgumentCondition::Compared(*relation, limit)));
    }
    refuse_empty_range(&map, diagnostics);
    for (key, fitting) in [("regex", MatchMode::All), ("regex_any", MatchMode::Any)] {
        if map.has(key) {
            let patterns = read_patterns(&map, key, diagnostics).into_iter().map(|(pattern, _)| pattern);
            all.push(ArgumentCondition::Matches(patterns.collect(), fitting));
        }
    }
    for (key, fitting) in [("contains", MatchMode::All), ("contains_any", MatchMode::Any)] {
        let parts = values(&map, key, diagnostics).or_else(|| Some(vec![map.json(key)?]));
        let Some(parts) = parts else { continue };
        if parts.is_empty() || parts.iter().any(|part| part == "") {
            diagnostics.report(map.place_of(key), format!("`{key}` is empty and would always match"));
        }
        all.push(ArgumentCondition::Contains(parts, fitting));
    }
    match map.bool("given") {
        Some(true) => all.push(ArgumentCondition::NotNull),
        Some(false) => all.push(ArgumentCondition::Equals(Value::Null)),
        None => {}
    }
    all.extend(map.get("members").map(|view| ArgumentCondition::Members(read_conditions(view, diagnostics))));
    let mut several = |key: &str| -> Option<Vec<ArgumentCondition>> {
        Some(map.list(key)?.filter_map(|view| read_condition(view, diagnostics)).collect())
    };
    all.extend(several("entries").map(ArgumentCondition::Entries));
    all.extend(several("all").map(ArgumentCondition::All));
    if let Some(view) = map.get("not") {
        let inner = read_condition(view, diagnostics);
        let several = match &inner {
            Some(ArgumentCondition::Matches(patterns, MatchMode::All)) => patterns.len() > 1,
            Some(ArgumentCondition::Contains(parts, MatchMode::All)) => parts.len() > 1,
            _ => false,
        };
        if several {
            let help = "use `regex_any` or `contains_any` if none may be there, or write one `not` for each";
            let message = "`not` of several is ambiguous: none of them, or not all";
            diagnostics.push(Diagnostic::new(message).at(map.key_place("not")).help(help));
        }
        all.extend(inner.map(|inner| ArgumentCondition::Not(Box::new(inner))));
    }
    match all.len() {
        0 => {
            diagnostics.report(view.place(), "this condition has no keys");
            None
        }
        1 => all.pop(),
        _ => Some(ArgumentCondition::All(all)),
    }
}

/// Refuses limits between which no value is: a negated condition would pass whatever the agent does.
fn refuse_empty_range(map: &MapView<'_>, diagnostics: &mut Diagnostics) {
    use ValueRelation::{AtLeast, AtMost, LessThan, MoreThan};
    for (lower, upper) in [(AtLeast, AtMost), (AtLeast, LessThan), (MoreThan, AtMost), (MoreThan, LessThan)] {
        let (Some(least), Some(most)) = (map.json(lower.name()), map.json(upper.name())) else { continue };
        // Only the limit itself could be within the range that `at_least` and `at_most` close.
        let within = if lower == AtLeast { upper } else { LessThan };
        if ArgumentCondition::Compared(within, most.clone()).is_met(Some(&least)) != Ok(true) {
            let message = format!("no value is {} {least} and {} {most}", lower.describe(), upper.describe());
            diagnostics.push(Diagnostic::new(message).at(map.place()).help("the smaller limit comes first"));
        }
    }
}

fn values(map: &MapView<'_>, key: &str, diagnostics: &mut Diagnostics) -> Option<Vec<Value>> {
    let read = |view: NodeView<'_>| {
        let value = view.json();
        // An argument that equals one entry of the variable would not be found.
        if value.is_array() && is_variable(view) {
            let message = "the value of this variable is a list, but stands for one value";
            let wrong = Diagnostic::new(message).at(view.place());
            diagnostics.push(wrong.help("let the hook set one variable for each value"));
        }
        value
    };
    Some(map.list(key)?.map(read).collect())
}

/// Returns true if a value is written as a text with a variable.
fn is_variable(view: NodeView<'_>) -> bool {
    let written = view.source.text.get(view.node.span.clone());
    written.is_some_and(|written| written.contains("${") && !written.starts_with(['[', '-']))
}
