//! Tests of documents, diagnostics and shapes.

mod diagnostic;
mod json;
mod shape;
mod split;
mod text_locations;
mod yaml;
