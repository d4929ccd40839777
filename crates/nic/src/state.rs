//! The state of a card between two calls: the part that resets clear and that a successor needs to continue. The plane
//! keeps its own part. Values that follow from this state are in
//! [`DecodedRegisters`](crate::decoded::DecodedRegisters), those that last for one call in
//! [`PollScratchMemory`](crate::scratch::Scratch), and the saved form is in `saved`.

use crate::board::clock::SystimClock;
use crate::board::nvm::Nvm;
use crate::board::phy::Phy;
use crate::board::timer::TcpTimer;
use crate::config::NicConfig;
use crate::file::RegisterFile;
use crate::interrupt::single::InterruptMode;
use crate::interrupt::{Interrupts, VectorAndQueueOwners};
use crate::moderation::InterruptThrottle;
use crate::queues::CardQueues;
use crate::spaces::ConfigSpaces;
use crate::switch::PoolRates;
use i82576::bits::{ctrl, gpie, rah};
use i82576::ids::MAX_VFS;
use i82576::register as r;

/// State of a port's card between two calls. Its times come from the clock that the caller passes.
#[derive(Debug, Clone)]
pub(crate) struct DeviceState {
    /// Words of the NVM, which no reset clears.
    pub(crate) nvm: Nvm,
    /// PHY registers behind MDIC, and the link that they report.
    pub(crate) phy: Phy,
    /// IEEE 1588 clock of the card (SYSTIM).
    pub(crate) clock: SystimClock,
    /// Countdown of the TCP timer (TCPTIMER).
    pub(crate) timer: TcpTimer,
    /// Stored values of every register of PF and VFs.
    pub(crate) file: RegisterFile,
    /// Configuration spaces of PF and VFs that the card itself answers.
    pub(crate) spaces: ConfigSpaces,
    /// Vectors with a pending message, and the PF's single interrupt.
    pub(crate) interrupts: Interrupts,
    /// Time from which each vector may send its next message, and its credits for urgent frames.
    pub(crate) throttle: InterruptThrottle,
    /// Number of VFs, and the functions that may master the bus.
    pub(crate) owners: VectorAndQueueOwners,
    /// True if VFs answer memory requests (VF MSE of the SR-IOV capability).
    pub(crate) vf_memory: bool,
    /// Receive and transmit queues, and the packet buffer.
    pub(crate) queues: CardQueues,
    /// Register offset that IOADDR of the I/O BAR selects.
    pub(crate) io_address: u32,
    /// True if the wire to the port carries a signal.
    pub(crate) carrier: bool,
    /// True if the port has a link.
    pub(crate) link: bool,
    /// Link state that the administrator set for each VF; `None` follows the port's link.
    pub(crate) links: [Option<bool>; MAX_VFS],
    /// Transmit rate of each pool, as in RTTBCNRC.
    pub(crate) rates: PoolRates,
}

impl DeviceState {
    /// Creates a card after power-on.
    pub(crate) fn new(config: &NicConfig) -> Self {
        let mut state = Self {
            nvm: Nvm::new(config.mac, config.iov),
            phy: Phy::new(),
            clock: SystimClock::default(),
            timer: TcpTimer::default(),
            file: RegisterFile::new(),
            spaces: ConfigSpaces::new(config.mac, config.iov),
            interrupts: Interrupts::default(),
            throttle: InterruptThrottle::new(),
            owners: VectorAndQueueOwners { vfs: 0, masters: 0 },
            vf_memory: false,
            queues: CardQueues::new(),
            io_address: 0,
            carrier: false,
            link: false,
            links: [None; MAX_VFS],
            rates: PoolRates::default(),
        };
        state.load_address();
        state
    }

    /// Returns the kind of interrupt that the PF uses.
    pub(crate) fn form(&self) -> InterruptMode {
        self.spaces.form(self.file.get(r::GPIE) & gpie::MULTIPLE_MSIX != 0)
    }

    /// Returns the functions that may master the bus now: none while the PF is in D3hot or has set GIO_MASTER_DISABLE.
    /// Drivers set that before a reset, until STATUS.GIO_MASTER reads 0.
    pub(crate) fn masters(&self) -> VectorAndQueueOwners {
        let stopped = self.spaces.sleep() || self.file.get(r::CTRL) & ctrl::GIO_MASTER_DISABLE != 0;
        VectorAndQueueOwners { masters: if stopped { 0 } else { self.owners.masters }, ..self.owners }
    }

    /// Loads RAL0 and RAH0 from the NVM, as every reset does. Drivers without a mailbox, such as iPXE, read the address there.
    pub(crate) fn load_address(&mut self) {
        let (low, high) = self.nvm.mac().to_words();
        self.file.set(r::ral(0), low);
        self.file.set(r::rah(0), high | rah::AV | 1 << rah::POOLSEL_SHIFT);
    }
}
