//! Stages that frames pass between a port and its uplink of any kind: first impairment, then recording and counting.
//! So a recording has the frames of the uplink itself, and the counters count those. Impairment and recording are
//! optional.

use super::UplinkError;
use super::backend::{UplinkBackend, UplinkResources};
use super::impair::{Impairment, ImpairmentVerdict};
use super::recorder::UplinkRecorder;
use crate::config::PortConfig;
use crate::control::uplink::{UplinkStatus, UplinkTraffic};
use crate::pcapng::PacketDirection;
use i82576::{MacAddress, Time};
use nic::UnsegmentedPacketLayout;

/// Maximum number of delayed or dropped frames that one call skips to receive a frame, so that they do not delay the
/// port.
const PASSED_OVER: usize = 32;

/// Impairment, recording and counters of an uplink.
#[derive(Debug)]
pub(crate) struct UplinkPipelineStages {
    impairment: Option<Box<Impairment>>,
    recorder: Option<UplinkRecorder>,
    rx: UplinkTraffic,
    tx: UplinkTraffic,
    /// Losses of the former stages that these have replaced.
    former: StageLosses,
}

/// Numbers of frames that stages have dropped, or not recorded.
#[derive(Debug, Clone, Copy, Default)]
struct StageLosses {
    impaired: u64,
    unrecorded: u64,
}

impl UplinkPipelineStages {
    /// Opens the configured impairment and recording of an uplink. May block.
    pub(crate) fn open(config: &PortConfig, with: &UplinkResources<'_>) -> Result<Self, UplinkError> {
        let recorder = config.record.as_ref().map(|path| UplinkRecorder::start(path, with)).transpose()?;
        Ok(Self { recorder, ..Self::without_recording(config) })
    }

    /// Opens the configured impairment of an uplink, without the recording.
    pub(super) fn without_recording(config: &PortConfig) -> Self {
        let impairment = config.impair.map(|impair| Box::new(Impairment::new(impair)));
        let (rx, tx) = (UplinkTraffic::default(), UplinkTraffic::default());
        Self { impairment, recorder: None, rx, tx, former: StageLosses::default() }
    }

    /// Continues the counters of the former stages, which these stages replace.
    pub(super) fn count_on(&mut self, others: &Self) {
        (self.rx, self.tx) = (others.rx, others.tx);
        let (own, total) = (self.own_losses(), others.losses());
        // Stages that return after a refused change are among the former stages of those that they replace.
        self.former = StageLosses {
            impaired: total.impaired.saturating_sub(own.impaired),
            unrecorded: total.unrecorded.saturating_sub(own.unrecorded),
        };
    }

    /// Returns the losses of these stages alone.
    fn own_losses(&self) -> StageLosses {
        StageLosses {
            impaired: self.impairment.as_ref().map_or(0, |impairment| impairment.lost),
            unrecorded: self.recorder.as_ref().map_or(0, UplinkRecorder::lost),
        }
    }

    /// Returns the losses of these stages and of the former ones.
    fn losses(&self) -> StageLosses {
        let (own, former) = (self.own_losses(), self.former);
        StageLosses {
            impaired: own.impaired + former.impaired,
            unrecorded: own.unrecorded + former.unrecorded,
        }
    }

    /// Ends the recording, if there is one, and waits for a bounded time until it is written. Must not run on a port's thread.
    pub(crate) fn retire(self) {
        self.recorder.into_iter().for_each(UplinkRecorder::retire);
    }

    /// Returns true if packets may pass before segmentation. Impairment treats each frame by itself.
    pub(super) fn take_uncut(&self) -> bool {
        self.impairment.is_none()
    }

    /// Sends a frame of the port through the stages. Returns `false` if the uplink has dropped the frame.
    pub(super) fn transmit(&mut self, kind: &mut dyn UplinkBackend, frame: &[u8], now: Time) -> bool {
        match self
            .impairment
            .as_mut()
            .map_or(ImpairmentVerdict::Now, |impairment| impairment.send(frame, now))
        {
            ImpairmentVerdict::Now => {
                let sent = kind.transmit(frame);
                self.note_sent(sent, frame)
            }
            // The card counts the frame as sent, as it would on a real line.
            ImpairmentVerdict::Later | ImpairmentVerdict::Lost => true,
        }
    }

    /// Counts and records a frame of the port if the uplink has accepted it (`sent`). Returns `sent`.
    fn note_sent(&mut self, sent: bool, frame: &[u8]) -> bool {
        if sent {
            count(&mut self.tx, 1, frame.len());
            if let Some(recorder) = &mut self.recorder {
                recorder.note(PacketDirection::Out, frame);
            }
        }
        sent
    }

    /// Counts and records an unsegmented packet of the port if the uplink has accepted it (`sent`). Returns `sent`.
    pub(super) fn note_sent_uncut(
        &mut self,
        sent: bool,
        packet: &[u8],
        uncut: &UnsegmentedPacketLayout,
    ) -> bool {
        if self.note_sent(sent, packet) {
            // All segments but one, and a copy of the headers for each of these.
            let more = uncut.frames(packet.len()).saturating_sub(1);
            count(&mut self.tx, more, uncut.payload * more as usize);
        }
        sent
    }

    /// Counts and records a packet before segmentation that a port has received whole.
    pub(super) fn note_received_uncut(&mut self, packet: &[u8], uncut: &UnsegmentedPacketLayout) {
        let more = uncut.frames(packet.len()).saturating_sub(1);
        count(&mut self.rx, 1, packet.len());
        count(&mut self.rx, more, uncut.payload * more as usize);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(PacketDirection::In, packet);
        }
    }

    /// Receives the next frame for the port through the stages. Returns its length in bytes.
    pub(super) fn receive(
        &mut self,
        kind: &mut dyn UplinkBackend,
        into: &mut [u8],
        now: Time,
    ) -> Option<usize> {
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
                recorder.note(PacketDirection::In, frame);
            }
            match self
                .impairment
                .as_mut()
                .map_or(ImpairmentVerdict::Now, |impairment| impairment.receive(frame, now))
            {
                ImpairmentVerdict::Now => return Some(length),
                ImpairmentVerdict::Later | ImpairmentVerdict::Lost => {}
            }
        }
        None
    }

    /// Sends those of the port's delayed frames that are due.
    pub(super) fn send_due(&mut self, kind: &mut dyn UplinkBackend, now: Time) {
        // Taken out, because `note_sent` borrows all of `self`.
        let Some(mut impairment) = self.impairment.take() else { return };
        while let Some(frame) = impairment.out.pop(now) {
            let sent = kind.transmit(frame);
            self.note_sent(sent, frame);
        }
        self.impairment = Some(impairment);
    }

    /// Wakes the writer of the recording, at the end of a round of the port's loop.
    pub(super) fn flush(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
    }

    /// Returns the time when the next delayed frame is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.impairment.as_ref()?.next()
    }

    /// Adds the counts of traffic, impaired and unrecorded frames to an uplink's status.
    pub(super) fn add_to(&self, status: &mut UplinkStatus) {
        (status.rx, status.tx) = (self.rx, self.tx);
        let lost = self.losses();
        status.drops.impaired += lost.impaired;
        status.drops.unrecorded += lost.unrecorded;
    }
}

/// Returns true if a frame's destination is a group address other than broadcast.
fn is_multicast(frame: &[u8]) -> bool {
    MacAddress::from_slice(frame).is_some_and(|to| to.is_group() && !to.is_broadcast())
}

fn count(traffic: &mut UplinkTraffic, packets: u64, bytes: usize) {
    traffic.packets += packets;
    traffic.bytes += bytes as u64;
}

#[cfg(test)]
mod tests {
    use super::UplinkPipelineStages;
    use crate::config::HostConfig;
    use crate::control::uplink::UplinkState;
    use crate::port::engine::uplink::NoUplink;
    use crate::port::engine::uplink::state::UplinkStateCounters;
    use i82576::Time;
    use std::path::Path;

    /// Returns stages that drop every frame.
    fn lossy() -> UplinkPipelineStages {
        let file = HostConfig::parse("[[port]]\nimpair = { loss = 100 }\n").unwrap();
        UplinkPipelineStages::without_recording(&HostConfig::check(file, Path::new("/run")).unwrap().ports[0])
    }

    /// Has the stages drop a frame. Returns the number of dropped frames that an uplink's status has.
    fn drop_frame(stages: &mut UplinkPipelineStages) -> u64 {
        assert!(stages.transmit(&mut NoUplink, &[0; 60], Time::ZERO));
        let mut status =
            UplinkStateCounters::new("none", UplinkState::Up, Time::ZERO).status(String::new(), Time::ZERO);
        stages.add_to(&mut status);
        status.drops.impaired
    }

    #[test]
    fn count_of_impaired_frames_outlives_a_change_of_stages() {
        let (mut first, mut second) = (lossy(), lossy());
        assert_eq!(drop_frame(&mut first), 1);
        second.count_on(&first);
        assert_eq!(drop_frame(&mut second), 2);
        // A change that another port refuses is undone.
        first.count_on(&second);
        assert_eq!(drop_frame(&mut first), 3);
    }
}
