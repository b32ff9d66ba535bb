//! Whether a difference between two runs is significant.

/// Significance and direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignificantChange {
    /// Not significant.
    NotSignificant,
    /// Significantly less.
    Less,
    /// Significantly more.
    More,
}
