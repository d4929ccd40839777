//! This version of `softiov` beside another one, for each family: two stock guests on one port exchange TCP streams with
//! the network beyond the uplink, and with each other. `SOFTIOV_OTHER` is the path of the other version's `softiov`.

use super::contender::MeasuredGuest;
use super::{measure, rows, table, take_turns};
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::Result;
use std::path::PathBuf;

/// Card families to measure, with the numbers of the taps and addresses of both versions of `softiov`.
const FAMILIES: [(&str, [u8; 2]); 2] = [("avf", [16, 17]), ("82576", [18, 19])];

/// Measures stock guests on this version of `softiov` and on the version at the path `SOFTIOV_OTHER`.
pub(crate) fn of_softiov_take_turns(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let Some(other) = std::env::var_os("SOFTIOV_OTHER").map(PathBuf::from) else {
        return Ok(LinuxCheckOutcome::Skipped(
            "SOFTIOV_OTHER does not name another version of softiov".into(),
        ));
    };
    measure(world, |wire| {
        for (family, numbers) in FAMILIES {
            let programs =
                [("other version", other.clone()), ("this version", env!("CARGO_BIN_EXE_softiov").into())];
            let start = |((name, program), number)| {
                MeasuredGuest::of_program(name, program, (family, number), "", world.assets(), wire)
            };
            let contenders = programs.into_iter().zip(numbers).map(start).collect::<Result<Vec<_>>>()?;
            let named = take_turns(&contenders, wire)?;
            table::print(&format!("versions of softiov, {family}"), contenders[0].accel(), &rows(&named));
            contenders.into_iter().try_for_each(MeasuredGuest::end)?;
        }
        Ok(())
    })
}
