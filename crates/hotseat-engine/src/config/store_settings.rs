//! Decodes the settings of the run store.

use std::time::Duration;

use super::shape::STORE;
use hotseat_document::{Diagnostics, MapView};

/// Settings of the run store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSettings {
    /// True if runs are stored.
    pub enabled: bool,
    /// Maximum age, if set.
    pub max_age: Option<Duration>,
    /// Maximum size in bytes, if set.
    pub max_size: Option<u64>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        StoreSettings { enabled: true, max_age: None, max_size: None }
    }
}

/// Decodes `store` of a project file.
pub(super) fn read_store_settings(project: &MapView<'_>, mistakes: &mut Diagnostics) -> StoreSettings {
    let Some(view) = project.get("store") else { return StoreSettings::default() };
    let Some(map) = view.map(&STORE) else {
        return StoreSettings { enabled: project.bool("store") != Some(false), ..StoreSettings::default() };
    };
    let mut read = |key: &str, what: &str, like: &str, parse: fn(&str) -> Option<u64>| {
        let text = map.text(key)?;
        let read = parse(text);
        if read.is_none() {
            mistakes.report(map.place_near(key), format!("invalid `{key}`: {what}, for example {like}"));
        }
        read
    };
    StoreSettings {
        enabled: true,
        max_age: read("max_age", "the maximum age of stored runs", "90d, 12h or 4w", parse_seconds)
            .map(Duration::from_secs),
        max_size: read("max_size", "the maximum size of the run store", "1GB or 500MB", parse_bytes),
    }
}

/// Parses a duration in minutes, hours, days or weeks.
pub fn parse_seconds(text: &str) -> Option<u64> {
    const HOUR: u64 = 3600;
    parse_with_unit(text, &[("h", HOUR), ("d", 24 * HOUR), ("w", 7 * 24 * HOUR), ("m", 60)])
}

/// Parses a size in bytes or multiples.
pub fn parse_bytes(text: &str) -> Option<u64> {
    parse_with_unit(text, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("kB", 1_000), ("B", 1)])
}

/// Parses a positive whole number with one of these units.
fn parse_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = units.iter().find_map(|(unit, n)| Some((text.strip_suffix(unit)?, n)))?;
    number.trim().parse::<u64>().ok().filter(|number| *number > 0)?.checked_mul(*unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations_and_sizes() {
        for (text, read) in [("90d", 7_776_000), ("12h", 43_200), (" 2 w ", 1_209_600), ("30m", 1_800)] {
            assert_eq!(parse_seconds(text), Some(read), "{text}");
        }
        for (text, read) in [("1GB", 1_000_000_000), ("500 MB", 500_000_000), ("7KB", 7_000), ("12B", 12)] {
            assert_eq!(parse_bytes(text), Some(read), "{text}");
        }
        for text in ["", "d", "0d", "-1d", "1.5d", "1x", "90", "99999999999999999999w"] {
            assert_eq!(parse_seconds(text), None, "{text}");
        }
        for text in ["", "GB", "0GB", "1TB", "12", "99999999999GB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
