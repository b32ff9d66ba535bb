//! Elements of XML.

use hotseat_document::visible_char;

/// An element with a text or with child elements. Control characters, and characters that reorder or hide text, are
/// replaced by visible ones as in the output of a terminal: XML cannot hold most of them.
#[derive(Debug)]
pub(super) struct XmlElement {
    name: &'static str,
    attributes: String,
    content: XmlContent,
}

#[derive(Debug)]
enum XmlContent {
    Text(String),
    Children(Vec<XmlElement>),
}

impl XmlElement {
    pub(super) fn new(name: &'static str) -> XmlElement {
        XmlElement { name, attributes: String::new(), content: XmlContent::Children(Vec::new()) }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn attribute(mut self, name: &str, value: impl ToString) -> XmlElement {
        self.attributes += &attribute_text(name, value);
        self
    }

    pub(super) fn text(self, text: impl AsRef<str>) -> XmlElement {
        XmlElement { content: XmlContent::Text(escape(text.as_ref())), ..self }
    }

    pub(super) fn child(mut self, child: XmlElement) -> XmlElement {
        match &mut self.content {
            XmlContent::Children(children) => children.push(child),
            XmlContent::Text(_) => self.content = XmlContent::Children(vec![child]),
        }
        self
    }

    /// Returns the start tag on a line of its own.
    pub(super) fn start_tag(&self, depth: usize) -> String {
        format!("{}<{}{}>", line_start(depth), self.name, self.attributes)
    }

    /// Returns the element, on lines of its own.
    pub(super) fn to_text(&self, depth: usize) -> String {
        let (start, rest) = self.to_parts(depth);
        start + &rest
    }

    /// Returns the text before the attributes, and the text from them on.
    pub(super) fn to_parts(&self, depth: usize) -> (String, String) {
        let XmlElement { name, attributes, content } = self;
        let rest = match content {
            XmlContent::Children(children) if children.is_empty() => format!("{attributes}/>"),
            XmlContent::Children(children) => {
                let children: String = children.iter().map(|child| child.to_text(depth + 1)).collect();
                format!("{attributes}>{children}{}</{name}>", line_start(depth))
            }
            XmlContent::Text(text) => format!("{attributes}>{text}</{name}>"),
        };
        (format!("{}<{name}", line_start(depth)), rest)
    }
}

/// Returns an attribute after a space.
pub(super) fn attribute_text(name: &str, value: impl ToString) -> String {
    // A reader makes a space of a raw tab or line break in an attribute.
    let value = escape(&value.to_string());
    let value = value.replace('\t', "&#9;").replace('\n', "&#10;").replace('\r', "&#13;");
    format!(" {name}=\"{value}\"")
}

fn line_start(depth: usize) -> String {
    format!("\n{:1$}", "", depth * 4)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            '\t' | '\n' | '\r' => escaped.push(c),
            // Not allowed, not even as entities.
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(visible_char(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::XmlElement;

    #[test]
    fn replaces_what_xml_cannot_hold_by_visible_characters() {
        let text = "a<b \u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7} \u{0}\u{9b}\u{fffe}é\u{202e}\u{2066}\u{7f}\t\r\n";
        let element =
            XmlElement::new("a").attribute("b", "\"&'\u{1}\t\r\n").child(XmlElement::new("c").text(text));
        let shown = "a&lt;b ␛[1;31mred␛[0m ␛]8;;http://x␇ ␀\u{fffd}\u{fffd}é\u{fffd}\u{fffd}␡\t\r\n";
        let expected = format!("\n<a b=\"&quot;&amp;&apos;␁&#9;&#13;&#10;\">\n    <c>{shown}</c>\n</a>");
        assert_eq!(element.to_text(0), expected);
    }
}
