//! Frames that tell of themselves: a type of their own, a serial, and bytes that follow from it. Others that are on
//! the wire are left aside.
//!
//! Left out: IP.

use super::{Station, Subject};
use driver::vf::{Received, RxError, TxError, TxOffload};
use host::poll::Clock;
use i82576::MacAddress;
use std::time::Duration;

/// IEEE 802 local experimental EtherType 1.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const HEADER: usize = 14;
/// Bytes of the serial.
const SERIAL: usize = 4;
/// Room for the longest frame.
const BUFFER: usize = 9728;
/// The serial of frames that only show that what was sent before has arrived by now.
const MARK: u32 = u32::MAX;
const MARK_LENGTH: usize = 60;
/// How long a frame may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How long nothing must come, where no other frame can come either.
const SILENCE: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_micros(50);

/// Why an exchange did not go as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Amiss {
    #[error("a frame of {length} bytes was not taken: {error}")]
    NotSent { length: usize, error: TxError },
    #[error("frame {0} did not arrive")]
    Lost(u32),
    #[error("frame {wanted} was to come, and frame {found} came")]
    Order { wanted: u32, found: u32 },
    #[error("frame {0} arrived with other bytes")]
    Changed(u32),
    #[error("frame {0} arrived where it should not")]
    Stray(u32),
    #[error("a frame was there and could not be had: {0}")]
    Receive(RxError),
}

/// A frame of `length` bytes, at least a header and a serial.
pub(super) fn frame(to: MacAddress, from: MacAddress, serial: u32, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    frame.extend(to.0);
    frame.extend(from.0);
    frame.extend(ETHERTYPE);
    frame.extend(serial.to_be_bytes());
    frame.extend((0..length - HEADER - SERIAL).map(|i| byte(serial, i)));
    frame
}

/// Each byte depends on the frame and the place.
fn byte(serial: u32, place: usize) -> u8 {
    (serial.wrapping_mul(31).wrapping_add(place as u32 * 7) >> 3) as u8
}

/// The serial of one of our frames.
fn serial_of(frame: &[u8]) -> Option<u32> {
    let serial = frame.get(HEADER..HEADER + SERIAL)?;
    (frame[12..HEADER] == ETHERTYPE).then(|| u32::from_be_bytes([serial[0], serial[1], serial[2], serial[3]]))
}

/// A frame that arrived.
pub(super) struct Arrived {
    pub(super) received: Received,
    pub(super) bytes: Vec<u8>,
}

impl<B: Subject> Station<B> {
    /// Sends one of our frames, and rings for it; answers what was sent.
    pub(super) fn send(&mut self, to: MacAddress, serial: u32, length: usize) -> Result<Vec<u8>, Amiss> {
        let frame = frame(to, self.vf.mac(), serial, length);
        self.send_bytes(&frame, &TxOffload::default())?;
        Ok(frame)
    }

    /// Sends any bytes, and rings for them.
    pub(super) fn send_bytes(&mut self, frame: &[u8], offload: &TxOffload) -> Result<(), Amiss> {
        let not_sent = |error| Amiss::NotSent { length: frame.len(), error };
        self.vf.transmit(&mut self.hal, frame, offload).map_err(not_sent)?;
        self.vf.flush(&mut self.hal);
        Ok(())
    }

    /// The next frame that is wanted, if one comes in time.
    pub(super) fn next_where(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Arrived>, Amiss> {
        let end = Clock.now_ns() + patience.as_nanos() as u64;
        let mut buffer = vec![0; BUFFER];
        loop {
            match self.vf.receive(&mut self.hal, &mut buffer) {
                Ok(Some(received)) if wanted(&buffer[..received.length]) => {
                    buffer.truncate(received.length);
                    return Ok(Some(Arrived { received, bytes: buffer }));
                }
                Ok(Some(_)) => {}
                Ok(None) if Clock.now_ns() >= end => return Ok(None),
                Ok(None) => std::thread::sleep(LOOK),
                Err(error) => return Err(Amiss::Receive(error)),
            }
        }
    }

    /// That one of our frames arrives next, unchanged.
    pub(super) fn expect(&mut self, sent: &[u8]) -> Result<Received, Amiss> {
        let wanted = serial_of(sent).unwrap_or_default();
        let ours = |bytes: &[u8]| serial_of(bytes).is_some();
        let arrived = self.next_where(PATIENCE, ours)?.ok_or(Amiss::Lost(wanted))?;
        match serial_of(&arrived.bytes) {
            Some(found) if found != wanted => Err(Amiss::Order { wanted, found }),
            _ if arrived.bytes != sent => Err(Amiss::Changed(wanted)),
            _ => Ok(arrived.received),
        }
    }

    /// None of our frames arrives, as long as patience lasts.
    pub(super) fn expect_nothing(&mut self) -> Result<(), Amiss> {
        let arrived = self.next_where(SILENCE, |bytes| serial_of(bytes).is_some())?;
        arrived
            .and_then(|arrived| serial_of(&arrived.bytes))
            .map_or(Ok(()), |serial| Err(Amiss::Stray(serial)))
    }

    /// Whether another of our frames arrives before one that `from` sends now, which must arrive: frames keep their
    /// order, so there is no need to guess how long to wait.
    pub(super) fn hears_before(&mut self, from: &mut Self) -> Result<bool, Amiss> {
        from.send(self.vf.mac(), MARK, MARK_LENGTH)?;
        let mut heard = false;
        loop {
            let arrived = self.next_where(PATIENCE, |bytes| serial_of(bytes).is_some())?;
            match arrived.and_then(|arrived| serial_of(&arrived.bytes)) {
                Some(MARK) => return Ok(heard),
                Some(_) => heard = true,
                None => return Err(Amiss::Lost(MARK)),
            }
        }
    }

    /// Takes everything that `from` has sent so far, so that nothing of it comes later.
    pub(super) fn catch_up(&mut self, from: &mut Self) -> Result<(), Amiss> {
        self.hears_before(from).map(drop)
    }

    /// Takes what is there, whatever it is.
    pub(super) fn drain(&mut self) {
        let mut buffer = [0; BUFFER];
        while !matches!(self.vf.receive(&mut self.hal, &mut buffer), Ok(None)) {}
    }
}
