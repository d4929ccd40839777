//! A hostile guest that drives the PF of a port of its own (`pf = "guest"`), an 82576 without VFs.
//!
//! The input is a list of moves, each a byte with the kind and then its parameters: registers by memory and by I/O space,
//! configuration space, memory, descriptors, frames from the wire, the carrier, resets, time. Checked: no panic, bounded memory
//! requests, all of them the PF's, and interrupts of the PF only.
#![cfg_attr(not(test), no_main)]

use common::{BASE, CardFixture, PORT, mac, plain, tcp};
use i82576::table;
use nic::{Nic, NicConfig};
use pcie::Function::Pf;
use pcie::config::offset;
use softiov_fuzz::{FuzzerInput, transmit_descriptor};

#[path = "../../crates/nic/tests/card/common/mod.rs"]
mod common;

softiov_fuzz::target!(run);

/// Offset of the packets to send in the PF's memory.
const PACKETS: u64 = BASE + 0x6_0000;

/// Returns an element of a register of the PF, or any other offset.
fn register(row: u8, element: u8) -> u32 {
    let registers: Vec<_> = table::rows().collect();
    match registers.get(usize::from(row)) {
        Some(register) => register.offset + u32::from(element) % register.count * register.stride,
        None => u32::from(row & 0x1f) << 12 | u32::from(element) << 2,
    }
}

/// Returns a register's value of a kind that means something.
fn value(kind: u8, bytes: [u8; 4]) -> u32 {
    let number = u32::from_le_bytes(bytes);
    match kind % 4 {
        0 => number,
        1 => 1 << (number % 32),
        2 => BASE as u32 + (number & 0xffff) * 16,
        _ => (number & 0xff) * 128,
    }
}

/// Sets the port and the PF's rings up.
fn start(bench: &mut CardFixture) {
    bench.config(Pf, offset::COMMAND, (offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER).into());
    bench.set_up_port(0);
    bench.pf().start();
}

/// Selects a register by the I/O BAR and reads it, or writes it. Some accesses are at other places or of other sizes.
fn access_io(bench: &mut CardFixture, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [row, element, shape, kind, a, b, c, d] = input.array()?;
    let (address, data) = match shape & 7 {
        0 => (u64::from(shape >> 3), u64::from(shape >> 5)),
        _ => (0, 4),
    };
    bench.nic.io_write(address, &register(row, element).to_le_bytes(), bench.now);
    bench.nic.io_read(address, &mut [0; 4], bench.now);
    let length = if shape & 7 == 1 { usize::from(shape >> 5) } else { 4 };
    if shape & 8 == 0 {
        bench.nic.io_write(data, &value(kind, [a, b, c, d]).to_le_bytes()[..length.min(4)], bench.now);
    }
    bench.nic.io_read(data, &mut [0; 8][..length], bench.now);
    Some(())
}

/// Makes the guest's next move. Returns `None` at the end of the fuzzer's input.
fn make_move(bench: &mut CardFixture, input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind] = input.array()?;
    match kind % 12 {
        0..3 => {
            let [row, element, kind, a, b, c, d] = input.array()?;
            bench.pf().write(register(row, element), value(kind, [a, b, c, d]));
        }
        3 => {
            let [row, element, length] = input.array()?;
            let at = u64::from(register(row, element)) + u64::from(length >> 6);
            bench.nic.write_bytes(Pf, at, input.bytes(usize::from(length & 15)), bench.now);
            bench.nic.read_bytes(Pf, at, &mut [0; 12][..usize::from(length & 7)], bench.now);
        }
        4 => {
            let [low, high, length] = input.array()?;
            let at = u64::from(u16::from_le_bytes([low, high]) & 0xfff);
            let bytes = input.bytes(usize::from(length & 7));
            let _ = bench.nic.config_write_bytes(Pf, at, bytes);
        }
        5 => {
            let [low, high, length] = input.array()?;
            let at = BASE + (u64::from(u16::from_le_bytes([low, high])) << 4);
            bench.pf().poke(at, input.bytes(usize::from(length & 63)));
        }
        6 => {
            let [count] = input.array()?;
            for _ in 0..=count % 12 {
                let raw = transmit_descriptor(input, PACKETS)?;
                bench.pf().put(raw);
            }
            bench.pf().ring();
        }
        7 if kind & 0x80 == 0 => bench.pf().post(u32::from(kind >> 4)),
        7 => start(bench),
        8 => {
            let [to, length, shape] = input.array()?;
            let to = if to & 1 == 0 { PORT } else { mac(to) };
            let frame = match shape % 3 {
                0 => plain(to, mac(9), usize::from(length) * 40),
                1 => tcp(to, mac(9), &vec![length; usize::from(length) * 8]),
                _ => input.bytes(length.into()).to_vec(),
            };
            bench.world.wire.incoming.push_back(frame);
        }
        9 => {
            let [short] = input.array()?;
            bench.wait_us(u64::from(short) * 400);
        }
        10 => {
            // A packet for the descriptors that follow.
            let [slot, length] = input.array()?;
            let packet = tcp(mac(1), PORT, &vec![slot; usize::from(length) * 60]);
            bench.pf().poke(PACKETS + (u64::from(slot) << 8), &packet);
        }
        _ => make_rare_move(bench, kind / 12, input)?,
    }
    Some(())
}

/// Makes a move that the guest makes seldom, or polls the card. Returns `None` at the end of the fuzzer's input.
fn make_rare_move(bench: &mut CardFixture, kind: u8, input: &mut FuzzerInput<'_>) -> Option<()> {
    match kind % 8 {
        0 => bench.nic.set_link(false),
        1 => bench.nic.set_link(true),
        2..=4 => access_io(bench, input)?,
        // A reset by its VMM, and firmware that sets the port up again.
        5 => {
            bench.nic.conventional_reset();
            start(bench);
        }
        _ => drop(bench.poll_once()),
    }
    Some(())
}

/// Checks the card's memory requests and interrupts since the last call.
fn check_requests(bench: &mut CardFixture) {
    let log = std::mem::take(&mut bench.world.bus.log);
    assert!(log.len() < 100_000, "{} memory requests", log.len());
    assert!(log.iter().all(|request| request.function == Pf));
    assert!(bench.msix().iter().all(|(function, _)| *function == Pf));
    assert!(std::mem::take(&mut bench.world.bus.msi).iter().all(|function| *function == Pf));
}

fn run(data: &[u8]) {
    let mut bench = CardFixture::bare();
    bench.nic = Nic::new(NicConfig { mac: PORT, iov: false, loopback: None });
    bench.nic.set_link(true);
    start(&mut bench);
    let mut input = FuzzerInput(data);
    while make_move(&mut bench, &mut input).is_some() {
        check_requests(&mut bench);
    }
    bench.wait_us(100_000);
    bench.poll();
    check_requests(&mut bench);
    for at in table::rows().flat_map(|row| row.offsets()) {
        let _ = bench.pf().read(at);
    }
}
