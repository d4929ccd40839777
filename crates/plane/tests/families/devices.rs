//! The two test devices and the uplink that the tests connect to one plane.

use plane::frame::{Frame, HEADROOM};
use plane::uplink::UplinkWire;
use plane::watch::FrameObservation;
use plane::{
    DeliveryError, DeliveryFlags, FrameForwarder, FrameSink, FrameSource, PortIndex, TransmitQueueId,
};

/// Frame of the first test device, in a slot of fixed size.
#[derive(Debug, PartialEq)]
pub(crate) struct SlotFrame {
    pub(crate) port: u8,
    pub(crate) tag: Option<u16>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) looks: usize,
}

/// Test device that keeps frames in slots. Its result of parsing a frame is the number of its ports that got the frame.
#[derive(Default)]
pub(crate) struct SlotDevice {
    pub(crate) free: usize,
    pub(crate) filled: Vec<SlotFrame>,
    /// Frames that the test device sends, the last first.
    pub(crate) waiting: Vec<Vec<u8>>,
}

impl FrameSource for SlotDevice {
    fn may_send(&self, _sender: TransmitQueueId) -> bool {
        true
    }

    fn hand_over<L: FrameForwarder>(
        &mut self,
        _sender: TransmitQueueId,
        budget: usize,
        lane: &mut L,
    ) -> bool {
        for _ in 0..budget {
            let Some(bytes) = self.waiting.pop_if(|_| lane.is_due()) else { break };
            hand_over(&bytes, self, lane);
        }
        lane.settle();
        !self.waiting.is_empty()
    }

    fn has_more(&self, _sender: TransmitQueueId) -> bool {
        !self.waiting.is_empty()
    }
}

/// Puts a frame on the plane with the tag of its port's policy.
fn hand_over<S: FrameSink, L: FrameForwarder>(bytes: &[u8], own: &mut S, lane: &mut L) {
    let mut buffer = [&[0; HEADROOM], bytes].concat();
    let mut frame = Frame::new(&mut buffer).unwrap();
    frame.take_tag();
    frame.tag = lane.tag(frame.tag);
    lane.send(own, &mut frame);
}

impl FrameSink for SlotDevice {
    type Findings = usize;

    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        looks: &mut usize,
    ) -> Result<usize, DeliveryError> {
        self.free = self.free.checked_sub(1).ok_or(DeliveryError::Dropped)?;
        *looks += 1;
        let bytes = frame.delivered(!about.strips).to_vec();
        let length = bytes.len();
        self.filled.push(SlotFrame {
            port: port.get(),
            tag: frame.tag.filter(|_| about.strips),
            bytes,
            looks: *looks,
        });
        Ok(length)
    }
}

/// Test device that keeps all frames in one long buffer, in which each frame has its port and length before it.
#[derive(Default)]
pub(crate) struct StreamDevice {
    pub(crate) set_up: bool,
    pub(crate) bytes: Vec<u8>,
    /// Frame that the test device sends repeatedly.
    pub(crate) sends: Option<Vec<u8>>,
}

impl FrameSource for StreamDevice {
    fn may_send(&self, _sender: TransmitQueueId) -> bool {
        self.set_up
    }

    fn hand_over<L: FrameForwarder>(
        &mut self,
        _sender: TransmitQueueId,
        budget: usize,
        lane: &mut L,
    ) -> bool {
        let Some(bytes) = self.sends.clone() else { return false };
        for _ in 0..budget {
            if lane.is_due() {
                hand_over(&bytes, self, lane);
            }
        }
        lane.settle();
        true
    }

    fn has_more(&self, _sender: TransmitQueueId) -> bool {
        self.sends.is_some()
    }
}

impl FrameSink for StreamDevice {
    type Findings = ();

    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        _about: DeliveryFlags,
        (): &mut (),
    ) -> Result<usize, DeliveryError> {
        let bytes = frame.tagged();
        if !self.set_up {
            return Err(DeliveryError::Disabled);
        }
        self.bytes.extend([port.get(), bytes.len() as u8]);
        self.bytes.extend(bytes);
        Ok(bytes.len())
    }
}

impl StreamDevice {
    /// Returns each frame that the device has received, with its port.
    pub(crate) fn frames(&self) -> Vec<(u8, &[u8])> {
        let (mut rest, mut frames) = (&self.bytes[..], Vec::new());
        while let [port, length, more @ ..] = rest {
            let (frame, later) = more.split_at(usize::from(*length));
            frames.push((*port, frame));
            rest = later;
        }
        frames
    }
}

/// Uplink that records the sent frames and, while captured, the observations with the observed frames.
#[derive(Default)]
pub(crate) struct RecordingWire(pub(crate) Vec<Vec<u8>>, pub(crate) Option<Vec<(FrameObservation, Vec<u8>)>>);

impl UplinkWire for RecordingWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.0.push(frame.to_vec());
        true
    }

    fn is_watched(&self) -> bool {
        self.1.is_some()
    }

    fn watch(&mut self, seen: FrameObservation, frame: &[u8]) {
        self.1.iter_mut().for_each(|all| all.push((seen, frame.to_vec())));
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}
