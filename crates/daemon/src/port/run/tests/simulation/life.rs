//! Life of a simulated host as data: the families of its functions, and steps that are drawn from a seed. A life that fails is
//! shrunk to the steps that its fault needs, and printed as a test.

use super::conditions::LifeConditions;
use super::families::SimulatedFamily;
use super::frames::SHORTEST;
use super::function::LONGEST;
use super::oracles;
use super::policy::SimulatedPolicy;
use super::summary::SimulationSummary;
use super::tcp::{LONGEST_MSS, LONGEST_PAYLOAD, SHORTEST_MSS};
use super::uplink::STATION_VLANS;
use super::world::SimulatedWorld;
use crate::store::faulty_disk::DiskFault;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Steps of one life of a host.
const STEPS: usize = 150;

/// Action of guests, of the host or of time.
#[derive(Debug, Clone, Copy)]
pub(super) enum SimulatedAction {
    /// The VMM of a guest is killed.
    Vanish { guest: usize },
    /// A guest boots, if it is not attached.
    Attach { guest: usize },
    /// A guest sends frames to another. Their lengths begin with `length`.
    Send { from: usize, to: usize, frames: usize, length: usize },
    /// A guest sends packets of a TCP stream to another, with this number of bytes of payload. Its card cuts them.
    SendTcp { from: usize, to: usize, packets: usize, payload: usize, mss: usize },
    /// The host dies after this number of moments.
    Die { moments: usize },
    /// The host pauses for a successor, which takes over if `succeeds`.
    HandOver { succeeds: bool },
    /// A guest boots, again if it is attached, and the host hands over after `waits` steps in which its driver waits.
    Upgrade { guest: usize, waits: usize, succeeds: bool },
    /// Time passes.
    Sleep { milliseconds: u64 },
    /// All guests send, or all send to one that does not receive meanwhile. Checks of a host at rest come before and after. The
    /// host may die in the middle, a number of moments later.
    Burst { slow: Option<usize>, rounds: usize, death: Option<usize> },
    /// The administrator changes the policy of a guest's VF. The disk of the state file may fail meanwhile.
    SetPolicy { guest: usize, policy: SimulatedPolicy, disk: Option<DiskFault> },
    /// A guest does misdeeds until its VMM ends.
    Misbehave { guest: usize, misdeeds: usize },
    /// A guest boots, the administrator lets it choose its addresses, and it claims that of a station before other misdeeds.
    Claim { guest: usize, misdeeds: usize },
    /// The VMM of a guest maps its memory a second time for the device, or ends that.
    Remap { guest: usize },
    /// A station at the uplink sends the next frames of its stream to a guest. Some are lost, repeated or late.
    Deliver { station: usize, guest: usize, frames: usize, length: usize },
    /// A hostile VMM takes the place of a guest, and sends messages.
    Intrude { guest: usize, messages: usize },
    /// The worker thread of a guest's function is stuck while hostile VMMs connect, a neighbour boots, and the host may hand over.
    StickWorker { guest: usize, neighbour: usize, clients: usize, hands_over: bool },
    /// The administrator removes the last VF while guests send, and adds it again for another guest. The host may die meanwhile, or
    /// hand over in between.
    ReplaceVf { frames: usize, death: Option<usize>, hands_over: bool },
    /// The administrator limits a guest's rate in Mb/s, and the guest sends to another as fast as its ring takes frames.
    Flood { from: usize, to: usize, rate: u32 },
    /// The far end of the uplink vanishes for some steps.
    Unplug,
    /// Only the turns of the step.
    Nothing,
}

/// Action, and the turns of the host after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedStep {
    pub(super) action: SimulatedAction,
    /// Number of the host's turns after the action.
    pub(super) turns: usize,
    /// Seed of what the step leaves open, such as the order of jobs.
    pub(super) seed: u64,
}

impl SimulatedStep {
    fn draw(random: &mut fastrand::Rng, guests: usize, has_uplink: bool) -> Self {
        let stations = if has_uplink { STATION_VLANS.len() } else { 0 };
        let guest = random.usize(0..guests);
        let action = match random.u32(0..100) {
            0..3 => SimulatedAction::Vanish { guest },
            3..15 => SimulatedAction::Attach { guest },
            15..20 => draw_tcp(random, guest, guests + stations),
            20..55 => SimulatedAction::Send {
                from: guest,
                to: random.usize(0..guests + stations),
                frames: random.usize(1..8),
                length: random.usize(SHORTEST..LONGEST + 1),
            },
            55..58 => SimulatedAction::Die {
                moments: [random.usize(0..40), random.usize(0..400)][random.usize(0..2)],
            },
            58..60 => SimulatedAction::HandOver { succeeds: random.u32(0..4) > 0 },
            60..63 => SimulatedAction::Sleep { milliseconds: random.u64(1..3_000) },
            63..68 => SimulatedAction::Burst {
                slow: random.bool().then_some(guest),
                rounds: random.usize(0..60),
                death: (random.u32(0..3) == 0).then(|| random.usize(0..60)),
            },
            68..72 => SimulatedAction::SetPolicy {
                guest,
                policy: SimulatedPolicy::draw(random),
                disk: draw_disk_fault(random),
            },
            72..75 => SimulatedAction::Misbehave { guest, misdeeds: random.usize(1..40) },
            75..77 => SimulatedAction::Intrude { guest, messages: random.usize(1..60) },
            77..79 => SimulatedAction::Remap { guest },
            79..82 => {
                SimulatedAction::Upgrade { guest, waits: random.usize(0..40), succeeds: random.u32(0..4) > 0 }
            }
            // The step takes as long as many others.
            82 if random.u32(0..3) == 0 => SimulatedAction::StickWorker {
                guest,
                neighbour: random.usize(0..guests),
                clients: random.usize(0..140),
                hands_over: random.u32(0..4) == 0,
            },
            83..92 if has_uplink => SimulatedAction::Deliver {
                station: random.usize(0..stations),
                guest,
                frames: random.usize(1..12),
                length: random.usize(SHORTEST..LONGEST + 1),
            },
            92..94 => SimulatedAction::Flood {
                from: guest,
                to: random.usize(0..guests),
                rate: [10, 40, 100][random.usize(0..3)],
            },
            94..96 if has_uplink => SimulatedAction::Claim { guest, misdeeds: random.usize(1..40) },
            96..98 if has_uplink => SimulatedAction::Unplug,
            98 if random.bool() => draw_replacement(random),
            _ => SimulatedAction::Nothing,
        };
        Self { action, turns: random.usize(0..6), seed: random.u64(..) }
    }
}

/// Draws packets of a guest's stream to one of `places` guests and stations.
fn draw_tcp(random: &mut fastrand::Rng, from: usize, places: usize) -> SimulatedAction {
    SimulatedAction::SendTcp {
        from,
        to: random.usize(0..places),
        packets: random.usize(1..4),
        payload: [random.usize(1..3_000), random.usize(1..=LONGEST_PAYLOAD)][random.usize(0..2)],
        mss: [LONGEST_MSS, random.usize(SHORTEST_MSS..=LONGEST_MSS)][random.usize(0..2)],
    }
}

/// Draws a removal of the last VF, and its return.
fn draw_replacement(random: &mut fastrand::Rng) -> SimulatedAction {
    SimulatedAction::ReplaceVf {
        frames: random.usize(0..8),
        death: random.bool().then(|| [random.usize(0..60), random.usize(0..600)][random.usize(0..2)]),
        hands_over: random.u32(0..3) == 0,
    }
}

/// Draws a failure of the disk, or none. A change has eight steps, and two more if it fails.
fn draw_disk_fault(random: &mut fastrand::Rng) -> Option<DiskFault> {
    let step = random.usize(0..10);
    let faults = [
        DiskFault::Full(step),
        DiskFault::Broken(step),
        DiskFault::ReadOnly(step),
        DiskFault::Death(step),
        DiskFault::PowerLoss(step),
    ];
    random.bool().then(|| faults[random.usize(0..faults.len())])
}

/// Life of a host with its guests.
#[derive(Debug, Clone)]
pub(super) struct SimulatedLife {
    pub(super) families: Vec<SimulatedFamily>,
    /// True if the port has an uplink, with stations.
    pub(super) has_uplink: bool,
    pub(super) conditions: LifeConditions,
    pub(super) steps: Vec<SimulatedStep>,
    /// True if the keeper loses the clients' descriptors in each hand-over, which a test of the simulation wants to find.
    pub(super) is_keeper_broken: bool,
}

impl SimulatedLife {
    pub(super) fn draw(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let families = SimulatedFamily::draw_all(&mut random);
        let has_uplink = random.bool();
        let steps =
            (0..STEPS).map(|_| SimulatedStep::draw(&mut random, families.len(), has_uplink)).collect();
        let conditions = LifeConditions::draw(seed, &families);
        Self { families, has_uplink, conditions, steps, is_keeper_broken: false }
    }

    /// Lives the life. Returns its figures, or the broken promise.
    pub(super) fn run(&self) -> Result<SimulationSummary, String> {
        let open = oracles::open_descriptors();
        let outcome = catch_unwind(AssertUnwindSafe(|| SimulatedWorld::live(self)))
            .unwrap_or_else(|_| Err("the simulation has panicked".to_owned()));
        let figures = outcome?;
        match oracles::descriptors_above(open) {
            0 => Ok(figures),
            left => Err(format!("{left} descriptors are open after its end")),
        }
    }

    /// Returns the steps that the life needs to fail by this fault, in at most `runs` further lives. Each part that a failing life
    /// does not need is left out: halves first, then ever smaller parts. A shorter life that fails by another fault does not
    /// count: the test would be of that fault (Hypothesis 836).
    pub(super) fn shrink(mut self, fault: &str, mut runs: usize) -> Self {
        let kind = kind_of(fault);
        let mut part = self.steps.len().div_ceil(2);
        while part > 0 {
            let mut begin = 0;
            while begin < self.steps.len() && runs > 0 {
                runs -= 1;
                let mut shorter = self.clone();
                shorter.steps.drain(begin..(begin + part).min(self.steps.len()));
                if shorter.run().is_err_and(|other| kind_of(&other) == kind) {
                    self = shorter;
                } else {
                    begin += part;
                }
            }
            part /= 2;
        }
        self
    }
}

/// Returns the kind of a fault: the first words of its text, without numbers and names.
fn kind_of(fault: &str) -> String {
    let words = fault.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
    words.take(4).collect::<Vec<_>>().join(" ")
}

#[test]
fn kind_of_a_fault_does_not_depend_on_its_numbers() {
    let lost = |frames: u64| {
        format!("{frames} frames of guest {frames} have not reached guest 2, and counters name 0")
    };
    assert_eq!(kind_of(&lost(1)), kind_of(&lost(12)));
    assert_ne!(kind_of(&lost(1)), kind_of("1 frames are missing, and counters name 0"));
    let was_reset = "guest 0 in life 1: was reset, although the host has not died and no policy has changed";
    assert_ne!(
        kind_of(was_reset),
        kind_of("VF 0 has VfSettings { vlan: Some(8) }, and the administrator has set 0")
    );
}

/// Prints the life as the body of a test.
impl fmt::Display for SimulatedLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "    use SimulatedAction::*;\n    use SimulatedFamily::*;\n    use DiskFault::*;\n    \
             check_life_with(THIS_TEST, {:?}, {}, vec!{:?}, &[",
            self.conditions, self.has_uplink, self.families
        )?;
        for SimulatedStep { action, turns, seed } in &self.steps {
            writeln!(f, "        ({action:?}, {turns}, {seed}),")?;
        }
        write!(f, "    ]);")
    }
}
