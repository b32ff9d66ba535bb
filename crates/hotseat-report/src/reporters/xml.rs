//! Elements of XML.

use std::borrow::Cow;

use hotseat_document::visible_char;

/// An element with a text or with child elements. Texts lose escape sequences of terminals and control characters;
/// characters that reorder or hide text are replaced as in the output of a terminal.
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
    format!(" {name}=\"{}\"", escape(&value.to_string()))
}

fn line_start(depth: usize) -> String {
    format!("\n{:1$}", "", depth * 4)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in without_terminal_escapes(text).chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            '\t' | '\n' | '\r' => escaped.push(c),
            // Not allowed, not even as entities.
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => escaped.push(visible_char(c)),
        }
    }
    escaped
}

/// Removes escape sequences of terminals, such as those of colours and of links.
fn without_terminal_escapes(text: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    const BELL: char = '\u{7}';
    if !text.contains(ESCAPE) {
        return text.into();
    }
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, sequence)) = rest.split_once(ESCAPE) {
        kept += before;
        let end = match sequence.chars().next() {
            Some('[') => sequence[1..].find(|c| matches!(c, '@'..='~')).map(|at| at + 2),
            Some(']') => {
                sequence.find([BELL, ESCAPE]).map(|at| at + usize::from(sequence[at..].starts_with(BELL)))
            }
            other => Some(other.map_or(0, char::len_utf8)),
        };
        // A sequence without an end must not hide the text after it.
        rest = end.map_or(sequence, |end| &sequence[end..]);
    }
    (kept + rest).into()
}

#[cfg(test)]
mod tests {
    use super::XmlElement;

    #[test]
    fn escapes_texts_and_drops_what_xml_cannot_hold() {
        let text = "a<b \u{1b}[1;31mred\u{1b}[0m \u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\ \u{0}\u{9b}\u{fffe}é\u{202e}\u{2066}";
        let element = XmlElement::new("a").attribute("b", "\"&'").child(XmlElement::new("c").text(text));
        let expected = "\n<a b=\"&quot;&amp;&apos;\">\n    <c>a&lt;b red link é\u{fffd}\u{fffd}</c>\n</a>";
        assert_eq!(element.to_text(0), expected);
        for unended in ["a\u{1b}]b", "a\u{1b}[;é"] {
            let text = XmlElement::new("c").text(unended).to_text(0);
            assert_eq!(text, format!("\n<c>{}</c>", unended.replace('\u{1b}', "")));
        }
    }
}
