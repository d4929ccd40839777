//! Runs a TCP connection between two Linux guests that compares every byte: this program's work inside such a guest.
//! The sender sends a sequence that never repeats, in blocks; the receiver knows the sequence, and reports at the end
//! how much of it arrived. A guest that loses its connection ends early. The connection carries little, to leave the
//! processors to the host.

use crate::random::RandomGenerator;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Path of a file in the guest. While it exists, the sender sends nothing.
pub(crate) const HOLD: &str = "/run/hold";
/// Path of a file in the guest whose existence ends the sender's connection.
pub(crate) const FINISH: &str = "/run/finish";
/// Path of a file in the receiving guest. The receiver writes the number of bytes received so far to this file.
pub(crate) const RECEIVED: &str = "/run/received";

const PORT: u16 = 4_000;
const SEED: u64 = 82_576;
/// Number of bytes that the sender of a connection sends per interval ([`PACE`]): 512 KiB/s.
pub(crate) const BLOCK: usize = 16 << 10;
const PACE: Duration = Duration::from_millis(32);
/// Maximum time for which the sender tries to connect, until the receiver listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Work of this program inside a guest, instead of a campaign.
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum GuestConnectionRole {
    /// Inside a guest: receive from another guest and compare the bytes.
    Receive,
    /// Inside a guest: send to another guest.
    Send { to: Ipv4Addr },
}

impl GuestConnectionRole {
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Receive => receive(),
            Self::Send { to } => send(*to),
        }
    }
}

fn receive() -> Result<()> {
    let (mut stream, _) = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?.accept()?;
    let told = File::create(RECEIVED)?;
    let (mut sequence, mut received) = (RandomGenerator(SEED), 0_u64);
    let (mut block, mut expected) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let count = fill(&mut stream, &mut block).with_context(|| format!("lost after {received} bytes"))?;
        sequence.fill(&mut expected);
        let changed = block[..count].iter().zip(&expected).position(|(byte, expected)| byte != expected);
        ensure!(
            changed.is_none(),
            "byte {} differs from the one sent",
            received + changed.unwrap_or(0) as u64
        );
        received += count as u64;
        if count < BLOCK {
            break;
        }
        told.write_all_at(format!("{received}\n").as_bytes(), 0)?;
    }
    stream.write_all(&received.to_be_bytes()).context("connection lost at its end")?;
    println!("{received}");
    Ok(())
}

/// Reads a whole block from the connection, or the bytes before the end of the stream, and returns their number.
fn fill(stream: &mut TcpStream, block: &mut [u8]) -> std::io::Result<usize> {
    let mut count = 0;
    while count < block.len() {
        match stream.read(&mut block[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn send(to: Ipv4Addr) -> Result<()> {
    let mut stream = connect(to)?;
    let (mut sequence, mut sent, mut block) = (RandomGenerator(SEED), 0_u64, vec![0; BLOCK]);
    while !Path::new(FINISH).exists() {
        std::thread::sleep(PACE);
        if Path::new(HOLD).exists() {
            continue;
        }
        sequence.fill(&mut block);
        stream.write_all(&block).with_context(|| format!("lost after {sent} bytes"))?;
        sent += block.len() as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut received = [0; 8];
    stream.read_exact(&mut received).context("connection lost at its end")?;
    let received = u64::from_be_bytes(received);
    ensure!(received == sent, "{sent} bytes were sent, {received} received");
    Ok(())
}

fn connect(to: Ipv4Addr) -> Result<TcpStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect((to, PORT)) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(PACE),
            done => return done.with_context(|| format!("no connection to {to}")),
        }
    }
}
