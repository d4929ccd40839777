//! What a VF's driver does, told as it happens: it takes the VF and leaves it, its link changes, the PF driver refuses what
//! it asks. Left out: what is done about its conduct (`run`), and clients, which are VMMs.

use super::Port;
use super::hal::now;
use crate::control::status::remedy;
use crate::flight::What;
use crate::limit::Limit;
use driver::pf::Refusal;

/// News of a VF that are told a minute.
const MOST: u32 = 20;

/// What was told of a VF last, if anything was, and how much may be told.
#[derive(Debug)]
pub(super) struct Told {
    last: Option<News>,
    limit: Limit,
}

impl Default for Told {
    fn default() -> Self {
        Self { last: None, limit: Limit::per_minute(MOST) }
    }
}

/// Reasons for which a PF driver refuses requests, of the family that has most.
pub(super) const REASONS: usize = {
    let (igb, avf) = (Refusal::ALL.len(), driver::avf::pf::Refusal::NAMES.len());
    if igb > avf { igb } else { avf }
};

/// The event of a guest whose groups do not fit, with the remedy.
const CUT: &str =
    "the guest's list of addresses was cut: frames of further groups do not arrive without trust on";

/// What there is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    pub(super) active: bool,
    pub(super) link: bool,
    /// The guest wants more filters than fit.
    pub(super) cut: bool,
    pub(super) resets: u64,
    /// Requests refused, by reason.
    pub(super) refused: [u64; REASONS],
}

impl News {
    /// What the driver has done since `told`, and what its link has.
    fn since(&self, told: &Self) -> impl Iterator<Item = &'static str> {
        let driver = match (told.active, self.active) {
            (false, true) => Some("a driver runs the VF"),
            (true, false) => Some("no driver runs the VF"),
            // Each end of a connection resets its VF, which is news only if a driver had begun anew before this look.
            _ => (self.active && told.resets != self.resets).then_some("the VF was reset"),
        };
        let link = match (told.link, self.link) {
            (false, true) => Some("the VF's link is up"),
            (true, false) => Some("the VF's link is down"),
            _ => None,
        };
        let cut = (!told.cut && self.cut).then_some(CUT);
        [driver, link, cut].into_iter().flatten()
    }

    /// Places of reasons for which requests were refused since `told`, and how often all in all.
    fn refused_since(&self, told: &Self) -> impl Iterator<Item = (usize, u64)> {
        let counts = told.refused.iter().zip(&self.refused).enumerate();
        counts.filter(|(_, (old, new))| old != new).map(|(place, (_, count))| (place, *count))
    }
}

impl Port {
    /// Tells what is new since the last time: before the port sleeps, and once a second while it does not. A VF that
    /// changes without end is told of a few times a minute.
    pub(super) fn tell_changes(&mut self) {
        for slot in &mut self.slots {
            let Some(vf) = slot.function.vf() else { continue };
            let Some(news) = self.card.news(vf) else { continue };
            // How it was found is no news.
            let Some(told) = slot.told.last.replace(news).filter(|told| *told != news) else { continue };
            let (function, limit, now) = (&slot.name, &mut slot.told.limit, now());
            for event in news.since(&told) {
                slot.flight.event(now, What::Said(event), 0);
                if let Some(suppressed) = limit.allow(now) {
                    tracing::info!(function, suppressed, "{event}");
                }
            }
            for (place, count) in news.refused_since(&told) {
                let reason = self.card.reason(place);
                slot.flight.event(now, What::Refused(reason), 0);
                if let Some(suppressed) = limit.allow(now) {
                    tracing::info!(
                        function,
                        reason,
                        remedy = remedy(reason),
                        count,
                        suppressed,
                        "the PF driver has refused a request"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CUT, News, REASONS};

    #[test]
    fn a_cut_list_is_an_event_once() {
        let whole = News { active: true, link: true, cut: false, resets: 1, refused: [0; REASONS] };
        let cut = News { cut: true, ..whole };
        assert_eq!(cut.since(&whole).collect::<Vec<_>>(), [CUT]);
        assert_eq!((cut.since(&cut).count(), whole.since(&cut).count()), (0, 0));
    }
}
