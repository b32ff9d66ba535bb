//! Parses the retry delay requested by a provider.

use std::time::Duration;

use http::header::{DATE, HeaderMap, RETRY_AFTER};
use jiff::fmt::rfc2822;

/// Longest delay: longer ones, also those that no number type can represent, count as this one. About a century.
const MAX_DELAY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the delay from the response headers: `retry-after-ms`, or `retry-after` in seconds or as a date. A
/// date is compared with the `date` header, so only the provider's clock matters.
pub(in crate::providers) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(wait) = text("retry-after-ms").and_then(|millis| delay(millis, 1000.0)) {
        return Some(wait);
    }
    let asked = text(RETRY_AFTER.as_str())?;
    if let Some(wait) = delay(asked, 1.0) {
        return Some(wait);
    }
    let (until, now) = (rfc2822::parse(asked).ok()?, rfc2822::parse(text(DATE.as_str())?).ok()?);
    let seconds = until.timestamp().as_second() - now.timestamp().as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Parses a number of a unit of time, of which `per_second` are a second.
fn delay(text: &str, per_second: f64) -> Option<Duration> {
    let starts_with_digit = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let seconds = text.parse::<f64>().ok().filter(|_| starts_with_digit)? / per_second;
    Some(Duration::try_from_secs_f64(seconds).map_or(MAX_DELAY, |wait| wait.min(MAX_DELAY)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(headers: &[(&'static str, &'static str)]) -> Option<u128> {
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        retry_after(&headers.collect()).map(|wait| wait.as_millis())
    }

    #[test]
    fn parses_seconds_milliseconds_and_dates() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(parsed(&[]), None);
        assert_eq!(parsed(&[("retry-after", "2")]), Some(2000));
        assert_eq!(parsed(&[("retry-after", "0.25")]), Some(250));
        assert_eq!(parsed(&[("retry-after", " 7 ")]), Some(7000));
        assert_eq!(parsed(&[("retry-after-ms", "150"), ("retry-after", "9")]), Some(150));
        assert_eq!(parsed(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT")]), Some(23_000));
        assert_eq!(parsed(&[date, ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")]), Some(0));
    }

    #[test]
    fn ignores_invalid_delays() {
        assert_eq!(parsed(&[("retry-after", "-1")]), None);
        assert_eq!(parsed(&[("retry-after", "soon")]), None);
        assert_eq!(parsed(&[("retry-after", "inf")]), None);
        for enormous in ["99999999999999999999999", Box::leak("9".repeat(400).into_boxed_str())] {
            assert_eq!(parsed(&[("retry-after", enormous)]), Some(MAX_DELAY.as_millis()));
            assert_eq!(parsed(&[("retry-after-ms", enormous)]), Some(MAX_DELAY.as_millis()));
        }
        assert_eq!(parsed(&[("retry-after-ms", "x"), ("retry-after", "9")]), Some(9000));
        // A date is ignored without the provider's own clock.
        assert_eq!(parsed(&[("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT")]), None);
    }
}
