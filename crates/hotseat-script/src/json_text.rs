//! JSON for scripts, whose numbers hold integers of at most 53 bits exactly.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Returns a value as JSON text for a script. An integer that a number of the script would round is a text of its digits: two
/// different ids must not become equal.
pub(crate) fn script_json(value: &Value) -> String {
    let mut text = Vec::with_capacity(64);
    let written =
        value.serialize(&mut Serializer::with_formatter(&mut text, ExactIntegers(CompactFormatter)));
    debug_assert!(written.is_ok(), "a value can be written");
    String::from_utf8(text).unwrap_or_default()
}

struct ExactIntegers(CompactFormatter);

impl Formatter for ExactIntegers {
    fn write_u64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: u64) -> io::Result<()> {
        // A float of the largest integer is one more, and becomes the largest integer again.
        match value as f64 as u64 == value && value != u64::MAX {
            true => self.0.write_u64(out, value),
            false => write!(out, "\"{value}\""),
        }
    }

    fn write_i64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: i64) -> io::Result<()> {
        match value as f64 as i64 == value && value != i64::MAX {
            true => self.0.write_i64(out, value),
            false => write!(out, "\"{value}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_integers_that_would_be_rounded_are_texts() {
        for (value, text) in [
            (json!({"a": [1, -1, 0, 1.5, "x", null, true]}), r#"{"a":[1,-1,0,1.5,"x",null,true]}"#),
            (json!(9_007_199_254_740_991_u64), "9007199254740991"),
            (json!(9_007_199_254_740_992_u64), "9007199254740992"),
            (json!(9_007_199_254_740_993_u64), "\"9007199254740993\""),
            (json!(-9_007_199_254_740_993_i64), "\"-9007199254740993\""),
            (json!(1_u64 << 60), "1152921504606846976"),
            (json!(u64::MAX), "\"18446744073709551615\""),
            (json!(i64::MAX), "\"9223372036854775807\""),
            (json!(i64::MIN), "-9223372036854775808"),
            (json!(1e300), "1e+300"),
        ] {
            assert_eq!(script_json(&value), text);
        }
    }
}
