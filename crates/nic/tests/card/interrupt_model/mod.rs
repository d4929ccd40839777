//! Compares the card's interrupts with a model of their rules (`rules`). Random steps read and write registers of PF
//! and VFs, move frames, ring mailboxes, change the PF's kind of interrupt and bus mastering, and let time pass. After
//! every step each register that reads without an effect equals the model's. After every poll the messages and pin
//! changes on the bus equal the model's, and so does their result at the MSI-X tables (`tables`).

mod registers;
mod rules;
mod tables;

use crate::common::{CardFixture, PORT, index, mac, plain};
use i82576::bits::{ctrl, eitr, gpie, icr, p2v, v2p};
use i82576::config::{MSIX, pf};
use i82576::register::{self as r, vf, vf_stats};
use pcie::Function::{self, Pf, Vf};
use pcie::capability::{msi, msix};
use pcie::config::offset;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use rules::{InterruptModel, PollInterrupts};
use tables::ModelTables;

/// An action of PF or VF software, of a peer on the wire, or of time. Numbers of VFs and pools are reduced to those
/// that exist.
#[derive(Debug, Clone)]
enum InterruptAction {
    Read(FunctionRegisterOffset),
    Write(FunctionRegisterOffset, u32),
    /// The PF unmasks vectors and sets their causes, and the card is polled.
    Tell(u32),
    /// A frame for a pool comes from the wire.
    Arrive(u8),
    /// A pool sends a frame to the wire.
    Send(u8),
    /// The wire of the port gets or loses its carrier.
    Link(bool),
    RingPf(u8),
    RingVf(u8),
    ResetVf(u8),
    Wait(u64),
    Poll,
    Msix(bool),
    Msi(bool),
    /// INTx disable and bus mastering of the PF change.
    Command(bool, bool),
    VfMaster(u8, bool),
    /// The MSI-X mask of a vector, or of the function, changes.
    Mask(Option<u8>, u16, bool),
    MaskAll(Option<u8>, bool),
}

/// A register offset in the PF's BAR0, in the PF's window onto a VF, or in a VF's BAR0.
#[derive(Debug, Clone, Copy)]
enum FunctionRegisterOffset {
    Pf(u32),
    /// VF index, which may exceed the enabled VFs, and offset in the PF's window onto the VF's registers.
    Window(u8, u32),
    Vf(u8, u32),
}

/// The card, the model of its interrupts, and the MSI-X tables that get its messages.
struct CardAndModel {
    bench: CardFixture,
    model: InterruptModel,
    tables: ModelTables,
    now: u64,
    link: bool,
    /// VFs whose rings are running in the test.
    running: [bool; 8],
}

const MASKS: [u32; 5] = [r::ICS, r::IMS, r::IMC, r::IAM, r::ICR];
const EXTENDED: [u32; 6] = [r::EICS, r::EIMS, r::EIMC, r::EIAC, r::EIAM, r::EICR];
const VFS_OWN: [u32; 6] = [vf::VTEICS, vf::VTEIMS, vf::VTEIMC, vf::VTEIAC, vf::VTEIAM, vf::VTEICR];
const WINDOW: [u32; 6] = [
    vf_stats::VTEICS,
    vf_stats::VTEIMS,
    vf_stats::VTEIMC,
    vf_stats::VTEIAC,
    vf_stats::VTEIAM,
    vf_stats::VTEICR,
];

fn one_of(offsets: &'static [u32]) -> impl Strategy<Value = u32> {
    proptest::sample::select(offsets)
}

fn vectors() -> impl Strategy<Value = u32> {
    let few = (any::<u32>(), any::<u32>()).prop_map(|(a, b)| a & b);
    prop_oneof![2 => few, 2 => (0u32..32).prop_map(|bit| 1 << bit), 1 => Just(u32::MAX)]
}

fn causes() -> impl Strategy<Value = u32> {
    let known = [icr::TXDW, icr::LSC, icr::RXDW, icr::VMMB, icr::RXO, icr::TIMER, icr::INTA];
    let some = proptest::sample::subsequence(known.to_vec(), 0..4).prop_map(|some| some.into_iter().sum());
    prop_oneof![6 => some, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}

fn entries() -> impl Strategy<Value = u32> {
    let entry = prop_oneof![4 => (0u8..28).prop_map(|vector| 0x80 | vector), 1 => any::<u8>()];
    proptest::array::uniform4(entry).prop_map(u32::from_le_bytes)
}

fn throttle() -> impl Strategy<Value = u32> {
    let (interval, counter, credits) = (prop_oneof![Just(0u32), 1u32..200], 0u32..30, 0u32..32);
    (interval, counter, credits, any::<u32>()).prop_map(|(interval, counter, credits, bits)| {
        let kept = bits & (eitr::LLI_EN | eitr::CNT_IGNR | 3);
        let counter = if bits & 4 == 0 { counter } else { 0 };
        interval << 2 | counter << eitr::COUNTER_SHIFT | credits << eitr::CREDITS_SHIFT | kept
    })
}

/// Draws a register of the PF, and a value for it.
fn pf_register() -> impl Strategy<Value = (FunctionRegisterOffset, u32)> {
    let modes = [gpie::NSICR, gpie::MULTIPLE_MSIX, gpie::MULTIPLE_MSIX, gpie::EIAME, gpie::PBA];
    let mode = proptest::sample::subsequence(modes.to_vec(), 0..=5)
        .prop_map(|all| all.into_iter().fold(0, |a, b| a | b));
    prop_oneof![
        6 => (one_of(&MASKS), any::<bool>(), causes()).prop_map(|(at, twin, value)| {
            (FunctionRegisterOffset::Pf(if twin { 0xc0 + 2 * (at - r::ICR) } else { at }), value)
        }),
        6 => (one_of(&EXTENDED), vectors()).prop_map(|(at, value)| (FunctionRegisterOffset::Pf(at), value)),
        2 => (0u32..25, throttle()).prop_map(|(i, value)| (FunctionRegisterOffset::Pf(0x1680 + 4 * i), value)),
        3 => (0u32..8, entries()).prop_map(|(i, value)| (FunctionRegisterOffset::Pf(r::ivar(i)), value)),
        2 => entries().prop_map(|value| (FunctionRegisterOffset::Pf(r::IVAR_MISC), value)),
        3 => mode.prop_map(|value| (FunctionRegisterOffset::Pf(r::GPIE), value)),
        1 => (0u8..8, entries()).prop_map(|(n, value)| (FunctionRegisterOffset::Pf(r::vtivar(index(n))), value)),
        1 => (0u8..8, entries()).prop_map(|(n, value)| (FunctionRegisterOffset::Pf(r::vtivar_misc(index(n))), value)),
        4 => (0u8..8, one_of(&WINDOW), vectors()).prop_map(|(n, at, value)| (FunctionRegisterOffset::Window(n, at), value)),
    ]
}

fn vf_register() -> impl Strategy<Value = (FunctionRegisterOffset, u32)> {
    prop_oneof![
        6 => (0u8..8, one_of(&VFS_OWN), vectors()).prop_map(|(n, at, value)| (FunctionRegisterOffset::Vf(n, at), value)),
        2 => (0u8..8, 0u32..3, throttle()).prop_map(|(n, i, value)| (FunctionRegisterOffset::Vf(n, vf::VTEITR + 4 * i), value)),
        1 => (0u8..8, entries()).prop_map(|(n, value)| (FunctionRegisterOffset::Vf(n, vf::VTIVAR), value)),
        1 => (0u8..8, entries()).prop_map(|(n, value)| (FunctionRegisterOffset::Vf(n, vf::VTIVAR_MISC), value)),
    ]
}

fn act() -> impl Strategy<Value = InterruptAction> {
    let register = || prop_oneof![3 => pf_register(), 2 => vf_register()];
    prop_oneof![
        24 => register().prop_map(|(register, value)| InterruptAction::Write(register, value)),
        6 => register().prop_map(|(register, _)| InterruptAction::Read(register)),
        6 => vectors().prop_map(InterruptAction::Tell),
        4 => any::<u8>().prop_map(InterruptAction::Arrive),
        4 => any::<u8>().prop_map(InterruptAction::Send),
        2 => any::<bool>().prop_map(InterruptAction::Link),
        1 => any::<u8>().prop_map(InterruptAction::RingPf),
        2 => any::<u8>().prop_map(InterruptAction::RingVf),
        1 => any::<u8>().prop_map(InterruptAction::ResetVf),
        4 => (0u64..150).prop_map(InterruptAction::Wait),
        12 => Just(InterruptAction::Poll),
        1 => any::<bool>().prop_map(InterruptAction::Msix),
        1 => any::<bool>().prop_map(InterruptAction::Msi),
        1 => (proptest::bool::weighted(0.2), proptest::bool::weighted(0.8))
            .prop_map(|(disable, master)| InterruptAction::Command(disable, master)),
        1 => (any::<u8>(), proptest::bool::weighted(0.8)).prop_map(|(vf, master)| InterruptAction::VfMaster(vf, master)),
        2 => (any::<Option<u8>>(), 0u16..25, any::<bool>()).prop_map(|(n, vector, on)| InterruptAction::Mask(n, vector, on)),
        1 => (any::<Option<u8>>(), proptest::bool::weighted(0.3)).prop_map(|(n, on)| InterruptAction::MaskAll(n, on)),
    ]
}

/// Returns the interrupt registers whose reads have no effect, for a card with `vfs` VFs.
fn harmless(vfs: u8) -> impl Iterator<Item = (Function, u32)> {
    let pf = [r::ICS, r::IMS, r::IMC, r::IAM, r::GPIE, r::IVAR_MISC, r::IAC].into_iter();
    let extended = EXTENDED.into_iter().filter(|at| *at != r::EICR);
    let arrays = (0..25).map(|i| 0x1680 + 4 * i).chain((0..8).map(r::ivar));
    let windows = (0..8).flat_map(|n| {
        let own = WINDOW.into_iter().filter(|at| *at != vf_stats::VTEICR);
        own.map(move |at| r::vf_block(index(n)) + at).chain([r::vtivar(index(n)), r::vtivar_misc(index(n))])
    });
    let own = (0..vfs).flat_map(|n| {
        let masks = VFS_OWN.into_iter().filter(|at| *at != vf::VTEICR);
        masks.chain([vf::VTEITR, vf::VTEITR + 8, vf::VTIVAR, vf::VTIVAR_MISC]).map(move |at| (Vf(n), at))
    });
    pf.chain(extended).chain(arrays).chain(windows).map(|at| (Pf, at)).chain(own)
}

impl CardAndModel {
    /// Creates a card and a model whose functions have running rings, with vectors as a driver sets them.
    fn new(vfs: u8) -> Self {
        let mut bench = CardFixture::new(vfs);
        bench.wait_us(10_000);
        bench.pf().read(r::IAC);
        let (gpie, causes) = (bench.pf().read(r::GPIE), bench.pf().read(r::ICS));
        let model = InterruptModel::new(vfs, gpie, causes);
        let mut pair =
            Self { bench, model, tables: ModelTables::new(), now: 10_000, link: true, running: [false; 8] };
        pair.bench.poll();
        pair.bench.pf().start();
        (0..vfs).for_each(|vf| pair.start(vf));
        pair.agree();
        pair
    }

    /// Sets up a VF's rings and vectors in the card, and its vectors in the model.
    fn start(&mut self, vf: u8) {
        self.bench.vf(vf).start();
        self.running[usize::from(vf)] = true;
        for (at, value) in [(vf::VTIVAR, 0x8081), (vf::VTIVAR_MISC, 0x82), (vf::VTEIAC, 7), (vf::VTEIMS, 7)] {
            self.model.write(Vf(vf), at, value, self.now);
        }
    }

    /// Returns a register's function and offset, if the function exists.
    fn place(&self, register: FunctionRegisterOffset) -> Option<(Function, u32)> {
        match register {
            FunctionRegisterOffset::Pf(at) => Some((Pf, at)),
            FunctionRegisterOffset::Window(n, at) => Some((Pf, r::vf_block(index(n)) + at)),
            FunctionRegisterOffset::Vf(n, at) => self.vf(n).map(|n| (Vf(n), at)),
        }
    }

    fn vf(&self, n: u8) -> Option<u8> {
        n.checked_rem(self.model.vfs)
    }

    fn function(&self, n: Option<u8>) -> Function {
        n.and_then(|n| self.vf(n)).map_or(Pf, Vf)
    }

    /// Returns a pool and its function, if the function masters the bus and the port has a link.
    fn pool(&self, n: u8) -> Option<(u8, Function)> {
        let pool = n % (self.model.vfs + 1);
        let function = if pool == self.model.vfs { Pf } else { Vf(pool) };
        let runs = pool == self.model.vfs || self.running[usize::from(pool)];
        (pool < 8 && self.link && runs && self.model.masters(function)).then_some((pool, function))
    }

    fn perform(&mut self, act: &InterruptAction) {
        let now = self.bench.now;
        match *act {
            InterruptAction::Read(register) => {
                let Some((function, at)) = self.place(register) else { return };
                assert_eq!(self.bench.nic.read(function, at, now), self.model.read(function, at, self.now));
            }
            InterruptAction::Write(register, value) => {
                let Some((function, at)) = self.place(register) else { return };
                self.bench.nic.write(function, at, value, now);
                self.model.write(function, at, value, self.now);
            }
            InterruptAction::Tell(vectors) => {
                for at in [r::EIMS, r::EICS] {
                    self.perform(&InterruptAction::Write(FunctionRegisterOffset::Pf(at), vectors));
                }
                self.poll();
            }
            InterruptAction::Arrive(n) => self.frame(n, false),
            InterruptAction::Send(n) => self.frame(n, true),
            InterruptAction::Link(up) => {
                self.bench.nic.set_link(up);
                if core::mem::replace(&mut self.link, up) != up {
                    self.model.other_events(icr::LSC);
                }
            }
            InterruptAction::Wait(us) => {
                self.bench.wait_us(us);
                self.now += us;
            }
            InterruptAction::Poll => self.poll(),
            InterruptAction::RingPf(n) | InterruptAction::RingVf(n) | InterruptAction::ResetVf(n) => {
                self.between(act, n);
            }
            InterruptAction::Msix(_)
            | InterruptAction::Msi(_)
            | InterruptAction::Command(..)
            | InterruptAction::VfMaster(..) => self.configure(act),
            InterruptAction::Mask(n, vector, on) => {
                let function = self.function(n);
                let vector = if function == Pf { vector } else { vector % 3 };
                self.tables.mask(function, vector, on);
            }
            InterruptAction::MaskAll(n, on) => {
                self.tables.control(self.function(n), |control| control.masked = on);
            }
        }
    }

    /// Delivers a frame to a pool or sends one from it, and polls.
    fn frame(&mut self, n: u8, sent: bool) {
        let Some((pool, function)) = self.pool(n) else { return };
        let address = if function == Pf { PORT } else { mac(pool) };
        let mut port = if function == Pf { self.bench.pf() } else { self.bench.vf(pool) };
        if sent {
            let at = port.place(&plain(mac(9), address, 60));
            port.put(crate::common::packet(at, 60).emit());
            port.ring();
        } else {
            self.bench.world.wire.incoming.push_back(plain(address, mac(9), 60));
        }
        self.model.queue_event(pool, sent);
        self.poll();
        if !sent {
            let mut port = if function == Pf { self.bench.pf() } else { self.bench.vf(pool) };
            port.expect_frame();
            port.post(1);
        }
    }

    /// Performs an action between the PF and VF `n`: a mailbox doorbell of the PF or of the VF, or a reset of the VF.
    fn between(&mut self, act: &InterruptAction, n: u8) {
        if let InterruptAction::RingVf(_) = act {
            // The PF may ring a VF that does not exist.
            self.bench.pf().write(r::p2v_mailbox(index(n % 8)), p2v::STS);
            return self.model.mailbox_event(n % 8);
        }
        let Some(n) = self.vf(n) else { return };
        match act {
            InterruptAction::RingPf(_) => {
                self.bench.vf(n).write(vf::V2PMAILBOX, v2p::REQ);
                self.model.other_events(icr::VMMB);
            }
            _ => {
                self.bench.vf(n).write(vf::CTRL, ctrl::RST);
                self.model.reset_vf(n);
                for gate in [r::VFRE, r::VFTE] {
                    self.bench.pf().write(gate, 0xff);
                }
                self.start(n);
            }
        }
    }

    fn configure(&mut self, act: &InterruptAction) {
        let enable = |on: bool, bit: u16| if on { u32::from(bit) } else { 0 };
        match *act {
            InterruptAction::Msix(on) => {
                self.model.msix = on;
                self.tables.control(Pf, |control| control.enabled = on);
                self.bench.config(Pf, u16::from(MSIX) + msix::CONTROL, enable(on, msix::CONTROL_ENABLE));
            }
            InterruptAction::Msi(on) => {
                self.model.msi = on;
                self.bench.config(Pf, u16::from(pf::MSI) + msi::CONTROL, enable(on, msi::CONTROL_ENABLE));
            }
            InterruptAction::Command(disable, master) => {
                (self.model.pin_disabled, self.model.masters[8]) = (disable, master);
                let bits = u32::from(offset::COMMAND_MEMORY)
                    | enable(master, offset::COMMAND_BUS_MASTER)
                    | enable(disable, offset::COMMAND_INTX_DISABLE);
                self.bench.config(Pf, offset::COMMAND, bits);
            }
            InterruptAction::VfMaster(n, on) => {
                let Some(n) = self.vf(n) else { return };
                self.model.masters[usize::from(n)] = on;
                self.bench.config(Vf(n), offset::COMMAND, enable(on, offset::COMMAND_BUS_MASTER));
            }
            _ => {}
        }
    }

    fn poll(&mut self) {
        let deadline = self.bench.poll().deadline.map(|at| at.as_nanos() / 1000);
        let bus = &mut self.bench.world.bus;
        let heard = PollInterrupts {
            msix: core::mem::take(&mut bus.msix),
            msi: core::mem::take(&mut bus.msi).len(),
            pin: core::mem::take(&mut bus.pin),
            deadline,
        };
        assert_eq!(heard, self.model.poll(self.now));
        heard.msix.into_iter().for_each(|message| self.tables.arrives(message));
    }

    /// Asserts that the card and the model have equal values in all interrupt registers whose reads have no effect.
    fn agree(&mut self) {
        for (function, at) in harmless(self.model.vfs) {
            let card = self.bench.nic.read(function, at, self.bench.now);
            assert_eq!(card, self.model.read(function, at, self.now), "{function:?} {at:#x}: card, model");
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 400, ..Config::default() })]

    #[test]
    fn interrupts_equal_an_independent_models_after_every_action(
        vfs in proptest::sample::select(vec![0u8, 1, 3, 7, 8]),
        (msix, msi) in any::<(bool, bool)>(),
        acts in proptest::collection::vec(act(), 1..200),
    ) {
        let mut pair = CardAndModel::new(vfs);
        pair.perform(&InterruptAction::Msix(msix));
        pair.perform(&InterruptAction::Msi(msi));
        for act in &acts {
            pair.perform(act);
            pair.agree();
        }
    }
}
