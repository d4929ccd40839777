//! Every VF of a port in a guest of its own, all at once. Left out: what each of them can do.

use super::{End, linked};
use crate::guest::{BOOT, COMMAND, Guest};
use crate::report::Outcome;
use crate::world::World;
use anyhow::{Context, Result};
use linux_guest::LinuxGuest;

/// The VFs of Alice's port beside hers.
const FLEET: [&str; 7] = ["pf3vf1", "pf3vf2", "pf3vf3", "pf3vf4", "pf3vf5", "pf3vf6", "pf3vf7"];
/// What the smallest guest takes.
const MEMORY_MIB: u32 = 160;
/// The last byte of the first one's address.
const FIRST: u8 = 11;

/// Seven guests boot at the same time on the port that Alice has a VF of, and everybody gets answers of everybody, of Bob
/// beyond the wire too.
pub(crate) fn eight_guests_exchange_frames(world: &mut World) -> Result<Outcome> {
    let [alice, bob] = &linked(world)?;
    let spawn = |(n, vf): (usize, &'static str)| {
        let builder = LinuxGuest::builder(format!("guest {n}")).memory_mib(MEMORY_MIB);
        Guest::spawn(builder.vf_socket(world.socket(vf)), world.assets(), vf, FIRST + n as u8)
    };
    let guests = FLEET.into_iter().enumerate().map(spawn).collect::<Result<Vec<_>>>()?;
    guests.iter().try_for_each(|guest| guest.linux.wait_ready(BOOT))?;
    let ends =
        guests.iter().zip(FLEET).zip(FIRST..).map(|((guest, vf), number)| End::set_up(guest, vf, number));
    let ends = ends.collect::<Result<Vec<_>>>()?;
    let everybody: Vec<&End<'_>> = ends.iter().chain([alice, bob]).collect();
    let addresses: Vec<String> = everybody.iter().map(|end| end.address()).collect();
    // What is not answered at once is asked again: all of them ask at the same time, on as few processors as there are.
    let script = format!(
        "for address in {}; do n=0; until ping -q -c 2 -W 2 $address > /dev/null; do
         n=$((n + 1)); [ $n -lt 20 ] || {{ echo $address; exit 1; }}; done; done",
        addresses.join(" ")
    );
    let asking = everybody.iter().map(|end| end.guest.linux.spawn_background(&script));
    let asking = asking.collect::<Result<Vec<_>, _>>()?;
    for (end, asking) in everybody.iter().zip(&asking) {
        let output = end.guest.linux.wait(asking, COMMAND)?;
        let silent = (!output.success())
            .then(|| format!("{} does not answer {}", output.stdout.trim(), end.guest.name()));
        silent.map_or(Ok(()), |silent| Err(anyhow::anyhow!(silent)))?;
    }
    drop(asking);
    drop(ends);
    guests.into_iter().try_for_each(|guest| guest.linux.shutdown(COMMAND)).context("turning them off")?;
    Ok(Outcome::Passed)
}
