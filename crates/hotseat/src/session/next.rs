//! Who gives the next input: a static turn, else a simulated user, else a person, else nobody.

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

/// Where inputs can come from when a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// Whether another turn is written.
    pub turn_written: bool,
    /// Whether the agent waits for the user.
    pub awaiting: bool,
    /// Whether a user is simulated.
    pub simulator: bool,
    /// Whether a person answers.
    pub human: bool,
    /// What is done when nobody does.
    pub on_missing: OnMissingInput,
}

/// Who gives the next input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next turn that is written.
    Written,
    /// A simulated user.
    Simulator,
    /// A person.
    Human,
    /// Nobody has to: the conversation is over.
    Over,
    /// Nobody, so the case is skipped.
    Skip,
    /// Nobody, so the case fails.
    Fail,
}

impl Sources {
    /// Decides. A written turn is sent whether the agent waits or not; everybody else is asked only if it does.
    pub fn next(self) -> Next {
        match self {
            Sources { turn_written: true, .. } => Next::Written,
            Sources { awaiting: false, .. } => Next::Over,
            Sources { simulator: true, .. } => Next::Simulator,
            Sources { human: true, .. } => Next::Human,
            Sources { on_missing: OnMissingInput::Skip, .. } => Next::Skip,
            Sources { on_missing: OnMissingInput::Fail, .. } => Next::Fail,
            Sources { on_missing: OnMissingInput::End, .. } => Next::Over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_written_simulated_typed_none() {
        for on_missing in [OnMissingInput::Skip, OnMissingInput::Fail, OnMissingInput::End] {
            for bits in 0..16u8 {
                let [turn_written, awaiting, simulator, human] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                let next = Sources { turn_written, awaiting, simulator, human, on_missing }.next();
                let expected = if turn_written {
                    Next::Written
                } else if !awaiting {
                    Next::Over
                } else if simulator {
                    Next::Simulator
                } else if human {
                    Next::Human
                } else {
                    match on_missing {
                        OnMissingInput::Skip => Next::Skip,
                        OnMissingInput::Fail => Next::Fail,
                        OnMissingInput::End => Next::Over,
                    }
                };
                assert_eq!(next, expected, "{bits:04b} {on_missing:?}");
            }
        }
    }
}
