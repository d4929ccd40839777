//! Logs events of a VF's driver as they happen: the driver enables the VF and leaves it, the VF's link changes, the PF
//! driver refuses a request. `PortClients::watch` checks the VF for offences.

use crate::control::status::remedy;
use crate::flight::{FlightRecordKind, FlightRecorder};
use crate::limit::LogRateLimit;
use crate::port::engine::family::VfDriverState;
use i82576::Time;
use plane::guard::ClaimCounts;

/// Maximum number of a VF's events that are logged per minute.
const MOST: u32 = 20;

/// Log of the events of a VF's driver: the state that was logged last, and the limit of log lines.
#[derive(Debug)]
pub(super) struct VfDriverEventLog {
    last: Option<VfDriverState>,
    /// Number of refused claims that was logged last.
    claims: u64,
    limit: LogRateLimit,
}

impl Default for VfDriverEventLog {
    fn default() -> Self {
        Self { last: None, claims: 0, limit: LogRateLimit::per_minute(MOST) }
    }
}

/// Reason to refuse a VF an address that another VF, a station at the uplink or the host uses.
const CLAIM: &str = "address-at-uplink";

/// Log line for a guest with more multicast groups than its filters have room for, with the remedy.
const CUT: &str = "the guest's list of multicast addresses is too long, and frames for further groups are \
                   dropped; set trust on for the VF";

/// Returns the events of a VF's driver and link that lead from the state `old` to the state `new`, as log texts.
fn events(old: &VfDriverState, new: &VfDriverState) -> impl Iterator<Item = &'static str> {
    let driver = match (old.active, new.active) {
        (false, true) => Some("a driver runs the VF"),
        (true, false) => Some("no driver runs the VF"),
        // Each disconnection resets the VF. A reset is an event only if a driver is active again at this check.
        _ => (new.active && old.resets != new.resets).then_some("the VF was reset"),
    };
    let link = match (old.link, new.link) {
        (false, true) => Some("the VF's link is up"),
        (true, false) => Some("the VF's link is down"),
        _ => None,
    };
    let cut = (!old.cut && new.cut).then_some(CUT);
    [driver, link, cut].into_iter().flatten()
}

/// Returns the reasons for which more requests of a VF were refused than in the state `old`, with their total counts.
fn refusals(old: &VfDriverState, new: &VfDriverState) -> impl Iterator<Item = (usize, u64)> {
    let counts = old.refused.iter().zip(&new.refused).enumerate();
    counts.filter(|(_, (before, after))| before != after).map(|(place, (_, count))| (place, *count))
}

impl VfDriverEventLog {
    /// Logs the events of a VF's driver since the last call. The port calls this before it sleeps, and once a second
    /// while it does not sleep. A limit bounds the log lines of a VF whose driver changes state without end.
    pub(super) fn update(
        &mut self,
        function: &str,
        new: VfDriverState,
        reason: impl Fn(usize) -> &'static str,
        flight: &mut FlightRecorder,
        now: Time,
    ) {
        // The first state that is seen is not a change.
        let Some(old) = self.last.replace(new).filter(|old| *old != new) else { return };
        for event in events(&old, &new) {
            flight.event(now, FlightRecordKind::Said(event), 0);
            if let Some(suppressed) = self.limit.allow(now) {
                tracing::info!(function, suppressed, "{event}");
            }
        }
        for (place, count) in refusals(&old, &new) {
            let reason = reason(place);
            flight.event(now, FlightRecordKind::Refused(reason), 0);
            if let Some(suppressed) = self.limit.allow(now) {
                tracing::info!(
                    function,
                    reason,
                    remedy = remedy(reason),
                    count,
                    suppressed,
                    "the PF driver refused a request of the VF"
                );
            }
        }
    }

    /// Logs that the plane has refused the VF an address since the last call.
    pub(super) fn note_claims(
        &mut self,
        function: &str,
        claims: ClaimCounts,
        flight: &mut FlightRecorder,
        now: Time,
    ) {
        let ClaimCounts { refused: count, last: Some(address) } = claims else { return };
        if std::mem::replace(&mut self.claims, count) == count {
            return;
        }
        flight.event(now, FlightRecordKind::Refused(CLAIM), 0);
        if let Some(suppressed) = self.limit.allow(now) {
            let remedy = remedy(CLAIM);
            tracing::warn!(
                function,
                reason = CLAIM,
                %address,
                remedy,
                count,
                suppressed,
                "refused the VF an address that another VF, a station at the uplink or the host uses"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CUT, VfDriverState, events};
    use crate::port::engine::family::REASONS;

    #[test]
    fn vf_with_a_truncated_filter_list_is_logged_once() {
        let whole = VfDriverState { active: true, link: true, cut: false, resets: 1, refused: [0; REASONS] };
        let cut = VfDriverState { cut: true, ..whole };
        assert_eq!(events(&whole, &cut).collect::<Vec<_>>(), [CUT]);
        assert_eq!((events(&cut, &cut).count(), events(&cut, &whole).count()), (0, 0));
    }
}
