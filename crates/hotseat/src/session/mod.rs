//! One conversation being held: turns are sent, what happens is recorded, checks decide.

mod asking_script;
mod awaiting;
mod body;
mod checkpoints;
mod clock;
mod conduct;
mod content;
mod deciding;
mod elsewhere;
mod filling_in;
mod hold;
mod hook;
mod identity;
mod kept;
mod nesting;
mod next;
mod open;
mod overheard;
mod person;
mod recorder;
mod redact;
mod script;
mod simulated;
mod spending;
mod tool_output;
mod topics;
mod traffic;
mod turn;
mod written;

use std::sync::Arc;
use std::time::Duration;

use hotseat_trace::{CheckVerdict, Conversation, Record, Turn, Verdict};
use serde::{Deserialize, Serialize};

pub use asking_script::response;
pub use awaiting::{Signs, Waiting, input_hint};
pub use body::Body;
pub use checkpoints::{Reached, missing};
pub use clock::{Clock, wall_millis};
pub use content::{Media, MediaKind, MediaSource, Message, MessageCall, Part, Role, media, merged, words};
pub use elsewhere::SaidElsewhere;
pub use hold::{decide_again, hold};
pub use hook::{run_command, run_hook};
pub use identity::Identity;
pub use kept::{CameTo, HOLD_ANEW, Kept, not_kept};
pub use next::{Asked, Next, OnMissingInput, Sources};
pub use open::{Ended, Session, Subject};
pub use overheard::{OverheardTurn, OverheardTurns};
pub use person::{AskedPerson, Person, Typed};
pub use recorder::Recorder;
pub use redact::Redactor;
pub(crate) use script::response_mistakes;
pub use script::{
    AskedInterrupt, ClientTool, InterruptAnswer, InterruptReply, ToolAnswer, ToolReply, TurnScript,
};
pub use simulated::{Simulation, Stopped};
pub use spending::{Prices, reported_tokens};
pub(crate) use tool_output::{is_parts, json_of, output_of_content};
pub use traffic::{RunTraffic, TrafficBounds, TrafficLimits, TrafficMeter};
pub use turn::ATTACHED;
pub use written::{MORE_INPUT, NO_NEXT_TURN};

use crate::adapters::Pending;
use crate::checks::{Check, Judging, Reference, Whom};
use crate::roles;
use crate::scripts::{Callable, Powers};
use hotseat_document::Place;

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
    /// The visit of the topic that asserts it, where a topic does.
    pub topic: Option<TopicVisit>,
    /// What the judge said who decided it, or was to.
    pub opinion: Option<Opinion>,
}

/// A visit of a topic.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TopicVisit {
    /// The topic.
    pub topic: Arc<str>,
    /// Which visit of this topic it is, from 1.
    pub visit: usize,
}

/// What a judge said of a check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Opinion {
    /// Why it judges so, in its words; none where it gave no judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// How far it is so, where it says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// What it proposes, where it says that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// Who it was, and what it cost.
    pub by: roles::By,
}

impl Checked {
    /// A check that nothing is there for to look at.
    fn undecided(check: Check, words: &str) -> Checked {
        let (expected, actual) = (check.describe(), words.to_string());
        let verdict = CheckVerdict { passed: false, expected, actual };
        Checked {
            check,
            turn: None,
            is_final: false,
            verdict,
            error: Some(words.to_string()),
            said: Vec::new(),
            topic: None,
            opinion: None,
        }
    }

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
    /// What the test itself has said.
    pub logs: Vec<String>,
    /// What was said and done.
    pub conversation: Conversation,
    /// The trace, where it was asked for.
    pub events: Vec<Record>,
    /// From the first input to the end of the last turn.
    pub duration: Duration,
    /// Whether its times are not known: it was served from a recording without them.
    pub timeless: bool,
}

/// Who takes part in a conversation beside the agent.
#[derive(Default)]
pub struct Partners {
    /// The simulated users, by how the case refers to them.
    pub simulators: Vec<(Option<Reference>, roles::Role)>,
    /// The judges that its checks ask, by how they refer to them; or why there is none.
    pub judges: Vec<(Whom, Result<roles::Role, String>)>,
    /// How judges are asked where checks do not say it.
    pub judging: Judging,
    /// The functions of scripts that its checks call, by how they refer to them.
    pub functions: Vec<(String, Callable)>,
    /// The person who can be asked, where one is there.
    pub person: Option<Arc<dyn Person>>,
    /// What a program may do that drives the conversation.
    pub powers: Option<Powers>,
    /// The turns that such a program holds by itself.
    pub overheard: OverheardTurns,
    /// Finds whom such a program asks: nobody knows before who that is.
    pub finds: Option<Arc<dyn Finds>>,
    /// What of the program itself judges.
    pub program: Option<Arc<dyn Judges>>,
    /// What judges answered before, where a conversation is decided again.
    pub answers: Option<Arc<roles::Answers>>,
}

/// Finds somebody who is asked, while a conversation goes on.
pub trait Finds: Send + Sync {
    /// The judge that is referred to in this way, at this place.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn judge(&self, whom: &Whom, place: &Place) -> Result<roles::Role, String>;

    /// The simulated user that is referred to in this way, at this place.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn simulator(&self, reference: Option<&Reference>, place: &Place) -> Result<roles::Role, String>;
}

/// Functions of a program that judge its conversation.
pub trait Judges: Send + Sync {
    /// What one of them says of the last of the turns that are looked at; none where it is none of its functions.
    fn judge<'a>(
        &'a self,
        function: &'a str,
        so_far: &'a [Turn],
        looked_at: &'a [Turn],
    ) -> Option<Pending<'a, Result<bool, String>>>;
}

impl Partners {
    fn function(&self, reference: &str) -> Option<&Callable> {
        self.functions.iter().find(|(known, _)| known == reference).map(|(_, function)| function)
    }

    /// The simulated user that is referred to in this way.
    fn simulator(&self, reference: Option<&Reference>) -> Option<&roles::Role> {
        self.simulators.iter().find(|(known, _)| known.as_ref() == reference).map(|(_, role)| role)
    }

    /// The judge that is referred to in this way.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn judge(&self, judging: &Judging) -> Result<roles::Judge, String> {
        let whom = judging.whom();
        match self.judges.iter().find(|(known, _)| *known == whom) {
            Some((_, Ok(role))) => {
                let judge = roles::Judge::new(role.clone(), &judging.over(&self.judging));
                Ok(judge.remembering(self.answers.clone()))
            }
            Some((_, Err(words))) => Err(words.clone()),
            None => Err("there is no judge to ask".to_string()),
        }
    }
}
