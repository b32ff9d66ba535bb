//! Whether runs are kept, and how many of them, as people write it.

use std::time::Duration;

use super::shape::STORE;
use hotseat_document::{Diagnostic, Diagnostics, Map};

/// Whether runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storing {
    /// Whether they are.
    pub on: bool,
    /// How long; none where nothing is said of that.
    pub keep: Option<Duration>,
    /// How many bytes they may take; none where nothing is said of that.
    pub max_size: Option<u64>,
}

impl Default for Storing {
    fn default() -> Self {
        Storing { on: true, keep: None, max_size: None }
    }
}

/// Reads `store` of a project file.
pub(super) fn storing(project: &Map<'_>, mistakes: &mut Diagnostics) -> Storing {
    let Some(view) = project.get("store") else { return Storing::default() };
    let Some(map) = view.map(&STORE) else {
        return Storing { on: project.bool("store") != Some(false), ..Storing::default() };
    };
    let mut read = |key: &str, what: &str, like: &str, parse: fn(&str) -> Option<u64>| {
        let text = map.text(key)?;
        let read = parse(text);
        if read.is_none() {
            let place = map.place_of(key).unwrap_or_else(|| map.place());
            mistakes.push(Diagnostic::new(format!("`{key}` is {what}, for instance {like}")).at(place));
        }
        read
    };
    Storing {
        on: true,
        keep: read("keep", "how long runs are kept", "90d, 12h or 4w", seconds).map(Duration::from_secs),
        max_size: read("max_size", "how much room runs may take", "1GB or 500MB", bytes),
    }
}

/// A time in days, or in other units of that kind.
pub fn seconds(text: &str) -> Option<u64> {
    const HOUR: u64 = 3600;
    with_unit(text, &[("h", HOUR), ("d", 24 * HOUR), ("w", 7 * 24 * HOUR), ("m", 60)])
}

/// A size in bytes, or in multiples of them.
pub fn bytes(text: &str) -> Option<u64> {
    with_unit(text, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("kB", 1_000), ("B", 1)])
}

/// A whole number before one of these units.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = units.iter().find_map(|(unit, n)| Some((text.strip_suffix(unit)?, n)))?;
    number.trim().parse::<u64>().ok().filter(|number| *number > 0)?.checked_mul(*unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read() {
        for (text, read) in [("90d", 7_776_000), ("12h", 43_200), (" 2 w ", 1_209_600), ("30m", 1_800)] {
            assert_eq!(seconds(text), Some(read), "{text}");
        }
        for (text, read) in [("1GB", 1_000_000_000), ("500 MB", 500_000_000), ("7KB", 7_000), ("12B", 12)] {
            assert_eq!(bytes(text), Some(read), "{text}");
        }
        for text in ["", "d", "0d", "-1d", "1.5d", "1x", "90", "99999999999999999999w"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        for text in ["", "GB", "0GB", "1TB", "12", "99999999999GB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
