//! Explains result rows whose throughput is 0, where 0 is the result and not a defect.

use crate::row::ResultRow;
use crate::value::ParameterValue;

/// Guest kernels, and the bare machine, that do not mask their interrupt at run time.
const WITHOUT_MASKS: [&str; 2] = ["2.6.28", "native"];

/// Processor use from which on a guest has no time left for its program, in percent of a thread.
const BUSY_PCT: f64 = 90.0;

/// Returns the reason why a result row's throughput is 0. Returns `None` if the throughput is not 0.
#[must_use]
pub fn why_nothing(row: &ResultRow) -> Option<&'static str> {
    let through = row.metrics.iter().find(|(name, _)| name.starts_with("throughput"))?;
    if *through.1 > 0.0 {
        return None;
    }
    let is = |name: &str, value: ParameterValue| row.params.get(name) == Some(&value);
    let masks = !WITHOUT_MASKS.iter().any(|guest| is("guest", ParameterValue::name(guest)));
    if row.params.get("message_bytes").is_some() {
        Some("a datagram has more fragments than the receiver buffers, so none is ever reassembled")
    } else if masks
        && (is("msi_accel", ParameterValue::Bool(false)) || is("opts", ParameterValue::name("none")))
    {
        Some(
            "livelock: each interrupt arrives before the device model has handled the mask bits of the \
             previous interrupt",
        )
    } else if row.metrics.get("cpu_guest_pct").is_some_and(|busy| *busy >= BUSY_PCT) {
        Some(
            "receive livelock: packets arrive faster than the guest's kernel takes them, so its program never \
             runs (the model has no ksoftirqd); lower wire.mbps or the costs of a packet",
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

    #[test]
    fn zero_throughput_of_a_busy_kernel_is_a_receive_livelock() {
        let fast = ["wire.mbps=25000", "warm_up_ms=5", "measure_ms=20"];
        let why = |experiment, point: &[&str]| {
            why_nothing(&run_point(experiment, &[point, fast.as_slice()].concat()).unwrap())
                .unwrap_or_default()
        };
        let guest = why("fig08", &["policy=2k"]);
        assert!(guest.starts_with("receive livelock: "), "{guest}");
        let native = why("fig11", &["guest=native", "opts=none"]);
        assert!(native.starts_with("receive livelock: "), "the bare machine has no device model: {native}");
    }
}
