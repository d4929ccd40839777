//! Decodes `DEVICE_SET_IRQS`, and turns flags, ranges and descriptors into calls of the device.

use alloc::vec::Vec;
use core::ops::Range;

use zerocopy::FromBytes;

use super::device::{IrqChange, RequestCompletionTiming, ServedDevice};
use crate::types::IrqInfo;
use crate::wire::{Errno, IrqSetBody, irq_flags, irq_set};

const DATA: u32 = irq_set::DATA_NONE | irq_set::DATA_BOOL | irq_set::DATA_EVENTFD;
const ACTION: u32 = irq_set::ACTION_MASK | irq_set::ACTION_UNMASK | irq_set::ACTION_TRIGGER;

pub(super) fn set<F, D: ServedDevice<F>>(
    body: &[u8],
    fds: Vec<F>,
    device: &mut D,
) -> Result<RequestCompletionTiming, Errno> {
    let (set, bools) = IrqSetBody::read_from_prefix(body).map_err(|_| Errno::EINVAL)?;
    let (index, flags, start, count) = (set.index.get(), set.flags.get(), set.start.get(), set.count.get());
    let info = device.irq(index).ok_or(Errno::EINVAL)?;
    let (data, action) = (flags & DATA, flags & ACTION);
    if flags & !(DATA | ACTION) != 0 || !data.is_power_of_two() || !action.is_power_of_two() {
        return Err(Errno::EINVAL);
    }
    // Also for a type without vectors: clients disable types that they never enabled.
    if flags == irq_set::DATA_NONE | irq_set::ACTION_TRIGGER && start == 0 && count == 0 {
        return device.set_irqs(IrqChange::Disable { index });
    }
    let vectors = vectors(start, count, info)?;
    if action != irq_set::ACTION_TRIGGER && info.flags & irq_flags::MASKABLE == 0 {
        return Err(Errno::ENOTSUP);
    }
    match data {
        irq_set::DATA_EVENTFD => set_eventfds(index, action, vectors, fds, device),
        irq_set::DATA_BOOL => {
            let bools = bools.get(..vectors.len()).ok_or(Errno::EINVAL)?;
            act(
                index,
                action,
                vectors.zip(bools).filter(|(_, wanted)| **wanted != 0).map(|pair| pair.0),
                device,
            )
        }
        _ => act(index, action, vectors, device),
    }
}

/// Returns the range of `count` interrupt vectors from `start`. Returns an error if the range is empty or not
/// within the interrupt type's vectors.
fn vectors(start: u32, count: u32, info: IrqInfo) -> Result<Range<u32>, Errno> {
    let end = start.checked_add(count).ok_or(Errno::EINVAL)?;
    if count == 0 || end > info.count {
        return Err(Errno::EINVAL);
    }
    Ok(start..end)
}

/// Assigns one eventfd to each interrupt vector, or removes all eventfds: QEMU enables vectors before it has
/// eventfds for them.
fn set_eventfds<F, D: ServedDevice<F>>(
    index: u32,
    action: u32,
    vectors: Range<u32>,
    fds: Vec<F>,
    device: &mut D,
) -> Result<RequestCompletionTiming, Errno> {
    if action != irq_set::ACTION_TRIGGER {
        return Err(Errno::ENOTSUP);
    }
    if fds.is_empty() {
        return device.set_irqs(IrqChange::Deassign { index, vectors });
    }
    if fds.len() != vectors.len() {
        return Err(Errno::EINVAL);
    }
    device.set_irqs(IrqChange::Assign { index, start: vectors.start, fds })
}

fn act<F, D: ServedDevice<F>>(
    index: u32,
    action: u32,
    mut vectors: impl Iterator<Item = u32>,
    device: &mut D,
) -> Result<RequestCompletionTiming, Errno> {
    vectors.try_fold(RequestCompletionTiming::Now, |so_far, vector| {
        let completion = device.set_irqs(match action {
            irq_set::ACTION_MASK => IrqChange::Mask { index, vector },
            irq_set::ACTION_UNMASK => IrqChange::Unmask { index, vector },
            _ => IrqChange::Trigger { index, vector },
        })?;
        Ok(if completion == RequestCompletionTiming::Later { completion } else { so_far })
    })
}
