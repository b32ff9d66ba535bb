//! Tests declared by attributes.

mod booking;
mod outcomes;
