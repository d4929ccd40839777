//! Flame graph of a tree of weights as SVG, with the root at the bottom. A box is as wide as its weight. Names that do
//! not fit are shown under the pointer.

use std::collections::BTreeMap;

use maud::{Markup, html};

const WIDTH: f64 = 1200.0;
const LINE: f64 = 17.0;
const TOP: f64 = 40.0;
/// Width in pixels below which a box is not drawn in the flame graph.
const NARROWEST: f64 = 1.0;
/// Width of a letter in the flame graph, pixels.
const LETTER: f64 = 6.6;
const STYLE: &str = "text{font:11px monospace}rect{stroke:#fff;stroke-width:.5}.title{font:15px sans-serif}";

/// Node of a flame graph's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlameGraphNode {
    /// Weight of the node with all its children, such as a number of samples or cycles.
    pub weight: u64,
    /// Difference of the node's weight from that in another tree, or 0 if trees are not compared.
    pub change: i64,
    /// Children of the node, by name.
    pub children: BTreeMap<String, FlameGraphNode>,
}

impl FlameGraphNode {
    /// Adds a weight and a change to this node and to the nodes along `path`, which begins with a child of this node.
    pub fn add<S: AsRef<str>>(&mut self, path: &[S], weight: u64, change: i64) {
        self.weight += weight;
        self.change += change;
        if let Some((first, rest)) = path.split_first() {
            self.children.entry(first.as_ref().to_owned()).or_default().add(rest, weight, change);
        }
    }
}

/// Appearance of a flame graph's boxes.
#[derive(Clone, Copy, Debug)]
pub struct FlameGraphStyle {
    /// Returns the colour of a box from its name and node.
    pub colour: fn(&str, &FlameGraphNode) -> &'static str,
    /// Returns the text under the pointer from a box's node and the root.
    pub note: fn(&FlameGraphNode, &FlameGraphNode) -> String,
}

/// Draws the flame graph of a tree as SVG, with a title.
#[must_use]
pub fn draw(root: &FlameGraphNode, title: &str, style: FlameGraphStyle) -> String {
    let height = TOP + (depth(root, WIDTH) as f64 + 1.0) * LINE;
    let mut graph =
        FlameGraphDrawing { root, style, scale: WIDTH / root.weight.max(1) as f64, marks: Vec::new() };
    graph.place(root, "all", 0.0, height - LINE);
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" {
            title { (title) }
            style { (STYLE) }
            rect width="100%" height="100%" fill="#fff" {}
            text.title x="8" y="22" { (title) }
            @for mark in graph.marks { (mark) }
        }
    };
    drawn.into_string()
}

/// Returns the number of levels of the tree whose boxes are wide enough to be drawn.
fn depth(node: &FlameGraphNode, width: f64) -> usize {
    let of = |child: &FlameGraphNode| {
        let width = width * child.weight as f64 / node.weight.max(1) as f64;
        if width < NARROWEST { 0 } else { 1 + depth(child, width) }
    };
    node.children.values().map(of).max().unwrap_or(0)
}

struct FlameGraphDrawing<'a> {
    root: &'a FlameGraphNode,
    style: FlameGraphStyle,
    /// Width of one unit of weight in the flame graph, in pixels.
    scale: f64,
    marks: Vec<Markup>,
}

impl FlameGraphDrawing<'_> {
    /// Draws the box of a node, and above it those of its children.
    fn place(&mut self, node: &FlameGraphNode, name: &str, x: f64, y: f64) {
        let width = node.weight as f64 * self.scale;
        if width < NARROWEST {
            return;
        }
        let room = (width / LETTER) as usize;
        let label: String = if room > 3 { name.chars().take(room).collect() } else { String::new() };
        let (note, colour) = ((self.style.note)(node, self.root), (self.style.colour)(name, node));
        self.marks.push(html! {
            g {
                title { (format!("{name}: {note}")) }
                rect x=(px(x)) y=(px(y)) width=(px(width)) height=(px(LINE)) fill=(colour) {}
                text x=(px(x + 2.0)) y=(px(y + 12.0)) { (label) }
            }
        });
        let mut x = x;
        for (name, child) in &node.children {
            self.place(child, name, x, y - LINE);
            x += child.weight as f64 * self.scale;
        }
    }
}

/// Returns a node's share of the root's weight in percent, as text.
#[must_use]
pub fn share(node: &FlameGraphNode, root: &FlameGraphNode) -> String {
    format!("{:.1} %", node.weight as f64 / root.weight.max(1) as f64 * 100.0)
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::{FlameGraphNode, FlameGraphStyle, draw, share};

    #[test]
    fn flame_graph_box_is_as_wide_as_its_share_of_the_weight() {
        let mut root = FlameGraphNode::default();
        root.add(&["main", "Vec<T>::push"], 1, 0);
        root.add(&["main"], 1, 0);
        let svg = draw(&root, "two samples", FlameGraphStyle { colour: |_, _| "#ccc", note: share });
        assert!(svg.starts_with("<svg"));
        assert!(svg.contains("main: 100.0 %") && svg.contains("width=\"1200.0\""));
        assert!(svg.contains("Vec&lt;T&gt;::push: 50.0 %") && svg.contains("width=\"600.0\""));
    }

    #[test]
    fn flame_graph_of_no_weight_has_no_box() {
        let svg = draw(
            &FlameGraphNode::default(),
            "nothing",
            FlameGraphStyle { colour: |_, _| "#ccc", note: share },
        );
        assert!(!svg.contains("<g>"), "{svg}");
    }
}
