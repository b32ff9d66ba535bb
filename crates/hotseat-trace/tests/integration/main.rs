//! Tests of stored traces.

mod golden;
