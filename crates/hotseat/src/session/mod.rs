//! One conversation being held: turns are sent, what happens is recorded, checks decide.

mod asking_script;
mod awaiting;
mod checkpoints;
mod clock;
mod content;
mod deciding;
mod hold;
mod hook;
mod identity;
mod next;
mod person;
mod recorder;
mod redact;
mod script;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{CheckVerdict, Conversation, Record, Verdict};

pub use awaiting::{Signs, Waiting};
pub use checkpoints::{Reached, missing};
pub use clock::{Clock, wall_millis};
pub use content::{Media, MediaKind, MediaSource, Message, MessageCall, Part, Role, media, merged, words};
pub use hold::{MORE_INPUT, NO_NEXT_TURN, hold};
pub use hook::run_hook;
pub use identity::Identity;
pub use next::{Asked, Next, OnMissingInput, Sources};
pub use person::{AskedPerson, Person, Typed};
pub use recorder::Recorder;
pub use redact::Redactor;
pub(crate) use script::output_of_text;
pub use script::{
    AskedInterrupt, ClientTool, InterruptAnswer, InterruptReply, ToolAnswer, ToolReply, TurnScript,
};
pub use turn::ATTACHED;

use crate::checks::{Check, Judged, Reference};
use crate::roles;
use crate::scripts::Function;

/// How long things may take where neither case nor turn says so.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// One turn.
    pub turn: Duration,
    /// Nothing at all is received.
    pub idle: Duration,
    /// All turns together, where the run sets a limit.
    pub case: Option<Duration>,
}

/// What one check came to, and which check it was.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The check.
    pub check: Check,
    /// The turn it looked at, from 1; none for the whole conversation.
    pub turn: Option<usize>,
    /// Whether it was written under `final_assertions`.
    pub is_final: bool,
    /// What it came to.
    pub verdict: CheckVerdict,
    /// Why it could not be decided, if it could not: then it does not hold, and the agent is not to blame.
    pub error: Option<String>,
    /// What a function that decided it said to `console`.
    pub said: Vec<String>,
}

impl Checked {
    /// Whether it decides that the case fails.
    pub fn fails(&self) -> bool {
        self.check.is_hard() && !self.verdict.passed
    }
}

/// A conversation that was held, or as much of it as there is.
#[derive(Debug)]
pub struct Held {
    /// What it came to.
    pub verdict: Verdict,
    /// Every check that was decided, in order.
    pub checks: Vec<Checked>,
    /// How far the checkpoints were reached.
    pub checkpoints: Vec<Reached>,
    /// The time limit that was exceeded, if the verdict is about one.
    pub limit: Option<Duration>,
    /// What was said and done.
    pub conversation: Conversation,
    /// The trace, where it was asked for.
    pub events: Vec<Record>,
    /// From the first input to the end of the last turn.
    pub duration: Duration,
}

/// Who takes part in a conversation beside the agent.
#[derive(Default)]
pub struct Partners {
    /// The simulated user, where the case has one.
    pub simulator: Option<roles::Role>,
    /// The judges that its checks ask, by how they refer to them.
    pub judges: Vec<(Asking, roles::Role)>,
    /// The functions of scripts that its checks call, by how they refer to them.
    pub functions: Vec<(String, Function)>,
    /// The person who can be asked, where one is there.
    pub person: Option<Arc<dyn Person>>,
}

/// How a check refers to its judge: by name, and perhaps with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The judge.
    pub judge: Option<Reference>,
    /// The model.
    pub connector: Option<String>,
}

impl Asking {
    /// How a check refers to its judge.
    pub fn of(judged: &Judged) -> Asking {
        let connector = judged.options.get("connector").and_then(serde_json::Value::as_str);
        Asking { judge: judged.judge.clone(), connector: connector.map(str::to_string) }
    }
}

impl Partners {
    fn function(&self, reference: &str) -> Option<&Function> {
        self.functions.iter().find(|(known, _)| known == reference).map(|(_, function)| function)
    }

    fn judge(&self, judged: &Judged) -> Option<&roles::Role> {
        let asking = Asking::of(judged);
        self.judges.iter().find(|(known, _)| *known == asking).map(|(_, role)| role)
    }
}
