//! Selects the source of the next input: a written turn, else a simulated user, else a human.

use crate::cases::{OnComplete, OnMissingInput, PromptPolicy};

/// Sources of the next input, before the first turn or after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputSources {
    /// True if another turn is written.
    pub has_written_turn: bool,
    /// True if the agent awaits input, and before the first turn.
    pub awaiting: bool,
    /// The simulated user, if there is one.
    pub simulator: Option<PromptPolicy>,
    /// The human, if one can be prompted.
    pub human: Option<PromptPolicy>,
    /// Policy if no source can give an input.
    pub on_missing: OnMissingInput,
    /// Policy if the agent completes while a written turn is left.
    pub on_complete: OnComplete,
}

/// The selected source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextInput {
    /// The next written turn.
    Written,
    /// A simulated user.
    Simulator,
    /// A human.
    Human,
    /// No input is needed: the conversation ends.
    End,
    /// No input is available: the case is skipped.
    Skip,
    /// No input is available: the case fails.
    Fail,
    /// The agent completed before all turns were sent: the case fails.
    CompletedEarly,
}

impl InputSources {
    /// Returns true if the selected source depends on whether the agent awaits input.
    pub fn depends_on_awaiting(self) -> bool {
        InputSources { awaiting: true, ..self }.select() != InputSources { awaiting: false, ..self }.select()
    }

    /// Selects the source.
    pub fn select(self) -> NextInput {
        if self.has_written_turn {
            return match (self.awaiting, self.on_complete) {
                (true, _) | (false, OnComplete::Continue) => NextInput::Written,
                (false, OnComplete::Stop) => NextInput::End,
                (false, OnComplete::Fail) => NextInput::CompletedEarly,
            };
        }
        let is_asked = |who: Option<PromptPolicy>| match who {
            None => false,
            Some(PromptPolicy::WhenAwaited) => self.awaiting,
            Some(PromptPolicy::Always) => true,
        };
        match self.on_missing {
            _ if is_asked(self.simulator) => NextInput::Simulator,
            _ if is_asked(self.human) => NextInput::Human,
            _ if !self.awaiting => NextInput::End,
            OnMissingInput::Skip => NextInput::Skip,
            OnMissingInput::Fail => NextInput::Fail,
            OnMissingInput::End => NextInput::End,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: [Option<PromptPolicy>; 3] =
        [None, Some(PromptPolicy::WhenAwaited), Some(PromptPolicy::Always)];
    const MISSING: [OnMissingInput; 3] = [OnMissingInput::Skip, OnMissingInput::Fail, OnMissingInput::End];
    const COMPLETE: [OnComplete; 3] = [OnComplete::Continue, OnComplete::Stop, OnComplete::Fail];

    /// Returns every combination of sources.
    fn all_combinations() -> impl Iterator<Item = InputSources> {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        flags.into_iter().flat_map(|(turn_written, awaiting)| {
            ASKED.into_iter().flat_map(move |simulator| {
                ASKED.into_iter().flat_map(move |person| {
                    MISSING.into_iter().flat_map(move |on_missing| {
                        COMPLETE.into_iter().map(move |on_complete| InputSources {
                            has_written_turn: turn_written,
                            awaiting,
                            simulator,
                            human: person,
                            on_missing,
                            on_complete,
                        })
                    })
                })
            })
        })
    }

    #[test]
    fn selects_written_simulator_human_in_order() {
        assert_eq!(all_combinations().count(), 4 * 81);
        for sources in all_combinations() {
            let next = sources.select();
            let InputSources { has_written_turn: turn_written, awaiting, simulator, human: person, .. } =
                sources;
            let goes_on =
                |who: Option<PromptPolicy>| who == Some(PromptPolicy::Always) || (who.is_some() && awaiting);
            match next {
                NextInput::Written => assert!(turn_written, "{sources:?}"),
                NextInput::CompletedEarly => assert!(turn_written && !awaiting, "{sources:?}"),
                NextInput::Simulator => assert!(!turn_written && goes_on(simulator), "{sources:?}"),
                NextInput::Human => {
                    assert!(!turn_written && !goes_on(simulator) && goes_on(person), "{sources:?}");
                }
                NextInput::End | NextInput::Skip | NextInput::Fail => {
                    let nobody = !goes_on(simulator) && !goes_on(person);
                    assert!(turn_written || nobody, "{sources:?}");
                    assert!(!turn_written || next == NextInput::End, "{sources:?}");
                }
            }
            // An agent that awaits input gets one if any source can give it.
            if awaiting && (turn_written || simulator.is_some() || person.is_some()) {
                assert!(
                    matches!(next, NextInput::Written | NextInput::Simulator | NextInput::Human),
                    "{sources:?}"
                );
            }
        }
    }

    #[test]
    fn applies_missing_input_policy() {
        let sources = |on_missing, awaiting| InputSources {
            has_written_turn: false,
            awaiting,
            simulator: None,
            human: None,
            on_missing,
            on_complete: OnComplete::Continue,
        };
        for (on_missing, next) in MISSING.into_iter().zip([NextInput::Skip, NextInput::Fail, NextInput::End])
        {
            assert_eq!(sources(on_missing, true).select(), next);
            assert_eq!(sources(on_missing, false).select(), NextInput::End);
        }
    }
}
