//! JSON with comments.
//!
//! A file is a stream of values: one on each line, or each spread over several lines, with nothing between them but
//! space and comments (`// …` and `/* … */`); or one list of them. Everything else is JSON as its standard says: no
//! comma behind the last entry, keys and texts in double quotes. A key that is written twice is refused, as is a
//! number that would lose digits.

mod build;
mod number;
mod split;
mod text;
mod value;

use std::io::BufRead;
use std::sync::Arc;

pub use split::Values;
pub use value::read_value;

use super::diagnostic::Diagnostics;
use super::node::Node;
use super::place::Source;

/// Reads one value. A source without any is an empty one, which is [`Value::Null`](super::Value::Null).
pub fn parse(source: &Arc<Source>) -> Result<Node, Diagnostics> {
    build::build(source)
}

/// Takes a stream apart into its values, without reading more of it than the next one.
///
/// `name` is the path as it is shown to people. Where the whole file is one list, its entries are the values; the
/// same for a list that is the one member `wrapper` of an object: `{"wrapper": […]}`.
pub fn values<R: BufRead>(name: impl Into<Arc<str>>, reader: R, wrapper: &'static str) -> Values<R> {
    Values::new(name.into(), reader, wrapper)
}
