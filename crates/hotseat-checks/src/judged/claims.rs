//! `claims`: the agent does not make claims of given kinds.

/// No claim of the given kinds is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForbiddenClaims {
    /// Kinds of forbidden claims, for example availability or prices.
    pub forbid: Vec<String>,
    /// True if a claim is forbidden even if a tool result supports it.
    pub absolute: bool,
}

impl ForbiddenClaims {
    pub(super) fn describe(&self) -> String {
        match self.absolute {
            true => format!("no claims about {}", describe_kinds(&self.forbid)),
            false => format!("no claims about {} that no tool returned", describe_kinds(&self.forbid)),
        }
    }
}

/// Describes kinds of claims: `room_catalog` becomes `room catalog`.
pub(super) fn describe_kinds(types: &[String]) -> String {
    let words: Vec<String> = types.iter().map(|kind| kind.replace('_', " ")).collect();
    words.join(", ")
}
