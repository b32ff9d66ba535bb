//! Decides whether output is colored.

use std::collections::BTreeMap;

/// Returns true if output is colored unless the command line decides: `NO_COLOR` disables colors, else `FORCE_COLOR` and
/// `CLICOLOR_FORCE` enable them (`0` of `FORCE_COLOR` disables them), else a terminal has them that is not dumb.
/// Empty variables count as unset.
pub fn uses_color(environment: &BTreeMap<String, String>, is_terminal: bool) -> bool {
    let value = |name: &str| environment.get(name).map(String::as_str).filter(|value| !value.is_empty());
    match (value("NO_COLOR"), value("FORCE_COLOR"), value("CLICOLOR_FORCE")) {
        (Some(_), ..) | (None, Some("0" | "false"), _) => false,
        (None, Some(_), _) => true,
        (None, None, Some(force)) if force != "0" => true,
        (None, None, _) => is_terminal && value("TERM") != Some("dumb"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_decide_in_order() {
        let is_colored = |variables: &[(&str, &str)], terminal: bool| {
            let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            uses_color(&variables.collect(), terminal)
        };
        for (variables, without_terminal, on_terminal) in [
            (&[][..], false, true),
            (&[("TERM", "dumb")], false, false),
            (&[("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false, false),
            (&[("NO_COLOR", ""), ("FORCE_COLOR", "1")], true, true),
            (&[("FORCE_COLOR", "0"), ("CLICOLOR_FORCE", "1")], false, false),
            (&[("FORCE_COLOR", "3"), ("TERM", "dumb")], true, true),
            (&[("FORCE_COLOR", "")], false, true),
            (&[("CLICOLOR_FORCE", "1")], true, true),
            (&[("CLICOLOR_FORCE", "0")], false, true),
        ] {
            assert_eq!(is_colored(variables, false), without_terminal, "{variables:?}");
            assert_eq!(is_colored(variables, true), on_terminal, "{variables:?}");
        }
    }
}
