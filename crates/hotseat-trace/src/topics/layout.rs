//! Layered layout of a topic graph, top to bottom. Back edges are reversed for the layout; edges that span
//! several layers get a waypoint in each.

use super::TopicGraph;

/// Horizontal distance between boxes of a layer.
const BOX_GAP: f64 = 36.0;
/// Vertical distance between the tops of adjacent layers.
const LAYER_HEIGHT: f64 = 96.0;
/// Number of passes that reorder the boxes within layers.
const ORDERING_SWEEPS: usize = 12;

/// A graph with positions for all topics and edges.
pub(super) struct GraphLayout {
    /// Horizontal centre and top of each topic.
    pub nodes: Vec<(f64, f64)>,
    /// Routed edges, from source to target.
    pub edges: Vec<RoutedEdge>,
    pub width: f64,
    pub height: f64,
}

/// An edge between two topics.
pub(super) struct RoutedEdge {
    pub from: usize,
    pub to: usize,
    /// Waypoints between the ends.
    pub waypoints: Vec<(f64, f64)>,
    /// True if the edge leads upwards.
    pub is_back: bool,
}

/// A topic, or a waypoint of an edge in a layer.
struct LayoutItem {
    layer: usize,
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

impl GraphLayout {
    /// Lays out a graph with the given box widths and the additional edges `beside`.
    pub fn new(graph: &TopicGraph, widths: &[f64], beside: &[(usize, usize)]) -> GraphLayout {
        let count = graph.len();
        let mut ways: Vec<(usize, usize)> = Vec::new();
        for (from, node) in graph.nodes().iter().enumerate() {
            ways.extend(node.next.iter().map(|&to| (from, to)));
        }
        ways.extend(beside);
        let back = back_edges(count, &ways);
        let layers = layers(count, ways.iter().filter(|way| !back.contains(way)));

        let mut items: Vec<LayoutItem> = (0..count)
            .map(|place| LayoutItem {
                layer: layers[place],
                width: widths[place],
                above: Vec::new(),
                below: Vec::new(),
            })
            .collect();
        let mut chains = Vec::new();
        for &(from, to) in &ways {
            let (top, bottom) = if layers[from] < layers[to] { (from, to) } else { (to, from) };
            let mut chain = vec![top];
            for layer in layers[top] + 1..layers[bottom] {
                items.push(LayoutItem { layer, width: 12.0, above: Vec::new(), below: Vec::new() });
                chain.push(items.len() - 1);
            }
            chain.push(bottom);
            for pair in chain.windows(2) {
                items[pair[0]].below.push(pair[1]);
                items[pair[1]].above.push(pair[0]);
            }
            chains.push((from, to, chain));
        }
        let rows = order_layers(&items);
        let (middles, width) = place_columns(&items, &rows);
        let at = |item: usize| (middles[item], items[item].layer as f64 * LAYER_HEIGHT);
        let edges = chains.into_iter().map(|(from, to, chain)| {
            let mut through: Vec<(f64, f64)> =
                chain.iter().filter(|&&item| item >= count).map(|&item| at(item)).collect();
            let is_back = chain[0] != from;
            if is_back {
                through.reverse();
            }
            RoutedEdge { from, to, waypoints: through, is_back }
        });
        GraphLayout {
            edges: edges.collect(),
            nodes: (0..count).map(at).collect(),
            width,
            height: rows.len().saturating_sub(1) as f64 * LAYER_HEIGHT,
        }
    }
}

/// Returns the back edges found by a depth-first search.
fn back_edges(count: usize, ways: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut back = Vec::new();
    let mut found = vec![false; count];
    for start in 0..count {
        if found[start] {
            continue;
        }
        found[start] = true;
        // Path of the search: each topic with the index of its next edge.
        let mut trail = vec![(start, 0)];
        while let Some((from, at)) = trail.last_mut() {
            let next = ways.iter().skip(*at).position(|(a, _)| a == from);
            let Some(step) = next else {
                trail.pop();
                continue;
            };
            let way = ways[*at + step];
            *at += step + 1;
            if trail.iter().any(|(place, _)| *place == way.1) {
                back.push(way);
            } else if !found[way.1] {
                found[way.1] = true;
                trail.push((way.1, 0));
            }
        }
    }
    back
}

/// Returns the layer of each topic: below all its predecessors.
fn layers<'a>(count: usize, down: impl Iterator<Item = &'a (usize, usize)> + Clone) -> Vec<usize> {
    let mut layers = vec![0; count];
    // No path has more edges than there are topics.
    for _ in 0..count {
        for &(from, to) in down.clone() {
            layers[to] = layers[to].max(layers[from] + 1);
        }
    }
    layers
}

/// Orders each layer so that nodes are close to the average position of their neighbours.
fn order_layers(items: &[LayoutItem]) -> Vec<Vec<usize>> {
    let count = items.iter().map(|item| item.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (place, item) in items.iter().enumerate() {
        rows[item.layer].push(place);
    }
    let mut best = (crossings(items, &rows), rows.clone());
    for sweep in 0..ORDERING_SWEEPS {
        let is_down = sweep % 2 == 0;
        let layers: Vec<usize> =
            if is_down { (1..count).collect() } else { (0..count.saturating_sub(1)).rev().collect() };
        for layer in layers {
            let other = if is_down { layer - 1 } else { layer + 1 };
            let middle = |item: usize, own: usize| {
                let near = if is_down { &items[item].above } else { &items[item].below };
                let places: Vec<usize> =
                    near.iter().filter_map(|near| rows[other].iter().position(|i| i == near)).collect();
                match places.len() {
                    0 => own as f64,
                    many => places.iter().sum::<usize>() as f64 / many as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> =
                rows[layer].iter().enumerate().map(|(own, &item)| (middle(item, own), item)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[layer] = keyed.into_iter().map(|(_, item)| item).collect();
        }
        let now = crossings(items, &rows);
        if now < best.0 {
            best = (now, rows.clone());
        }
    }
    best.1
}

fn crossings(items: &[LayoutItem], rows: &[Vec<usize>]) -> usize {
    let mut count = 0;
    for pair in rows.windows(2) {
        let mut ends: Vec<(usize, usize)> = Vec::new();
        for (top, item) in pair[0].iter().enumerate() {
            for below in &items[*item].below {
                if let Some(bottom) = pair[1].iter().position(|i| i == below) {
                    ends.push((top, bottom));
                }
            }
        }
        for (at, a) in ends.iter().enumerate() {
            count += ends[at + 1..]
                .iter()
                .filter(|b| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1))
                .count();
        }
    }
    count
}

/// Returns the centre of each item and the total width. Layers are centred.
fn place_columns(items: &[LayoutItem], rows: &[Vec<usize>]) -> (Vec<f64>, f64) {
    let wide = |row: &Vec<usize>| {
        row.iter().map(|&item| items[item].width).sum::<f64>() + BOX_GAP * row.len().saturating_sub(1) as f64
    };
    let width = rows.iter().map(wide).fold(0.0, f64::max);
    let mut middles = vec![0.0; items.len()];
    for row in rows {
        let mut at = (width - wide(row)) / 2.0;
        for &item in row {
            middles[item] = at + items[item].width / 2.0;
            at += items[item].width + BOX_GAP;
        }
    }
    (middles, width)
}
