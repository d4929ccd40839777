//! Two guests on one thread: our VF driver on two VFs, polled, with no interrupt ever acknowledged, so that none comes
//! after the first. They send each other frames in both directions. Every byte of a frame is copied in by one guest
//! and out by the other.
//!
//! Left out: a TCP/IP stack, and when to begin and to end.

use anyhow::{Context, Result, ensure};
use driver::vf::{Config, LinkCheck, TxOffload};
use driver::{Hal, Vf};
use embedded_guest::VfioUserHal;
use i82576::MacAddress;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rings of 256 descriptors with buffers of 2 KB, and room for alignment.
const MEMORY: u64 = 4 << 20;
/// Frames under way in one direction at most: fewer than the receiver has buffers, so that none is dropped.
const WINDOW: u64 = 192;
/// Frames sent at a time.
const BURST: u64 = 32;
/// When frames that are under way count as lost.
const LOST: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
const HEADER: usize = 14;
/// An ether type for experiments.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// A VF with its driver.
#[derive(Debug)]
struct Station {
    hal: VfioUserHal,
    vf: Vf,
    /// The frame that it sends over and over.
    frame: Vec<u8>,
    /// Frames sent to the other and not seen there.
    under_way: u64,
}

/// Two VFs of one port.
#[derive(Debug)]
pub struct Pair {
    stations: [Station; 2],
    buffer: Vec<u8>,
    /// Frames that never came.
    lost: u64,
}

impl Pair {
    /// The address that the host is to give a VF.
    #[must_use]
    pub fn address(vf: usize) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0x10, vf as u8])
    }

    /// Attaches to a VF and the next one, and waits for their links. `socket` says where a VF's socket is.
    ///
    /// # Errors
    /// A VF does not start, or frames cannot be of that size.
    pub fn attach(first: usize, socket: impl Fn(usize) -> PathBuf, size: usize) -> Result<Self> {
        ensure!((60..=1514).contains(&size), "frames of {size} bytes: 60 to 1514 can be sent");
        let [one, other] = [first, first + 1];
        let frame = |from, to| frame(Self::address(from), Self::address(to), size);
        let stations = [
            Station::attach(&socket(one), frame(one, other))?,
            Station::attach(&socket(other), frame(other, one))?,
        ];
        Ok(Self { stations, buffer: vec![0; 2048], lost: 0 })
    }

    /// A burst from one, if enough has arrived, and what the other finds.
    fn turn(&mut self, from: usize) -> u64 {
        let sender = &mut self.stations[from];
        if WINDOW - sender.under_way >= BURST {
            let Station { hal, vf, frame, under_way } = sender;
            let sent =
                (0..BURST).take_while(|_| vf.transmit(hal, frame, &TxOffload::default()).is_ok()).count();
            vf.flush(hal);
            *under_way += sent as u64;
        }
        let receiver = &mut self.stations[1 - from];
        let mut arrived = 0;
        while arrived < WINDOW && receiver.receive(&mut self.buffer).is_some() {
            arrived += 1;
        }
        let sender = &mut self.stations[from];
        sender.under_way = sender.under_way.saturating_sub(arrived);
        arrived
    }

    /// Sends `count` frames from one to the other, each with its time in it; answers how many were taken.
    pub fn send_stamped(&mut self, stamps: impl Iterator<Item = u64>) -> u64 {
        let Station { hal, vf, frame, under_way } = &mut self.stations[0];
        let mut sent = 0;
        for stamp in stamps {
            frame[HEADER..HEADER + 8].copy_from_slice(&stamp.to_le_bytes());
            if vf.transmit(hal, frame, &TxOffload::default()).is_err() {
                break;
            }
            sent += 1;
        }
        if sent > 0 {
            vf.flush(hal);
        }
        *under_way += sent;
        sent
    }

    /// How many more stamped frames may be under way.
    #[must_use]
    pub fn room(&self) -> u64 {
        WINDOW.saturating_sub(self.stations[0].under_way)
    }

    /// The time in the next stamped frame that has arrived.
    pub fn next_stamp(&mut self) -> Option<u64> {
        self.stations[1].receive(&mut self.buffer)?;
        let under_way = &mut self.stations[0].under_way;
        *under_way = under_way.saturating_sub(1);
        self.buffer.get(HEADER..)?.first_chunk().map(|stamp| u64::from_le_bytes(*stamp))
    }

    /// What is under way will not come.
    pub fn give_up(&mut self) {
        for station in &mut self.stations {
            self.lost += std::mem::take(&mut station.under_way);
        }
    }

    /// Frames that never came.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

/// Has all pairs send as fast as frames arrive, for so long; answers how many arrived, and in what time.
pub fn exchange(pairs: &mut [Pair], length: Duration) -> (u64, Duration) {
    let begun = Instant::now();
    let (mut arrived, mut last) = (0, begun);
    loop {
        let now: u64 = pairs.iter_mut().map(|pair| pair.turn(0) + pair.turn(1)).sum();
        arrived += now;
        let at = Instant::now();
        if now > 0 {
            last = at;
        } else if at - last > LOST {
            pairs.iter_mut().for_each(Pair::give_up);
            last = at;
        }
        if at - begun >= length {
            return (arrived, at - begun);
        }
    }
}

impl Station {
    fn attach(socket: &Path, frame: Vec<u8>) -> Result<Self> {
        let name = socket.display();
        let begun = Instant::now();
        let (mut hal, mut vf) = loop {
            let mut hal = VfioUserHal::attach(socket, MEMORY)?;
            match Vf::probe(&mut hal, &Config::default()) {
                Ok(vf) => break (hal, vf),
                // The PF's driver may not be there yet.
                Err(_) if begun.elapsed() < PATIENCE => hal.wait(Duration::from_millis(20)),
                Err(error) => return Err(error).with_context(|| format!("the VF of {name} does not start")),
            }
        };
        vf.start(&mut hal).with_context(|| format!("the VF of {name} does not start"))?;
        while !matches!(vf.check_link(&mut hal), LinkCheck::Up(_)) {
            ensure!(begun.elapsed() < PATIENCE, "the VF of {name} has no link");
            hal.wait(Duration::from_millis(5));
        }
        Ok(Self { hal, vf, frame, under_way: 0 })
    }

    /// The next frame of the other's, now in `buffer`; others are passed over.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<()> {
        loop {
            let received = self.vf.receive(&mut self.hal, buffer).ok()??;
            if received.length == self.frame.len() && buffer[..6] == self.frame[6..12] {
                return Some(());
            }
        }
    }
}

fn frame(from: MacAddress, to: MacAddress, size: usize) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &ETHER_TYPE].concat();
    frame.extend((frame.len()..size).map(|at| at as u8));
    frame
}
