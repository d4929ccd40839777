//! Computes the positions of a chart's parts.

use crate::chart::{
    Chart, ChartSeries, ChartSeriesStyle, PublishedValueMarker, ValueRangeMarker, XPositions, interval,
};
use crate::legend::{self, LegendEntry};
use crate::ticks::ScaleTicks;

pub(crate) const WIDTH: f64 = 760.0;
/// Height of the plot area in pixels.
const PLOT_HEIGHT: f64 = 270.0;
const SIDE: f64 = 72.0;
const BARE_SIDE: f64 = 24.0;
const HEADING: f64 = 46.0;
pub(crate) const LINE: f64 = 18.0;
/// Fraction of an x position's width that the position's bars occupy.
const FILL: f64 = 0.72;
const WIDEST_BAR: f64 = 54.0;

/// Positions of a chart's plot, scales and margins, in pixels.
#[derive(Debug)]
pub(crate) struct ChartLayout {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) height: f64,
    pub(crate) legend: Vec<Vec<LegendEntry>>,
    pub(crate) left_ticks: ScaleTicks,
    pub(crate) right_ticks: Option<ScaleTicks>,
    stacks: usize,
    /// The chart has a stack of bars for each variant; otherwise one stack has all variants.
    stack_a_variant: bool,
    numbers: Option<(f64, f64)>,
    places: usize,
}

impl ChartLayout {
    pub(crate) fn of(chart: &Chart) -> Self {
        const INTERVALS: usize = 5;
        let right = WIDTH - if chart.right.is_some() { SIDE } else { BARE_SIDE };
        let legend = legend::rows(chart, right - SIDE);
        let top = HEADING + legend.len() as f64 * LINE + 14.0;
        let bottom = top + PLOT_HEIGHT;
        let levels =
            if let XPositions::Names(names) = &chart.x { names.first().map_or(1, Vec::len) } else { 1 };
        let left_ticks = ScaleTicks::cover(extremes(chart, false), INTERVALS);
        let right_ticks =
            chart.right.as_ref().map(|_| ScaleTicks::cover_in(extremes(chart, true), &left_ticks));
        let stacks = chart.series.iter().filter_map(stack).max().map_or(0, |last| last + 1);
        let numbers = if let XPositions::Numbers(numbers) = &chart.x { Some(range(numbers)) } else { None };
        Self {
            left: SIDE,
            right,
            top,
            bottom,
            height: bottom + levels as f64 * LINE + 40.0,
            legend,
            left_ticks,
            right_ticks,
            stacks,
            stack_a_variant: chart
                .series
                .iter()
                .all(|series| stack(series).is_none_or(|of| of == series.variant)),
            numbers,
            places: chart.x.len(),
        }
    }

    /// Returns the x coordinate of the centre of position `at` in the plot.
    pub(crate) fn x(&self, chart: &Chart, at: usize) -> f64 {
        match (&chart.x, self.numbers) {
            (XPositions::Numbers(numbers), Some((low, high))) => {
                let part = numbers.get(at).map_or(0.5, |number| (number - low) / (high - low));
                self.left + part * (self.right - self.left)
            }
            _ => self.left + (at as f64 + 0.5) * self.band(),
        }
    }

    /// Returns the width of the plot for each position along x, in pixels.
    pub(crate) fn band(&self) -> f64 {
        (self.right - self.left) / self.places.max(1) as f64
    }

    /// Returns the left edge and the width of a stack's bar, in a group of bars around `middle`.
    pub(crate) fn bar(&self, middle: f64, stack: usize) -> (f64, f64) {
        let stacks = self.stacks.max(1) as f64;
        let width = (self.band() * FILL / stacks).min(WIDEST_BAR);
        let gap = (width * 0.08).min(3.0);
        (middle + (stack as f64 - stacks / 2.0) * width + gap / 2.0, width - gap)
    }

    /// Returns the x coordinate of a marker at a series' value: above its bar, or at its line's point.
    pub(crate) fn marker_x(&self, chart: &Chart, series: usize, at: usize) -> f64 {
        let series = &chart.series[series];
        match stack(series) {
            None => self.line_x(chart, series, at),
            Some(stack) => {
                let (left, width) = self.bar(self.x(chart, at), stack);
                left + width / 2.0
            }
        }
    }

    /// Returns the x coordinate of a line's point: above the stack of bars of the same variant.
    pub(crate) fn line_x(&self, chart: &Chart, series: &ChartSeries, at: usize) -> f64 {
        let middle = self.x(chart, at);
        if self.stacks < 2 || !self.stack_a_variant {
            return middle;
        }
        let (left, width) = self.bar(middle, series.variant);
        left + width / 2.0
    }

    pub(crate) fn y(&self, series: &ChartSeries, value: f64) -> f64 {
        let ticks = match (&self.right_ticks, series.right) {
            (Some(ticks), true) => ticks,
            _ => &self.left_ticks,
        };
        self.height_of(ticks, value)
    }

    pub(crate) fn height_of(&self, ticks: &ScaleTicks, value: f64) -> f64 {
        self.bottom - ticks.place(value) * (self.bottom - self.top)
    }
}

fn stack(series: &ChartSeries) -> Option<usize> {
    match series.mark {
        ChartSeriesStyle::Bar { stack } => Some(stack),
        ChartSeriesStyle::Line => None,
    }
}

/// Returns the values that a chart's scale must include: every point of a line, and the top of every stack of
/// bars.
fn extremes(chart: &Chart, right: bool) -> impl Iterator<Item = f64> + Clone + '_ {
    let series = move || chart.series.iter().filter(move |series| series.right == right);
    let lines = series().filter(|series| stack(series).is_none());
    let points = lines.flat_map(|series| {
        let ends = |(at, value): (usize, &Option<f64>)| {
            value.map(|value| <[f64; 2]>::from(interval(value, series.half(at).unwrap_or(0.0))))
        };
        series.values.iter().enumerate().filter_map(ends).flatten()
    });
    let sum = move |of: usize, at: usize| -> f64 {
        series().filter(|series| stack(series) == Some(of)).filter_map(|series| *series.values.get(at)?).sum()
    };
    let half = move |of: usize, at: usize| -> f64 {
        let halves = series().filter(|series| stack(series) == Some(of));
        halves.filter_map(|series| series.half(at)).fold(0.0, f64::max)
    };
    let stacks = series().filter_map(stack);
    let tops = stacks.flat_map(move |of| (0..chart.x.len()).map(move |at| sum(of, at) + half(of, at)));
    let is_here = move |stated: &&PublishedValueMarker| chart.series[stated.series].right == right;
    let stated = chart.stated.iter().filter(is_here).map(|stated| stated.height);
    let is_range_here = move |range: &&ValueRangeMarker| chart.series[range.series].right == right;
    let ranges = chart.ranges.iter().filter(is_range_here).flat_map(ValueRangeMarker::heights);
    points.chain(tops).chain(stated).chain(ranges)
}

/// Returns the least and the greatest drawn number of a chart, with a small margin.
fn range(numbers: &[f64]) -> (f64, f64) {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if high > low {
        let room = (high - low) * 0.06;
        (low - room, high + room)
    } else if high == low {
        (low - 1.0, low + 1.0)
    } else {
        (0.0, 1.0)
    }
}
