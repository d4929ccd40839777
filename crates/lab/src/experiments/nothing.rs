//! Why a row is 0, where that is no defect but the answer. Left out: rows that are near to nothing.

use crate::row::Row;
use crate::value::Value;

/// Why nothing came through, if nothing did.
#[must_use]
pub fn why_nothing(row: &Row) -> Option<&'static str> {
    let through = row.metrics.iter().find(|(name, _)| name.starts_with("throughput"))?;
    if *through.1 > 0.0 {
        return None;
    }
    let is = |name: &str, value: Value| row.params.get(name) == Some(&value);
    if row.params.get("message_bytes").is_some() {
        Some("a datagram has more fragments than the receiver holds at once, so that none ever becomes whole")
    } else if is("msi_accel", Value::Bool(false)) || is("opts", Value::name("none")) {
        Some(
            "livelock: the next interrupt comes before the device model has handled the mask bits of the last",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::why_nothing;
    use crate::experiments::tests::found;

    #[test]
    fn a_livelock_and_datagrams_that_never_fit_say_so() {
        let why =
            |experiment, set: &[&str]| why_nothing(&found(experiment, set).unwrap()).unwrap_or_default();
        let livelock = why("fig06", &["vms=1", "msi_accel=false", "interrupt_hz=100000"]);
        assert!(livelock.starts_with("livelock"), "{livelock}");
        let fragments = ["message_bytes=60000", "inside_mtu=576", "warm_up_ms=5"];
        assert!(why("fig12", &fragments).contains("fragments"));
        assert_eq!(why("fig06", &["vms=1", "msi_accel=true"]), "");
    }
}
