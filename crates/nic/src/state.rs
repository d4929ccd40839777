//! What a port is from one call to the next, but for what its plane keeps: what its resets clear, and what a successor
//! needs to go on where it stood. Left out: what follows from it ([`Derived`](crate::decoded::Derived)), what lasts no
//! longer than a call ([`Scratch`](crate::scratch::Scratch)), and the form in which it is saved.

use crate::board::clock::Clock;
use crate::board::nvm::Nvm;
use crate::board::phy::Phy;
use crate::board::timer::TcpTimer;
use crate::config::Config;
use crate::file::RegisterFile;
use crate::interrupt::single::Form;
use crate::interrupt::{Interrupts, Owners};
use crate::moderation::Throttle;
use crate::policy::Rates;
use crate::queues::Queues;
use crate::spaces::Spaces;
use i82576::bits::{ctrl, gpie, rah};
use i82576::ids::MAX_VFS;
use i82576::register as r;

/// The card of a port between two calls. Moments in it are those of the clock that the calls were given.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// The words of the NVM, which no reset clears.
    pub(crate) nvm: Nvm,
    /// The registers behind MDIC, and the link as they tell it.
    pub(crate) phy: Phy,
    /// SYSTIM.
    pub(crate) clock: Clock,
    /// What TCPTIMER counts down.
    pub(crate) timer: TcpTimer,
    /// Every register of PF and VFs.
    pub(crate) file: RegisterFile,
    /// The configuration spaces of PF and VFs, as far as the card itself answers.
    pub(crate) spaces: Spaces,
    /// Vectors that have something to say, and the PF's one interrupt.
    pub(crate) interrupts: Interrupts,
    /// When each vector may fire next, and its credits.
    pub(crate) throttle: Throttle,
    /// VFs that exist, and the functions that may master the bus.
    pub(crate) owners: Owners,
    /// VFs answer memory requests, as the SR-IOV capability says.
    pub(crate) vf_memory: bool,
    /// Receive and transmit queues, and the packet buffer.
    pub(crate) queues: Queues,
    /// IOADDR.
    pub(crate) io_address: u32,
    /// The wire carries a signal.
    pub(crate) carrier: bool,
    /// The port has a link.
    pub(crate) link: bool,
    /// What VFs see of the link, where it is not the port's.
    pub(crate) links: [Option<bool>; MAX_VFS],
    /// RTTBCNRC of each pool.
    pub(crate) rates: Rates,
}

impl Card {
    /// Power-on.
    pub(crate) fn new(config: &Config) -> Self {
        let mut state = Self {
            nvm: Nvm::new(config.mac, config.iov),
            phy: Phy::new(),
            clock: Clock::default(),
            timer: TcpTimer::default(),
            file: RegisterFile::new(),
            spaces: Spaces::new(config.mac, config.iov),
            interrupts: Interrupts::default(),
            throttle: Throttle::new(),
            owners: Owners { vfs: 0, masters: 0 },
            vf_memory: false,
            queues: Queues::new(),
            io_address: 0,
            carrier: false,
            link: false,
            links: [None; MAX_VFS],
            rates: Rates::default(),
        };
        state.load_address();
        state
    }

    /// How the PF interrupts.
    pub(crate) fn form(&self) -> Form {
        self.spaces.form(self.file.get(r::GPIE) & gpie::MULTIPLE_MSIX != 0)
    }

    /// The functions that may master the bus now: none while the PF sleeps or has asked the card to stop.
    pub(crate) fn masters(&self) -> Owners {
        let stopped = self.spaces.sleep() || self.file.get(r::CTRL) & ctrl::GIO_MASTER_DISABLE != 0;
        Owners { masters: if stopped { 0 } else { self.owners.masters }, ..self.owners }
    }

    /// RAL0 and RAH0 are loaded from the NVM at each reset.
    pub(crate) fn load_address(&mut self) {
        let (low, high) = self.nvm.mac().to_words();
        self.file.set(r::ral(0), low);
        self.file.set(r::rah(0), high | rah::AV | 1 << rah::POOLSEL_SHIFT);
    }
}
