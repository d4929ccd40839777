//! A hostile guest with a VF of an 82576 beside two neighbours, on a port that a PF has set up.
//!
//! The first byte of the input selects a rate limit and mapped doorbells. The rest is a list of moves, each a byte with the
//! kind and then its parameters: registers, memory, descriptors, frames from the wire, resets, time, and frames of the
//! neighbours. Checked: no panic, bounded memory requests, none in a neighbour's name outside of its rings and buffers, memory
//! of the neighbours that only frames change, and neighbours that receive each other's frames and the wire's, none of which is
//! ever in the hostile guest's memory.
#![cfg_attr(not(test), no_main)]

use common::{BASE, CardFixture, MemoryRequest, RX_RING, SIZE, TX_RING, mac, packet, plain, tcp};
use i82576::bits::{ctrl, rttbcnrc};
use i82576::config::EXPRESS;
use i82576::register::{self as r, rx, tx, vf};
use i82576::window;
use pcie::Function::{self, Vf};
use pcie::capability::express;
use pcie::config::offset;
use softiov_fuzz::{FrameMark, FuzzerInput, transmit_descriptor};

#[path = "../../crates/nic/tests/card/common/mod.rs"]
mod common;

softiov_fuzz::target!(run);

/// Bytes of a function's memory that the card may write: its rings and head, and its receive buffers.
const WRITABLE: [std::ops::Range<u64>; 2] = [RX_RING..TX_RING + 0x1000, BASE + 0x1_0000..BASE + 0x5_0000];
/// Bytes in a neighbour's memory that no frame contains, between the receive buffers and the frames to send.
const SECRET: std::ops::Range<u64> = BASE + 0x5_0000..BASE + 0x5_1000;
const SECRET_BYTE: u8 = 0xa5;

/// Offset of the packets to send in the hostile guest's memory.
const PACKETS: u64 = BASE + 0x6_0000;
/// Most polls in which the card has to finish its work before frames of the neighbours must arrive.
const POLLS: usize = 128;
/// Number of a station on the wire.
const STATION: u8 = 9;

/// Asserts that a memory request of the card is allowed: any of VF 0, and those in a neighbour's rings and buffers.
fn check_request(request: &MemoryRequest) {
    let MemoryRequest { function, write, iova, length, fault } = *request;
    // The hostile guest's requests may end beyond the last address.
    let range = iova..iova.saturating_add(length as u64);
    match function {
        Vf(0) => {}
        Vf(1 | 2) => {
            let inside = |part: &std::ops::Range<u64>| part.start <= range.start && range.end <= part.end;
            assert!(!fault && (!write || WRITABLE.iter().any(inside)), "{request:?}");
            assert!(range.end <= SECRET.start || range.start >= SECRET.end, "{request:?}");
        }
        Function::Pf | Vf(_) => panic!("{request:?}"),
    }
}

/// Returns a register of the VF, or any other offset.
fn register(row: u8, element: u8) -> u32 {
    match row {
        0xff => u32::from(element) << 6,
        0xc0.. => [vf::RX_BLOCK, vf::TX_BLOCK][usize::from(row & 1)] + 4 * u32::from(element & 15),
        _ => {
            let row = &window::TABLE[usize::from(row) % window::TABLE.len()];
            row.offset + u32::from(element) % row.count * row.stride
        }
    }
}

/// Returns a register's value of a kind that means something.
fn value(kind: u8, bytes: [u8; 2]) -> u32 {
    let number = u32::from(u16::from_le_bytes(bytes));
    match kind % 6 {
        0 => number,
        1 => number << 16,
        2 => 1 << (number % 32),
        3 => BASE as u32 + number * 32,
        4 => u32::MAX - number,
        _ => number % 32 * 128,
    }
}

/// Resets the hostile guest's function: its VMM by DEVICE_RESET, or the guest by FLR.
fn reset(bench: &mut CardFixture, by_vmm: bool) {
    if by_vmm {
        bench.nic.reset_function(Vf(0));
        return;
    }
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    bench.config(Vf(0), control, express::DEVICE_CONTROL_FLR.into());
}

/// Makes the hostile guest's next move. Returns `None` at the end of the fuzzer's input.
fn make_move(bench: &mut CardFixture, input: &mut FuzzerInput<'_>, mark: FrameMark) -> Option<()> {
    let [kind] = input.array()?;
    match kind % 14 {
        0..3 => {
            let [row, element, kind, low, high] = input.array()?;
            bench.vf(0).write(register(row, element), value(kind, [low, high]));
        }
        3 => {
            let [row, element, length] = input.array()?;
            let offset = u64::from(register(row, element)) + u64::from(length >> 6);
            bench.nic.write_bytes(Vf(0), offset, input.bytes(usize::from(length & 15)), bench.now);
            bench.nic.read_bytes(Vf(0), offset, &mut [0; 12][..usize::from(length & 7)], bench.now);
        }
        4 => {
            let [low, high, length] = input.array()?;
            let at = BASE + (u64::from(u16::from_le_bytes([low, high])) << 4);
            bench.vf(0).poke(at, input.bytes(usize::from(length & 63)));
        }
        5 | 6 => {
            let [count] = input.array()?;
            for _ in 0..=count % 12 {
                let raw = transmit_descriptor(input, PACKETS)?;
                bench.vf(0).put(raw);
            }
            bench.vf(0).ring();
        }
        7 => bench.vf(0).start(),
        8 => bench.vf(0).post(u32::from(kind >> 4)),
        9 => {
            let [to, length, shape] = input.array()?;
            let frame = match shape % 3 {
                0 => plain(mac(to % 4), mac(STATION), usize::from(length) * 40),
                1 => tcp(mac(to % 4), mac(STATION), &vec![length; usize::from(length) * 8]),
                _ => input.bytes(length.into()).to_vec(),
            };
            bench.world.wire.incoming.push_back(frame);
        }
        10 => {
            let [short] = input.array()?;
            bench.wait_us(u64::from(short) * 40);
        }
        11 if kind & 0x80 == 0 => reset(bench, kind & 0x40 != 0),
        11 => bench.pf().write(r::vf_block(common::index(0)), ctrl::RST),
        12 => {
            // A packet for the descriptors that follow.
            let [to, slot, length] = input.array()?;
            let packet = tcp(mac(to % 4), mac(0), &vec![slot; usize::from(length) * 60]);
            let at = PACKETS + (u64::from(slot) << 8);
            bench.vf(0).poke(at, &packet);
        }
        _ if kind & 0x80 != 0 => _ = exchange(bench, mark),
        _ => drop(bench.poll_once()),
    }
    Some(())
}

/// Returns the frames that a VF got, and posts its descriptors again.
fn drain(bench: &mut CardFixture, vf: u8) -> Vec<Vec<u8>> {
    let received = bench.vf(vf).received();
    let taken = received.iter().map(|frame| frame.parts.len() as u32).sum();
    bench.vf(vf).post(taken);
    received.into_iter().map(|frame| frame.bytes).collect()
}

/// Checks the card's memory requests since the last call.
fn check_log(bench: &mut CardFixture) {
    let log = std::mem::take(&mut bench.world.bus.log);
    assert!(log.len() < 100_000, "{} memory requests", log.len());
    log.iter().for_each(check_request);
}

/// Checks the card's memory requests since the last call, and takes the frames that the neighbours have received.
fn check_requests(bench: &mut CardFixture) {
    check_log(bench);
    (1..3).for_each(|vf| drop(drain(bench, vf)));
    // A test's own receive ring is no request of the card.
    bench.world.bus.log.clear();
}

/// Polls the card until it has no more work at this time. Returns false if it still has work.
fn finish(bench: &mut CardFixture) -> bool {
    (0..POLLS).any(|_| {
        let has_more = bench.poll_once().more;
        check_log(bench);
        !has_more
    })
}

/// Sends marked frames to both neighbours, from each other and from the wire, and checks that the hostile guest gets none. It may
/// be in any state. The neighbours get exactly these frames if the card has no other work. Returns false if it has.
fn exchange(bench: &mut CardFixture, mark: FrameMark) -> bool {
    // Frames of the hostile guest may otherwise fill the neighbours' rings.
    let mut is_idle = finish(bench);
    (1..3).for_each(|vf| drop(drain(bench, vf)));
    for (from, to) in [(1, 2), (STATION, 2), (2, 1), (STATION, 1)] {
        let frame = mark.frame(mac(to), mac(from));
        if from == STATION {
            bench.world.wire.incoming.push_back(frame.clone());
        } else {
            let address = bench.vf(from).place(&frame);
            bench.vf(from).put(packet(address, frame.len() as u16).emit());
            bench.vf(from).ring();
        }
        is_idle &= finish(bench);
        let [received, others] = [to, 3 - to].map(|vf| drain(bench, vf));
        assert!(!is_idle || received == [frame], "from {from} to VF {to}: {} frames", received.len());
        assert!(
            others.iter().all(|other| mark.position(other).is_none()),
            "VF {to}'s frame is in the other VF"
        );
    }
    bench.world.bus.log.clear();
    let found = mark.position(bench.world.bus.memory(Vf(0)));
    assert_eq!(found, None, "the hostile guest has a neighbour's frame in its memory");
    is_idle
}

/// Stops the hostile guest, as its host does: pending packets of a limited VF would arrive later.
fn stop(bench: &mut CardFixture) {
    bench.vf(0).write(vf::CTRL, ctrl::RST);
    bench.config(Vf(0), offset::COMMAND, offset::COMMAND_BUS_MASTER.into());
    bench.pf().write(r::VFRE, 0xff);
    bench.pf().write(r::VFTE, 0xff);
    bench.pf().write(r::RTTBCNRC, 0);
    bench.wait_us(100_000);
    bench.poll();
    check_requests(bench);
}

fn run(data: &[u8]) {
    let (mut input, mark) = (FuzzerInput(data), FrameMark::of(data));
    let [first] = input.array().unwrap_or_default();
    let mut bench = CardFixture::new(3);
    (0..3).for_each(|vf| bench.vf(vf).start());
    for vf in [1, 2] {
        bench.vf(vf).poke(SECRET.start, &[SECRET_BYTE; (SECRET.end - SECRET.start) as usize]);
    }
    if first & 1 != 0 {
        bench.pf().write(r::RTTBCNRC, rttbcnrc::RS_ENA | 1_000 << rttbcnrc::INTEGER_SHIFT);
    }
    if first & 2 != 0 {
        bench.map(0);
    }
    bench.world.bus.log.clear();
    while make_move(&mut bench, &mut input, mark).is_some() {
        check_requests(&mut bench);
    }
    exchange(&mut bench, mark);
    stop(&mut bench);
    assert!(exchange(&mut bench, mark), "the card has work for a guest that is stopped");
    for vf in [1, 2] {
        let secret = bench.vf(vf).peek(SECRET.start, (SECRET.end - SECRET.start) as usize);
        assert!(secret.iter().all(|byte| *byte == SECRET_BYTE));
        for block in [vf::RX_BLOCK + rx::RXDCTL, vf::TX_BLOCK + tx::TXDCTL] {
            assert_ne!(bench.vf(vf).read(block) & i82576::bits::dctl::ENABLE, 0, "a queue of VF {vf} is off");
        }
    }
    assert!(bench.world.bus.memory(Vf(1)).len() == SIZE);
}
