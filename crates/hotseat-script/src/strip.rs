//! Removes types from TypeScript without moving the remaining code.

use std::ops::Range;

#[cfg(feature = "engine")]
use tsv_ts::{Goal, StripError, UnsupportedConstruct};

/// Error in a TypeScript source.
pub(crate) struct StripFailure {
    pub message: String,
    pub help: Option<&'static str>,
    pub span: Range<usize>,
}

/// Refuses every file: without an engine nothing would run it. Always fails.
#[cfg(not(feature = "engine"))]
pub(crate) fn strip_types(_: &str) -> Result<String, StripFailure> {
    Err(StripFailure { message: crate::error::NO_ENGINE.to_string(), help: None, span: 0..0 })
}

/// Removes the types. Every line keeps its number and every character its column (in UTF-16 units). Fails if
/// the text is not TypeScript, or uses syntax that is more than types.
#[cfg(feature = "engine")]
pub(crate) fn strip_types(text: &str) -> Result<String, StripFailure> {
    // The parser recurses as deep as the code is nested, too deep for a small thread.
    let stripped =
        tsv_ts::run_with_stack(|| tsv_ts::strip_with_goal(text, Goal::Module)).map_err(|error| {
            StripFailure { message: format!("cannot start a thread: {error}"), help: None, span: 0..0 }
        })?;
    stripped.map(|stripped| stripped.code).map_err(|error| StripFailure {
        message: error.message(),
        help: strip_advice(&error),
        span: error.error().span().unwrap_or(0..0),
    })
}

#[cfg(feature = "engine")]
fn strip_advice(error: &StripError) -> Option<&'static str> {
    let StripError::Unsupported { construct, .. } = error else { return None };
    Some(match construct {
        UnsupportedConstruct::Enum => {
            "an enum is not only a type, so it cannot be removed: write `const Color = { Red: \"red\" } as const`"
        }
        UnsupportedConstruct::ValueNamespace => {
            "a namespace is not only a type, so it cannot be removed: use a module"
        }
        UnsupportedConstruct::ParameterProperty => {
            "a parameter property is not only a type, so it cannot be removed: declare the field and assign it in the constructor"
        }
        UnsupportedConstruct::ImportEquals => "write `import … from \"…\"`",
        UnsupportedConstruct::ExportEquals => "write `export default …`",
        UnsupportedConstruct::TypeAssertion => "write `value as Type`",
        UnsupportedConstruct::AssertionGrouping => "put the assertion in parentheses",
        _ => "this syntax is not only a type, so it cannot be removed",
    })
}
