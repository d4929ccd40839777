//! Computes round tick values of a chart's linear scale.

/// Ticks of a figure's scale, from the first to the last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScaleTicks {
    pub(crate) step: f64,
    /// Index of the scale's first tick, in tick distances from zero.
    first: i64,
    /// Index of the scale's last tick, in tick distances from zero.
    last: i64,
}

impl ScaleTicks {
    /// Creates a scale of about `wanted` tick intervals that includes all values and zero.
    pub(crate) fn cover(values: impl Iterator<Item = f64> + Clone, wanted: usize) -> Self {
        let low = values.clone().fold(0.0, f64::min);
        let high = values.fold(0.0, f64::max);
        let span = if high > low { high - low } else { 1.0 };
        let high = if high > low { high } else { low + 1.0 };
        let step = round_up(span / wanted.max(1) as f64);
        Self { step, first: (low / step).floor() as i64, last: (high / step).ceil() as i64 }
    }

    /// Creates a scale with as many tick intervals as the chart's other scale, so that the grid lines of both
    /// coincide.
    pub(crate) fn cover_in(values: impl Iterator<Item = f64> + Clone, other: &Self) -> Self {
        if other.first != 0 || values.clone().any(|value| value < 0.0) {
            return Self::cover(values, other.intervals());
        }
        let high = values.fold(0.0, f64::max);
        let step = round_up(if high > 0.0 { high / other.last as f64 } else { 1.0 });
        Self { step, first: 0, last: other.last }
    }

    pub(crate) fn intervals(&self) -> usize {
        usize::try_from(self.last - self.first).unwrap_or(1)
    }

    /// Returns the values at all ticks, lowest first.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        let step = self.step;
        (self.first..=self.last).map(move |at| at as f64 * step)
    }

    /// Returns the relative height of a value on the scale, from 0 at the first tick to 1 at the last.
    pub(crate) fn place(&self, value: f64) -> f64 {
        (value / self.step - self.first as f64) / (self.last - self.first) as f64
    }

    /// Returns a tick's label, with as many decimals as the distance between ticks has.
    pub(crate) fn label(&self, value: f64) -> String {
        let decimals = (0..9).find(|&decimals| is_whole(self.step * power(decimals))).unwrap_or(9);
        grouped(&format!("{value:.decimals$}"))
    }
}

/// Returns the least of 1, 2, 2.5 and 5 times a power of ten that is not below the value.
fn round_up(value: f64) -> f64 {
    let (mut scale, mut digits) = (1.0, value);
    // At most a few hundred rounds, the exponent range of finite numbers.
    while digits >= 10.0 {
        (scale, digits) = (scale * 10.0, value / (scale * 10.0));
    }
    while digits < 1.0 && digits > 0.0 {
        (scale, digits) = (scale / 10.0, value / (scale / 10.0));
    }
    let nice = [1.0, 2.0, 2.5, 5.0].into_iter().find(|nice| digits <= nice * (1.0 + 1e-9));
    nice.unwrap_or(10.0) * scale
}

fn power(decimals: usize) -> f64 {
    (0..decimals).fold(1.0, |power, _| power * 10.0)
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

/// Formats a number with thin spaces between thousands and a minus sign (U+2212).
pub(crate) fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("\u{2212}", rest));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(a, b)| (a, Some(b)));
    let mut text = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && whole.len() > 4 && (whole.len() - at).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ScaleTicks, grouped};

    fn labels(values: &[f64], wanted: usize) -> Vec<String> {
        let ticks = ScaleTicks::cover(values.iter().copied(), wanted);
        ticks.values().map(|value| ticks.label(value)).collect()
    }

    #[test]
    fn axis_ticks_are_round_numbers_and_include_zero() {
        assert_eq!(labels(&[957.1, 955.0], 5), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(labels(&[9.57], 5), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&[0.0112], 5), ["0.0000", "0.0025", "0.0050", "0.0075", "0.0100", "0.0125"]);
        assert_eq!(labels(&[154e6], 4)[1], "50\u{2009}000\u{2009}000");
        assert_eq!(labels(&[-20.0, 30.0], 5), ["\u{2212}20", "\u{2212}10", "0", "10", "20", "30"]);
    }

    #[test]
    fn chart_axis_without_values_has_ticks_from_0_to_1() {
        assert_eq!(labels(&[], 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(&[0.0], 2), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(&[-3.0], 2).len(), 3);
    }

    #[test]
    fn second_axis_of_a_chart_shares_the_grid_of_the_first() {
        let left = ScaleTicks::cover([957.1].into_iter(), 5);
        let right = ScaleTicks::cover_in([227.0].into_iter(), &left);
        assert_eq!(right.values().collect::<Vec<_>>(), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        assert_eq!((left.place(500.0), right.place(125.0)), (0.5, 0.5));
    }

    #[test]
    fn axis_labels_separate_thousands() {
        assert_eq!(grouped("1234"), "1234");
        assert_eq!(grouped("-12345.5"), "\u{2212}12\u{2009}345.5");
    }
}
