//! Who gives the next input: a written turn, else a simulated user, else a person, else nobody.

use crate::cases::OnComplete;

/// What is done when the agent waits and nobody can answer it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnMissingInput {
    /// The case is skipped.
    Skip,
    /// The case fails.
    Fail,
    /// The conversation is over.
    #[default]
    End,
}

/// When somebody who goes on with a conversation is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// If the agent waits for an input.
    WhenAwaited,
    /// Whether it waits or not: whoever is asked says when it is over.
    Always,
}

/// Where inputs can come from when a turn is over, or before the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Whether another turn is written.
    pub turn_written: bool,
    /// Whether the agent waits for the user; before the first turn it does.
    pub awaiting: bool,
    /// The simulated user, if there is one.
    pub simulator: Option<Asked>,
    /// The person, if one answers.
    pub person: Option<Asked>,
    /// What is done when nobody does.
    pub on_missing: OnMissingInput,
    /// What is done when the agent does not wait for a turn that is written.
    pub on_complete: OnComplete,
}

/// Who gives the next input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next turn that is written.
    Written,
    /// A simulated user.
    Simulator,
    /// A person.
    Person,
    /// Nobody has to: the conversation is over.
    Over,
    /// Nobody, so the case is skipped.
    Skip,
    /// Nobody, so the case fails.
    Fail,
    /// The agent was done before all turns were sent, so the case fails.
    DoneTooSoon,
}

impl Sources {
    /// Decides.
    pub fn next(self) -> Next {
        if self.turn_written {
            return match (self.awaiting, self.on_complete) {
                (true, _) | (false, OnComplete::Continue) => Next::Written,
                (false, OnComplete::Stop) => Next::Over,
                (false, OnComplete::Fail) => Next::DoneTooSoon,
            };
        }
        let is_asked = |who: Option<Asked>| match who {
            None => false,
            Some(Asked::WhenAwaited) => self.awaiting,
            Some(Asked::Always) => true,
        };
        match self.on_missing {
            _ if is_asked(self.simulator) => Next::Simulator,
            _ if is_asked(self.person) => Next::Person,
            _ if !self.awaiting => Next::Over,
            OnMissingInput::Skip => Next::Skip,
            OnMissingInput::Fail => Next::Fail,
            OnMissingInput::End => Next::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: [Option<Asked>; 3] = [None, Some(Asked::WhenAwaited), Some(Asked::Always)];
    const MISSING: [OnMissingInput; 3] = [OnMissingInput::Skip, OnMissingInput::Fail, OnMissingInput::End];
    const COMPLETE: [OnComplete; 3] = [OnComplete::Continue, OnComplete::Stop, OnComplete::Fail];

    /// Every combination of where inputs can come from.
    fn all() -> impl Iterator<Item = Sources> {
        let flags = [(false, false), (false, true), (true, false), (true, true)];
        flags.into_iter().flat_map(|(turn_written, awaiting)| {
            ASKED.into_iter().flat_map(move |simulator| {
                ASKED.into_iter().flat_map(move |person| {
                    MISSING.into_iter().flat_map(move |on_missing| {
                        COMPLETE.into_iter().map(move |on_complete| Sources {
                            turn_written,
                            awaiting,
                            simulator,
                            person,
                            on_missing,
                            on_complete,
                        })
                    })
                })
            })
        })
    }

    #[test]
    fn the_order_is_written_simulated_typed_none() {
        assert_eq!(all().count(), 4 * 81);
        for sources in all() {
            let next = sources.next();
            let Sources { turn_written, awaiting, simulator, person, .. } = sources;
            let goes_on = |who: Option<Asked>| who == Some(Asked::Always) || (who.is_some() && awaiting);
            match next {
                Next::Written => assert!(turn_written, "{sources:?}"),
                Next::DoneTooSoon => assert!(turn_written && !awaiting, "{sources:?}"),
                Next::Simulator => assert!(!turn_written && goes_on(simulator), "{sources:?}"),
                Next::Person => {
                    assert!(!turn_written && !goes_on(simulator) && goes_on(person), "{sources:?}");
                }
                Next::Over | Next::Skip | Next::Fail => {
                    let nobody = !goes_on(simulator) && !goes_on(person);
                    assert!(turn_written || nobody, "{sources:?}");
                    assert!(!turn_written || next == Next::Over, "{sources:?}");
                }
            }
            // An agent that waits is never left without an answer that somebody could give.
            if awaiting && (turn_written || simulator.is_some() || person.is_some()) {
                assert!(matches!(next, Next::Written | Next::Simulator | Next::Person), "{sources:?}");
            }
        }
    }

    #[test]
    fn what_happens_when_nobody_answers_is_what_the_case_says() {
        let sources = |on_missing, awaiting| Sources {
            turn_written: false,
            awaiting,
            simulator: None,
            person: None,
            on_missing,
            on_complete: OnComplete::Continue,
        };
        for (on_missing, next) in MISSING.into_iter().zip([Next::Skip, Next::Fail, Next::Over]) {
            assert_eq!(sources(on_missing, true).next(), next);
            assert_eq!(sources(on_missing, false).next(), Next::Over);
        }
    }
}
