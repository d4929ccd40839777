//! Byte ring that carries frames from one thread to another, each frame after its length. The ring has one writer and
//! one reader, and wakes neither thread.

use rtrb::{Consumer, Producer};

/// Bytes of the length field before a frame in the ring.
pub(crate) const LENGTH: usize = 4;

/// Writes a frame, given in parts, to a ring. Returns false, and writes nothing, if there is no room.
pub(crate) fn put<const N: usize>(sender: &mut Producer<u8>, parts: [&[u8]; N]) -> bool {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let Ok(mut chunk) = sender.write_chunk(LENGTH + length) else { return false };
    let (mut place, mut behind) = chunk.as_mut_slices();
    for mut bytes in std::iter::once(&(length as u32).to_ne_bytes()[..]).chain(parts) {
        while !bytes.is_empty() {
            if place.is_empty() {
                std::mem::swap(&mut place, &mut behind);
            }
            let fits = place.len().min(bytes.len());
            let (head, rest) = std::mem::take(&mut place).split_at_mut(fits);
            head.copy_from_slice(&bytes[..fits]);
            (place, bytes) = (rest, &bytes[fits..]);
        }
    }
    chunk.commit_all();
    true
}

/// Reads the next frame of a ring and returns its length. The part of the frame that exceeds `into` is dropped.
pub(crate) fn take(receiver: &mut Consumer<u8>, into: &mut [u8]) -> Option<usize> {
    let mut length = [0; LENGTH];
    copy(receiver.read_chunk(LENGTH).ok()?.as_slices(), &mut length);
    let length = u32::from_ne_bytes(length) as usize;
    let chunk = receiver.read_chunk(LENGTH + length).ok()?;
    let (first, second) = chunk.as_slices();
    let frame = match first.split_at_checked(LENGTH) {
        Some((_, frame)) => (frame, second),
        None => (&second[LENGTH - first.len()..], &[][..]),
    };
    let fits = length.min(into.len());
    copy(frame, &mut into[..fits]);
    chunk.commit_all();
    Some(fits)
}

/// Fills `into` with bytes from the two readable slices of a byte ring.
fn copy((first, second): (&[u8], &[u8]), into: &mut [u8]) {
    let (head, rest) = into.split_at_mut(first.len().min(into.len()));
    head.copy_from_slice(&first[..head.len()]);
    rest.copy_from_slice(&second[..rest.len()]);
}
