//! Filters and tests of templates: those that do not exist, which the template engine finds only when it renders a
//! template, and those that make texts.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, Value};
use regex::Regex;

/// Names that are suggested in place of misspelt ones.
const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "default",
    "dictsort",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];
const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "equalto",
    "even",
    "false",
    "float",
    "greaterthan",
    "in",
    "integer",
    "iterable",
    "lessthan",
    "lower",
    "mapping",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
    "upper",
];

/// Filters that make a text of any value.
const TEXT_FILTERS: &[&str] =
    &["capitalize", "indent", "lower", "replace", "string", "title", "trim", "upper"];

/// Returns the JSON of a value that is no text and no number.
pub(super) fn json_text(value: &Value) -> Result<Option<String>, Error> {
    match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Bool | ValueKind::None => serde_json::to_string(value)
            .map(Some)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string())),
        _ => Ok(None),
    }
}

/// Returns a value as a filter that makes a text shall write it.
fn as_written(value: Value) -> Result<Value, Error> {
    Ok(json_text(&value)?.map_or(value, Value::from))
}

/// Has filters that make texts write values as templates do, and not as the template engine does.
pub(super) fn write_json_in_filters(environment: &mut Environment<'static>) {
    let original = environment.clone();
    let mut replace = |name: &'static str, prepare: fn(Value, &[Value]) -> Result<Value, Error>| {
        let original = original.clone();
        environment.add_filter(name, move |value: Value, more: Rest<ValueOrKwargs>| {
            let mut arguments: Vec<Value> = more.0.into_iter().map(Value::from).collect();
            arguments.insert(0, prepare(value, &arguments)?);
            original.empty_state().apply_filter(name, &arguments)
        });
    };
    for name in TEXT_FILTERS {
        replace(name, |value, _| as_written(value));
    }
    replace("join", |value, more| {
        let has_attribute = more.len() > 1 || more.last().is_some_and(Value::is_kwargs);
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable if !has_attribute => {
                Ok(value.try_iter()?.map(as_written).collect::<Result<Vec<_>, _>>()?.into())
            }
            _ => Ok(value),
        }
    });
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Filter,
    Test,
}

impl NameKind {
    pub(super) fn describe(self) -> &'static str {
        match self {
            NameKind::Filter => "filter",
            NameKind::Test => "test",
        }
    }

    /// Returns names of this kind.
    pub(super) fn known_names(self) -> &'static [&'static str] {
        match self {
            NameKind::Filter => FILTERS,
            NameKind::Test => TESTS,
        }
    }

    fn exists(self, name: &str, environment: &Environment<'_>) -> bool {
        let mut state = environment.empty_state();
        // Without arguments they fail, but with another error.
        let error = match self {
            NameKind::Filter => state.apply_filter(name, &[]).err(),
            NameKind::Test => state.perform_test(name, &[]).err(),
        };
        !error.is_some_and(|error| matches!(error.kind(), ErrorKind::UnknownFilter | ErrorKind::UnknownTest))
    }
}

/// A filter or test that does not exist.
#[derive(Debug)]
pub(super) struct UnknownName {
    pub(super) kind: NameKind,
    pub(super) name: String,
    /// Bytes of the name in the template.
    pub(super) part: Range<usize>,
}

/// Returns the filters and tests of a template that do not exist. `compiles` says whether a text is a valid template.
pub(super) fn unknown_names(
    source: &str,
    environment: &Environment<'_>,
    compiles: impl Fn(&str) -> bool,
) -> Vec<UnknownName> {
    static USE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let name = r"[\p{L}_][\w]*(?:\s*\.\s*[\p{L}_][\w]*)*";
        Regex::new(&format!(r"(?:\||\bfilter\s)\s*(?<filter>{name})|\bis\s+(?:not\s+)?(?<test>{name})")).ok()
    });
    let mut unknown = Vec::new();
    for found in USE.iter().flat_map(|pattern| pattern.captures_iter(source)) {
        for (kind, group) in [(NameKind::Filter, "filter"), (NameKind::Test, "test")] {
            let Some(written) = found.name(group) else { continue };
            let name: String = written.as_str().split_whitespace().collect();
            if kind.exists(&name, environment) {
                continue;
            }
            let part = written.range();
            // A number cannot take the place of a name, but of any word in a text, a comment or a string.
            let replaced = format!("{}0{}", &source[..part.start], &source[part.end..]);
            if !compiles(&replaced) {
                unknown.push(UnknownName { kind, name, part });
            }
        }
    }
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(source: &str) -> Vec<String> {
        let environment = Environment::new();
        let found = unknown_names(source, &environment, |text| environment.template_from_str(text).is_ok());
        found.into_iter().map(|name| format!("{} {}", name.kind.describe(), name.name)).collect()
    }

    #[test]
    fn unknown_filters_and_tests_are_found() {
        assert_eq!(
            unknown("{{ user|shout }} {{ user | upper | whisper }}"),
            ["filter shout", "filter whisper"]
        );
        assert_eq!(
            unknown("{% if user is loud %}{% elif user is not odd or turn is not big %}{% endif %}"),
            ["test loud", "test big"]
        );
        assert_eq!(unknown("{% filter shout | trim %}x{% endfilter %}"), ["filter shout"]);
        assert_eq!(
            unknown("{% set x | shout %}x{% endset %}{{ {'a': {}} | whisper }}"),
            ["filter shout", "filter whisper"]
        );
    }

    #[test]
    fn words_that_are_no_filters_and_tests_are_allowed() {
        for text in [
            "This is a table: {{ user }} | price",
            "{{ 'a | b' }} {{ \"it is fine\" }} {# x | y is z #} the filter rules",
            "{% raw %}{{ x | shout }}{% endraw %}",
            "{{ user | upper | default('x') }} {% if user is defined and turn is divisibleby 2 %}{% endif %}",
        ] {
            assert_eq!(unknown(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn suggested_names_exist() {
        let environment = Environment::new();
        for kind in [NameKind::Filter, NameKind::Test] {
            for name in kind.known_names() {
                assert!(kind.exists(name, &environment), "{name}");
            }
        }
    }
}
