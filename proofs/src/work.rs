//! Bounds of the accounts by which functions share a port's thread (`units::work`), and of times (`units::time`).

use core::time::Duration;

use crate::bound;
use units::{Time, WorkAccount, WorkCost};

/// Returns an account whose credit is `credit` less `charge`.
fn account(credit: u32, charge: u32) -> WorkAccount {
    let mut account = WorkAccount::default();
    account.begin_rounds(1, WorkCost(credit));
    account.charge(WorkCost(charge));
    account
}

bound! {
    /// A charge is subtracted from the credit, and the rest is never more than the credit.
    fn work_charge(credit: u32, charge: u32) if true; {
        let account = account(credit, charge);
        let rest = account.credit().0 == credit.saturating_sub(charge);
        [rest && account.has_credit() == (credit > charge), rest && account.has_credit() == (credit >= charge)]
    }
}

bound! {
    /// After a round, an account has at most the round's quantum: unused credit is not saved.
    fn work_round_credit(credit: u32, charge: u32, quantum: u32) if true; {
        let mut account = account(credit, charge);
        account.begin_rounds(1, WorkCost(quantum));
        [account.credit().0 <= quantum, account.credit().0 < quantum]
    }
}

bound! {
    /// A round pays a debt by the quantum: a function whose debt is below the quantum may work.
    fn work_round_pays(charge: u32, quantum: u32) if true; {
        let mut account = account(0, charge);
        account.begin_rounds(1, WorkCost(quantum));
        [account.has_credit() == (charge < quantum), account.has_credit() == (charge <= quantum)]
    }
}

bound! {
    /// Missed rounds, at most 255, pay exactly their quanta.
    fn work_missed_rounds(charge: u32, rounds: u8, quantum: u16) if rounds > 0; {
        let mut account = account(0, charge);
        account.begin_rounds(rounds.into(), WorkCost(quantum.into()));
        let paid = i64::from(rounds) * i64::from(quantum) - i64::from(charge);
        let credit = i64::from(account.credit().0);
        [credit == paid.min(quantum.into()).max(0), credit == paid.max(0)]
    }
}

bound! {
    /// A limited debt is at most the limit: a round whose quantum is larger gives credit.
    fn work_limited_debt(credit: u32, charge: u32, limit: u32, quantum: u32) if quantum > limit; {
        let mut account = account(credit, charge);
        account.limit_debt(WorkCost(limit));
        let before = account.credit().0 == credit.saturating_sub(charge);
        account.begin_rounds(1, WorkCost(quantum));
        [before && account.has_credit(), before && account.credit().0 > 1]
    }
}

bound! {
    /// Costs of a frame, its copies to 255 receivers and its checksums do not overflow up to 64 MiB, and a frame costs
    /// something.
    fn work_frame_costs(bytes: u32, receivers: u8) if bytes <= 1 << 26; {
        let bytes = bytes as usize;
        let copies = WorkCost::of_copies(receivers.into(), bytes).0;
        let frame = WorkCost::of_frame(bytes).0;
        let parts = WorkCost::of_sctp(bytes).0 + WorkCost::of_packet(bytes).0 + WorkCost::of_segment(bytes).0;
        let twin = copies > 0;
        [frame >= 2 && copies >= 2 * u32::from(receivers) && parts <= 1 << 20, twin]
    }
}

bound! {
    /// Costs of requests, tables, comparisons, accesses, transfers and windows saturate for any number.
    fn work_costs_saturate(one: u64, two: u64) if true; {
        let (one, two) = (one as usize, two as usize);
        let costs = [
            WorkCost::of_request(one),
            WorkCost::of_tables(one, two),
            WorkCost::of_comparisons(one),
            WorkCost::of_accesses(one),
            WorkCost::of_transfer(one),
            WorkCost::of_windows(one, two),
        ];
        let sum = costs.into_iter().fold(WorkCost(0), |sum, cost| sum + cost);
        [sum >= costs[0] && sum >= costs[5] && costs[0].0 >= 40, sum.0 < u32::MAX]
    }
}

bound! {
    /// The time since an earlier time is the time that was added, in nanoseconds below four seconds.
    fn time_since_added(start: u64, nanoseconds: u32) if start <= u64::MAX - u64::from(nanoseconds); {
        let start = Time::from_nanos(start);
        let later = start + Duration::from_nanos(nanoseconds.into());
        let passed = later.as_nanos() - start.as_nanos();
        [passed == u64::from(nanoseconds), passed > 0]
    }
}

bound! {
    /// A time plus a duration saturates at the last time, and is never earlier.
    fn time_saturates(start: u64, seconds: u32) if true; {
        let later = (Time::from_nanos(start) + Duration::from_secs(seconds.into())).as_nanos();
        [later >= start, later > start]
    }
}
