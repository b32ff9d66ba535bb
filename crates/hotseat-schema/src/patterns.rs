//! Patterns that are valid in schemas, but not supported: they cannot be matched in linear time.

use serde_json::{Map, Value, json};

use crate::steps::DATA_KEYWORDS;
use crate::{JsonSchemaError, SCHEMA_MAPS};

/// What begins look-around or a back-reference.
const UNSUPPORTED: [&str; 5] = ["(?=", "(?!", "(?<=", "(?<!", "\\k<"];
/// Pattern that no text matches.
const NO_MATCH: &str = r"[^\s\S]";

/// A schema without the patterns that are not supported.
pub(crate) struct WithoutPatterns {
    /// The schema without these keywords.
    pub(crate) ignoring: Value,
    /// The schema with patterns in their place that no text matches.
    pub(crate) refusing: Value,
    /// The first of these patterns.
    pub(crate) first: JsonSchemaError,
}

/// Removes the patterns that are not supported, as `is_supported` says of those that look so. `None` if there are none.
pub(crate) fn without_patterns(
    schema: &Value,
    is_supported: impl Fn(&str) -> bool,
) -> Option<WithoutPatterns> {
    let (mut ignoring, mut refusing) = (schema.clone(), schema.clone());
    let mut removal = Removal { is_supported: &is_supported, found: None, replacement: None };
    removal.remove_from(&mut ignoring, String::new());
    let first = removal.found.take()?;
    removal.replacement = Some(NO_MATCH);
    removal.remove_from(&mut refusing, String::new());
    Some(WithoutPatterns { ignoring, refusing, first })
}

/// Returns true if a pattern seems to use look-around or a back-reference.
pub(crate) fn looks_unsupported(pattern: &str) -> bool {
    let has_number = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9');
    UNSUPPORTED.iter().any(|part| pattern.contains(part)) || pattern.as_bytes().windows(2).any(has_number)
}

struct Removal<'a> {
    is_supported: &'a dyn Fn(&str) -> bool,
    /// The first removed pattern.
    found: Option<JsonSchemaError>,
    replacement: Option<&'static str>,
}

impl Removal<'_> {
    /// Removes the patterns from a schema or a list of schemas.
    fn remove_from(&mut self, schema: &mut Value, pointer: String) {
        match schema {
            Value::Array(schemas) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    self.remove_from(schema, format!("{pointer}/{index}"));
                }
            }
            Value::Object(members) => self.remove_from_members(members, &pointer),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn remove_from_members(&mut self, members: &mut Map<String, Value>, pointer: &str) {
        if let Some(Value::String(pattern)) = members.get("pattern")
            && looks_unsupported(pattern)
            && !(self.is_supported)(pattern)
        {
            let (pattern, pointer) = (pattern.clone(), format!("{pointer}/pattern"));
            self.found.get_or_insert(JsonSchemaError::UnsupportedPattern { pattern, pointer });
            match self.replacement {
                Some(replacement) => members.insert("pattern".to_string(), json!(replacement)),
                None => members.shift_remove("pattern"),
            };
        }
        for (keyword, value) in members {
            let place = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
            match value {
                _ if DATA_KEYWORDS.contains(&keyword.as_str()) => {}
                Value::Object(schemas) if SCHEMA_MAPS.contains(&keyword.as_str()) => {
                    for (name, schema) in schemas {
                        self.remove_from(
                            schema,
                            place(keyword) + &format!("/{}", name.replace('~', "~0").replace('/', "~1")),
                        );
                    }
                }
                value => self.remove_from(value, place(keyword)),
            }
        }
    }
}
