//! Builds and recognizes the frames of the checks, by an EtherType of their own, a serial number, and a payload that
//! follows from the number. Other frames on the wire are ignored.
//!
//! IP packets are in `packets`.

use super::{CheckedVf, CheckedVfBus};
use driver::vf::{RxError, TxError, TxOffload, VfReceivedFrame};
use host::poll::MonotonicClock;
use i82576::MacAddress;
use std::time::Duration;

/// EtherType of the checks' frames: IEEE 802 local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER: usize = 14;
/// Length of a frame's serial number in bytes.
const SERIAL: usize = 4;
/// Size of the receive buffer in bytes: the length of the longest frame.
const BUFFER: usize = 9728;
/// Serial number of marker frames: every earlier frame must have arrived before a marker frame does.
const MARK: u32 = u32::MAX;
const MARK_LENGTH: usize = 60;
/// Timeout of a frame's arrival.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time without a frame after which a check assumes that no frame will arrive. Used where no marker frame can be sent.
const SILENCE: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_micros(50);

/// Reason why an exchange of frames failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameExchangeError {
    #[error("the driver refused a frame of {length} bytes: {error}")]
    NotSent { length: usize, error: TxError },
    #[error("frame {0} did not arrive in time")]
    Lost(u32),
    #[error("expected frame {wanted}, received frame {found}")]
    Order { wanted: u32, found: u32 },
    #[error("frame {0} arrived with changed bytes")]
    Changed(u32),
    #[error("frame {0} arrived at a VF that must not receive it")]
    Stray(u32),
    #[error("the driver failed to receive a frame: {0}")]
    Receive(RxError),
}

/// Builds a frame of the checks with `length` bytes, at least a header and a serial number.
pub(super) fn frame(to: MacAddress, from: MacAddress, serial: u32, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    frame.extend(to.0);
    frame.extend(from.0);
    frame.extend(ETHERTYPE);
    frame.extend(serial.to_be_bytes());
    frame.extend((0..length - HEADER - SERIAL).map(|i| byte(serial, i)));
    frame
}

/// Returns the payload byte at the offset `place` of the frame with this serial number.
fn byte(serial: u32, place: usize) -> u8 {
    (serial.wrapping_mul(31).wrapping_add(place as u32 * 7) >> 3) as u8
}

/// Returns the serial number of a frame, or `None` if no check sent it.
fn serial_of(frame: &[u8]) -> Option<u32> {
    let serial = frame.get(HEADER..HEADER + SERIAL)?;
    (frame[12..HEADER] == ETHERTYPE).then(|| u32::from_be_bytes([serial[0], serial[1], serial[2], serial[3]]))
}

/// Frame that a check received: the driver's description of it, and the bytes.
pub(super) struct CheckedFrame {
    pub(super) received: VfReceivedFrame,
    pub(super) bytes: Vec<u8>,
}

impl<B: CheckedVfBus> CheckedVf<B> {
    /// Sends a frame of the checks and rings the doorbell. Returns the bytes of the frame.
    pub(super) fn send(
        &mut self,
        to: MacAddress,
        serial: u32,
        length: usize,
    ) -> Result<Vec<u8>, FrameExchangeError> {
        let frame = frame(to, self.vf.mac(), serial, length);
        self.send_bytes(&frame, &TxOffload::default())?;
        Ok(frame)
    }

    /// Sends arbitrary bytes as a frame, and rings the doorbell.
    pub(super) fn send_bytes(&mut self, frame: &[u8], offload: &TxOffload) -> Result<(), FrameExchangeError> {
        let not_sent = |error| FrameExchangeError::NotSent { length: frame.len(), error };
        self.vf.transmit(&mut self.hal, frame, offload).map_err(not_sent)?;
        self.vf.flush(&mut self.hal);
        Ok(())
    }

    /// Returns the next received frame for which `wanted` returns true, if it arrives before the timeout.
    pub(super) fn next_where(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<CheckedFrame>, FrameExchangeError> {
        let end = MonotonicClock.now_ns() + patience.as_nanos() as u64;
        let mut buffer = vec![0; BUFFER];
        loop {
            match self.vf.receive(&mut self.hal, &mut buffer) {
                Ok(Some(received)) if wanted(&buffer[..received.length]) => {
                    buffer.truncate(received.length);
                    return Ok(Some(CheckedFrame { received, bytes: buffer }));
                }
                Ok(Some(_)) => {}
                Ok(None) if MonotonicClock.now_ns() >= end => return Ok(None),
                Ok(None) => std::thread::sleep(LOOK),
                Err(error) => return Err(FrameExchangeError::Receive(error)),
            }
        }
    }

    /// Checks that the next frame of the checks to arrive is `sent`, with unchanged bytes.
    pub(super) fn expect(&mut self, sent: &[u8]) -> Result<VfReceivedFrame, FrameExchangeError> {
        let wanted = serial_of(sent).unwrap_or_default();
        let ours = |bytes: &[u8]| serial_of(bytes).is_some();
        let arrived = self.next_where(PATIENCE, ours)?.ok_or(FrameExchangeError::Lost(wanted))?;
        match serial_of(&arrived.bytes) {
            Some(found) if found != wanted => Err(FrameExchangeError::Order { wanted, found }),
            _ if arrived.bytes != sent => Err(FrameExchangeError::Changed(wanted)),
            _ => Ok(arrived.received),
        }
    }

    /// Checks that no frame of the checks arrives for a while.
    pub(super) fn expect_nothing(&mut self) -> Result<(), FrameExchangeError> {
        let arrived = self.next_where(SILENCE, |bytes| serial_of(bytes).is_some())?;
        arrived
            .and_then(|arrived| serial_of(&arrived.bytes))
            .map_or(Ok(()), |serial| Err(FrameExchangeError::Stray(serial)))
    }

    /// Returns true if a frame of the checks arrives before a marker frame that `from` sends now. Frames keep their
    /// order, so no waiting time must be guessed.
    pub(super) fn receives_before(&mut self, from: &mut Self) -> Result<bool, FrameExchangeError> {
        from.send(self.vf.mac(), MARK, MARK_LENGTH)?;
        let mut received = false;
        loop {
            let arrived = self.next_where(PATIENCE, |bytes| serial_of(bytes).is_some())?;
            match arrived.and_then(|arrived| serial_of(&arrived.bytes)) {
                Some(MARK) => return Ok(received),
                Some(_) => received = true,
                None => return Err(FrameExchangeError::Lost(MARK)),
            }
        }
    }

    /// Discards all frames that `from` has sent so far, so that none of them arrives later.
    pub(super) fn catch_up(&mut self, from: &mut Self) -> Result<(), FrameExchangeError> {
        self.receives_before(from).map(drop)
    }

    /// Discards all frames in the receive ring.
    pub(super) fn drain(&mut self) {
        let mut buffer = [0; BUFFER];
        while !matches!(self.vf.receive(&mut self.hal, &mut buffer), Ok(None)) {}
    }
}
