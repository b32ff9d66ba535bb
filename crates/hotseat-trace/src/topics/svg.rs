//! SVG rendering of a topic graph, with the path of a conversation.

use std::fmt::Write as _;

use super::layout::{GraphLayout, RoutedEdge};
use super::{TopicGraph, Visit};
use crate::excerpt::truncate;

const BOX_HEIGHT: f64 = 44.0;
const MARGIN: f64 = 28.0;
/// Approximate width of a character; wide scripts count double.
const CHARACTER_WIDTH: f64 = 7.6;
/// Maximum number of characters of a label.
const MAX_LABEL_CHARS: usize = 32;

/// Colours follow the surrounding text, or the system theme if the picture stands alone. Embedding pages may
/// set `--topics-ink` and `--topics-accent`.
const STYLE: &str = "<style>.topics{color:var(--topics-ink,#1f2328);font:13px system-ui,sans-serif}\
.topics .box{fill:currentColor;fill-opacity:.05;stroke:currentColor;stroke-opacity:.45}\
.topics .first{stroke-width:2}\
.topics .name{fill:currentColor;text-anchor:middle}\
.topics .turns{fill:currentColor;fill-opacity:.75;font-size:11px;text-anchor:middle}\
.topics .way{fill:none;stroke:currentColor;stroke-opacity:.4}\
.topics .head{fill:currentColor;fill-opacity:.55}\
.topics .any{stroke-dasharray:4 4}\
.topics .visited .box{fill:var(--topics-accent,#0969da);fill-opacity:.16;stroke:var(--topics-accent,#0969da);stroke-opacity:1}\
.topics .last .box{stroke-width:3}\
.topics .taken .way{stroke:var(--topics-accent,#0969da);stroke-width:2.5;stroke-opacity:1}\
.topics .taken .head{fill:var(--topics-accent,#0969da);fill-opacity:1}\
.topics .step{fill:currentColor;font-size:11px;paint-order:stroke}\
@media (prefers-color-scheme:dark){.topics{color:var(--topics-ink,#e6edf3);--topics-blue:#58a6ff}\
.topics .visited .box{fill:var(--topics-accent,#58a6ff);stroke:var(--topics-accent,#58a6ff)}\
.topics .taken .way{stroke:var(--topics-accent,#58a6ff)}.topics .taken .head{fill:var(--topics-accent,#58a6ff)}}</style>";

/// The visited topics and edges of a graph.
struct PathHighlight {
    /// Labels of the visits of each topic.
    visited: Vec<Vec<String>>,
    /// Steps between topics, in order.
    steps: Vec<(usize, usize)>,
    last: Option<usize>,
}

impl PathHighlight {
    fn new(graph: &TopicGraph, path: &[Visit]) -> PathHighlight {
        let mut visited = vec![Vec::new(); graph.len()];
        let mut places = Vec::new();
        for visit in path {
            if let Some(place) = graph.index_of(&visit.topic) {
                visited[place].push(visit.turns_label());
                places.push(place);
            }
        }
        let steps = places.windows(2).map(|pair| (pair[0], pair[1])).collect();
        PathHighlight { visited, steps, last: places.last().copied() }
    }

    /// Returns the turns of a topic as text, if it was visited.
    fn turns(&self, place: usize) -> Option<String> {
        (!self.visited[place].is_empty()).then(|| self.visited[place].join(", "))
    }

    /// Returns the numbers of the steps over an edge, from 1, if any.
    fn steps(&self, from: usize, to: usize) -> Option<String> {
        let numbers = self.steps.iter().enumerate().filter(|(_, step)| **step == (from, to));
        let numbers: Vec<String> = numbers.map(|(number, _)| (number + 1).to_string()).collect();
        (!numbers.is_empty()).then(|| numbers.join(", "))
    }

    /// Returns the steps without an edge in the graph: those to topics that may follow every other.
    fn extra_edges(&self, graph: &TopicGraph) -> Vec<(usize, usize, String)> {
        let mut beside: Vec<(usize, usize, String)> = Vec::new();
        for &(from, to) in &self.steps {
            let known = beside.iter().any(|(a, b, _)| (*a, *b) == (from, to));
            if !known && !graph.nodes()[from].next.contains(&to) {
                beside.push((from, to, self.steps(from, to).unwrap_or_default()));
            }
        }
        beside
    }
}

impl TopicGraph {
    /// Renders the graph as SVG, stand-alone or embedded, for light and dark themes. Visited topics are
    /// filled and labelled with their turns; edges taken are thick and numbered.
    pub fn to_svg(&self, path: &[Visit]) -> String {
        let travelled = PathHighlight::new(self, path);
        let labels: Vec<String> = self.names().map(|name| truncate(name, MAX_LABEL_CHARS)).collect();
        let turns: Vec<String> = (0..self.len())
            .map(|place| truncate(&travelled.turns(place).unwrap_or_default(), MAX_LABEL_CHARS))
            .collect();
        let widths: Vec<f64> = labels
            .iter()
            .zip(&turns)
            .map(|(label, turns)| text_width(label).max(text_width(turns) * 0.85).max(64.0) + 28.0)
            .collect();
        let beside: Vec<(usize, usize)> =
            travelled.extra_edges(self).iter().map(|(from, to, _)| (*from, *to)).collect();
        let layout = GraphLayout::new(self, &widths, &beside);
        let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + BOX_HEIGHT + 2.0 * MARGIN);
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topics\" role=\"img\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\"><title>{}</title>{STYLE}",
            escape_xml(&path_title(path))
        );
        for way in &layout.edges {
            self.draw_edge(&mut svg, way, &layout, &travelled);
        }
        for (place, node) in self.nodes().iter().enumerate() {
            let (x, y) = layout.nodes[place];
            let (x, y) = (x + MARGIN, y + MARGIN);
            if node.from_any {
                let (end, start) = (y - 3.0, y - 20.0);
                let _ = write!(
                    svg,
                    "<path class=\"way any\" d=\"M{x:.1} {start:.1}V{end:.1}\"/><text class=\"turns\" x=\"{x:.1}\" y=\"{:.1}\">from any topic</text>",
                    start - 3.0
                );
            }
            let mut class = String::from("topic");
            class.push_str(if turns[place].is_empty() { "" } else { " visited" });
            class.push_str(if travelled.last == Some(place) { " last" } else { "" });
            let own = if place == 0 { "box first" } else { "box" };
            let wide = widths[place];
            let _ = write!(
                svg,
                "<g class=\"{class}\"><title>{}</title><rect class=\"{own}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{BOX_HEIGHT}\" rx=\"8\"/>",
                escape_xml(&node.name),
                x - wide / 2.0,
            );
            let middle = if turns[place].is_empty() { 27.0 } else { 20.0 };
            let _ = write!(
                svg,
                "<text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                y + middle,
                escape_xml(&labels[place])
            );
            if !turns[place].is_empty() {
                let _ = write!(
                    svg,
                    "<text class=\"turns\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    y + 35.0,
                    escape_xml(&turns[place])
                );
            }
            svg.push_str("</g>");
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_edge(&self, svg: &mut String, way: &RoutedEdge, layout: &GraphLayout, travelled: &PathHighlight) {
        let steps = travelled.steps(way.from, way.to);
        // Opposite edges between two topics are drawn side by side.
        let both = self.nodes()[way.to].next.contains(&way.from);
        let aside = match (both, way.is_back) {
            (false, _) => 0.0,
            (true, false) => -14.0,
            (true, true) => 14.0,
        };
        let at = |(x, y): (f64, f64)| (x + MARGIN + aside, y + MARGIN);
        let (start, end) = (at(layout.nodes[way.from]), at(layout.nodes[way.to]));
        // Edges run from the bottom of a box to the top of another; upward edges the other way round.
        let (start_y, end_y, down) = match way.is_back {
            false => (start.1 + BOX_HEIGHT, end.1, 1.0),
            true => (start.1, end.1 + BOX_HEIGHT, -1.0),
        };
        let mut points = vec![(start.0, start_y)];
        points.extend(way.waypoints.iter().map(|&point| {
            let (x, y) = at(point);
            (x, y + BOX_HEIGHT / 2.0)
        }));
        points.push((end.0, end_y));
        let mut line = format!("M{:.1} {:.1}", points[0].0, points[0].1);
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            let bend = (y2 - y1) / 2.0;
            let _ = write!(line, "C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 + bend, y2 - bend);
        }
        let class = if steps.is_some() { "edge taken" } else { "edge" };
        let dashed = if self.nodes()[way.from].next.contains(&way.to) { "way" } else { "way any" };
        let (x, y) = (end.0, end_y);
        let _ = write!(
            svg,
            "<g class=\"{class}\"><title>{} → {}</title><path class=\"{dashed}\" d=\"{line}\"/>\
             <path class=\"head\" d=\"M{x:.1} {y:.1}l-5 {:.1}h10z\"/>",
            escape_xml(&self.nodes()[way.from].name),
            escape_xml(&self.nodes()[way.to].name),
            -9.0 * down,
        );
        if let Some(steps) = steps {
            let middle = points.len() / 2;
            let (a, b) = (points[middle - 1], points[middle]);
            let _ = write!(
                svg,
                "<text class=\"step\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                (a.0 + b.0) / 2.0 + 6.0,
                (a.1 + b.1) / 2.0 + 4.0,
                escape_xml(&steps)
            );
        }
        svg.push_str("</g>");
    }
}

/// Describes the path as text, for the accessible title.
fn path_title(path: &[Visit]) -> String {
    let visits: Vec<String> =
        path.iter().map(|visit| format!("{} ({})", visit.topic, visit.turns_label())).collect();
    match visits.is_empty() {
        true => "topics".to_string(),
        false => format!("topics: {}", visits.join(", then ")),
    }
}

fn text_width(text: &str) -> f64 {
    let width = |c: char| if c >= '\u{1100}' { 2.0 * CHARACTER_WIDTH } else { CHARACTER_WIDTH };
    text.chars().map(width).sum()
}

/// Escapes text for XML and replaces characters that XML does not allow.
fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeclaredTopic;

    fn graph(edges: &[(&str, &[&str])]) -> TopicGraph {
        let wired: Vec<DeclaredTopic> = edges
            .iter()
            .map(|(name, next)| DeclaredTopic {
                name: (*name).into(),
                next: next.iter().map(|next| (*next).into()).collect(),
                from_any: *name == "lost",
                ..DeclaredTopic::default()
            })
            .collect();
        TopicGraph::build(&wired, |_| true).unwrap()
    }

    fn visit(topic: &str, number: usize, turns: std::ops::Range<usize>) -> Visit {
        Visit { topic: topic.into(), number, turns }
    }

    #[test]
    fn labels_are_escaped() {
        let hostile = "</title><script>alert(1)</script>\u{7}\"&'";
        let graph = graph(&[("a", &[hostile]), (hostile, &[])]);
        let svg = graph.to_svg(&[visit("a", 1, 0..1), visit(hostile, 1, 1..2)]);
        assert!(!svg.contains("<script"), "{svg}");
        assert!(!svg.contains('\u{7}'), "{svg}");
        assert!(svg.contains("&lt;script&gt;"), "{svg}");
    }

    #[test]
    fn visited_topics_and_taken_edges_are_marked() {
        let graph = graph(&[("a", &["b"]), ("b", &["c", "a"]), ("c", &["b"]), ("lost", &["a"])]);
        let path = [visit("a", 1, 0..1), visit("b", 1, 1..3), visit("lost", 1, 3..4)];
        let svg = graph.to_svg(&path);
        assert_eq!(svg.matches("<g class=\"topic visited").count(), 3);
        assert_eq!(svg.matches("<g class=\"edge taken").count(), 2);
        assert_eq!(svg.matches("<g class=\"edge\"").count(), 4);
        assert!(
            svg.contains("<title>topics: a (turn 1), then b (turns 2–3), then lost (turn 4)</title>"),
            "{svg}"
        );
    }

    #[test]
    fn topics_do_not_overlap() {
        let graph = graph(&[
            ("a", &["b", "c", "d"]),
            ("b", &["e"]),
            ("c", &["e", "a"]),
            ("d", &["f"]),
            ("e", &["f"]),
            ("f", &["a"]),
            ("lost", &["a"]),
        ]);
        let widths = vec![100.0; graph.len()];
        let layout = GraphLayout::new(&graph, &widths, &[]);
        for (one, a) in layout.nodes.iter().enumerate() {
            for b in &layout.nodes[one + 1..] {
                assert!((a.0 - b.0).abs() >= 100.0 || (a.1 - b.1).abs() >= BOX_HEIGHT, "{a:?} {b:?}");
            }
            assert!(a.0 >= 50.0 && a.0 <= layout.width - 50.0, "{a:?}");
        }
        // Successors are placed below, and the back edge leads up.
        let place = |name: &str| layout.nodes[graph.index_of(name).unwrap()].1;
        assert!(place("a") < place("b") && place("b") < place("e") && place("e") < place("f"));
        let back = layout.edges.iter().filter(|way| way.is_back).count();
        assert_eq!(back, 2);
    }
}
