//! Charts, and the SVG that shows them: lines, stacked and grouped bars, a second scale.
//!
//! | module | what it is |
//! |---|---|
//! | [`from_rows`](mod@from_rows) | an experiment's rows as a chart |
//! | `ticks` | round numbers along a scale |
//! | `layout` | where everything is |
//! | `draw` | marks, scales and legend at their places |
//! | `svg` | the markup |
//!
//! The same chart gives the same bytes on every machine: no arithmetic beyond the four operations decides a
//! coordinate, and coordinates are written to a tenth of a pixel. Left out: scripts, logarithmic scales, text
//! measured by a font (its width is estimated).

mod draw;
pub mod from_rows;
mod layout;
mod legend;
mod svg;
#[cfg(test)]
mod tests;
mod ticks;

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// A name that is unique in the document: letters, digits, hyphens.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What someone who does not see it should know.
    pub description: String,
    /// What stands below x.
    pub x_title: String,
    /// Along x.
    pub x: X,
    /// The scale to the left.
    pub left: Scale,
    /// The scale to the right, if there is one.
    pub right: Option<Scale>,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
    /// What a paper states, at its place.
    pub stated: Vec<Stated>,
}

/// A value of a paper, beside the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// Which of the series it is a value of, by its place among them; that on top of a stack if it is of the whole.
    pub series: usize,
    /// Where along x.
    pub at: usize,
    /// How high, with what is below it in a stack.
    pub height: f64,
    /// The value.
    pub value: f64,
    /// The model was calibrated on it.
    pub is_calibrated: bool,
}

/// What is along x.
#[derive(Clone, Debug, PartialEq)]
pub enum X {
    /// Names at equal distances; several levels from the outermost in.
    Names(Vec<Vec<String>>),
    /// Numbers, true to distance.
    Numbers(Vec<f64>),
}

impl X {
    fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }
}

/// A vertical scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// What it measures.
    pub title: String,
    /// In which unit.
    pub unit: String,
}

/// A value for each place along x.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What is drawn.
    pub label: String,
    /// Of several that show the same, which one: its label, if there are several.
    pub variant_label: String,
    /// Which colour, counted from 0.
    pub colour: usize,
    /// Which pattern or dash, counted from 0.
    pub variant: usize,
    /// How it is drawn.
    pub mark: Mark,
    /// Whether it is measured on the right scale.
    pub right: bool,
    /// The values; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
    /// How sure they are, if that is known: half of the interval around each.
    pub spreads: Vec<Option<f64>>,
}

impl Series {
    /// Half of the interval around the value at a place.
    fn half(&self, at: usize) -> Option<f64> {
        self.spreads.get(at).copied().flatten()
    }
}

/// From where to where the interval around a value reaches. It ends at zero: no metric is above zero and below.
fn interval(value: f64, half: f64) -> (f64, f64) {
    ((value - half).max(value.min(0.0)), value + half)
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line with markers.
    Line,
    /// Bars. Series of one stack stand on top of each other, stacks stand side by side.
    Bar {
        /// Which stack, counted from 0.
        stack: usize,
    },
}

impl Chart {
    /// The chart as SVG: complete as a file of its own, and fit to stand inside HTML.
    #[must_use]
    pub fn to_svg(&self) -> String {
        draw::chart(self)
    }
}
