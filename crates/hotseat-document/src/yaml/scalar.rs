//! Resolves scalars by the YAML 1.2 core schema, restricted to JSON values.

use saphyr_parser::Tag;
use serde_json::Number;

use crate::excerpt::shorten;
use crate::node::NodeValue;

/// Type requested by a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagType {
    /// No tag: resolved by the schema.
    Untagged,
    Text,
    Integer,
    Float,
    Bool,
    Null,
    List,
    Map,
}

/// Error of a scalar or tag: message and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScalarError {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl ScalarError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        ScalarError { message: message.into(), help: Some(help.into()) }
    }
}

/// Returns the type that a tag names.
pub(super) fn type_of(tag: Option<&Tag>) -> Result<TagType, ScalarError> {
    let Some(tag) = tag else { return Ok(TagType::Untagged) };
    let name = format!("{}{}", tag.handle, tag.suffix);
    match name.strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Ok(TagType::Text),
        Some("int") => Ok(TagType::Integer),
        Some("float") => Ok(TagType::Float),
        Some("bool") => Ok(TagType::Bool),
        Some("null") => Ok(TagType::Null),
        Some("seq") => Ok(TagType::List),
        Some("map") => Ok(TagType::Map),
        Some(other) => Err(unknown_tag(&format!("!!{other}"))),
        // A lone `!` makes a scalar a string.
        None if name == "!" => Ok(TagType::Text),
        None => Err(unknown_tag(&name)),
    }
}

fn unknown_tag(tag: &str) -> ScalarError {
    ScalarError::new(
        format!("the tag `{}` is not supported", shorten(tag)),
        "remove it; known tags are `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!seq` and `!!map`",
    )
}

/// Returns the value of a scalar. `plain` is true for unquoted scalars.
pub(super) fn resolve_scalar(text: String, plain: bool, wanted: TagType) -> Result<NodeValue, ScalarError> {
    let value = match wanted {
        TagType::Untagged if plain => return resolve_plain(text),
        TagType::Untagged | TagType::Text => return Ok(NodeValue::String(text)),
        TagType::Integer => parse_integer(&text)?.map(NodeValue::Number),
        TagType::Float => {
            parse_number(&text)?.and_then(|number| Number::from_f64(number.as_f64()?)).map(NodeValue::Number)
        }
        TagType::Bool => parse_bool(&text).map(NodeValue::Bool),
        TagType::Null => is_null(&text).then_some(NodeValue::Null),
        TagType::List | TagType::Map => None,
    };
    let name = match wanted {
        TagType::Untagged | TagType::Text => "str",
        TagType::Integer => "int",
        TagType::Float => "float",
        TagType::Bool => "bool",
        TagType::Null => "null",
        TagType::List => "seq",
        TagType::Map => "map",
    };
    value.ok_or_else(|| ScalarError { message: format!("this does not fit its tag `!!{name}`"), help: None })
}

/// Resolves a plain scalar without a tag.
fn resolve_plain(text: String) -> Result<NodeValue, ScalarError> {
    // Most plain scalars start with a letter that only strings start with.
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F') => {
            if is_null(&text) {
                return Ok(NodeValue::Null);
            }
            if let Some(truth) = parse_bool(&text) {
                return Ok(NodeValue::Bool(truth));
            }
        }
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => {
            if let Some(number) = parse_number(&text)? {
                return Ok(NodeValue::Number(number));
            }
        }
        Some(_) => {}
    }
    Ok(NodeValue::String(text))
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Parses a number, if the text is one.
fn parse_number(text: &str) -> Result<Option<Number>, ScalarError> {
    if let Some(number) = parse_integer(text)? {
        return Ok(Some(number));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(ScalarError::new(
            format!("`{text}` is not a number that JSON can hold"),
            format!("write \"{text}\" to mean text"),
        ));
    }
    if !is_float(unsigned) {
        return Ok(None);
    }
    match text.parse().ok().and_then(Number::from_f64) {
        Some(number) => Ok(Some(number)),
        None => Err(too_large(text)),
    }
}

/// Parses an integer, if the text is one.
fn parse_integer(text: &str) -> Result<Option<Number>, ScalarError> {
    let digits = |text: &str, base: u32| !text.is_empty() && text.chars().all(|digit| digit.is_digit(base));
    for (prefix, base) in [("0o", 8), ("0x", 16)] {
        if let Some(rest) = text.strip_prefix(prefix)
            && digits(rest, base)
        {
            let value = u64::from_str_radix(rest, base).map_err(|_| too_large(text))?;
            return Ok(Some(value.into()));
        }
    }
    if !digits(text.strip_prefix(['+', '-']).unwrap_or(text), 10) {
        return Ok(None);
    }
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).map(Some).map_err(|_| too_large(text))
}

fn too_large(text: &str) -> ScalarError {
    let quoted = if text.len() <= 40 { format!("write \"{text}\"") } else { "put it in quotes".to_owned() };
    ScalarError::new("this number is too large to be kept exactly", format!("{quoted} to mean text"))
}

/// Returns true for an unsigned `.5`, `5.`, `5.5` or `5`, each with an optional exponent.
fn is_float(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && is_digits(exponent)
    });
    (!whole.is_empty() || !fraction.is_empty()) && is_digits(whole) && is_digits(fraction) && exponent_fits
}
