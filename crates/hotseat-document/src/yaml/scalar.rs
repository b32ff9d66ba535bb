//! What a scalar means: the core schema of YAML 1.2, without what JSON cannot hold.

use saphyr_parser::Tag;
use serde_json::Number;

use crate::node::{Value, shorten};

/// What a tag asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// No tag: what the schema says.
    Unsaid,
    Text,
    Integer,
    Float,
    Bool,
    Null,
    List,
    Map,
}

/// Why a scalar or a tag has no meaning here: a message and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Unfit {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Unfit { message: message.into(), help: Some(help.into()) }
    }
}

/// The type that a tag names.
pub(super) fn type_of(tag: Option<&Tag>) -> Result<Type, Unfit> {
    let Some(tag) = tag else { return Ok(Type::Unsaid) };
    let name = format!("{}{}", tag.handle, tag.suffix);
    match name.strip_prefix("tag:yaml.org,2002:") {
        Some("str") => Ok(Type::Text),
        Some("int") => Ok(Type::Integer),
        Some("float") => Ok(Type::Float),
        Some("bool") => Ok(Type::Bool),
        Some("null") => Ok(Type::Null),
        Some("seq") => Ok(Type::List),
        Some("map") => Ok(Type::Map),
        Some(other) => Err(unknown(&format!("!!{other}"))),
        // A lone `!` means: by its syntax alone, so a scalar is text.
        None if name == "!" => Ok(Type::Text),
        None => Err(unknown(&name)),
    }
}

fn unknown(tag: &str) -> Unfit {
    Unfit::new(
        format!("the tag `{}` means nothing here", shorten(tag)),
        "leave it out; known tags are `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!seq` and `!!map`",
    )
}

/// The value of a scalar. `plain` says that it is written without quotes.
pub(super) fn scalar(text: String, plain: bool, wanted: Type) -> Result<Value, Unfit> {
    let value = match wanted {
        Type::Unsaid if plain => return untagged(text),
        Type::Unsaid | Type::Text => return Ok(Value::String(text)),
        Type::Integer => integer(&text)?.map(Value::Number),
        Type::Float => {
            number(&text)?.and_then(|number| Number::from_f64(number.as_f64()?)).map(Value::Number)
        }
        Type::Bool => truth(&text).map(Value::Bool),
        Type::Null => is_null(&text).then_some(Value::Null),
        Type::List | Type::Map => None,
    };
    let name = match wanted {
        Type::Unsaid | Type::Text => "str",
        Type::Integer => "int",
        Type::Float => "float",
        Type::Bool => "bool",
        Type::Null => "null",
        Type::List => "seq",
        Type::Map => "map",
    };
    value.ok_or_else(|| Unfit { message: format!("this does not fit its tag `!!{name}`"), help: None })
}

/// The value of a plain scalar without a tag.
fn untagged(text: String) -> Result<Value, Unfit> {
    // Most plain scalars begin with a letter that nothing but text begins with.
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F') => {
            if is_null(&text) {
                return Ok(Value::Null);
            }
            if let Some(truth) = truth(&text) {
                return Ok(Value::Bool(truth));
            }
        }
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => {
            if let Some(number) = number(&text)? {
                return Ok(Value::Number(number));
            }
        }
        Some(_) => {}
    }
    Ok(Value::String(text))
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The number that a text spells, if it does.
fn number(text: &str) -> Result<Option<Number>, Unfit> {
    if let Some(number) = integer(text)? {
        return Ok(Some(number));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(Unfit::new(
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

/// The integer that a text spells, if it does.
fn integer(text: &str) -> Result<Option<Number>, Unfit> {
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

fn too_large(text: &str) -> Unfit {
    let quoted = if text.len() <= 40 { format!("write \"{text}\"") } else { "put it in quotes".to_owned() };
    Unfit::new("this number is too large to be kept exactly", format!("{quoted} to mean text"))
}

/// Whether a text without its sign is `.5`, `5.`, `5.5` or `5`, each with or without an exponent.
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
