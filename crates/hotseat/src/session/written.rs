//! A case that is written as turns drives its session: a written turn, else a simulated user, else a person.

use hotseat_trace::{Failure, FailureKind};
use tokio::time::Instant;

use super::open::{Ending, missing_checkpoints};
use super::simulated::Simulated;
use super::turn::Given;
use super::{
    Asked, AskedPerson, Next, OnMissingInput, Session, Simulation, Sources, Typed, Waiting, checkpoints,
    input_hint,
};
use crate::roles::Dialogue;

/// How many turns a simulated user may make a conversation where the case does not say.
const MOST_TURNS: usize = 20;
/// Why a conversation cannot go on.
pub const NO_NEXT_TURN: &str = "Agent awaiting input, no next turn defined";
/// What to do about it.
pub const MORE_INPUT: &str = "Add more turns, use --interactive, or configure simulator; `on_missing_input: end` says that the conversation ends here";

impl Session<'_> {
    /// Turn after turn until there is no more.
    pub(super) async fn hold_written(&mut self) {
        let ending = match self.begin() {
            Ok(()) => self.turns_written().await,
            Err(failure) => Ending::Failed(failure),
        };
        self.ends(ending);
    }

    /// Whether somebody says something first.
    fn begin(&self) -> Result<(), Failure> {
        let case = self.case;
        if case.turns.is_empty() && case.simulator.is_none() && case.interactive.is_none() {
            let help = "a case has an `input` or `turns`";
            return Err(Failure::new(FailureKind::NoInput, "no initial input").with_detail(help));
        }
        Ok(())
    }

    async fn turns_written(&mut self) -> Ending {
        loop {
            if self.case.brief().is_some() && self.turns().len() >= self.case.turns.len() {
                // What ends the simulation otherwise has ended the case already.
                let _ended = self.simulate(Simulation::default()).await;
                return Ending::Over;
            }
            let given = match self.next_input().await {
                Ok(given) => given,
                Err(ending) => return ending,
            };
            if let Err(failure) = self.turn(given).await {
                return Ending::Failed(failure);
            }
        }
    }

    /// The next input, or how the conversation ends without one.
    async fn next_input(&mut self) -> Result<Given, Ending> {
        let case = self.case;
        let place = self.turns().len();
        let last = self.turns().last();
        let sources = Sources {
            turn_written: place < case.turns.len(),
            awaiting: last.is_none_or(|turn| Waiting::of(turn, &case.signs).is_awaiting()),
            simulator: case.simulator.as_ref().map(|_| match case.is_dynamic {
                true => Asked::Always,
                false => Asked::WhenAwaited,
            }),
            person: case.interactive.as_ref().map(|person| person.asked),
            on_missing: case.on_missing_input,
            on_complete: case.on_complete,
        };
        match sources.next() {
            Next::Written => Ok(Given::written(&case.turns[place])),
            Next::Simulator if case.is_dynamic && checkpoints::all_reached(&self.checkpoints) => {
                Err(Ending::Over)
            }
            Next::Simulator => self.simulated(place).await,
            Next::Person => self.typed(place).await,
            Next::Over => Err(Ending::Over),
            Next::Skip | Next::Fail => Err(self.without_input(NO_NEXT_TURN)),
            Next::DoneTooSoon => {
                let message = format!(
                    "the agent was done after turn {place}, and `on_complete: fail` wants it to wait for turn {}",
                    place + 1
                );
                Err(Ending::Failed(Failure::new(FailureKind::Assertion, message)))
            }
        }
    }

    /// The agent waits, and nobody answers it.
    fn without_input(&self, reason: &str) -> Ending {
        match self.case.on_missing_input {
            OnMissingInput::Skip => Ending::Skipped(reason.to_string()),
            OnMissingInput::End => Ending::Over,
            OnMissingInput::Fail => {
                let asked = self.turns().last().and_then(|turn| turn.answer()).unwrap_or_default();
                let detail = format!("agent asked: {asked:?}\n{MORE_INPUT}");
                Ending::Failed(Failure::new(FailureKind::NoInput, reason).with_detail(detail))
            }
        }
    }

    /// A simulated user says what comes next.
    async fn simulated(&mut self, place: usize) -> Result<Given, Ending> {
        let most = self.case.max_turns.unwrap_or(MOST_TURNS);
        if place >= most {
            return Err(Ending::Failed(self.too_many_turns(most)));
        }
        match self.ask_simulator(most, None).await {
            Ok(Simulated::Says(given)) => Ok(*given),
            Ok(Simulated::Done(_)) => Err(Ending::Over),
            Err(failure) if failure.kind == FailureKind::SimulatorError => {
                Err(self.simulator_failed(failure))
            }
            Err(failure) => Err(Ending::Failed(failure)),
        }
    }

    /// Without its simulated user a conversation with checkpoints fails, and one that has not begun; any other is one
    /// without input.
    fn simulator_failed(&self, failure: Failure) -> Ending {
        match self.case.on_missing_input {
            _ if self.case.is_dynamic => Ending::Failed(failure),
            OnMissingInput::Fail => Ending::Failed(failure),
            OnMissingInput::Skip => Ending::Skipped(failure.message),
            OnMissingInput::End if self.turns().is_empty() => Ending::Failed(failure),
            OnMissingInput::End => Ending::Over,
        }
    }

    fn too_many_turns(&self, most: usize) -> Failure {
        let mut message = format!("max turns ({most}) exceeded");
        let missing = missing_checkpoints(&self.checkpoints);
        if let Some(missing) = &missing {
            message = format!("{message}; {}", missing.message);
        }
        let detail = missing.and_then(|missing| missing.detail).unwrap_or_default();
        Failure::new(FailureKind::MaxTurns, message).with_detail(detail)
    }

    /// A person says what comes next.
    async fn typed(&mut self, place: usize) -> Result<Given, Ending> {
        if let Some(most) = self.case.max_turns.filter(|most| place >= *most) {
            return Err(Ending::Failed(self.too_many_turns(most)));
        }
        if let Some(kept) = self.counterpart.kept() {
            return kept.typed(place, &self.case.unwritten);
        }
        let (Some(person), Some(interactive)) = (&self.deciding.partners.person, &self.case.interactive)
        else {
            return Err(self.nobody(place, NO_NEXT_TURN));
        };
        let hint = self.turns().last().and_then(input_hint);
        let asked = AskedPerson {
            case: &self.case.name,
            session: &self.deciding.session_id,
            dialogue: Dialogue::of(&self.case.opening.messages, self.recorder.conversation()),
            hint: hint.as_deref(),
            turn: place + 1,
            patience: interactive.patience,
        };
        let begun = Instant::now();
        let typed = person.ask(asked).await;
        self.paused += begun.elapsed();
        match typed {
            Typed::Said(text) => Ok(Given::said(text, &self.case.unwritten, "person", None)),
            Typed::End if place > 0 => Err(Ending::Over),
            Typed::End => Err(self.nobody(place, "nothing was typed")),
            Typed::Skip => Err(Ending::Skipped("skipped by the person who was asked".to_string())),
            Typed::Nothing(why) => Err(self.nobody(place, &format!("{NO_NEXT_TURN} ({why})"))),
        }
    }

    /// Nobody answers the agent, or nobody has begun.
    fn nobody(&self, place: usize, reason: &str) -> Ending {
        match place {
            0 => {
                let failure = Failure::new(FailureKind::NoInput, "no initial input");
                Ending::Failed(failure.with_detail(reason))
            }
            _ => self.without_input(reason),
        }
    }
}
