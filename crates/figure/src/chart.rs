//! A chart as data: positions, scales, series, stated values.

/// Chart of result rows to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Identifier of the chart, unique in the document: letters, digits, hyphens.
    pub id: String,
    /// Heading of the chart.
    pub title: String,
    /// Text for readers who do not see the chart.
    pub description: String,
    /// Title of the chart's x axis.
    pub x_title: String,
    /// Positions of the chart's values along x.
    pub x: XPositions,
    /// Vertical scale at the chart's left side.
    pub left: ChartScale,
    /// Right scale of the chart, if any.
    pub right: Option<ChartScale>,
    /// Series of the chart, in the order of the legend.
    pub series: Vec<ChartSeries>,
    /// Values stated by papers, drawn beside the series.
    pub stated: Vec<PublishedValueMarker>,
    /// Ranges of the model's values, drawn behind the series' points.
    pub ranges: Vec<ValueRangeMarker>,
    /// Description of the stated values in the legend. Without one, the legend says whether the model was calibrated on them.
    pub stated_label: Option<String>,
}

/// Value stated by a paper, drawn beside the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedValueMarker {
    /// Index of the series that the stated value belongs to. If the value is the total of a stack, index of the topmost
    /// series.
    pub series: usize,
    /// Index of the position along x at which the chart shows the paper's value.
    pub at: usize,
    /// Height of the stated value on the scale, including the lower parts of a stack of bars.
    pub height: f64,
    /// Value that the paper states.
    pub value: f64,
    /// The model was calibrated on the value that the paper states.
    pub is_calibrated: bool,
}

/// Range of a value of the model, by the ranges of the constants that it depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueRangeMarker {
    /// Index of the series that the value belongs to. If the value is the total of a stack, index of the topmost series.
    pub series: usize,
    /// Index of the value's position along x.
    pub at: usize,
    /// Height of the lower parts of a stack of bars, which are drawn below the value; 0 for other values.
    pub below: f64,
    /// Least and greatest value.
    pub ends: [f64; 2],
}

impl ValueRangeMarker {
    /// Returns the heights of the range's ends on the scale.
    pub(crate) fn heights(&self) -> [f64; 2] {
        self.ends.map(|end| self.below + end)
    }
}

/// Positions of values along the chart's horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub enum XPositions {
    /// Names at equal distances along x, with levels from the outermost in.
    Names(Vec<Vec<String>>),
    /// Numbers along the chart's x axis, drawn to scale.
    Numbers(Vec<f64>),
}

impl XPositions {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }
}

/// Vertical scale of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartScale {
    /// Quantity that the chart's scale measures.
    pub title: String,
    /// Unit of the chart's vertical scale.
    pub unit: String,
}

/// Series of a chart: a value for each position along the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSeries {
    /// Label of the series' metric.
    pub label: String,
    /// Label of the series' variant, empty if there is only one.
    pub variant_label: String,
    /// Index of the series' colour, from 0.
    pub colour: usize,
    /// Index of the series' pattern or dash, from 0.
    pub variant: usize,
    /// Drawing style of the series.
    pub mark: ChartSeriesStyle,
    /// The values of the series are on the right scale.
    pub right: bool,
    /// Values of the series; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
    /// Half of the confidence interval around each value of the series, if known.
    pub spreads: Vec<Option<f64>>,
}

impl ChartSeries {
    /// Returns half of the confidence interval around the series' value at a position.
    pub(crate) fn half(&self, at: usize) -> Option<f64> {
        self.spreads.get(at).copied().flatten()
    }
}

/// Returns the lower and the upper end of the confidence interval around a value. The lower end of a positive value's
/// interval is at least zero, because no metric takes both signs.
pub(crate) fn interval(value: f64, half: f64) -> (f64, f64) {
    ((value - half).max(value.min(0.0)), value + half)
}

/// Drawing style of a chart's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartSeriesStyle {
    /// Series drawn as a line with a marker at each value.
    Line,
    /// Series drawn as bars of a stack. Series of one stack are on top of each other, stacks side by side.
    Bar {
        /// Index of the series' stack of bars, from 0.
        stack: usize,
    },
}
