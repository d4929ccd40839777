//! All functions of a card. Left out: each part itself, and the poll (`poll`).

use crate::admin::Admin;
use crate::counters::Counters;
use crate::function::Function;
use crate::plain::Descriptors;
use crate::tx_ring::Gathered;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use avf::admin::MAX_BODY;
use avf::ids::MAX_VFS;
use pcie::{VfIndex, VfSet};
use rings::Places;
use serde::{Deserialize, Serialize};
use units::Time;

/// A card of up to 64 VFs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Card {
    pub(crate) functions: Vec<Function>,
    /// VFs that may use the bus. A poll looks at no others.
    #[serde(skip)]
    pub(crate) masters: VfSet,
    pub(crate) admin: Admin,
    /// VFs that were reset by their guests and that the PF has not seen yet.
    pub(crate) flr: u64,
    /// The VF whose mailbox is looked at first.
    pub(crate) turn: u8,
    /// When a frame that waits for its VF's rate may leave, as of the last visit.
    #[serde(skip)]
    pub(crate) due: Option<Time>,
    /// VFs of which a receive queue was filled since their drivers were told, a bit each. None between two calls.
    #[serde(skip)]
    pub(crate) reached: u64,
    /// No frame takes the usual, shorter way.
    #[serde(skip)]
    pub(crate) careful: bool,
    /// Private memory of frames and packets, once some have passed; `None` while it is lent to `rings`.
    #[serde(skip)]
    pub(crate) places: Option<Box<Places>>,
    /// Descriptors of a burst.
    #[serde(skip)]
    pub(crate) plain: Descriptors,
    /// Descriptors of the packet that was taken last.
    #[serde(skip)]
    pub(crate) gathered: Gathered,
    /// A message on its way.
    #[serde(skip, default = "body")]
    pub(crate) body: Vec<u8>,
    /// A frame with its check sequence.
    #[serde(skip)]
    pub(crate) checked: Vec<u8>,
}

fn body() -> Vec<u8> {
    vec![0; MAX_BODY]
}

impl Card {
    /// A card after power-on with `vfs` VFs, 64 at most.
    #[must_use]
    pub fn new(vfs: u8) -> Self {
        let functions = (0..usize::from(vfs).min(MAX_VFS)).map(|_| Function::new()).collect();
        let (admin, body) = (Admin::default(), body());
        let (masters, flr, turn, due, reached, careful) = (VfSet::NONE, 0, 0, None, 0, false);
        let (places, plain, checked) = (None, Descriptors::default(), Vec::new());
        let gathered = Gathered::default();
        Self {
            functions,
            masters,
            admin,
            flr,
            turn,
            due,
            reached,
            careful,
            places,
            plain,
            gathered,
            body,
            checked,
        }
    }

    /// From now on every frame is looked at closely, also one that could take the usual, shorter way. Tests compare the two.
    pub fn take_no_shortcuts(&mut self) {
        self.careful = true;
    }

    /// Gives the card VFs as after power-on, until it has `vfs` of them, 64 at most. Those that are there stay as they are.
    pub fn grow(&mut self, vfs: u8) {
        let count = usize::from(vfs).min(MAX_VFS).max(self.functions.len());
        self.functions.resize_with(count, Function::new);
    }

    /// Returns the part of a saved state that no card can have.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let vfs = self.functions.len();
        let rules = [
            (vfs <= MAX_VFS, "it has more VFs than a card"),
            (self.flr.checked_shr(vfs as u32).unwrap_or(0) == 0, "a VF was reset that there is not"),
            (usize::from(self.turn) < vfs.max(1), "its round of VFs starts beyond the last"),
            (self.admin.is_sound(), "a register of the PF's queues holds what cannot be written"),
        ];
        let of_card = rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what);
        of_card.or_else(|| self.functions.iter().find_map(Function::flaw))
    }

    /// A VF's driver reads a register of BAR 0; zero if there is no such register.
    pub fn read(&mut self, vf: u8, offset: u32) -> u32 {
        self.functions.get_mut(usize::from(vf)).map_or(0, |function| function.read(offset))
    }

    /// A VF's driver writes a register of BAR 0.
    pub fn write(&mut self, vf: u8, offset: u32, value: u32) {
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.write(offset, value);
        }
    }

    /// Bus Master Enable of a VF: without it no memory request and no interrupt leaves the card in its name.
    pub fn set_bus_master(&mut self, vf: u8, on: bool) {
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.master = on;
            self.find_masters();
        }
    }

    /// Finds the VFs that may use the bus.
    pub(crate) fn find_masters(&mut self) {
        let masters = VfIndex::first(self.functions.len()).zip(&self.functions);
        self.masters = masters.filter(|(_, function)| function.master).map(|(vf, _)| vf).collect();
    }

    /// Returns the time at which a frame may leave that [`Card::forward`] has kept for its VF's rate.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns true if a VF may use the bus.
    #[must_use]
    pub fn is_bus_master(&self, vf: u8) -> bool {
        self.functions.get(usize::from(vf)).is_some_and(|function| function.master)
    }

    /// Returns the counters of a VF.
    #[must_use]
    pub fn counters(&self, vf: u8) -> Option<&Counters> {
        self.functions.get(usize::from(vf)).map(|function| &function.counters)
    }
}
