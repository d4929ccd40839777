//! Tests of replayed frames, their times, and broken files.

use super::*;
use crate::port::engine::uplink::test_support::with_resources;
use i82576::ids::MAX_FRAME;
use pcap_parser::{LegacyPcapBlock, Linktype, PcapHeader, ToVec};
use proptest::prelude::{any, proptest};

/// Returns a pcap file with frames at these times, in microseconds after the same second.
fn pcap(frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = PcapHeader { network: Linktype::ETHERNET, ..PcapHeader::new() }.to_vec().unwrap();
    for (ts_usec, frame) in frames {
        let (caplen, data) = (frame.len() as u32, &frame[..]);
        let mut block = LegacyPcapBlock { ts_sec: 9, ts_usec: *ts_usec, caplen, origlen: caplen, data };
        file.extend(block.to_vec().unwrap());
    }
    file
}

/// Replays a pcap file to its end. Returns the played frames, and the number of malformed packets.
fn play(file: Vec<u8>) -> Result<(Vec<Vec<u8>>, u64), io::Error> {
    let pcap = RecordingReader::new(io::Cursor::new(file)).map_err(|error| problem(&error))?;
    let (sender, mut receiver) = RingBuffer::new(RING);
    let shared = Arc::new(SharedReplayState::default());
    let port = ThreadWaker::new()?;
    RecordingPlayer {
        sender,
        shared: shared.clone(),
        port,
        path: "test".into(),
        begin: None,
        is_foreign: false,
    }
    .run(pcap);
    let mut place = vec![0; MAX_FRAME];
    let frames =
        std::iter::from_fn(|| ring::take(&mut receiver, &mut place).map(|n| place[..n].to_vec())).collect();
    Ok((frames, shared.malformed.load(Ordering::Relaxed)))
}

#[test]
fn replayed_frames_arrive_at_their_recorded_times() {
    let frames = [(100, vec![1; 60]), (100, vec![2; 1514]), (40_100, vec![3; 100]), (90, vec![4; 64])];
    let begin = Instant::now();
    let (played, malformed) = play(pcap(&frames)).unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(40));
    assert_eq!((played, malformed), (frames.map(|(_, frame)| frame).to_vec(), 0));
}

#[test]
fn replay_skips_and_counts_malformed_packets() {
    let frames = [(0, vec![1; 13]), (0, vec![2; MAX_FRAME + 1]), (0, vec![3; 60])];
    assert_eq!(play(pcap(&frames)).unwrap(), (vec![vec![3; 60]], 2));
    let mut wireless = pcap(&[(0, vec![1; 60])]);
    wireless[20] = 105;
    assert_eq!(play(wireless).unwrap(), (vec![], 1));
}

#[test]
fn replay_opens_only_a_regular_file() {
    assert!(
        regular(Path::new("/dev/null")).unwrap_err().to_string().contains("the path is not a regular file")
    );
    let folder = tempfile::tempdir().unwrap();
    assert!(regular(folder.path()).is_err() && regular(&folder.path().join("absent")).is_err());
    let file = folder.path().join("some.pcap");
    std::fs::write(&file, pcap(&[])).unwrap();
    assert!(regular(&file).is_ok());
}

/// A process whose thread reads from a hung disk cannot end.
#[test]
fn file_calls_of_a_replay_are_marked() {
    with_resources(|with| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.pcap");
        // The second frame is due in an hour. The end of the replay wakes the thread.
        std::fs::write(&path, pcap(&[(0, vec![1; 60]), (3_600_000_000, vec![2; 60])])).unwrap();
        let replay = ReplayUplink::open(&path, with).unwrap();
        assert!(with.files.has(&path));
        drop(replay);
        assert!(with.threads.files.wait(Duration::from_secs(60)) && !with.files.has(&path));
    });
}

#[test]
fn replayed_frame_without_a_timestamp_follows_without_delay() {
    let simple = |byte| {
        [3_u32.to_le_bytes(), 76_u32.to_le_bytes(), 60_u32.to_le_bytes()]
            .concat()
            .into_iter()
            .chain([byte; 60])
            .chain(76_u32.to_le_bytes())
    };
    let mut file = crate::pcapng::section().unwrap();
    file.extend(crate::pcapng::interface(None).unwrap());
    file.extend(simple(1).chain(simple(2)));
    let begin = Instant::now();
    assert_eq!(play(file).unwrap(), (vec![vec![1; 60], vec![2; 60]], 0));
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[test]
fn replay_refuses_files_other_than_pcap_and_ends_if_truncated() {
    for (file, why) in [(&b""[..], "neither pcap"), (b"dear reader, what is this about?", "neither pcap")] {
        let refused = play(file.to_vec()).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let file = pcap(&[(0, vec![1; 60]), (0, vec![2; 60])]);
    for cut in 1..60 {
        assert_eq!(
            play(file[..file.len() - cut].to_vec()).unwrap(),
            (vec![vec![1; 60]], 1),
            "{cut} bytes less"
        );
    }
}

proptest! {
    #[test]
    fn any_replayed_file_causes_no_panic(
        turned in proptest::collection::vec((24usize..400, any::<u8>()), 0..6),
        tail in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut file = pcap(&[(0, vec![1; 60]), (0, vec![2; 200]), (0, vec![3; 60])]);
        for (at, bits) in turned {
            // Times stay unchanged, so that no test waits for years.
            let header = [24, 100, 316].into_iter().any(|start| (start..start + 8).contains(&at));
            if let Some(byte) = file.get_mut(at).filter(|_| !header) {
                *byte ^= bits;
            }
        }
        file.extend(tail);
        bounded(file);
    }
}

/// Replays a file for about 20 ms at most. Returns the bytes of frames in the ring, or `None` if the file cannot be
/// opened as a recording.
fn bounded(file: Vec<u8>) -> Option<usize> {
    let pcap = RecordingReader::new(io::Cursor::new(file)).ok()?;
    let (sender, receiver) = RingBuffer::new(RING);
    let shared = Arc::new(SharedReplayState::default());
    let player = RecordingPlayer {
        sender,
        shared: shared.clone(),
        port: ThreadWaker::new().ok()?,
        path: "test".into(),
        begin: None,
        is_foreign: false,
    };
    let reader = std::thread::spawn(move || player.run(pcap));
    for _ in 0..20 {
        if reader.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    shared.stops.store(true, Ordering::Release);
    reader.thread().unpark();
    reader.join().unwrap();
    Some(receiver.slots())
}

#[test]
fn pcapng_block_shorter_than_its_lengths_ends_the_replay() {
    let section: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    // A Process Information Block, whose length pcap-parser does not check.
    for length in [4, 8, 11] {
        let words = section.into_iter().chain([0x8000_0001, length, 0, 0]);
        let file: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        assert_eq!(frames_of_recording(file.clone()), (vec![], 1), "{length}");
        assert_eq!(play(file).unwrap(), (vec![], 1), "{length}");
    }
}
