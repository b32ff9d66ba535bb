//! Case files: from documents to cases.
//!
//! A case is decoded when its file is loaded, which finds every mistake before anything is contacted. Where it
//! uses variables that only its hooks can give, it is decoded once more when they are known.

mod around;
mod assertion;
mod assertion_shape;
mod block;
mod brief;
mod case;
mod checkpoints;
mod condition;
mod content;
mod criteria;
mod hook;
mod judging;
mod limits;
mod partners;
mod program;
mod reliability;
mod said;
mod scenarios;
mod script;
pub mod shape;
mod shared;
mod suite;
mod tested;
pub(crate) mod topic_shape;
mod topics;
mod variables;

pub use block::Block;
pub use brief::{Brief, Character, MOST_INPUTS, Notes, Template};
pub use case::{
    Case, CaseTarget, ExpectedError, Inherited, OnComplete, Opening, Options, Parse, Turn, signs,
};
pub use checkpoints::Checkpoint;
pub use criteria::{Vocabulary, satisfies};
pub use hook::{Hook, NamedHook};
pub use judging::judging;
pub use limits::millis;
pub use partners::{Interactive, Simulator, Style};
pub use reliability::{Declared, Reliability, reliability};
pub use said::{
    assertions_in, brief_in, condition_in, messages_in, topic_is_sound, topics_in, turn_in, user_is_sound,
};
pub use scenarios::{Scenario, scenario_set, stable_id};
pub use script::{client_tools, interrupt_answers};
pub use shared::Shared;
pub use suite::{Decoding, PROGRAM_EXTENSIONS, Suite, With, is_program, parse_as};
pub use tested::{AgentName, AgentsByName, no_such_agent};
pub use topic_shape::{GRAPH_TOPIC, SHARED, SIMULATE, USER};
pub use topics::{Following, Topic, Topics, TopicsDecided, Trigger, graph, topics};
pub use variables::{Environment, Variables, interpolate, literal, references};
