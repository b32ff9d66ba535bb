//! YAML 1.2 with the core schema, as far as it has a JSON form.
//!
//! Plain scalars follow the core schema: `true` is a boolean; `yes`, `on` and `2024-01-31` are strings;
//! `0x1F` and `0o17` are numbers. Anchors, aliases and merge keys (`<<`) work, up to an expansion limit.
//! Anything without a JSON form is rejected with its location: keys that are not strings, `.inf`, tags of
//! other schemas, numbers that would lose digits. Duplicate keys are rejected as well.

mod build;
mod scalar;
mod split;
mod syntax_error;

use std::io::BufRead;
use std::sync::Arc;

pub use split::YamlStream;

use super::diagnostic::Diagnostics;
use super::node::DocumentNode;
use super::place::SourceText;

/// Parses one document.
///
/// An empty source is [`NodeValue::Null`](super::NodeValue::Null). A source with several documents is an error; use
/// [`documents`] to split such a file.
pub fn parse(source: &Arc<SourceText>) -> Result<DocumentNode, Diagnostics> {
    build::parse_document(source)
}

/// Splits a stream into documents, reading no further than the next one.
///
/// `name` is the display path.
pub fn documents<R: BufRead>(name: impl Into<Arc<str>>, reader: R) -> YamlStream<R> {
    YamlStream::new(name.into(), reader)
}
