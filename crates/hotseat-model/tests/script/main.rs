//! The scripted model: what it answers, what is wrong with a script, and what always holds.

mod answers;
mod mistakes;
mod properties;
