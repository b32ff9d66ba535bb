//! The scripted model: answers, invalid scripts, and properties.

mod answers;
mod errors;
mod properties;
