//! Decides if the entries that a device returns pass the position at which the driver wants an interrupt.

/// Number of entries returned since the device last decided if the driver needs an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsignalledEntries {
    /// True until the device's first decision, which is always to interrupt, because the driver's earlier interrupts
    /// are unknown.
    fresh: bool,
    count: u32,
}

impl Default for UnsignalledEntries {
    fn default() -> Self {
        Self { fresh: true, count: 0 }
    }
}

impl UnsignalledEntries {
    /// Counts entries that the device has returned.
    #[inline]
    pub(crate) fn add(&mut self, entries: u32) {
        self.count = self.count.saturating_add(entries);
    }

    /// Returns true if entries were returned since the last decision about an interrupt.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count > 0
    }

    /// Returns true if the returned entries pass `event`, and restarts the count. `position` is the entry after the
    /// last one, and an event recurs after `period` entries.
    #[inline]
    pub(crate) fn pass(&mut self, event: u16, position: u16, period: u32) -> bool {
        let Self { fresh, count } = core::mem::replace(self, Self { fresh: false, count: 0 });
        fresh || count >= period || passes(event, position, count as u16)
    }

    /// Resets the number of returned entries, without a decision about an interrupt.
    #[inline]
    pub(crate) fn forget(&mut self) {
        *self = Self { fresh: false, count: 0 };
    }
}

/// Returns true if the entry `event` is among the `moved` entries before `position`, counted modulo 2^16 (section 2.7.7).
#[inline]
pub(crate) fn passes(event: u16, position: u16, moved: u16) -> bool {
    position.wrapping_sub(event).wrapping_sub(1) < moved
}

#[cfg(test)]
mod tests {
    use super::{UnsignalledEntries, passes};

    #[test]
    fn notification_is_due_when_its_event_index_is_passed() {
        for base in [0_u16, 100, u16::MAX - 2] {
            let at = |offset: u16| base.wrapping_add(offset);
            // Entries base, base + 1 and base + 2 were returned.
            let passed = (0..6).map(|event| passes(at(event), at(3), 3)).collect::<std::vec::Vec<_>>();
            assert_eq!(passed, [true, true, true, false, false, false]);
            assert!(!passes(base.wrapping_sub(1), at(3), 3));
        }
    }

    #[test]
    fn notification_is_due_at_first_and_after_65536_entries() {
        let mut entries = UnsignalledEntries::default();
        entries.add(1);
        assert!(entries.pass(500, 1, 1 << 16));
        entries.add(1);
        assert!(!entries.pass(500, 2, 1 << 16));
        // The event was passed, although the position has moved by nothing modulo 2^16.
        entries.add(1 << 16);
        assert!(entries.pass(500, 2, 1 << 16));
        entries.add(u32::MAX);
        entries.add(1);
        assert!(entries.pass(500, 3, 1 << 16));
    }

    #[test]
    fn passed_events_are_the_entries_that_moved() {
        let moves = [0, 1, 2, 255, 256, 32_767, 32_768, 65_534, 65_535_u16];
        for (event, moved) in (0..=u16::MAX).flat_map(|event| moves.map(|moved| (event, moved))) {
            for position in [0, 1, 2, 255, 32_767, 32_768, 65_534, 65_535] {
                // Distance from the event to the position: the entry before the position is 1 behind.
                let behind = (i32::from(position) - i32::from(event)).rem_euclid(1 << 16);
                let behind = if behind == 0 { 1 << 16 } else { behind };
                assert_eq!(
                    passes(event, position, moved),
                    behind <= moved.into(),
                    "{event} {position} {moved}"
                );
            }
        }
    }
}
