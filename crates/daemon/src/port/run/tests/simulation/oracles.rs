//! Checks of a simulation at rest: the port has nothing to do, no job is pending, and every guest has taken its frames.
//! Then each frame has arrived, or a counter of the port names its loss.

use super::guest::SimulatedGuest;
use super::host::SimulatedHost;
use super::policies::PolicyModel;
use crate::config::file::CardFamily;
use crate::control::status::{PortStatus, VfStatus};
use std::time::{Duration, Instant};

/// Descriptors of a port and its vault without functions.
const PORT_DESCRIPTORS: usize = 12;
/// Descriptors of a function without a client.
const FUNCTION_DESCRIPTORS: usize = 3;
/// Descriptors that a hostile VMM may make the port hold, beyond those of a client: files of memory, eventfds, those of its
/// messages.
const HOSTILE_DESCRIPTORS: usize = 128;
/// Descriptors of the file of memory that a hostile guest's VMM truncates: its own, the port's and the vault's.
const TRUNCATED_DESCRIPTORS: usize = 3;
/// Pending jobs of a worker that a hostile VMM may cause beyond [`JOBS`]: its end closes what it holds, and its messages bring
/// several descriptors each.
const HOSTILE_JOBS: usize = 256;
/// Descriptors of a client: the port's, the vault's copies and the guest's own.
const fn client_descriptors(family: CardFamily) -> usize {
    match family {
        CardFamily::I82576 => 19,
        CardFamily::Avf => 25,
        CardFamily::Virtio => 13,
    }
}
/// Time within which a thread ends whose port has ended, on a busy machine.
const THREADS_END: Duration = Duration::from_secs(10);
/// Time within which a port of up to [`ANSWER_GUESTS`] guests answers a request of one, whatever others do.
const ANSWER: Duration = Duration::from_millis(5);
/// Guests by which [`ANSWER`] becomes longer: a turn of the port visits each.
const ANSWER_GUESTS: u32 = 8;
/// Number of pending jobs of a function's worker at which the function accepts no client, and its client has to wait.
pub(super) const BEHIND: usize = 64;
/// Maximum number of pending jobs of one worker: those after which a client has to wait, and those of its last message.
const JOBS: usize = BEHIND + 8;

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
    /// Counters of each VF.
    counted: Vec<VfFrameCounts>,
}

/// Frames of a VF that the port has counted.
#[derive(Clone, Copy)]
struct VfFrameCounts {
    sent: u64,
    received: u64,
    lost_by_sender: u64,
    lost_by_receiver: u64,
}

impl VfFrameCounts {
    fn of(vf: &VfStatus) -> Self {
        let (rx, drops) = (vf.rx, vf.drops);
        Self {
            sent: vf.tx.packets + drops.tx_invalid + drops.tx_blocked,
            received: rx.packets,
            lost_by_sender: drops.tx_invalid + drops.tx_blocked + drops.tx_unclaimed,
            lost_by_receiver: drops.rx_no_descriptors + drops.rx_disabled + drops.rx_storm,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            lost_by_sender: self.lost_by_sender - earlier.lost_by_sender,
            lost_by_receiver: self.lost_by_receiver - earlier.lost_by_receiver,
        }
    }
}

impl FrameAccount {
    /// Reads the account of a simulation at rest.
    pub(super) fn read(guests: &[SimulatedGuest], disturbances: u64, status: &PortStatus) -> Self {
        let missing = |from: &SimulatedGuest| {
            let to_each = guests.iter().enumerate();
            to_each.map(|(to, guest)| from.sent[to] as i64 - guest.received[from.index()] as i64).collect()
        };
        Self {
            disturbances,
            guests: guests.iter().map(|guest| (guest.disturbances, guest.is_hostile())).collect(),
            missing: guests.iter().map(missing).collect(),
            moved: guests
                .iter()
                .map(|guest| {
                    let received = guest.received.iter().sum::<u64>() + guest.hostile_frames;
                    [guest.sent.iter().sum(), received]
                })
                .collect(),
            counted: status.vfs.iter().map(VfFrameCounts::of).collect(),
        }
    }

    /// Returns true if nothing has happened to a guest since an earlier account by which its frames may be lost.
    fn is_undisturbed(&self, guest: usize, earlier: &Self) -> bool {
        let (disturbances, is_hostile) = self.guests[guest];
        (disturbances, false) == earlier.guests[guest] && !is_hostile
    }

    /// Checks this account against an earlier one: of every pair of undisturbed guests, each sent frame was received, or is counted
    /// as lost. Returns the number of frames that are lost and counted, or `None` if a disturbance of all guests between the
    /// accounts allows uncounted losses.
    pub(super) fn check(&self, earlier: &Self) -> Result<Option<u64>, String> {
        if self.disturbances != earlier.disturbances {
            return Ok(None);
        }
        let counts = self.counted.iter().zip(&earlier.counted);
        let counts: Vec<_> = counts.map(|(now, before)| now.since(*before)).collect();
        let of_each: Vec<_> =
            counts.iter().enumerate().filter(|(at, _)| self.is_undisturbed(*at, earlier)).collect();
        let (mut missing_all, mut lost_all) = (0, 0);
        for (index, vf) in &of_each {
            let moved = |way: usize| self.moved[*index][way] - earlier.moved[*index][way];
            if [vf.sent, vf.received] != [moved(0), moved(1)] {
                return Err(format!(
                    "guest {index} has sent {} frames and received {}, and the port has counted {} and {}",
                    moved(0),
                    moved(1),
                    vf.sent,
                    vf.received
                ));
            }
            lost_all += (vf.lost_by_sender + vf.lost_by_receiver) as i64;
        }
        for (from, sender) in &of_each {
            for (to, receiver) in &of_each {
                let missing = self.missing[*from][*to] - earlier.missing[*from][*to];
                let lost = (sender.lost_by_sender + receiver.lost_by_receiver) as i64;
                if missing < 0 || missing > lost {
                    return Err(format!(
                        "{missing} frames of guest {from} have not reached guest {to}, and counters name {lost}"
                    ));
                }
                missing_all += missing;
            }
        }
        // A counter does not tell which guest a lost frame was from.
        if of_each.len() == counts.len() && missing_all != lost_all {
            return Err(format!("{missing_all} frames are missing, and counters name {lost_all}"));
        }
        Ok(Some(lost_all as u64))
    }
}

/// Checks that the port's policies are those that the administrator has set, as its status reports them.
pub(super) fn check_policies(model: &PolicyModel, status: &PortStatus) -> Result<(), String> {
    for (vf, status) in status.vfs.iter().enumerate() {
        let policy = model.of(vf);
        if !policy.is_in(vf, &status.settings) {
            return Err(format!(
                "VF {vf} has {:?}, and the administrator has set {policy:?}",
                status.settings
            ));
        }
    }
    Ok(())
}

/// Checks what a host at rest holds: no message or reply of a client, few jobs, and no descriptor more than its clients
/// need. `others` is the number of descriptors of the process before the host was opened.
pub(super) fn check_holdings(
    host: &SimulatedHost,
    guests: &[SimulatedGuest],
    others: usize,
) -> Result<(), String> {
    let honest = guests.iter().filter(|guest| !guest.is_hostile()).map(SimulatedGuest::index);
    if let Some(vf) = host.first_unanswered(honest) {
        return Err(format!(
            "a message of guest {vf}, or a reply to it, is pending although the port sleeps"
        ));
    }
    let jobs = JOBS + if host.has_intruders { HOSTILE_JOBS } else { 0 };
    if host.most_jobs > jobs {
        return Err(format!("{} jobs of one worker were pending, and {jobs} is the bound", host.most_jobs));
    }
    let answer = ANSWER * (guests.len() as u32).div_ceil(ANSWER_GUESTS);
    if host.longest_answer > answer {
        return Err(format!(
            "a request was answered after {:?}, and {answer:?} is the bound",
            host.longest_answer
        ));
    }
    let attached = guests.iter().filter(|guest| guest.has_client());
    let of_hostile = |guest: &SimulatedGuest| match (guest.is_attached(), guest.is_hostile()) {
        (false, _) => HOSTILE_DESCRIPTORS,
        (true, true) => TRUNCATED_DESCRIPTORS,
        (true, false) => 0,
    };
    let for_clients: usize =
        attached.map(|guest| client_descriptors(guest.family()) + of_hostile(guest)).sum();
    let most = PORT_DESCRIPTORS + FUNCTION_DESCRIPTORS * guests.len() + for_clients;
    match descriptors_above(others + most) {
        0 => Ok(()),
        more => Err(format!("{more} descriptors more than the bound of {most} are open")),
    }
}

/// Returns the number of open file descriptors of this process.
pub(super) fn open_descriptors() -> usize {
    // The listing has the descriptor that reads the folder, too.
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) - 1
}

/// Returns the number of open file descriptors above a bound. Waits for threads of ended ports, which connect to VMMs: each has a
/// descriptor until it ends.
pub(super) fn descriptors_above(bound: usize) -> usize {
    let deadline = Instant::now() + THREADS_END;
    loop {
        let more = open_descriptors().saturating_sub(bound);
        if more == 0 || Instant::now() >= deadline {
            return more;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}
