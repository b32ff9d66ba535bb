//! TypeScript becomes JavaScript in which everything stands where it stood.

use std::ops::Range;

use tsv_ts::{Goal, StripError, UnsupportedConstruct};

/// What is wrong with a text that should be TypeScript.
pub(crate) struct NotStripped {
    pub message: String,
    pub help: Option<&'static str>,
    pub span: Range<usize>,
}

/// The same program without types: each line keeps its number, each character its column (in UTF-16 units).
///
/// # Errors
/// When the text is no TypeScript, or TypeScript that means more than its JavaScript does.
pub(crate) fn strip(text: &str) -> Result<String, NotStripped> {
    // The parser descends as deep as what it reads, which a small thread does not survive.
    let stripped =
        tsv_ts::run_with_stack(|| tsv_ts::strip_with_goal(text, Goal::Module)).map_err(|error| {
            NotStripped { message: format!("no thread can be started: {error}"), help: None, span: 0..0 }
        })?;
    stripped.map(|stripped| stripped.code).map_err(|error| NotStripped {
        message: error.message(),
        help: help(&error),
        span: error.error().span().unwrap_or(0..0),
    })
}

fn help(error: &StripError) -> Option<&'static str> {
    let StripError::Unsupported { construct, .. } = error else { return None };
    Some(match construct {
        UnsupportedConstruct::Enum => {
            "types are removed, and an enum is more than a type: write `const Color = { Red: \"red\" } as const`"
        }
        UnsupportedConstruct::ValueNamespace => {
            "types are removed, and a namespace is more than a type: use a module"
        }
        UnsupportedConstruct::ParameterProperty => {
            "types are removed, and this is more than a type: declare the field and assign it in the constructor"
        }
        UnsupportedConstruct::ImportEquals => "write `import … from \"…\"`",
        UnsupportedConstruct::ExportEquals => "write `export default …`",
        UnsupportedConstruct::TypeAssertion => "write `value as Type`",
        UnsupportedConstruct::AssertionGrouping => "put the assertion in parentheses",
        _ => "types are removed, and this is more than a type",
    })
}
