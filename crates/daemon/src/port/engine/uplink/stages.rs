//! The steps between a port and its uplink, whatever kind that is: first impairment, then recording and counting, so that a
//! recording has what was on the uplink, and counters count that. Impairment and recording are optional. Left out: what
//! each of them does.

use super::UplinkError;
use super::impair::{Fate, Impairment};
use super::kind::{Kind, Maker};
use super::recorder::Recorder;
use crate::config::PortConfig;
use crate::control::uplink::{UplinkStatus, UplinkTraffic};
use crate::pcapng::Way;
use i82576::{MacAddress, Time};
use nic::Uncut;

/// Frames that one call passes over because they are lost or on their way: it must not hold the port up.
const PASSED_OVER: usize = 32;

/// The stages.
#[derive(Debug)]
pub(crate) struct Stages {
    impairment: Option<Box<Impairment>>,
    recorder: Option<Recorder>,
    rx: UplinkTraffic,
    tx: UplinkTraffic,
}

impl Stages {
    /// Makes what is configured. May take its time.
    pub(crate) fn open(config: &PortConfig, with: &Maker<'_>) -> Result<Self, UplinkError> {
        let recorder = config.record.as_ref().map(|path| Recorder::start(path, with)).transpose()?;
        Ok(Self { recorder, ..Self::without_recording(config) })
    }

    /// The same, but for the recording.
    pub(super) fn without_recording(config: &PortConfig) -> Self {
        let impairment = config.impair.map(|impair| Box::new(Impairment::new(impair)));
        Self { impairment, recorder: None, rx: UplinkTraffic::default(), tx: UplinkTraffic::default() }
    }

    /// Goes on with the counters of others, whose place these take.
    pub(super) fn count_on(&mut self, others: &Self) {
        (self.rx, self.tx) = (others.rx, others.tx);
    }

    /// Packets may pass that are not cut into segments yet.
    pub(super) fn take_uncut(&self) -> bool {
        self.impairment.is_none()
    }

    /// A frame leaves the port; `false` if the uplink has dropped it.
    pub(super) fn transmit(&mut self, kind: &mut dyn Kind, frame: &[u8], now: Time) -> bool {
        match self.impairment.as_mut().map_or(Fate::Now, |impairment| impairment.send(frame, now)) {
            Fate::Now => {
                let sent = kind.transmit(frame);
                self.note_sent(sent, frame)
            }
            // For the card it has left.
            Fate::Later | Fate::Lost => true,
        }
    }

    /// A frame has been given to the uplink, which has `sent` it or not; answers that.
    fn note_sent(&mut self, sent: bool, frame: &[u8]) -> bool {
        if sent {
            count(&mut self.tx, 1, frame.len());
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Way::Out, frame);
            }
        }
        sent
    }

    /// The same of a packet that is not cut into segments yet.
    pub(super) fn note_sent_uncut(&mut self, sent: bool, packet: &[u8], uncut: &Uncut) -> bool {
        if self.note_sent(sent, packet) {
            // All segments but one, and a copy of the headers for each of these.
            let more = uncut.frames(packet.len()).saturating_sub(1);
            count(&mut self.tx, more, uncut.payload * more as usize);
        }
        sent
    }

    /// The next frame for the port, if there is one.
    pub(super) fn receive(&mut self, kind: &mut dyn Kind, into: &mut [u8], now: Time) -> Option<usize> {
        if let Some(frame) = self.impairment.as_mut().and_then(|impairment| impairment.back.pop(now)) {
            let length = frame.len().min(into.len());
            into[..length].copy_from_slice(&frame[..length]);
            return Some(length);
        }
        for _ in 0..PASSED_OVER {
            let length = kind.receive(into)?;
            let frame = into.get(..length)?;
            count(&mut self.rx, 1, length);
            self.rx.multicast += u64::from(is_multicast(frame));
            if let Some(recorder) = &mut self.recorder {
                recorder.note(Way::In, frame);
            }
            match self.impairment.as_mut().map_or(Fate::Now, |impairment| impairment.receive(frame, now)) {
                Fate::Now => return Some(length),
                Fate::Later | Fate::Lost => {}
            }
        }
        None
    }

    /// Frames of the port that were on their way arrive at the uplink.
    pub(super) fn arrive(&mut self, kind: &mut dyn Kind, now: Time) {
        // Aside, so that a frame of its own can be noted.
        let Some(mut impairment) = self.impairment.take() else { return };
        while let Some(frame) = impairment.out.pop(now) {
            let sent = kind.transmit(frame);
            self.note_sent(sent, frame);
        }
        self.impairment = Some(impairment);
    }

    /// The end of a round.
    pub(super) fn flush(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// When the next frame arrives that is on its way.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.impairment.as_ref()?.next()
    }

    /// Adds what has passed and what was lost here.
    pub(super) fn tell(&self, status: &mut UplinkStatus) {
        (status.rx, status.tx) = (self.rx, self.tx);
        status.drops.impaired += self.impairment.as_ref().map_or(0, |impairment| impairment.lost);
        status.drops.unrecorded += self.recorder.as_ref().map_or(0, Recorder::lost);
    }
}

/// Returns true for a group address other than broadcast.
fn is_multicast(frame: &[u8]) -> bool {
    MacAddress::from_slice(frame).is_some_and(|to| to.is_group() && !to.is_broadcast())
}

fn count(traffic: &mut UplinkTraffic, packets: u64, bytes: usize) {
    traffic.packets += packets;
    traffic.bytes += bytes as u64;
}
