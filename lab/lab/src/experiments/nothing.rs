//! Explains result rows whose throughput is 0, where 0 is the result and not a defect.

use crate::row::ResultRow;
use crate::value::ParameterValue;

/// Returns the reason why a result row's throughput is 0. Returns `None` if the throughput is not 0.
#[must_use]
pub fn why_nothing(row: &ResultRow) -> Option<&'static str> {
    let through = row.metrics.iter().find(|(name, _)| name.starts_with("throughput"))?;
    if *through.1 > 0.0 {
        return None;
    }
    let is = |name: &str, value: ParameterValue| row.params.get(name) == Some(&value);
    if row.params.get("message_bytes").is_some() {
        Some("a datagram has more fragments than the receiver buffers, so none is ever reassembled")
    } else if is("msi_accel", ParameterValue::Bool(false)) || is("opts", ParameterValue::name("none")) {
        Some(
            "livelock: each interrupt arrives before the device model has handled the mask bits of the \
             previous interrupt",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::why_nothing;
    use crate::experiments::tests::run_point;

    #[test]
    fn zero_throughput_is_explained_by_livelock_or_fragments() {
        let why =
            |experiment, set: &[&str]| why_nothing(&run_point(experiment, set).unwrap()).unwrap_or_default();
        let livelock = why("fig06", &["vms=1", "msi_accel=false", "interrupt_hz=100000"]);
        assert!(livelock.starts_with("livelock"), "{livelock}");
        let fragments = ["message_bytes=60000", "inside_mtu=576", "warm_up_ms=5"];
        assert!(why("fig12", &fragments).contains("fragments"));
        assert_eq!(why("fig06", &["vms=1", "msi_accel=true"]), "");
    }
}
