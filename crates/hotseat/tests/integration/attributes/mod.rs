//! Tests declared by the attributes of `hotseat-attributes`.

mod booking;
mod outcomes;
