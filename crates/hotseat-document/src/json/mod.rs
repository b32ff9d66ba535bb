//! JSON with comments.
//!
//! A file is a stream of values, one per line or spread over several lines, separated by white space and
//! comments (`// …` and `/* … */`); or a single list of values. Everything else follows the JSON standard: no
//! trailing commas, keys and strings in double quotes. Duplicate keys are rejected, and so are numbers that
//! would lose digits.

mod build;
mod digits;
mod line;
mod number;
mod size;
mod split;
mod surrogates;
mod text;
mod value;

use std::io::BufRead;
use std::sync::Arc;

pub use digits::keep_digits;
pub use line::to_line;
pub use size::JsonSize;
pub use split::JsonStream;
pub use surrogates::{SURROGATE_MARK, join_surrogates, mark_surrogates, replace_surrogates};
pub use value::{
    JsonReadError, any_value, error_in_line, may_have_more_values, objects, optional_value, read_bytes,
    read_record, read_value,
};

use super::diagnostic::Diagnostics;
use super::node::DocumentNode;
use super::place::SourceText;
use text::LoneSurrogates;

/// Parses one value. An empty source is [`NodeValue::Null`](super::NodeValue::Null).
pub fn parse(source: &Arc<SourceText>) -> Result<DocumentNode, Diagnostics> {
    build::parse_document(source, LoneSurrogates::Refused)
}

/// Parses one value as [`parse`] does, for data that a program recorded: half of a surrogate pair in a string becomes U+FFFD,
/// since programs cut texts between the halves.
pub fn parse_recorded(source: &Arc<SourceText>) -> Result<DocumentNode, Diagnostics> {
    build::parse_document(source, LoneSurrogates::Replaced)
}

/// Splits a stream into its values, reading no further than the next one.
///
/// `name` is the display path. If the whole file is one list, its entries are the values; the same holds for
/// an object with the single member `wrapper`: `{"wrapper": […]}`.
pub fn values<R: BufRead>(name: impl Into<Arc<str>>, reader: R, wrapper: &'static str) -> JsonStream<R> {
    JsonStream::new(name.into(), reader, wrapper)
}
