//! Account of the frames of a host at rest: each frame has arrived, or a counter of the port names its loss, and no guest sends
//! faster than its rate permits.

use super::guest::SimulatedGuest;
use super::host::SimulatedHost;
use super::rates::{SentBytes, TransmitRate};
use crate::config::file::CardFamily;
use crate::control::status::{PortStatus, VfStatus};
use i82576::Time;

/// Frames of all pairs of guests, and losses that counters of the port name, at one moment of rest.
pub(super) struct FrameAccount {
    /// Number of events by which frames of all guests may be lost without a counter: deaths, and changes of policies.
    disturbances: u64,
    /// Number of such events of each guest alone, and true if the guest is hostile: nothing is known of its own frames then.
    guests: Vec<(u64, bool)>,
    /// Number of frames from the first to the second index's guest that the first has sent and the second not received.
    missing: Vec<Vec<i64>>,
    /// Frames that each guest's driver has sent, and received.
    moved: Vec<[u64; 2]>,
    /// Families of the guests' functions.
    families: Vec<CardFamily>,
    /// Number of segments that guests have sent, without the first one of each packet.
    later_segments: Vec<u64>,
    /// Counters of each VF; `None` for a VF that was removed.
    counted: Vec<Option<VfFrameCounts>>,
    /// Number of times that the uplink was unplugged, and true if it is gone.
    unplugged: (u64, bool),
    time: Time,
    /// Rates of the VFs; `None` for no limit, or a VF that was removed.
    rates: Vec<Option<TransmitRate>>,
}

/// Frames of a VF that the port has counted.
#[derive(Debug, Clone, Copy, Default)]
struct VfFrameCounts {
    sent: u64,
    /// Number of bytes of the sent frames, without those that were not valid.
    bytes: u64,
    received: u64,
    /// Number of frames that no function and no uplink has accepted.
    unclaimed: u64,
    lost_by_sender: u64,
    lost_by_receiver: u64,
}

impl VfFrameCounts {
    fn of(vf: &VfStatus) -> Self {
        let (rx, drops) = (vf.rx, vf.drops);
        Self {
            sent: vf.tx.packets + drops.tx_invalid + drops.tx_blocked,
            bytes: vf.tx.bytes,
            received: rx.packets,
            unclaimed: drops.tx_unclaimed,
            lost_by_sender: drops.tx_invalid + drops.tx_blocked + drops.tx_unclaimed,
            lost_by_receiver: drops.rx_no_descriptors + drops.rx_disabled + drops.rx_storm,
        }
    }

    /// Returns the counts since earlier ones, or `None` if one is lower than before.
    fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            sent: self.sent.checked_sub(earlier.sent)?,
            bytes: self.bytes.checked_sub(earlier.bytes)?,
            received: self.received.checked_sub(earlier.received)?,
            unclaimed: self.unclaimed.checked_sub(earlier.unclaimed)?,
            lost_by_sender: self.lost_by_sender.checked_sub(earlier.lost_by_sender)?,
            lost_by_receiver: self.lost_by_receiver.checked_sub(earlier.lost_by_receiver)?,
        })
    }
}

impl FrameAccount {
    /// Reads the account of a simulation at rest.
    pub(super) fn read(
        guests: &[SimulatedGuest],
        (host, disturbances): (&SimulatedHost, u64),
        status: &PortStatus,
    ) -> Self {
        // The uplink takes frames for stations, and for guests in other VLANs.
        let departed = |from: usize, to: usize| {
            host.uplink.as_ref().map_or(0, |uplink| uplink.departed[from][to] as i64)
        };
        let missing = |from: &SimulatedGuest| {
            let sent = from.sent.iter().enumerate();
            sent.map(|(to, sent)| {
                let received = guests.get(to).map_or(0, |guest| guest.received[from.index()] as i64);
                *sent as i64 - received - departed(from.index(), to)
            })
            .collect()
        };
        let of_station = |(station, sent): (usize, &Vec<u64>)| {
            let received = guests.iter().map(|guest| guest.received[guests.len() + station] as i64);
            sent.iter().zip(received).map(|(sent, received)| *sent as i64 - received).collect()
        };
        let of_stations = host.uplink.iter().flat_map(|uplink| &uplink.sent).enumerate().map(of_station);
        let mut rates = TransmitRate::of_all(guests, host);
        rates.iter_mut().skip(status.vfs.len()).for_each(|rate| *rate = None);
        Self {
            disturbances,
            guests: guests.iter().map(|guest| (guest.disturbances, guest.is_hostile())).collect(),
            missing: guests.iter().map(missing).chain(of_stations).collect(),
            moved: guests
                .iter()
                .map(|guest| {
                    let received = guest.received.iter().sum::<u64>() + guest.hostile_frames;
                    [guest.sent.iter().sum(), received]
                })
                .collect(),
            families: guests.iter().map(SimulatedGuest::family).collect(),
            later_segments: guests.iter().map(|guest| guest.later_segments).collect(),
            counted: guests
                .iter()
                .map(|guest| status.vfs.get(guest.index()).map(VfFrameCounts::of))
                .collect(),
            unplugged: (host.uplink.as_ref().map_or(0, |uplink| uplink.unplugged), host.is_uplink_gone()),
            time: host.clock.time(),
            rates,
        }
    }

    /// Returns true if nothing has happened to a guest since an earlier account by which its frames may be lost.
    fn is_undisturbed(&self, guest: usize, earlier: &Self) -> bool {
        let (disturbances, is_hostile) = self.guests[guest];
        (disturbances, false) == earlier.guests[guest] && !is_hostile
    }

    /// Returns true if the uplink was gone at some time since an earlier account.
    pub(super) fn was_unplugged(&self, earlier: &Self) -> bool {
        earlier.unplugged.1 || self.unplugged != earlier.unplugged
    }

    /// Returns true if a guest's device may have dropped its packets unread since an earlier account, as a virtio device without a
    /// link does: they are unclaimed, and not sent.
    fn may_drop_unread(&self, guest: usize, earlier: &Self) -> bool {
        self.families.get(guest) == Some(&CardFamily::Virtio) && self.was_unplugged(earlier)
    }

    /// Returns the maximum number of a guest's segments since an earlier account that no counter names: of a packet that is dropped
    /// unread, one is counted.
    fn uncut_segments(&self, guest: usize, count: &VfFrameCounts, earlier: &Self) -> u64 {
        if count.unclaimed == 0 || !self.may_drop_unread(guest, earlier) {
            return 0;
        }
        self.later_segments[guest] - earlier.later_segments[guest]
    }

    /// Returns the counts of each VF since an earlier account; those of a VF that was removed are 0. No counter may fall: those of
    /// a VF that is added again go on.
    fn counts_since(&self, earlier: &Self) -> Result<Vec<VfFrameCounts>, String> {
        let counted = self.counted.iter().zip(&earlier.counted).enumerate();
        counted
            .map(|(guest, (now, before))| {
                let Some(now) = now else { return Ok(VfFrameCounts::default()) };
                now.since(before.unwrap_or_default())
                    .ok_or_else(|| format!("a counter of guest {guest} has fallen: {before:?}, now {now:?}"))
            })
            .collect()
    }

    /// Checks this account against an earlier one: of every pair of undisturbed guests, each sent frame was received, or is counted
    /// as lost. Returns the number of frames that are lost and counted, or `None` if a disturbance of all guests between the
    /// accounts allows uncounted losses.
    pub(super) fn check(&self, earlier: &Self) -> Result<Option<u64>, String> {
        if self.disturbances != earlier.disturbances {
            return Ok(None);
        }
        let counts = self.counts_since(earlier)?;
        let of_each: Vec<_> =
            counts.iter().enumerate().filter(|(at, _)| self.is_undisturbed(*at, earlier)).collect();
        self.check_rates(&counts, earlier)?;
        let (mut missing_all, mut lost_all, mut uncut_all) = (0, 0, 0);
        for (index, vf) in &of_each {
            let moved = |way: usize| self.moved[*index][way] - earlier.moved[*index][way];
            let uncut = self.uncut_segments(*index, vf, earlier);
            let unread = if self.may_drop_unread(*index, earlier) { vf.unclaimed + uncut } else { 0 };
            let is_sent = (vf.sent..=vf.sent + unread).contains(&moved(0));
            if !is_sent || vf.received != moved(1) {
                return Err(format!(
                    "guest {index} has sent {} frames and received {}, and the port has counted {} and {}",
                    moved(0),
                    moved(1),
                    vf.sent,
                    vf.received
                ));
            }
            lost_all += (vf.lost_by_sender + vf.lost_by_receiver) as i64;
            uncut_all += uncut as i64;
        }
        let is_whole = of_each.len() == counts.len();
        // Stations are at the ends of the matrix, and count no losses.
        let none = VfFrameCounts::default();
        let stations = |all: usize| (counts.len()..all).map(|at| (at, &none));
        let senders = stations(self.missing.len());
        let senders: Vec<_> = of_each.iter().copied().chain(senders).collect();
        for (from, sender) in &senders {
            let uncut = self.uncut_segments(*from, sender, earlier);
            let receivers = of_each.iter().copied().chain(stations(self.missing[*from].len()));
            for (to, receiver) in receivers {
                let missing = self.missing[*from][to] - earlier.missing[*from][to];
                let lost = (sender.lost_by_sender + uncut + receiver.lost_by_receiver) as i64;
                if missing < 0 || missing > lost {
                    return Err(format!(
                        "{missing} frames of guest {from} have not reached guest {to}, and counters name {lost}"
                    ));
                }
                missing_all += missing;
            }
        }
        // A counter does not tell which guest a lost frame was from.
        if is_whole && !(lost_all..=lost_all + uncut_all).contains(&missing_all) {
            return Err(format!("{missing_all} frames are missing, and counters name {lost_all}"));
        }
        Ok(Some(lost_all as u64))
    }

    /// Checks that no guest, hostile or not, has sent more since an earlier account than its rate permits.
    fn check_rates(&self, counts: &[VfFrameCounts], earlier: &Self) -> Result<(), String> {
        let time = self.time.since(earlier.time);
        for (guest, (rate, count)) in self.rates.iter().zip(counts).enumerate() {
            // The counters of a VF that was removed in between have gone on.
            let rate = rate.filter(|_| earlier.rates[guest].is_some());
            rate.map_or(Ok(()), |rate| SentBytes { guest, bytes: count.bytes, time }.check_most(rate))?;
        }
        Ok(())
    }
}
