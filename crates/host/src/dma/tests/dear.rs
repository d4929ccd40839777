//! Tests accesses that a hostile VMM makes dear. They print the time of an access (`cargo test -p softiov-host dear -- --nocapture`).
//! `units::work` and decision 43 have the costs that follow.

use super::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of a huge page of an x86 processor.
const HUGE: u64 = 2 << 20;
/// Bytes of the frame that each access writes.
const FRAME: [u8; 60] = [0x5a; 60];
/// Number of frames in a measurement.
const FRAMES: u64 = 64;

/// Returns the mean time of writing a frame into each of [`FRAMES`] pages of `size` bytes. Before each of the rounds the pages are
/// punched out of the file if `punched` is true.
fn write_time(file: &OwnedFd, size: u64, punched: bool) -> Duration {
    let mut table = DmaTable::default();
    let memory = Some((file.try_clone().unwrap(), 0));
    table.map(0, FRAMES * size, DmaPermissions::READ_WRITE, memory).unwrap();
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            if punched {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(file, flags, 0, FRAMES * size).unwrap();
            }
            let began = Instant::now();
            (0..FRAMES).for_each(|page| table.write(page * size, black_box(&FRAME)).unwrap());
            let took = began.elapsed() / FRAMES as u32;
            let mut last = [0; FRAME.len()];
            table.read((FRAMES - 1) * size, &mut last).unwrap();
            assert_eq!(last, FRAME);
            took
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn write_to_a_punched_page_allocates_it() {
    let small = memfd(FRAMES);
    println!("frame of 60 B into present 4 KiB pages: {:?}", write_time(&small, PAGE, false));
    println!("frame of 60 B into punched 4 KiB pages: {:?}", write_time(&small, PAGE, true));
    let huge = memfd_create("huge", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB)
        .inspect(|fd| ftruncate(fd, FRAMES * HUGE).unwrap())
        .and_then(|fd| fallocate(&fd, FallocateFlags::empty(), 0, FRAMES * HUGE).map(|()| fd));
    match huge {
        Ok(huge) => {
            println!("frame of 60 B into present 2 MiB pages: {:?}", write_time(&huge, HUGE, false));
            println!("frame of 60 B into punched 2 MiB pages: {:?}", write_time(&huge, HUGE, true));
        }
        Err(error) => {
            let why = format!("{error}; set vm.nr_hugepages to {FRAMES} or more");
            crate::test_support::skipped("time of punched pages of 2 MiB", &why);
        }
    }
}

#[test]
fn frame_is_written_into_any_number_of_pieces() {
    let table = table(&[(0, 64)]);
    for pieces in [1, 4, 19, 60] {
        let piece = FRAME.len() / pieces;
        let began = Instant::now();
        for _ in 0..10_000 {
            for (at, bytes) in (0..).zip(FRAME.chunks(piece)) {
                table.write(at * 3 * PAGE / 4, black_box(bytes)).unwrap();
            }
        }
        let mut last = [0];
        table.read(59 / piece as u64 * 3 * PAGE / 4 + 59 % piece as u64, &mut last).unwrap();
        assert_eq!(last[0], FRAME[59]);
        println!("frame of 60 B into {pieces} pieces: {:?}", began.elapsed() / 10_000);
    }
}
