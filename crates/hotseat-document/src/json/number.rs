//! JSON numbers.

use serde_json::Number;

/// Parses a number.
///
/// # Errors
/// Returns a message and advice.
pub(super) fn parse_number(text: &str) -> Result<Number, (String, Option<String>)> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = unsigned.split_at(digits);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) || !is_fraction(rest) {
        let help = match unsigned {
            _ if text.starts_with('+') => "leave out the `+`",
            _ if unsigned.starts_with(['.']) => "write a digit before the decimal point",
            _ if unsigned.ends_with('.') => "write a digit after the decimal point",
            _ if whole.len() > 1 && whole.starts_with('0') => {
                "a number does not start with `0`; write strings in double quotes"
            }
            _ => "write strings in double quotes",
        };
        return Err((format!("`{text}` is not a number"), Some(help.to_owned())));
    }
    let exact = || {
        let signed = text.parse::<i64>().ok().filter(|number| *number != 0 || !text.starts_with('-'));
        signed.map(Number::from).or_else(|| text.parse::<u64>().ok().map(Number::from))
    };
    let number = match rest.is_empty() {
        // `-0` is a floating-point number; no other whole number has to be one.
        true if text == "-0" => Number::from_f64(-0.0),
        true => exact(),
        false => text.parse().ok().and_then(Number::from_f64),
    };
    number.ok_or_else(|| {
        let help = format!("write \"{text}\" to mean text");
        ("this number is too large to be kept exactly".to_owned(), Some(help).filter(|_| text.len() <= 40))
    })
}

/// Returns true if `text` may follow the integer part of a number: nothing, `.5`, `e3`, `.5e-3`.
fn is_fraction(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (fraction, exponent) = match text.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (text, None),
    };
    let fraction_fits = fraction.is_empty() || fraction.strip_prefix('.').is_some_and(is_digits);
    fraction_fits
        && exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
