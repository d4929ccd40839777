//! Tests of the content of recordings, and of failures to write one.

use super::*;
use crate::pcapng::FLAGS;
use crate::port::engine::uplink::test_support::with_resources;
use crate::uplink_threads::UplinkThreads;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, Linktype, parse_pcapng};
use std::fs;
use std::sync::mpsc;
use std::thread;
use tempfile::TempDir;

fn ring(frames: &[(PacketDirection, Vec<u8>)]) -> Consumer<u8> {
    let (mut sender, receiver) = RingBuffer::new(RING);
    for (way, frame) in frames {
        assert!(ring::put(&mut sender, [&7_000_000_009_u64.to_ne_bytes(), &[*way as u8], frame]));
    }
    receiver
}

fn stopped() -> SharedRecorderState {
    SharedRecorderState { stops: AtomicBool::new(true), ..SharedRecorderState::default() }
}

fn frames() -> Vec<(PacketDirection, Vec<u8>)> {
    (14..80)
        .map(|length| {
            (
                if length % 2 == 0 { PacketDirection::In } else { PacketDirection::Out },
                vec![length as u8; length],
            )
        })
        .collect()
}

#[test]
fn uplink_recording_has_time_and_direction_of_each_frame() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new.pcapng");
    for _ in 0..2 {
        let mut file = open(&path).unwrap();
        file.write_all(&beginning().unwrap()).unwrap();
        write(file, &path, ring(&frames()), &stopped());
    }
    let bytes = fs::read(&path).unwrap();
    let (rest, pcap) = parse_pcapng(&bytes).unwrap();
    assert!(rest.is_empty());
    let mut seen = Vec::new();
    for block in pcap.sections.iter().flat_map(|section| &section.blocks) {
        match block {
            Block::EnhancedPacket(packet) => {
                assert_eq!(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low), 7_000_000_009);
                let flags = packet.options.iter().find(|option| option.code == FLAGS).unwrap();
                seen.push((flags.value[0], packet.packet_data().to_vec()));
            }
            Block::InterfaceDescription(interface) => {
                assert_eq!(
                    (interface.linktype, interface.ts_resolution()),
                    (Linktype::ETHERNET, Some(1_000_000_000))
                );
            }
            _ => {}
        }
    }
    let expected: Vec<_> = frames().into_iter().map(|(way, frame)| (way as u8, frame)).collect();
    assert!(seen == [expected.clone(), expected].concat(), "{} packets", seen.len());
}

#[test]
fn recorder_does_not_overwrite_a_file_of_another_format() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("letter.txt");
    fs::write(&path, "dear reader").unwrap();
    let refused = open(&path).unwrap_err().to_string();
    assert!(refused.contains("is not pcapng; name another file"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), b"dear reader");
    assert!(open(folder.path()).is_err() && open(&folder.path().join("none/x")).is_err());
    assert!(open(Path::new("/dev/null")).unwrap_err().to_string().contains("the path is not a regular file"));
}

/// Disk that is full after this number of bytes, with the bytes written so far.
struct LimitedDisk(usize, Vec<u8>);

impl Write for &mut LimitedDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.0 - self.1.len());
        self.1.extend(&bytes[..fits]);
        if fits == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_disk_ends_an_uplink_recording_with_a_loss_count() {
    let (mut disk, shared) = (LimitedDisk(500, Vec::new()), stopped());
    write(&mut disk, Path::new("full"), ring(&frames()), &shared);
    assert_eq!(shared.failed.load(Ordering::Relaxed), frames().len() as u64);
    assert_eq!(disk.1.len(), 500);
}

#[test]
fn stalled_recording_writer_loses_frames_in_bounded_memory() {
    let (sender, _receiver) = RingBuffer::new(10_000);
    let shared = Arc::new(SharedRecorderState::default());
    let mut recorder = UplinkRecorder { sender, put: false, full: 0, shared, writer: None };
    (0..100).for_each(|_| recorder.note(PacketDirection::Out, &[1; 1000]));
    recorder.flush();
    assert_eq!(recorder.lost(), 100 - 10_000 / (1000 + HEAD as u64 + 4));
}

/// Disk that does not answer until the sender is dropped.
struct HungDisk(mpsc::Receiver<()>);

impl Write for HungDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The port's thread drops its recorder when it leaves its guests to the next process, or fails and is opened again.
#[test]
fn recording_on_a_hung_disk_delays_no_end_of_its_port() {
    let (disk, hung) = mpsc::channel();
    let (sender, receiver) = RingBuffer::new(RING);
    let (shared, threads) = (Arc::new(SharedRecorderState::default()), UplinkThreads::default());
    let (theirs, mark) = (shared.clone(), threads.files.enter());
    let writer = thread::spawn(move || {
        let _mark = mark;
        write(HungDisk(hung), Path::new("hung"), receiver, &theirs);
    });
    let mut recorder = UplinkRecorder { sender, put: false, full: 0, shared, writer: Some(writer) };
    recorder.note(PacketDirection::Out, &[1; 60]);
    recorder.flush();
    let (dropped, ends) = mpsc::channel();
    let port = thread::spawn(move || {
        drop(recorder);
        dropped.send(()).unwrap();
    });
    assert_eq!(ends.recv_timeout(Duration::from_secs(60)), Ok(()), "the port waits for the disk");
    assert!(!threads.wait(Duration::ZERO));
    drop(disk);
    assert!(threads.wait(Duration::from_secs(60)), "the writer does not end once the disk answers");
    port.join().unwrap();
}

#[test]
fn recording_that_a_change_ends_is_written() {
    with_resources(|with| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("new.pcapng");
        let mut recorder = UplinkRecorder::start(&path, with).unwrap();
        assert!(with.files.has(&path), "a restart does not wait for the file's disk");
        let began = fs::metadata(&path).unwrap().len();
        recorder.note(PacketDirection::Out, &[1; 1000]);
        recorder.retire();
        assert!(with.threads.files.wait(Duration::from_secs(60)));
        assert!(fs::metadata(&path).unwrap().len() > began + 1000);
        assert!(!with.files.has(&path));
    });
}
