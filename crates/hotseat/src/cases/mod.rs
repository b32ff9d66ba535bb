//! Case files: from documents to cases.
//!
//! A case is decoded when its file is loaded, which finds every mistake before anything is contacted. Where it
//! uses variables that only its hooks can give, it is decoded once more when they are known.

mod assertion;
mod assertion_shape;
mod block;
mod case;
mod checkpoints;
mod content;
mod hook;
mod limits;
mod partners;
mod script;
pub mod shape;
mod suite;
mod variables;

pub use block::Block;
pub use case::{
    Case, CaseTarget, ExpectedError, Inherited, OnComplete, Opening, Options, Parse, Turn, signs,
};
pub use checkpoints::Checkpoint;
pub use hook::{Hook, NamedHook};
pub use limits::millis;
pub use partners::{Interactive, Simulator, Style};
pub use script::{client_tools, interrupt_answers};
pub use suite::{Decoding, Suite};
pub use variables::{Environment, Variables, interpolate, literal, references};
