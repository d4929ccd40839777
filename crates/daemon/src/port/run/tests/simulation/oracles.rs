//! Checks of a simulation at rest: the port has nothing to do, no job is pending, and every guest has taken its frames.

use super::families::mac_of;
use super::guest::SimulatedGuest;
use super::host::SimulatedHost;
use super::policies::PolicyModel;
use crate::config::file::CardFamily;
use crate::control::status::PortStatus;
use std::time::{Duration, Instant};

/// Descriptors of a port and its vault without functions.
const PORT_DESCRIPTORS: usize = 14;
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
/// Descriptors of a client's register pages, if it may map them: the port's and the vault's.
const PAGE_DESCRIPTORS: usize = 2;
/// Time within which a thread ends whose port has ended, on a busy machine.
const THREADS_END: Duration = Duration::from_secs(10);
/// Time within which a port of up to [`ANSWER_GUESTS`] guests answers a request of one, whatever others do. Each reading of the clock
/// takes a microsecond of it.
const ANSWER: Duration = Duration::from_millis(6);
/// Time within which such a port answers a guest that attaches behind a former client of its function: it serves the messages of
/// that client first.
const START: Duration = Duration::from_millis(20);
/// Guests by which [`ANSWER`] becomes longer: a turn of the port visits each.
const ANSWER_GUESTS: u32 = 8;
/// Number of pending jobs of a function's worker at which the function accepts no client, and its client has to wait.
pub(super) const BEHIND: usize = 64;
/// Maximum number of pending jobs of one worker: those after which a client has to wait, and those of its last message.
const JOBS: usize = BEHIND + 8;

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

/// Checks that each VF whose guest may use the administrator's address alone has that one, and an 82576 no other beside it.
pub(super) fn check_addresses(
    model: &PolicyModel,
    guests: &[SimulatedGuest],
    status: &PortStatus,
) -> Result<(), String> {
    for (guest, status) in guests.iter().zip(&status.vfs) {
        let (vf, policy) = (guest.index(), model.of(guest.index()));
        if policy.has_free_mac || policy.is_trusted {
            continue;
        }
        let (mac, wanted) = (&status.mac, mac_of(vf, policy.has_second_mac).to_string());
        // The quota of an 82576 has the addresses beside the VF's own, and that of an AVF has groups too.
        let added = match guest.family() {
            CardFamily::I82576 => status.quotas.map_or(0, |quotas| quotas.mac.used),
            CardFamily::Avf | CardFamily::Virtio => 0,
        };
        if *mac != wanted || added > 0 {
            return Err(format!(
                "VF {vf} has the address {mac} and {added} others, and may have {wanted} alone"
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
    let turns = (guests.len() as u32).div_ceil(ANSWER_GUESTS);
    for (longest, bound) in [(host.longest_answer, ANSWER * turns), (host.longest_start, START * turns)] {
        if longest > bound {
            return Err(format!("a request was answered after {longest:?}, and {bound:?} is the bound"));
        }
    }
    let attached = guests.iter().filter(|guest| guest.has_client());
    let of_hostile = |guest: &SimulatedGuest| match (guest.is_attached(), guest.is_hostile()) {
        (false, _) => HOSTILE_DESCRIPTORS,
        (true, true) => TRUNCATED_DESCRIPTORS,
        (true, false) => 0,
    };
    let pages = if host.offers_pages() { PAGE_DESCRIPTORS } else { 0 };
    let of_family = |family| match family {
        CardFamily::Virtio => client_descriptors(family),
        _ => client_descriptors(family) + pages,
    };
    let for_clients: usize = attached.map(|guest| of_family(guest.family()) + of_hostile(guest)).sum();
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
