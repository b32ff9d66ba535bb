//! A graph of topics in the language of Graphviz.

use std::fmt::Write as _;

use super::svg::Travelled;
use super::{TopicGraph, Visit};

impl TopicGraph {
    /// The graph in DOT. What was visited is filled, and the ways that were taken are thick.
    pub fn to_dot(&self, path: &[Visit]) -> String {
        let travelled = Travelled::of(self, path);
        let mut dot = String::from("digraph topics {\n  node [shape=box, style=rounded];\n");
        for (place, node) in self.nodes().iter().enumerate() {
            let label = match travelled.turns(place) {
                Some(turns) => format!("{}\n{turns}", node.name),
                None => node.name.to_string(),
            };
            let style = match travelled.turns(place) {
                Some(_) => ", style=\"rounded,filled\", fillcolor=\"#cfe3ff\"",
                None => "",
            };
            let first = if place == 0 { ", penwidth=2" } else { "" };
            let _ = writeln!(dot, "  {} [label={}{style}{first}];", quoted(&node.name), quoted(&label));
        }
        for (from, node) in self.nodes().iter().enumerate() {
            for &to in &node.next {
                let taken = match travelled.steps(from, to) {
                    Some(steps) => format!(" [penwidth=2.5, label={}]", quoted(&steps)),
                    None => String::new(),
                };
                let name = &self.nodes()[to].name;
                let _ = writeln!(dot, "  {} -> {}{taken};", quoted(&node.name), quoted(name));
            }
        }
        for (place, node) in self.nodes().iter().enumerate().filter(|(_, node)| node.from_any) {
            let _ = writeln!(dot, "  \"any {place}\" [label=\"from any topic\", shape=plaintext];");
            let _ = writeln!(dot, "  \"any {place}\" -> {} [style=dashed];", quoted(&node.name));
        }
        // Ways that are taken from any topic are drawn only where they were.
        for (from, to, steps) in travelled.beside(self) {
            let (from, to) = (&self.nodes()[from].name, &self.nodes()[to].name);
            let _ = writeln!(
                dot,
                "  {} -> {} [style=dashed, penwidth=2.5, label={}];",
                quoted(from),
                quoted(to),
                quoted(&steps)
            );
        }
        dot.push_str("}\n");
        dot
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
