//! JSON paths (RFC 9535) with a bound on their cost.
//!
//! A path with one `..` visits each part of a value once. Each further one, also within a filter, multiplies that by the depth
//! of the value, and a filter that starts at `$` again by its size. Values come from agents, so the cost is estimated first.

use hotseat_document::json::JsonSize;
use serde_json::Value;
use serde_json_path::{JsonPath, ParseError};

/// Maximum number of parts of a value that one evaluation visits.
const MAX_VISITS: u64 = 5_000_000;
/// Maximum size of all selected values together: this number of parts, and this multiple of the value itself.
const MAX_SELECTED_PARTS: u64 = 1_000_000;
const MAX_SELECTED_SHARE: u64 = 4;

/// Parsed JSON path with a bound on its cost.
#[derive(Debug, Clone)]
pub struct BoundedPath {
    path: JsonPath,
    /// Number of `..`, also in filters.
    descents: u32,
    /// True if a part of the path is a filter.
    has_filter: bool,
    /// Number of filters that may search the whole value again.
    restarts: u32,
}

/// The path would visit or select too much of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it would visit or select too many parts of this value")]
pub struct PathTooCostly;

impl BoundedPath {
    /// Parses a path.
    ///
    /// # Errors
    /// If the path is invalid.
    pub fn parse(text: &str) -> Result<BoundedPath, ParseError> {
        let path = JsonPath::parse(text)?;
        let (plain, _) = without_quoted_names(text);
        let count = |text: &str, part: &str| u32::try_from(text.matches(part).count()).unwrap_or(u32::MAX);
        let filters = plain.find('?').map_or("", |start| &plain[start..]);
        let searches_again = filters.contains("..") || filters.contains(['*', ':']);
        let restarts = if searches_again { count(filters, "$") } else { 0 };
        let has_filter = plain.contains('?');
        Ok(BoundedPath { path, descents: count(&plain, ".."), has_filter, restarts })
    }

    /// True if the path selects values by what is in them.
    pub fn has_filter(&self) -> bool {
        self.has_filter
    }

    /// Checks that [`BoundedPath::query`] can return the selected values.
    ///
    /// # Errors
    /// If that would cost too much.
    pub fn check_cost(&self, value: &Value) -> Result<(), PathTooCostly> {
        if self.is_cheap() { Ok(()) } else { self.query(value).map(drop) }
    }

    /// True if the path visits each part of a value at most once.
    fn is_cheap(&self) -> bool {
        self.descents == 0 && self.restarts == 0
    }

    /// Returns the selected values.
    ///
    /// # Errors
    /// If that would cost too much.
    pub fn query<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, PathTooCostly> {
        if self.is_cheap() {
            return Ok(self.path.query(value).all());
        }
        let JsonSize { values: parts, depth, .. } = JsonSize::measure(value);
        let levels = depth as u64 + 1;
        let repeated = levels.saturating_pow(self.descents.saturating_sub(1));
        let repeated = repeated.saturating_mul(parts.saturating_pow(self.restarts));
        if repeated > 1 && repeated.saturating_mul(parts) > MAX_VISITS {
            return Err(PathTooCostly);
        }
        let found = self.path.query(value).all();
        let mut rest = MAX_SELECTED_PARTS.saturating_add(parts.saturating_mul(MAX_SELECTED_SHARE));
        for value in &found {
            rest = rest.checked_sub(JsonSize::measure(value).values).ok_or(PathTooCostly)?;
        }
        Ok(found)
    }
}

/// Returns a value as a name, or a part of one, that follows the start of a path: escaped within quotes, and as it is elsewhere.
/// `None` if the path would read it as more than a name or an index.
pub fn name_in_path(start: &str, value: &str) -> Option<String> {
    let Some(quote) = without_quoted_names(start).1 else {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii();
        return (!value.is_empty() && value.chars().all(is_plain)).then(|| value.to_string());
    };
    let mut name = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => name.push_str("\\\\"),
            character if character == quote => name.extend(['\\', character]),
            '\0'..='\u{1f}' => name.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => name.push(character),
        }
    }
    Some(name)
}

/// Returns the path without its quoted names and texts, and the quote of one that does not end.
fn without_quoted_names(text: &str) -> (String, Option<char>) {
    let mut plain = String::new();
    let mut quote = None;
    let mut is_escaped = false;
    for character in text.chars() {
        match quote {
            None if matches!(character, '"' | '\'') => quote = Some(character),
            None => plain.push(character),
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if character == '\\' => is_escaped = true,
            Some(open) if character == open => quote = None,
            Some(_) => {}
        }
    }
    (plain, quote)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn select(path: &str, value: &Value) -> Result<usize, PathTooCostly> {
        BoundedPath::parse(path).expect("a path").query(value).map(|found| found.len())
    }

    #[test]
    fn costly_paths_are_refused_for_the_values_that_make_them_costly() {
        let chain = (0..110).fold(json!(1), |inner, _| json!({"a": inner, "b": 1}));
        let flat = Value::Array((0..20_000).map(|n| json!({"id": n, "a": 1})).collect());
        for path in ["$..a..a..a..a", "$..*..*..*..*", "$..[?@..[?@..a]]..a"] {
            assert_eq!(select(path, &chain), Err(PathTooCostly), "{path}");
        }
        assert_eq!(select("$[?$..a]", &flat), Err(PathTooCostly));
        assert_eq!(select("$..a", &chain), Ok(110));
        assert_eq!(select("$..a..b", &chain), Ok(110 * 109 / 2));
        assert_eq!(select("$[?@.id == $[7].id]", &flat), Ok(1));
        assert_eq!(select("$[*].id", &flat), Ok(20_000));
        assert_eq!(select("$['..']['..']['?$*']", &chain), Ok(0), "names are no steps");
        assert_eq!(select("$..id", &flat), Ok(20_000));
    }

    #[test]
    fn selected_values_have_a_size_limit() {
        let wide = json!(vec![0; 100_000]);
        let chain = (0..100).fold(wide, |inner, _| json!({"a": inner}));
        assert_eq!(select("$..a", &chain), Err(PathTooCostly));
        assert_eq!(select("$.a.a", &chain), Ok(1));
    }
}
