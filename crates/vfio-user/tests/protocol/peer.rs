//! Tests the published `vfio_user` crate's client, which Cloud Hypervisor uses, over a real socket: an independent
//! implementation of the specification.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use published_vfio_user::Client;
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::ServerSession;
use vfio_user::wire::Errno;

use crate::script::{CountedFd, RecordingDevice, ScriptedSession};

/// Serves one client to the end of its connection, with a device that answers requests with the error `refuse`. Returns the
/// recorded calls of the device. Loses file descriptors, because `read` does not receive them.
fn serve(mut stream: UnixStream, refuse: Option<Errno>) -> Vec<String> {
    let mut device = RecordingDevice { bar0: vec![0; 0x4000], refuse, ..RecordingDevice::default() };
    let mut session = ServerSession::default();
    let mut out: MessageOutbox<CountedFd> = MessageOutbox::new();
    let mut buffer = [0; 4096];
    loop {
        let received = stream.read(&mut buffer).unwrap();
        if received == 0 {
            session.close(&mut device);
            return device.said;
        }
        session.push(&buffer[..received], []).unwrap();
        while session.step(&mut device, &mut out).unwrap() == vfio_user::server::SessionProgress::Handled {}
        while let Some(chunk) = out.chunk() {
            let sent = stream.write(chunk.bytes).unwrap();
            out.sent(sent);
        }
    }
}

fn server(name: &str, refuse: Option<Errno>) -> (PathBuf, JoinHandle<Vec<String>>) {
    let path = std::env::temp_dir().join(format!("vfio-user-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    (path, thread::spawn(move || serve(listener.accept().unwrap().0, refuse)))
}

#[test]
fn published_rust_client_attaches_reads_and_writes() {
    let (path, server) = server("peer", None);
    let mut client = Client::new(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(client.region(0).unwrap().size, 0x4000);
    assert_eq!(client.region(7).unwrap().size, 4096);
    assert_eq!(client.get_irq_info(2).unwrap().count, 3);
    assert_eq!(client.get_irq_info(0).unwrap().count, 0);

    client.region_write(0, 0x2818, &[1, 2, 3, 4]).unwrap();
    let mut data = [0; 4];
    client.region_read(0, 0x2818, &mut data).unwrap();
    assert_eq!(data, [1, 2, 3, 4]);
    client.region_read(3, 0x9999, &mut data).unwrap();
    assert_eq!(data, [0xff; 4], "outside a region: all ones, and no hang");
    client.region_write(6, 0, &[0; 4]).unwrap();
    let mut space = [0xee; 4096];
    client.region_read(7, 0, &mut space).unwrap();

    let memory = std::fs::File::open("/dev/null").unwrap();
    client.dma_map(0, 0, 0x10_0000, memory.as_raw_fd()).unwrap();
    client.set_irqs(2, 1 | 32, 0, 0, &[]).unwrap();
    client.dma_unmap(0, 0x10_0000).unwrap();
    client.reset().unwrap();
    client.shutdown().unwrap();
    drop(client);
    let said = server.join().unwrap();
    assert!(said.contains(&"map 0x0+0x100000 true None".into()), "{said:?}");
    assert!(said.contains(&"unmap 0x0+0x100000".into()));
    assert!(said.contains(&"reset".into()));
}

/// Checks replies by which the client must not hang: it ignores the error of a refused mapping, and waits for the whole body of
/// the reply to an unmap.
#[test]
fn published_rust_client_unmaps_memory_without_a_window() {
    let (path, server) = server("unmap", Some(Errno::ENOMEM));
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let mut client = Client::new(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let memory = std::fs::File::open("/dev/null").unwrap();
        client.dma_map(0, 0, 0x10_0000, memory.as_raw_fd()).unwrap();
        client.dma_unmap(0, 0x10_0000).unwrap();
        client.dma_unmap(0x100_0000, 0x10_0000).unwrap();
        assert_eq!(client.region(7).unwrap().size, 4096);
        client.shutdown().unwrap();
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(10)).expect("the client waits for the rest of a reply");
    assert_eq!(server.join().unwrap()[..2], ["map 0x0+0x100000 true None", "unmap all"]);
}

#[test]
fn version_message_of_the_published_rust_client_is_accepted() {
    let mut script = ScriptedSession::fresh();
    script.ask(1, b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":1,\"max_data_xfer_size\":1048576}}\0");
    assert_eq!(script.session.negotiated().unwrap().minor, 1);
}
