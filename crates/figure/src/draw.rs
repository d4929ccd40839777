//! Draws a chart's parts at the positions of `layout`, with the legend of `legend`.

use crate::chart::{
    Chart, ChartSeries, ChartSeriesStyle, PublishedValueMarker, ValueRangeMarker, XPositions, interval,
};
use crate::layout::{ChartLayout, LINE, WIDTH};
use crate::legend::{self, LegendSwatch};
use crate::svg::{PixelCoordinate, SvgWriter};
use crate::ticks::{ScaleTicks, grouped};

const STYLE: &str = include_str!("style.css");
const COLOURS: usize = 8;
/// Half the width of an error bar's caps, in pixels.
const SPREAD_END: f64 = 3.5;
const DASHES: [&str; 4] = ["none", "7 4", "2 4", "9 3 2 3"];

impl Chart {
    /// Returns the chart as SVG, complete as a file and suitable for inclusion in HTML.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let chart = self;
        let layout = ChartLayout::of(chart);
        let mut svg = SvgWriter::default();
        let id = &chart.id;
        let view = format!("0 0 {} {}", PixelCoordinate(WIDTH), PixelCoordinate(layout.height));
        let labels = format!("{id}-title {id}-text");
        svg.open(
            "svg",
            &[
                ("xmlns", &"http://www.w3.org/2000/svg"),
                ("class", &"lab-figure"),
                ("viewBox", &view),
                ("role", &"img"),
                ("aria-labelledby", &labels),
            ],
        );
        svg.text("title", &[("id", &format!("{id}-title"))], &chart.title);
        svg.text("desc", &[("id", &format!("{id}-text"))], &chart.description);
        svg.style(STYLE);
        patterns(&mut svg, chart);
        svg.text(
            "text",
            &[("class", &"heading"), ("x", &PixelCoordinate(layout.left)), ("y", &PixelCoordinate(24.0))],
            &chart.title,
        );
        draw_legend(&mut svg, chart, &layout);
        scales(&mut svg, chart, &layout);
        x_labels(&mut svg, chart, &layout);
        bars(&mut svg, chart, &layout);
        ranges(&mut svg, chart, &layout);
        lines(&mut svg, chart, &layout);
        stated(&mut svg, chart, &layout);
        svg.finish()
    }
}

/// Defines hatch patterns for the chart's bars of all variants but the first.
fn patterns(svg: &mut SvgWriter, chart: &Chart) {
    let last = chart.series.iter().map(|series| series.variant).max().unwrap_or(0);
    if last == 0 {
        return;
    }
    svg.open("defs", &[]);
    for variant in 1..=last {
        let turn = format!("rotate({})", [45, 135, 0, 90][(variant - 1) % 4]);
        svg.open(
            "pattern",
            &[
                ("id", &pattern(chart, variant)),
                ("width", &6),
                ("height", &6),
                ("patternUnits", &"userSpaceOnUse"),
                ("patternTransform", &turn),
            ],
        );
        svg.empty("path", &[("class", &"hatch"), ("d", &"M0 0V6"), ("stroke-width", &3)]);
        svg.close();
    }
    svg.close();
}

fn pattern(chart: &Chart, variant: usize) -> String {
    format!("{}-hatch{variant}", chart.id)
}

fn colour(class: &str, colour: usize) -> String {
    format!("{class} c{}", colour % COLOURS)
}

fn draw_legend(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    for (row, entries) in layout.legend.iter().enumerate() {
        let y = 48.0 + row as f64 * LINE;
        for entry in entries {
            let x = layout.left + entry.x;
            sample(svg, chart, entry.sample, x, y);
            svg.text(
                "text",
                &[("class", &"name"), ("x", &PixelCoordinate(x + 24.0)), ("y", &PixelCoordinate(y))],
                &entry.label,
            );
        }
    }
}

fn sample(svg: &mut SvgWriter, chart: &Chart, sample: LegendSwatch, x: f64, y: f64) {
    let square = |svg: &mut SvgWriter, class: &str, fill: Option<String>| {
        let place: [(&str, &dyn std::fmt::Display); 5] = [
            ("class", &class),
            ("x", &PixelCoordinate(x + 4.0)),
            ("y", &PixelCoordinate(y - 10.0)),
            ("width", &12),
            ("height", &12),
        ];
        match fill {
            Some(fill) => svg.empty("rect", &[place.as_slice(), &[("fill", &fill)]].concat()),
            None => svg.empty("rect", &place),
        }
    };
    match sample {
        LegendSwatch::Bar { colour: of } => square(svg, &colour("bar", of), None),
        LegendSwatch::Pattern { variant } => {
            square(svg, "sample", None);
            if variant > 0 {
                square(svg, "over", Some(format!("url(#{})", pattern(chart, variant))));
            }
        }
        LegendSwatch::Stated { is_calibrated } => {
            let shape = star(x + 10.0, y - 4.0);
            svg.empty("path", &[("class", &stated_class(is_calibrated)), ("d", &shape)]);
        }
        LegendSwatch::Range => range(svg, x + 10.0, [y + 2.0, y - 10.0], legend::RANGE),
        LegendSwatch::Line { colour: of, variant } => {
            let y = y - 4.0;
            path(
                svg,
                of,
                variant,
                &format!("M{} {}H{}", PixelCoordinate(x), PixelCoordinate(y), PixelCoordinate(x + 20.0)),
            );
            let shape = marker_shape(x + 10.0, y, of + variant);
            svg.empty("path", &[("class", &colour("marker", of)), ("d", &shape)]);
        }
    }
}

/// Draws the chart's grid lines, tick labels and vertical titles.
fn scales(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    for value in layout.left_ticks.values() {
        let y = PixelCoordinate(layout.height_of(&layout.left_ticks, value));
        let class = if value == 0.0 { "axis" } else { "grid" };
        let across = format!("M{} {y}H{}", PixelCoordinate(layout.left), PixelCoordinate(layout.right));
        svg.empty("path", &[("class", &class), ("d", &across)]);
    }
    numbers(svg, layout, &layout.left_ticks, layout.left - 8.0, "end");
    vertical_title(svg, layout, 18.0, &format!("{} ({})", chart.left.title, chart.left.unit));
    if let (Some(ticks), Some(right)) = (&layout.right_ticks, &chart.right) {
        numbers(svg, layout, ticks, layout.right + 8.0, "start");
        vertical_title(svg, layout, WIDTH - 10.0, &format!("{} ({})", right.title, right.unit));
    }
}

fn numbers(svg: &mut SvgWriter, layout: &ChartLayout, ticks: &ScaleTicks, x: f64, class: &str) {
    for value in ticks.values() {
        let y = PixelCoordinate(layout.height_of(ticks, value) + 4.0);
        svg.text("text", &[("class", &class), ("x", &PixelCoordinate(x)), ("y", &y)], &ticks.label(value));
    }
}

fn vertical_title(svg: &mut SvgWriter, layout: &ChartLayout, x: f64, title: &str) {
    let turn = format!(
        "translate({} {})rotate(-90)",
        PixelCoordinate(x),
        PixelCoordinate((layout.top + layout.bottom) / 2.0)
    );
    svg.text("text", &[("class", &"middle"), ("transform", &turn)], title);
}

/// Draws the labels and the title of the chart's x axis.
fn x_labels(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    let first = layout.bottom + LINE;
    match &chart.x {
        XPositions::Numbers(numbers) => {
            for (at, number) in numbers.iter().enumerate() {
                label(svg, layout.x(chart, at), first, &grouped(&number.to_string()));
            }
        }
        XPositions::Names(names) => {
            for level in 0..names.first().map_or(0, Vec::len) {
                names_of_level(svg, chart, layout, names, level);
            }
        }
    }
    label(svg, (layout.left + layout.right) / 2.0, layout.height - 12.0, &chart.x_title);
}

/// Draws one level of the x axis's names, the innermost on top. Neighbours with equal outer names share a label.
fn names_of_level(
    svg: &mut SvgWriter,
    chart: &Chart,
    layout: &ChartLayout,
    names: &[Vec<String>],
    level: usize,
) {
    let levels = names[0].len();
    let y = layout.bottom + (levels - level) as f64 * LINE;
    let innermost = level + 1 == levels;
    let mut start = 0;
    while start < names.len() {
        let shared = |other: &Vec<String>| other.get(..=level) == names[start].get(..=level);
        let run = if innermost { 1 } else { names[start..].iter().take_while(|other| shared(other)).count() };
        let middle = (layout.x(chart, start) + layout.x(chart, start + run - 1)) / 2.0;
        label(svg, middle, y, names[start].get(level).map_or("", String::as_str));
        if level == 0 && levels > 1 && start > 0 {
            let x = layout.left + start as f64 * layout.band();
            let cut = format!(
                "M{} {}V{}",
                PixelCoordinate(x),
                PixelCoordinate(layout.bottom),
                PixelCoordinate(y + 4.0)
            );
            svg.empty("path", &[("class", &"axis"), ("d", &cut)]);
        }
        start += run;
    }
}

fn label(svg: &mut SvgWriter, x: f64, y: f64, text: &str) {
    svg.text("text", &[("class", &"middle"), ("x", &PixelCoordinate(x)), ("y", &PixelCoordinate(y))], text);
}

/// Draws the bars of a chart, each stack of bars from zero up.
fn bars(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    let mut spreads = Vec::new();
    for at in 0..chart.x.len() {
        let middle = layout.x(chart, at);
        let mut tops: Vec<f64> = Vec::new();
        for series in &chart.series {
            let (ChartSeriesStyle::Bar { stack }, Some(Some(value))) = (series.mark, series.values.get(at))
            else {
                continue;
            };
            tops.resize(tops.len().max(stack + 1), 0.0);
            let (from, to) = (tops[stack], tops[stack] + value);
            tops[stack] = to;
            let (x, width) = layout.bar(middle, stack);
            let (y, end) = (layout.y(series, from.max(to)), layout.y(series, from.min(to)));
            let shape = format!(
                "M{} {}h{}V{}h-{}Z",
                PixelCoordinate(x),
                PixelCoordinate(y),
                PixelCoordinate(width),
                PixelCoordinate(end),
                PixelCoordinate(width)
            );
            let label = tooltip(chart, series, at, *value);
            svg.marked("path", &[("class", &colour("bar", series.colour)), ("d", &shape)], &label);
            if series.variant > 0 {
                let fill = format!("url(#{})", pattern(chart, series.variant));
                svg.marked("path", &[("fill", &fill), ("d", &shape)], &label);
            }
            spreads.push((series, at, x + width / 2.0, to));
        }
    }
    // Error bars are drawn last, since the next bar of a stack would hide their upper half.
    for (series, at, x, height) in spreads {
        spread(svg, layout, series, at, x, height);
    }
}

fn lines(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    for series in chart.series.iter().filter(|series| series.mark == ChartSeriesStyle::Line) {
        let mut line = String::new();
        let mut pen_up = true;
        for (at, value) in series.values.iter().enumerate() {
            let Some(value) = value else {
                pen_up = true;
                continue;
            };
            let (x, y) = (
                PixelCoordinate(layout.line_x(chart, series, at)),
                PixelCoordinate(layout.y(series, *value)),
            );
            line += &format!("{}{x} {y}", if pen_up { 'M' } else { 'L' });
            pen_up = false;
        }
        path(svg, series.colour, series.variant, &line);
        for (at, value) in series.values.iter().enumerate() {
            let Some(value) = value else { continue };
            let (x, y) = (layout.line_x(chart, series, at), layout.y(series, *value));
            spread(svg, layout, series, at, x, *value);
            let shape = marker_shape(x, y, series.colour + series.variant);
            let label = tooltip(chart, series, at, *value);
            svg.marked("path", &[("class", &colour("marker", series.colour)), ("d", &shape)], &label);
        }
    }
}

/// Draws the confidence interval around a value at `height` as an error bar, if the interval is known.
fn spread(svg: &mut SvgWriter, layout: &ChartLayout, series: &ChartSeries, at: usize, x: f64, height: f64) {
    let Some(half) = series.half(at) else { return };
    let (low, high) = interval(height, half);
    let (low, high) = (PixelCoordinate(layout.y(series, low)), PixelCoordinate(layout.y(series, high)));
    let (left, right) = (PixelCoordinate(x - SPREAD_END), PixelCoordinate(x + SPREAD_END));
    let shape = format!("M{left} {low}H{right}M{left} {high}H{right}M{} {low}V{high}", PixelCoordinate(x));
    svg.marked("path", &[("class", &"spread"), ("d", &shape)], &format!("\u{b1} {half}"));
}

/// Draws the ranges of values, behind the lines and above the bars.
fn ranges(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    for one in &chart.ranges {
        let ValueRangeMarker { series: which, at, ends: [least, most], .. } = *one;
        let series = &chart.series[which];
        let ends = one.heights().map(|height| layout.y(series, height));
        let [least, most] = [least, most].map(|end| grouped(&end.to_string()));
        let label = tooltip_of(chart, series, at, &format!("{least} to {most}"));
        range(svg, layout.marker_x(chart, which, at), ends, &format!("{label} ({})", legend::RANGE));
    }
}

/// Draws a range as a wide translucent bar between two vertical coordinates.
fn range(svg: &mut SvgWriter, x: f64, [low, high]: [f64; 2], label: &str) {
    let shape = format!("M{} {}V{}", PixelCoordinate(x), PixelCoordinate(low), PixelCoordinate(high));
    svg.marked("path", &[("class", &"range"), ("d", &shape)], label);
}

fn path(svg: &mut SvgWriter, of: usize, variant: usize, line: &str) {
    let dash = DASHES[variant % DASHES.len()];
    svg.empty("path", &[("class", &colour("line", of)), ("stroke-dasharray", &dash), ("d", &line)]);
}

/// Draws the values stated by papers in a chart. The marker is filled if the model was calibrated on the value, and
/// hollow if the value checks a prediction.
fn stated(svg: &mut SvgWriter, chart: &Chart, layout: &ChartLayout) {
    for one in &chart.stated {
        let PublishedValueMarker { series, at, height, value, is_calibrated } = one;
        let series = &chart.series[*series];
        let (x, y) = (layout.marker_x(chart, one.series, one.at), layout.y(series, *height));
        let how = legend::stated_label(chart, *is_calibrated);
        let label = format!("{} ({how})", tooltip(chart, series, *at, *value));
        svg.marked("path", &[("class", &stated_class(*is_calibrated)), ("d", &star(x, y))], &label);
    }
}

fn stated_class(is_calibrated: bool) -> &'static str {
    if is_calibrated { "stated full" } else { "stated" }
}

/// Returns the SVG path of a four-pointed star, the marker of stated values.
fn star(x: f64, y: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", PixelCoordinate(x + dx), PixelCoordinate(y + dy));
    let points = [
        (0.0, -8.0),
        (2.2, -2.2),
        (8.0, 0.0),
        (2.2, 2.2),
        (0.0, 8.0),
        (-2.2, 2.2),
        (-8.0, 0.0),
        (-2.2, -2.2),
    ];
    let path: Vec<_> = points.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
    format!("M{}Z", path.join("L"))
}

/// Returns the SVG path of a circle, square, diamond or triangle, so that lines can be distinguished without colour.
fn marker_shape(x: f64, y: f64, which: usize) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", PixelCoordinate(x + dx), PixelCoordinate(y + dy));
    match which % 4 {
        0 => format!("M{}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", at(-4.0, 0.0)),
        1 => format!("M{}h7.4v7.4h-7.4Z", at(-3.7, -3.7)),
        2 => format!("M{}L{}L{}L{}Z", at(0.0, -5.2), at(5.2, 0.0), at(0.0, 5.2), at(-5.2, 0.0)),
        _ => format!("M{}L{}L{}Z", at(0.0, -5.0), at(5.0, 4.0), at(-5.0, 4.0)),
    }
}

/// Returns the tooltip of a value drawn in the chart.
fn tooltip(chart: &Chart, series: &ChartSeries, at: usize, value: f64) -> String {
    tooltip_of(chart, series, at, &grouped(&value.to_string()))
}

/// Returns the tooltip of the text of a series' value: its place, series, text and unit.
fn tooltip_of(chart: &Chart, series: &ChartSeries, at: usize, text: &str) -> String {
    let place = match &chart.x {
        XPositions::Names(names) => names.get(at).map(|names| names.join(", ")).unwrap_or_default(),
        XPositions::Numbers(numbers) => numbers.get(at).map(f64::to_string).unwrap_or_default(),
    };
    let scale = if series.right { chart.right.as_ref() } else { Some(&chart.left) };
    let unit = scale.map_or("", |scale| scale.unit.as_str());
    format!("{place}: {} {text} {unit}", legend::name(series))
}
