//! Charts and their SVG: lines, stacked and grouped bars, a second scale, and flame graphs. Used by reports of the lab and of the
//! benchmark.
//!
//! | module | contents |
//! |---|---|
//! | `chart` | a chart as data |
//! | `ticks` | round numbers along a scale |
//! | `layout` | positions |
//! | `legend` | names of series |
//! | `draw` | marks, scales and legend |
//! | `svg` | markup |
//! | [`flame`] | flame graphs |
//!
//! A chart gives the same bytes on every machine: coordinates use only the four arithmetic operations and are
//! rounded to a tenth of a pixel. Text widths are estimated. Scripts and logarithmic scales are not used.
#![forbid(unsafe_code)]

mod chart;
mod draw;
pub mod flame;
mod layout;
mod legend;
mod svg;
#[cfg(test)]
mod tests;
mod ticks;

pub use chart::{
    Chart, ChartScale, ChartSeries, ChartSeriesStyle, PublishedValueMarker, ValueRangeMarker, XPositions,
};
