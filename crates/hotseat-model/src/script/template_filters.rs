//! Filters and tests of templates that do not exist. The template engine finds them only when it renders a template.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::{Environment, ErrorKind};
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
