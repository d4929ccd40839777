//! Cost of the work that guests cause, and the account of each function: shares are fair by cost (deficit round robin).
//!
//! A port's thread works for its functions in rounds. Each round credits every function with [`QUANTUM`]. A function
//! works while its account has credit, and each piece of work is charged when it is done. A piece is never cut, so an
//! account may end below zero; the function then waits until later rounds have paid its debt, and the others do not.
//! Credit that a function has not used is not saved for later. When a thread has no work left, debts to it are forgotten: no
//! other function waits for the time.
//!
//! A function has two such accounts. The account of its client's messages is on the port's own thread. The account of
//! its frames is in the plane of the thread that serves its rings, and has [`FRAME_QUANTUM`] in each round.

use core::ops::Add;

/// Cost of work on a port's thread, in the cost of one access to a register (some 0.1 us).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkCost(pub u32);

/// Cost that a function is credited with in each round (some 20 us).
pub const QUANTUM: WorkCost = WorkCost(200);
/// Greatest debt that a function keeps when its client has left, which its next client pays: that of 20 rounds.
pub const DETACHED_DEBT: WorkCost = WorkCost(20 * QUANTUM.0);
/// Cost of frames that a function is credited with in each round: 128 short frames in bursts (some 12 us).
pub const FRAME_QUANTUM: WorkCost = WorkCost(128);
/// Cost by which a large packet may overdraw its function's account, before it pauses between two segments. It is more
/// than the cost of the largest packet that an honest guest sends with an MSS of 1,448 bytes.
pub const FRAME_OVERDRAFT: WorkCost = WorkCost(512);
/// Maximum cost of a function's interrupts in a round: a quarter of [`FRAME_QUANTUM`]. On a loaded port each vector
/// interrupts in each round, and an honest guest with 16 queue pairs would pay for up to 32 interrupts.
pub const INTERRUPT_LIMIT: WorkCost = WorkCost(FRAME_QUANTUM.0 / 4);

impl WorkCost {
    /// Cost of an access to one dword of registers, configuration space or MSI-X table.
    pub const ACCESS: Self = Self(1);
    /// Cost of a client's message, without the accesses in it.
    pub const MESSAGE: Self = Self(9);
    /// Cost of reading the doorbells in a client's mapped register pages, and of publishing the registers there.
    pub const PAGES: Self = Self(4);
    /// Cost of a reset of a VF.
    pub const RESET: Self = Self(20);
    /// Cost of a client's request that is handed to a worker thread, such as a DMA window to map.
    pub const ERRAND: Self = Self(40);
    /// Cost of removing a DMA window, in units.
    const WINDOW: usize = 2;
    /// Cost of a reset by the registers in configuration space, without the reset itself.
    pub const LADDER: Self = Self(80);
    /// Cost of saving a function's PCI configuration for the successor process.
    pub const SAVE: Self = Self(150);
    /// Cost of accepting a connection.
    pub const ACCEPT: Self = Self(100);
    /// Cost of the connection of a function's new client: register pages, reply file, descriptors for the successor process.
    pub const ATTACH: Self = Self(300);
    /// Cost of the end of a client's connection, without the reset, the saved configuration and the interrupts.
    pub const DETACH: Self = Self(350);

    /// Cost of an interrupt to a guest: a write to an eventfd (0.5 to 1 us).
    pub const INTERRUPT: Self = Self(8);
    /// Cost of a descriptor that a card reads from a VF's mailbox, also if the message has to wait there.
    pub const MAIL: Self = Self(15);
    /// Cost of the PF driver's part in a reset of a VF, without its orders to the card.
    pub const SETUP: Self = Self(80);
    /// Returns the cost of a VF's request of `bytes` bytes to the PF driver, with the reply and without the driver's orders
    /// to the card.
    #[must_use]
    pub fn of_request(bytes: usize) -> Self {
        Self::of_units(40 + (bytes >> 5))
    }

    /// Returns the cost of the switch's tables, which the port computes again after a change for a VF, which its workers
    /// copy, and whose addresses it saves for the successor process: some 45 ns an address. `addresses` and `vlans` are the sums
    /// over all VFs.
    #[must_use]
    pub fn of_tables(addresses: usize, vlans: usize) -> Self {
        Self::of_units(32 + (addresses >> 1) + (vlans >> 6))
    }

    /// Returns the cost of comparing addresses with `count` others.
    #[must_use]
    pub fn of_comparisons(count: usize) -> Self {
        Self::of_units(count.div_ceil(128))
    }

    /// Returns the cost of `count` interrupts to a guest in a round, at most [`INTERRUPT_LIMIT`].
    #[must_use]
    pub fn of_interrupts(count: u32) -> Self {
        Self(count.saturating_mul(Self::INTERRUPT.0)).min(INTERRUPT_LIMIT)
    }

    /// Returns the cost of accesses to `bytes` bytes of registers.
    #[must_use]
    pub fn of_accesses(bytes: usize) -> Self {
        Self::of_units(bytes.div_ceil(4))
    }

    /// Returns the cost of receiving or sending `bytes` bytes by a client's socket, beside the messages in them.
    #[must_use]
    pub fn of_transfer(bytes: usize) -> Self {
        Self::of_units(bytes >> 9)
    }

    /// Returns the cost of removing `removed` DMA windows from a table, in which `moved` windows change their place.
    #[must_use]
    pub fn of_windows(removed: usize, moved: usize) -> Self {
        Self::of_units(removed.saturating_mul(Self::WINDOW)) + Self::of_moves(moved)
    }

    /// Returns the number of DMA windows, at least 1, to remove at this credit from a table with `behind` windows behind them. Its
    /// price is at most the credit, or that of moving the windows behind: otherwise the moves would cost more than the
    /// removals.
    #[must_use]
    pub fn windows(self, behind: usize) -> usize {
        let paid = self.0.max(Self::of_moves(behind).0);
        (paid as usize / Self::WINDOW).max(1)
    }

    fn of_moves(windows: usize) -> Self {
        Self::of_units(windows >> 4)
    }

    /// Returns the cost of plain frames in a burst to one receiver. `bytes` is the sum of their lengths.
    #[must_use]
    #[inline]
    pub fn of_burst(frames: usize, bytes: u64) -> Self {
        Self::of_units(frames) + Self(u32::try_from(bytes >> 11).unwrap_or(u32::MAX))
    }

    /// Returns the cost of a frame of `bytes` bytes that is sent outside a burst, such as a segment of a packet.
    #[must_use]
    #[inline]
    pub fn of_frame(bytes: usize) -> Self {
        Self::of_units(2 + (bytes >> 9))
    }

    /// Returns the cost of a frame of `bytes` bytes for each receiver beside the first.
    #[must_use]
    #[inline]
    pub fn of_copies(receivers: u32, bytes: usize) -> Self {
        Self::of_units(receivers as usize * (2 + (bytes >> 10)))
    }

    /// Returns the cost of a packet's descriptors. `count` is the number of frames that they count as in a poll's budget.
    /// Descriptors that are no packet cost as much as frames.
    #[must_use]
    #[inline]
    pub fn of_descriptors(count: usize, are_packet: bool) -> Self {
        if are_packet { Self::of_units(count) } else { Self::of_units(2 * count.max(1)) }
    }

    /// Returns the cost of reading a packet of `bytes` bytes to private memory.
    #[must_use]
    #[inline]
    pub fn of_packet(bytes: usize) -> Self {
        Self::of_units(bytes >> 10)
    }

    /// Returns the cost of copying and summing a segment of `bytes` bytes in private memory.
    #[must_use]
    #[inline]
    pub fn of_segment(bytes: usize) -> Self {
        Self::of_units(bytes >> 9)
    }

    /// Returns the cost of the checksum of an SCTP packet (CRC-32C) in a frame of `bytes` bytes.
    #[must_use]
    #[inline]
    pub fn of_sctp(bytes: usize) -> Self {
        Self::of_units(bytes >> 7)
    }

    /// Returns a cost of `units` units.
    #[must_use]
    #[inline]
    pub fn of_units(units: usize) -> Self {
        Self(u32::try_from(units).unwrap_or(u32::MAX))
    }
}

impl Add for WorkCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Account of a function's work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkAccount {
    credit: i64,
}

impl WorkAccount {
    /// Credits the function with its share of a round.
    pub fn begin_round(&mut self) {
        self.begin_rounds(1, QUANTUM);
    }

    /// Credits the function with `quantum` for each of `rounds` rounds.
    #[inline]
    pub fn begin_rounds(&mut self, rounds: u32, quantum: WorkCost) {
        if rounds > 0 {
            let [rounds, quantum] = [rounds, quantum.0].map(i64::from);
            self.credit = quantum.min(self.credit.saturating_add(rounds.saturating_mul(quantum)));
        }
    }

    /// Subtracts the cost of finished work.
    #[inline]
    pub fn charge(&mut self, cost: WorkCost) {
        self.credit = self.credit.saturating_sub(cost.0.into());
    }

    /// Limits the debt of the account to `debt`.
    pub fn limit_debt(&mut self, debt: WorkCost) {
        self.credit = self.credit.max(-i64::from(debt.0));
    }

    /// Returns true if the function may work: its account has credit.
    #[must_use]
    #[inline]
    pub fn has_credit(&self) -> bool {
        self.credit > 0
    }

    /// Returns the cost that the function may spend before its account is empty.
    #[must_use]
    #[inline]
    pub fn credit(&self) -> WorkCost {
        WorkCost(u32::try_from(self.credit.max(0)).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{DETACHED_DEBT, FRAME_OVERDRAFT, QUANTUM, WorkAccount, WorkCost};

    /// Runs `rounds` rounds of two functions that always have work, in pieces of these costs. Returns the cost that was
    /// spent on each.
    fn spent(rounds: u32, pieces: [u32; 2]) -> [u64; 2] {
        let (mut accounts, mut spent) = ([WorkAccount::default(); 2], [0; 2]);
        for _ in 0..rounds {
            for ((account, spent), piece) in accounts.iter_mut().zip(&mut spent).zip(pieces) {
                account.begin_round();
                while account.has_credit() {
                    account.charge(WorkCost(piece));
                    *spent += u64::from(piece);
                }
            }
        }
        spent
    }

    #[test]
    fn windows_to_remove_cost_the_credit_or_the_moves() {
        let windows = |credit, behind| WorkCost(credit).windows(behind);
        assert_eq!([windows(0, 0), windows(1, 0), windows(200, 0)], [1, 1, 100]);
        for (credit, behind) in [(0, 65_535), (200, 3_200), (200, 32_000), (u32::MAX, 0)] {
            let count = windows(credit, behind);
            let most = WorkCost::of_windows(0, behind).0.max(credit);
            let price = WorkCost::of_windows(count, 0).0;
            assert!(price <= most && most - price < 2, "{count}");
        }
    }

    #[test]
    fn shares_are_equal_whatever_a_piece_of_work_costs() {
        for pieces in [[1, 1], [1, 150], [7, 10_000], [199, 201]] {
            let [one, other] = spent(1_000, pieces);
            let longest = u64::from(*pieces.iter().max().unwrap());
            assert!(one.abs_diff(other) <= longest + u64::from(QUANTUM.0), "{pieces:?}: {one}, {other}");
        }
    }

    #[test]
    fn unused_credit_is_not_saved() {
        let mut account = WorkAccount::default();
        (0..1_000).for_each(|_| account.begin_round());
        account.charge(QUANTUM);
        assert!(!account.has_credit());
    }

    #[test]
    fn debt_is_paid_by_later_rounds() {
        let mut account = WorkAccount::default();
        account.begin_round();
        account.charge(WorkCost(QUANTUM.0 * 4));
        let missed = (0..10).take_while(|_| {
            account.begin_round();
            !account.has_credit()
        });
        assert_eq!(missed.count(), 3);
        account.charge(WorkCost(u32::MAX));
        account.begin_round();
        assert!(!account.has_credit());
    }

    #[test]
    fn limited_debt_is_paid_soon_and_credit_stays() {
        let mut account = WorkAccount::default();
        account.begin_round();
        account.limit_debt(WorkCost(0));
        assert_eq!(account.credit(), QUANTUM);
        account.charge(WorkCost(u32::MAX));
        account.limit_debt(DETACHED_DEBT);
        (0..20).for_each(|_| account.begin_round());
        assert!(!account.has_credit());
        account.begin_round();
        assert!(account.has_credit());
        account.charge(WorkCost(u32::MAX));
        account.limit_debt(WorkCost(0));
        account.begin_round();
        assert_eq!(account.credit(), QUANTUM);
    }

    #[test]
    fn rounds_that_a_function_has_missed_are_credited_together() {
        let mut account = WorkAccount::default();
        account.begin_rounds(0, WorkCost(10));
        assert_eq!(account.credit(), WorkCost(0));
        account.begin_rounds(3, WorkCost(10));
        assert_eq!(account.credit(), WorkCost(10));
        account.charge(WorkCost(35));
        account.begin_rounds(2, WorkCost(10));
        assert_eq!((account.credit(), account.has_credit()), (WorkCost(0), false));
        account.begin_rounds(1, WorkCost(10));
        assert_eq!(account.credit(), WorkCost(5));
        account.charge(WorkCost(u32::MAX));
        account.begin_rounds(u32::MAX, WorkCost(u32::MAX));
        assert_eq!(account.credit(), WorkCost(u32::MAX));
    }

    #[test]
    fn frames_cost_by_bytes_copies_and_checksums() {
        let frames = [(1, 60), (32, 32 * 60), (32, 32 * 1514), (1, 9724)];
        let of_burst = |(frames, bytes)| WorkCost::of_burst(frames, bytes).0;
        assert_eq!(frames.map(of_burst), [1, 32, 55, 5]);
        let lengths = [60, 182, 1021, 1514, 9724];
        assert_eq!(lengths.map(|bytes| WorkCost::of_frame(bytes).0), [2, 2, 3, 4, 20]);
        assert_eq!(lengths.map(|bytes| WorkCost::of_copies(7, bytes).0), [14, 14, 14, 21, 77]);
        assert_eq!(lengths.map(|bytes| WorkCost::of_sctp(bytes).0), [0, 1, 7, 11, 75]);
        // 64 KB with an MSS of 1,448, read and segmented in private memory.
        let segments: u32 = (0..45).map(|_| WorkCost::of_frame(1514).0 + WorkCost::of_segment(1514).0).sum();
        let packet = segments + WorkCost::of_packet(65_000).0;
        assert!(packet < FRAME_OVERDRAFT.0, "{packet}");
    }

    #[test]
    fn tables_cost_by_addresses_and_vlans() {
        // 64 VFs with a default address each, with full quotas, and trusted with every VLAN.
        let sizes = [(64, 64), (64 * 18, 64 * 17), (64 * 128, 64 * 4096)];
        assert_eq!(sizes.map(|(addresses, vlans)| WorkCost::of_tables(addresses, vlans).0), [65, 625, 8_224]);
    }

    #[test]
    fn interrupts_cost_at_most_a_quarter_of_a_round() {
        // A queue pair of AVF, the vectors of an 82576, and all vectors of AVF and virtio.
        let counts = [0, 1, 3, 17, 32, u32::MAX];
        assert_eq!(counts.map(WorkCost::of_interrupts), [0, 8, 24, 32, 32, 32].map(WorkCost));
    }

    #[test]
    fn costs_saturate() {
        assert_eq!(WorkCost(u32::MAX) + WorkCost(1), WorkCost(u32::MAX));
        assert_eq!([0, 1, 4, 5].map(WorkCost::of_accesses), [0, 1, 1, 2].map(WorkCost));
        assert_eq!([0, 4 * 128, usize::MAX].map(WorkCost::of_comparisons), [0, 4, u32::MAX].map(WorkCost));
        assert_eq!([0, 31, 4096].map(WorkCost::of_request), [40, 40, 168].map(WorkCost));
    }
}
