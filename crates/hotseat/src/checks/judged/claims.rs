//! `claims`: the agent makes no claims of some kinds.

/// No claim of some kinds is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The kinds of claims that are forbidden: availability, prices.
    pub forbid: Vec<String>,
    /// Whether a claim is forbidden even if it is grounded in what a tool returned.
    pub absolute: bool,
}

impl Claims {
    pub(super) fn describe(&self) -> String {
        match self.absolute {
            true => format!("nothing is claimed about {}", kinds(&self.forbid)),
            false => format!("nothing is claimed about {} that no tool returned", kinds(&self.forbid)),
        }
    }
}

/// Kinds of claims in words: `room_catalog` is `room catalog`.
pub(super) fn kinds(types: &[String]) -> String {
    let words: Vec<String> = types.iter().map(|kind| kind.replace('_', " ")).collect();
    words.join(", ")
}
