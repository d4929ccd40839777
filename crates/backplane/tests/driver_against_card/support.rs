//! Sets up a card with started VFs, and builds the frames between them.

use backplane::{Backplane, vf_mac};
use core::time::Duration;
use driver::vf::{TxOffload, Vf, VfDriverConfig, VfLinkStatus, VfReceivedFrame};
use i82576::{MacAddress, VfIndex};

/// Card with its PF driver attached, and the drivers of its VFs.
pub(crate) struct DrivenCardFixture {
    pub(crate) card: Backplane,
    pub(crate) vfs: Vec<Vf>,
}

pub(crate) fn index(vf: u8) -> VfIndex {
    VfIndex::new(vf).unwrap()
}

impl DrivenCardFixture {
    /// Creates a card with `count` started VFs, and the link up.
    pub(crate) fn new(count: u8) -> Self {
        Self::with_config(count, &VfDriverConfig::default())
    }

    pub(crate) fn with_config(count: u8, config: &VfDriverConfig) -> Self {
        let mut bench = Self::unstarted(count, config);
        for vf in 0..count {
            bench.start(vf);
        }
        bench
    }

    /// Creates a card with `count` VFs, whose drivers have probed the VFs and not started them yet.
    pub(crate) fn unstarted(count: u8, config: &VfDriverConfig) -> Self {
        let mut card = Backplane::with_pf(count).unwrap();
        let probe =
            |vf| Vf::probe(&mut card.vf(vf), &VfDriverConfig { seed: u64::from(vf), ..*config }).unwrap();
        let vfs = (0..count).map(probe).collect();
        Self { card, vfs }
    }

    pub(crate) fn start(&mut self, vf: u8) {
        self.on(vf, |driver, hal| driver.start(hal)).unwrap();
        let check = self.on(vf, |driver, hal| driver.check_link(hal));
        assert!(matches!(check, VfLinkStatus::Up(_)), "vf{vf}: {check:?}");
    }

    /// Calls `act` with the driver of VF `vf` and its registers.
    pub(crate) fn on<R>(
        &mut self,
        vf: u8,
        act: impl FnOnce(&mut Vf, &mut backplane::BackplaneVfHal<'_>) -> R,
    ) -> R {
        act(&mut self.vfs[usize::from(vf)], &mut self.card.vf(vf))
    }

    /// Sends a frame from VF `vf`, and performs all work of the card that is due.
    pub(crate) fn send(&mut self, vf: u8, frame: &[u8]) {
        self.send_with(vf, frame, &TxOffload::default());
    }

    pub(crate) fn send_with(&mut self, vf: u8, frame: &[u8], offload: &TxOffload) {
        self.on(vf, |driver, hal| {
            driver.transmit(hal, frame, offload).unwrap();
            driver.flush(hal);
        });
        self.card.settle();
        self.on(vf, |driver, hal| driver.clean(hal));
    }

    /// Returns the next frame that VF `vf` has received.
    pub(crate) fn receive(&mut self, vf: u8) -> Option<(Vec<u8>, VfReceivedFrame)> {
        let mut buffer = vec![0; 10_000];
        let received = self.on(vf, |driver, hal| driver.receive(hal, &mut buffer)).unwrap()?;
        buffer.truncate(received.length);
        Some((buffer, received))
    }

    /// Returns every frame that VF `vf` has received.
    pub(crate) fn receive_all(&mut self, vf: u8) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.receive(vf)).map(|(frame, _)| frame).collect()
    }

    pub(crate) fn advance_us(&mut self, micros: u64) {
        self.card.advance(Duration::from_micros(micros));
    }
}

/// Builds a frame of `length` bytes with an unassigned Ethertype and a body that depends on `seed`.
pub(crate) fn frame(to: MacAddress, from: MacAddress, length: usize, seed: u8) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0[..], &[0x88, 0xb5]].concat();
    frame.extend((frame.len()..length).map(|i| (i as u8).wrapping_mul(7).wrapping_add(seed)));
    frame
}

/// Builds a frame from one VF to another.
pub(crate) fn between(from: u8, to: u8, length: usize, seed: u8) -> Vec<u8> {
    frame(vf_mac(to), vf_mac(from), length, seed)
}
