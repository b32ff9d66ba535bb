//! Addresses of MCP servers and served models of the test, within texts.

/// Start of every such address.
const START: &str = "http://127.0.0.1:";
/// Length of a token in an address, in hexadecimal digits.
const TOKEN_CHARS: usize = 32;

/// Returns the text without the ports and tokens of addresses of MCP servers and served models. They differ in each
/// conversation, and say nothing about the test.
pub fn hide_service_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        out.push_str(before);
        rest = match service_address(after) {
            Some((kind, name, rest)) => {
                out.extend(["http://", kind, name]);
                rest
            }
            None => {
                out.push_str(START);
                after
            }
        };
    }
    out + rest
}

/// Returns the kind and the name of the service whose address begins with this port, and the text after the address.
fn service_address(text: &str) -> Option<(&'static str, &str, &str)> {
    let path = text.trim_start_matches(|digit: char| digit.is_ascii_digit()).strip_prefix('/')?;
    // The first prefix is that of the example for a served model, which stands where there is no conversation.
    [("mcp/models/", "models/"), ("mcp/", "mcp/"), ("models/", "models/")].into_iter().find_map(
        |(prefix, kind)| {
            let (name, rest) = path.strip_prefix(prefix)?.split_once('/')?;
            let is_name_char = |name: char| name.is_ascii_alphanumeric() || matches!(name, '-' | '_');
            let end = rest.find(|token: char| !token.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (token, rest) = rest.split_at(end);
            let is_token = token == "example"
                || (token.len() == TOKEN_CHARS && token.bytes().all(|digit| digit.is_ascii_hexdigit()));
            (name.chars().all(is_name_char) && is_token).then_some((kind, name, rest))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::hide_service_addresses;

    #[test]
    fn hides_ports_and_tokens() {
        let token = "0123456789abcdef0123456789abcdef";
        for (text, hidden) in [
            (format!("use http://127.0.0.1:81/mcp/bank/{token}, please"), "use http://mcp/bank, please"),
            (format!("http://127.0.0.1:81/models/main/{token}/v1"), "http://models/main/v1"),
            (format!("http://127.0.0.1:81/mcp/models/{token}"), "http://mcp/models"),
            ("http://127.0.0.1:1/mcp/bank/example".to_string(), "http://mcp/bank"),
            ("http://127.0.0.1:1/mcp/models/main/example".to_string(), "http://models/main"),
        ] {
            assert_eq!(hide_service_addresses(&text), hidden, "{text}");
        }
        for text in
            ["http://127.0.0.1:81/mcp/bank/other", "http://127.0.0.1:", "http://127.0.0.1:x/mcp/a/example"]
        {
            assert_eq!(hide_service_addresses(text), text);
        }
    }
}
