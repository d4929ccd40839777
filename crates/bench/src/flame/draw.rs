//! Flame graph of a tree of samples as SVG, with the outermost functions at the bottom. The width of a function is its
//! number of samples. Names that do not fit are shown under the pointer.

use super::fold::CallTreeNode;
use maud::{Markup, html};

const WIDTH: f64 = 1200.0;
const LINE: f64 = 17.0;
const TOP: f64 = 40.0;
/// Width in pixels below which a function is not drawn in the flame graph.
const NARROWEST: f64 = 1.0;
/// Width of a letter in the flame graph, pixels.
const LETTER: f64 = 6.6;
const STYLE: &str = "text{font:11px monospace}rect{stroke:#fff;stroke-width:.5}.title{font:15px sans-serif}";

/// Draws the flame graph of a call tree as SVG, with a title.
pub(super) fn draw(root: &CallTreeNode, title: &str) -> String {
    let height = TOP + (depth(root, WIDTH) as f64 + 1.0) * LINE;
    let mut marks = Vec::new();
    let scale = WIDTH / root.samples.max(1) as f64;
    place(
        root,
        "all",
        FlameGraphPosition { x: 0.0, y: height - LINE, scale, total: root.samples },
        &mut marks,
    );
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height:.0}")) role="img" {
            title { (title) }
            style { (STYLE) }
            text.title x="8" y="22" { (title) }
            @for mark in marks { (mark) }
        }
    };
    drawn.into_string()
}

/// Returns the number of levels of the tree whose functions are wide enough to be drawn.
fn depth(node: &CallTreeNode, width: f64) -> usize {
    let of = |call: &CallTreeNode| {
        let width = width * call.samples as f64 / node.samples.max(1) as f64;
        if width < NARROWEST { 0 } else { 1 + depth(call, width) }
    };
    node.calls.values().map(of).max().unwrap_or(0)
}

#[derive(Clone, Copy)]
struct FlameGraphPosition {
    x: f64,
    y: f64,
    /// Width of one sample in the flame graph, in pixels.
    scale: f64,
    /// Number of samples of the whole call tree.
    total: u64,
}

/// Draws the box of a function in the flame graph, and above it those of the functions that it called.
fn place(node: &CallTreeNode, name: &str, at: FlameGraphPosition, marks: &mut Vec<Markup>) {
    let width = node.samples as f64 * at.scale;
    if width < NARROWEST {
        return;
    }
    let part = node.samples as f64 / at.total as f64 * 100.0;
    let room = (width / LETTER) as usize;
    let label: String = if room > 3 { name.chars().take(room).collect() } else { String::new() };
    marks.push(html! {
        g {
            title { (format!("{name}: {part:.1} %")) }
            rect x=(px(at.x)) y=(px(at.y)) width=(px(width)) height=(px(LINE)) fill=(colour(name)) {}
            text x=(px(at.x + 2.0)) y=(px(at.y + 12.0)) { (label) }
        }
    });
    let mut x = at.x;
    for (name, call) in &node.calls {
        place(call, name, FlameGraphPosition { x, y: at.y - LINE, ..at }, marks);
        x += call.samples as f64 * at.scale;
    }
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Returns the colour of a function by its crate: the card's warm, our other crates' green, all others' grey.
fn colour(name: &str) -> &'static str {
    let ours = ["daemon", "host", "vfio_user", "driver", "iovm", "softiov"];
    if ["nic::", "i82576::", "pcie::"].iter().any(|part| name.contains(part)) {
        "#f4a259"
    } else if ours.iter().any(|part| name.starts_with(part) || name.contains(&format!("<{part}"))) {
        "#8cb369"
    } else {
        "#c8ccd4"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::fold::fold;

    #[test]
    fn flame_graph_box_is_as_wide_as_its_share_of_samples() {
        let script = "softiov \n\t1 Vec<T>::push\n\t2 main\n\nsoftiov \n\t2 main\n\n";
        let svg = draw(&fold(script), "two samples");
        assert!(svg.starts_with("<svg"));
        assert!(svg.contains("main: 100.0 %") && svg.contains("width=\"1200.0\""));
        assert!(svg.contains("Vec&lt;T&gt;::push: 50.0 %") && svg.contains("width=\"600.0\""));
    }
}
