//! Result row: parameters and metrics of one experiment point. [`crate::runner::store`] stores the seed and version
//! beside it.

use serde::{Deserialize, Serialize};

use crate::named::{Metrics, Params};

/// Parameters and metrics of an experiment point, written as one JSON object with the fields in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultRow {
    /// Name of the row's experiment, such as `fig06`.
    pub experiment: String,
    /// Axis values of the row in the experiment's order, then changed settings.
    pub params: Params,
    /// Metrics of the row in the experiment's order, rounded by [`rounded`].
    pub metrics: Metrics,
}

impl ResultRow {
    /// Returns the result row as one line of JSON, without a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serializing cannot fail: a row has only names, finite numbers and texts.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Rounds a metric to six significant decimal digits: more than a model's accuracy, and few enough to hide the last
/// bits of a sum. Printed and stored values are therefore equal. Never returns minus zero.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    if rounded == 0.0 { 0.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::{ResultRow, rounded};
    use crate::named::NamedValues;
    use crate::value::ParameterValue;

    #[test]
    fn result_row_is_one_json_object_in_field_order() {
        let row = ResultRow {
            experiment: "fig06".into(),
            params: NamedValues::new()
                .with("vms", ParameterValue::Int(1))
                .with("msi_accel", ParameterValue::Bool(false)),
            metrics: NamedValues::new().with("throughput_mbps", 957.1).with("cpu_dom0_pct", 17.0),
        };
        let json = r#"{"experiment":"fig06","params":{"vms":1,"msi_accel":false},"metrics":{"throughput_mbps":957.1,"cpu_dom0_pct":17.0}}"#;
        assert_eq!(row.to_json(), json);
        assert_eq!(serde_json::from_str::<ResultRow>(json).unwrap(), row);
    }

    #[test]
    fn result_row_metrics_are_rounded_to_six_significant_digits() {
        assert_eq!(rounded(957.123_456), 957.123);
        assert_eq!(rounded(154_012_345.6), 154_012_000.0);
        assert_eq!(rounded(0.1 + 0.2), 0.3);
        assert_eq!(rounded(-0.0).to_bits(), 0.0_f64.to_bits());
        assert!(rounded(f64::NAN).is_nan());
    }
}
