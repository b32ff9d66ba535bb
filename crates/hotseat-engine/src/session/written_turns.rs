//! Drives a session by the turns of a case: first the turns in the file, then a simulated user, then a human.

use hotseat_document::quote;
use hotseat_trace::{AttemptFailure, FailureKind};
use tokio::time::Instant;

use super::conversation_ending::ConversationEnding;
use super::human::HUMAN_CALLER;
use super::live_session::missing_checkpoints;
use super::simulation::SimulatorStep;
use super::turn::TurnInput;
use crate::cases::{OnMissingInput, PromptPolicy};
use crate::roles::Dialogue;
use crate::session::{
    AwaitingState, HumanPrompt, HumanReply, InputSources, MissingHumanInput, NextInput, Session,
    SimulationOptions, checkpoints, input_hint,
};

/// Default maximum of turns with a simulated user.
const DEFAULT_MAX_TURNS: usize = 20;
/// Maximum number of turns with a human. Standard input may be endless, for example a pipe.
const DEFAULT_MAX_HUMAN_TURNS: usize = 1_000;
/// Message of a conversation that lacks the next input.
const NO_NEXT_TURN: &str = "Agent awaiting input, no next turn defined";

/// Returns the hint for the reason of a conversation that lacks the next input: what may give the input, if a human was asked.
/// `None` for other reasons.
pub fn missing_input_hint(reason: &str) -> Option<String> {
    let why = reason.strip_prefix(NO_NEXT_TURN)?;
    let human = MissingHumanInput::ALL.into_iter().find(|missing| why.contains(&missing.to_string()));
    let advice =
        human.map_or("Add more turns, use --interactive, or configure simulator", MissingHumanInput::advice);
    Some(format!("{advice}; set `on_missing_input: end` if the conversation may end here"))
}

impl<'c> Session<'c> {
    /// Sends all turns of the case.
    pub(super) async fn run_written_turns(&mut self) {
        let ending = match self.check_initial_input() {
            Ok(()) => self.send_all_turns().await,
            Err(failure) => ConversationEnding::Failed(failure),
        };
        self.end_with(ending);
    }

    /// Checks that the case has a first input.
    fn check_initial_input(&self) -> Result<(), AttemptFailure> {
        let case = self.case;
        if case.turns.is_empty() && case.simulator.is_none() && case.interactive.is_none() {
            let help = match &case.target.user {
                Some(_) => {
                    "`user` of a case is the identity of the user; write what the user says under `input` or `turns`"
                }
                None => "add an `input` or `turns` to the case",
            };
            return Err(AttemptFailure::new(FailureKind::NoInput, "no initial input").with_detail(help));
        }
        Ok(())
    }

    async fn send_all_turns(&mut self) -> ConversationEnding {
        loop {
            if self.case.brief().is_some() && self.turns().len() >= self.case.turns.len() {
                // Any other end of the simulation has ended the case already.
                let _ended = Box::pin(self.simulate(SimulationOptions::default())).await;
                // A simulated user may give no input (`max_turns: 0`).
                return match self.turns().is_empty() {
                    true => self.no_input(0, "the simulated user gave none"),
                    false => ConversationEnding::Completed,
                };
            }
            let input = match self.next_input().await {
                Ok(input) => input,
                Err(ending) => return ending,
            };
            // The futures around this one would be copied with it.
            if let Err(failure) = Box::pin(self.run_turn(input)).await {
                return ConversationEnding::Failed(failure);
            }
        }
    }

    /// Returns the next input, or the ending if there is none.
    async fn next_input(&mut self) -> Result<TurnInput<'c>, ConversationEnding> {
        let case = self.case;
        let place = self.turns().len();
        let mut sources = InputSources {
            has_written_turn: place < case.turns.len(),
            awaiting: true,
            simulator: case.simulator.as_ref().map(|_| match case.is_dynamic {
                true => PromptPolicy::Always,
                false => PromptPolicy::WhenAwaited,
            }),
            human: case.interactive.as_ref().map(|person| person.policy),
            on_missing: case.on_missing_input,
            on_complete: case.on_complete,
        };
        if let Some(turn) = self.turns().last().filter(|_| sources.depends_on_awaiting()) {
            sources.awaiting = AwaitingState::detect(turn, &case.signs).is_awaiting();
        }
        match sources.select() {
            NextInput::Written => Ok(TurnInput::from_turn(&case.turns[place])),
            NextInput::Simulator if case.is_dynamic && checkpoints::all_reached(&self.checkpoints) => {
                Err(ConversationEnding::Completed)
            }
            NextInput::Simulator => Box::pin(self.simulated_input(place)).await,
            NextInput::Human => Box::pin(self.human_input(place)).await,
            NextInput::End => {
                self.warnings.extend(self.unasked_human());
                Err(ConversationEnding::Completed)
            }
            NextInput::Skip | NextInput::Fail => Err(self.missing_input(NO_NEXT_TURN)),
            NextInput::CompletedEarly => {
                let message = format!(
                    "the agent completed after turn {place}, but `on_complete: fail` requires it to await turn {}",
                    place + 1
                );
                Err(ConversationEnding::Failed(AttemptFailure::new(FailureKind::Assertion, message)))
            }
        }
    }

    /// Returns a warning if the case has a human whom the conversation never asked.
    fn unasked_human(&self) -> Option<String> {
        self.case.interactive.as_ref()?;
        let last = self.turns().last()?;
        // The saved attempt of a re-evaluation has this warning.
        if self.counterpart.recorded().is_some()
            || self.turns().iter().any(|turn| &*turn.caller == HUMAN_CALLER)
        {
            return None;
        }
        let state = AwaitingState::detect(last, &self.case.signs);
        Some(format!(
            "the human was not asked: the agent awaits no input after turn {} (`{}`)",
            self.turns().len(),
            state.name()
        ))
    }

    /// Returns the ending if the agent awaits input and no source is left.
    fn missing_input(&self, reason: &str) -> ConversationEnding {
        match self.case.on_missing_input {
            OnMissingInput::Skip => ConversationEnding::Skipped(reason.to_string().into()),
            OnMissingInput::End => ConversationEnding::Completed,
            OnMissingInput::Fail => {
                let question = self.turns().last().and_then(|turn| turn.answer()).unwrap_or_default();
                let asked = format!("agent asked: {}", quote(question));
                let detail: Vec<String> = [asked].into_iter().chain(missing_input_hint(reason)).collect();
                ConversationEnding::Failed(
                    AttemptFailure::new(FailureKind::NoInput, reason).with_detail(detail.join("\n")),
                )
            }
        }
    }

    /// Returns the next input of the simulated user.
    async fn simulated_input(&mut self, place: usize) -> Result<TurnInput<'static>, ConversationEnding> {
        let most = self.max_turns(place, DEFAULT_MAX_TURNS)?;
        match self.ask_simulator(most, None).await {
            Ok(SimulatorStep::Input(input)) => Ok(*input),
            Ok(SimulatorStep::Done(_)) => Err(ConversationEnding::Completed),
            Err(failure) if failure.kind == FailureKind::SimulatorError => {
                Err(self.simulator_failed(failure))
            }
            Err(failure) => Err(ConversationEnding::Failed(failure)),
        }
    }

    /// Returns the ending if the simulated user failed: a failure, unless the case may be skipped. `end` is for
    /// agents that need no further input, so it does not excuse a simulator. A question that was not recorded is no failure of it:
    /// the agent answers differently.
    fn simulator_failed(&self, failure: AttemptFailure) -> ConversationEnding {
        match self.case.on_missing_input {
            _ if self.case.is_dynamic || self.misses_recording => ConversationEnding::Failed(failure),
            OnMissingInput::Fail | OnMissingInput::End => ConversationEnding::Failed(failure),
            OnMissingInput::Skip => ConversationEnding::Skipped(failure.into()),
        }
    }

    /// Returns the maximum number of turns, unless it is reached.
    fn max_turns(&self, place: usize, default: usize) -> Result<usize, ConversationEnding> {
        let most = self.case.max_turns.unwrap_or(default);
        if place < most {
            return Ok(most);
        }
        let mut message = format!("max turns ({most}) exceeded");
        let missing = missing_checkpoints(&self.checkpoints);
        if let Some(missing) = &missing {
            message = format!("{message}; {}", missing.message);
        }
        let detail = missing.and_then(|missing| missing.detail).unwrap_or_default();
        let failure = AttemptFailure::new(FailureKind::MaxTurns, message).with_detail(detail);
        Err(ConversationEnding::Failed(failure))
    }

    /// Returns the next input of the human.
    async fn human_input(&mut self, place: usize) -> Result<TurnInput<'static>, ConversationEnding> {
        self.max_turns(place, DEFAULT_MAX_HUMAN_TURNS)?;
        if let Some(kept) = self.counterpart.recorded() {
            return kept.next_human_input(place, &self.case.turn_defaults);
        }
        let (Some(person), Some(interactive)) = (&self.evaluator.roles.human, &self.case.interactive) else {
            return Err(self.no_input(place, NO_NEXT_TURN));
        };
        let hint = self.turns().last().and_then(input_hint);
        let prompt = HumanPrompt {
            case: &self.case.name,
            session: &self.evaluator.session_id,
            dialogue: Dialogue::new(&self.case.opening.messages, self.recorder.conversation()),
            hint: hint.as_deref(),
            turn: place + 1,
            timeout: interactive.timeout,
        };
        let begun = Instant::now();
        let typed = person.ask(prompt).await;
        self.paused += begun.elapsed();
        match typed {
            HumanReply::Text(text) => {
                Ok(TurnInput::from_text(text, &self.case.turn_defaults, HUMAN_CALLER, None))
            }
            HumanReply::End if place > 0 => Err(ConversationEnding::Completed),
            HumanReply::End => Err(self.no_input(place, "no message was given")),
            HumanReply::Skip => Err(ConversationEnding::Skipped("skipped by the human".to_string().into())),
            HumanReply::Unavailable(why) if place == 0 => {
                Err(self.no_input(place, &format!("{why}\n{}", why.advice())))
            }
            HumanReply::Unavailable(why) => {
                if self.case.on_missing_input == OnMissingInput::End {
                    self.warnings.push(format!(
                        "the human gave no input for turn {}: {why} (`on_missing_input: end`)",
                        place + 1
                    ));
                }
                Err(self.no_input(place, &format!("{NO_NEXT_TURN} ({why})")))
            }
            HumanReply::Unreadable(why) => {
                Err(ConversationEnding::Failed(AttemptFailure::new(FailureKind::TestError, why)))
            }
        }
    }

    /// Returns the ending if there is no input, before or after the first turn.
    fn no_input(&self, place: usize, reason: &str) -> ConversationEnding {
        match place {
            0 => {
                let failure = AttemptFailure::new(FailureKind::NoInput, "no initial input");
                ConversationEnding::Failed(failure.with_detail(reason))
            }
            _ => self.missing_input(reason),
        }
    }
}
