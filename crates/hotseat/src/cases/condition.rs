//! Conditions on arguments of calls, as people write them.

use serde_json::Value;

use super::block::patterns;
use super::variables::mistake;
use crate::checks::{Condition, Fitting, Relation};
use hotseat_document::{Diagnostics, Field, Kind, Map, Shape, View};

const LIMIT: Kind = Kind::OneOf(&[Kind::Number, Kind::NonEmptyText]);
const PATTERNS: Kind = Kind::OneOf(&[Kind::Pattern, Kind::NonEmptyList(&Kind::Pattern)]);

/// Conditions by the name of an argument.
pub(super) const CONDITIONS: Kind = Kind::Map(&Kind::Shape(&CONDITION));

/// What an argument of a call has to be.
pub static CONDITION: Shape = Shape {
    name: "Condition",
    doc: "What an argument of a call has to be: all that is said holds. An argument that is not there meets no condition, and one whose type cannot be compared so is neither what is asked for nor its contrary.",
    fields: &[
        Field::optional("equals", Kind::Json, "This value."),
        Field::optional("one_of", Kind::NonEmptyList(&Kind::Json), "One of these values."),
        Field::optional(
            "more_than",
            LIMIT,
            "A greater number, or a text behind this one in alphabetical order.",
        ),
        Field::optional("at_least", LIMIT, "This or more."),
        Field::optional("less_than", LIMIT, "Less than this."),
        Field::optional("at_most", LIMIT, "This or less."),
        Field::optional(
            "regex",
            PATTERNS,
            "A text that the pattern fits, or all of several. What is no text is matched as compact JSON.",
        ),
        Field::optional("regex_any", PATTERNS, "The same, where one of several patterns is enough."),
        Field::optional(
            "contains",
            Kind::Json,
            "A text with this part, or a list with this entry; of a list of parts, all of them.",
        ),
        Field::optional(
            "contains_any",
            Kind::NonEmptyList(&Kind::Json),
            "The same, where one of several is enough.",
        ),
        Field::optional("given", Kind::Bool, "`true`: anything but null; `false`: null."),
        Field::optional(
            "members",
            Kind::Map(&Kind::Shape(&CONDITION)),
            "An object whose members meet conditions; it may have more.",
        ),
        Field::optional(
            "entries",
            Kind::List(&Kind::Shape(&CONDITION)),
            "A list of just so many entries that meet conditions.",
        ),
        Field::optional("all", Kind::NonEmptyList(&Kind::Shape(&CONDITION)), "All of these conditions."),
        Field::optional("not", Kind::Shape(&CONDITION), "Not this."),
    ],
};

/// Reads conditions by the name of an argument.
pub(super) fn conditions(view: View<'_>, mistakes: &mut Diagnostics) -> Vec<(String, Condition)> {
    let entries = view.entries().into_iter().flatten();
    entries.filter_map(|(key, _, view)| Some((key.to_string(), condition(view, mistakes)?))).collect()
}

/// Reads a condition. None if something is wrong with it, which is said then.
pub(super) fn condition(view: View<'_>, mistakes: &mut Diagnostics) -> Option<Condition> {
    let map = view.map(&CONDITION)?;
    let mut all = Vec::new();
    all.extend(map.json("equals").map(Condition::Equals));
    all.extend(values(&map, "one_of").map(Condition::OneOf));
    for (key, relation) in Relation::NAMED {
        all.extend(map.json(key).map(|limit| Condition::Compared(*relation, limit)));
    }
    for (key, fitting) in [("regex", Fitting::All), ("regex_any", Fitting::Any)] {
        if map.has(key) {
            let patterns = patterns(&map, key, mistakes).into_iter().map(|(pattern, _)| pattern);
            all.push(Condition::Fits(patterns.collect(), fitting));
        }
    }
    for (key, fitting) in [("contains", Fitting::All), ("contains_any", Fitting::Any)] {
        let parts = values(&map, key).or_else(|| Some(vec![map.json(key)?]));
        let Some(parts) = parts else { continue };
        if parts.is_empty() || parts.iter().any(|part| part == "") {
            mistakes.push(mistake(map.place_of(key), format!("`{key}` looks for nothing")));
        }
        all.push(Condition::Contains(parts, fitting));
    }
    match map.bool("given") {
        Some(true) => all.push(Condition::Given),
        Some(false) => all.push(Condition::Equals(Value::Null)),
        None => {}
    }
    all.extend(map.get("members").map(|view| Condition::Members(conditions(view, mistakes))));
    let mut several = |key: &str| -> Option<Vec<Condition>> {
        Some(map.list(key)?.filter_map(|view| condition(view, mistakes)).collect())
    };
    all.extend(several("entries").map(Condition::Entries));
    all.extend(several("all").map(Condition::All));
    if let Some(view) = map.get("not") {
        all.extend(condition(view, mistakes).map(|inner| Condition::Not(Box::new(inner))));
    }
    match all.len() {
        0 => {
            mistakes.push(mistake(Some(view.place()), "this condition asks for nothing"));
            None
        }
        1 => all.pop(),
        _ => Some(Condition::All(all)),
    }
}

fn values(map: &Map<'_>, key: &str) -> Option<Vec<Value>> {
    Some(map.list(key)?.map(View::json).collect())
}
