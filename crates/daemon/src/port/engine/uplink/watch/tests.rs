//! Tests of the watcher with a kernel that does not answer each question, and of an uplink whose device fails. Live tests
//! cover interfaces that change.

use super::*;
use crate::control::uplink::UplinkState;
use crate::port::engine::uplink::backend::{UplinkBackend, UplinkPollContext};
use crate::port::engine::uplink::device::UplinkReceiveOutcome;
use crate::port::engine::uplink::interface::InterfaceUplink;
use crate::port::engine::uplink::tap::{HostStackTap, TapDevice};
use crate::port::engine::uplink::test_support::with_resources;
use crate::vault::{FileDescriptorStore, PortFileDescriptorStore};
use host::eventfd::EventFd;
use host::links::NetworkLinkState;
use host::packet::UnsentFrameCounts;
use host::test_support::in_network_namespace;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Network interfaces of a namespace that has only the interface `eth7`.
struct OneInterface {
    up: bool,
    /// False while the kernel has no memory for an answer.
    answers: bool,
}

impl InterfaceLinks for OneInterface {
    fn hear(&mut self, _related: impl FnMut(u32, &str) -> bool) -> io::Result<LinkNotifications> {
        Ok(LinkNotifications::Related)
    }

    fn look_up(&mut self, name: &str) -> io::Result<Option<NetworkLinkState>> {
        if !self.answers {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let link = NetworkLinkState { index: 7, up: self.up, carrier: self.up, mtu: 1500, parent: 7 };
        Ok((name == "eth7").then_some(link))
    }

    fn namespace(&self) -> u64 {
        1
    }
}

/// Device that is attached to `eth7`, sends none of three queued frames, and cannot be read. Its kept file descriptor belongs to an
/// interface that has just been renamed from `eth8`.
#[derive(Debug)]
struct IdleDevice {
    event: EventFd,
    is_here: Option<bool>,
}

impl IdleDevice {
    fn new(is_here: Option<bool>) -> Self {
        Self { event: EventFd::new().unwrap(), is_here }
    }
}

impl AsFd for IdleDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl UplinkDevice for IdleDevice {
    const KIND: &'static str = "idle";
    type Terms = ();
    type Burst = ();

    fn open(_name: &InterfaceName, (): &()) -> Result<Self, UplinkError> {
        Ok(Self::new(None))
    }

    fn adopt(_fd: OwnedFd, _name: &InterfaceName, (): &()) -> Option<Self> {
        None
    }

    fn kept_name(_fd: BorrowedFd<'_>) -> Option<InterfaceName> {
        "eth8".parse().ok()
    }

    fn open_existing(_name: &InterfaceName, (): &()) -> Result<Option<Self>, (String, bool)> {
        Ok(None)
    }

    fn interface(&self) -> Option<String> {
        Some("eth7".into())
    }

    fn is_here(&self) -> io::Result<Option<bool>> {
        Ok(self.is_here)
    }

    fn is_up_elsewhere(&self) -> bool {
        false
    }

    fn set_up(&self) {}

    fn transmit(&self, (): &mut (), _frame: &[u8]) -> UnsentFrameCounts {
        UnsentFrameCounts::default()
    }

    fn receive(&self, (): &mut (), _into: &mut [u8]) -> io::Result<UplinkReceiveOutcome> {
        Err(io::ErrorKind::InvalidData.into())
    }

    fn unsent((): &mut ()) -> u32 {
        3
    }
}

/// Creates the watcher of `eth7`, which is up, and the port's end of its reports.
fn watcher(
    answers: bool,
) -> (InterfaceWatcher<IdleDevice, OneInterface>, mpsc::Receiver<InterfaceReport<IdleDevice>>) {
    let (sender, reports) = mpsc::channel();
    let store = PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0");
    let mut watcher = InterfaceWatcher {
        port: "pf0".into(),
        kept: Arc::new(ClaimedName::new(&store, "idle.eth7")),
        name: "eth7".parse().unwrap(),
        terms: (),
        links: OneInterface { up: true, answers },
        poller: Poller::new().unwrap(),
        waker: ThreadWaker::new().unwrap(),
        orders: mpsc::channel().1,
        news: sender,
        port_waker: ThreadWaker::new().unwrap(),
        device: None,
        returned: None,
        index: None,
        reported: None,
        complaint: None,
    };
    watcher.watch_device(Arc::new(IdleDevice::new(None)));
    (watcher, reports)
}

/// Returns the reported change of the interface: whether it is up, and its MTU.
fn change(reports: &mpsc::Receiver<InterfaceReport<IdleDevice>>) -> Option<(bool, Option<u32>)> {
    match reports.try_recv().ok()? {
        InterfaceReport::Changed(seen) => Some((seen.up, seen.mtu)),
        other => panic!("unexpected report of the watcher: {other:?}"),
    }
}

#[test]
fn change_that_the_kernel_does_not_describe_is_asked_again() {
    let (mut watcher, reports) = watcher(true);
    assert_eq!((watcher.check(), change(&reports)), (None, None), "the interface has not changed");
    (watcher.links.up, watcher.links.answers) = (false, false);
    assert_eq!((watcher.check(), change(&reports)), (Some(RETRY), None), "the kernel does not answer");
    watcher.links.answers = true;
    assert_eq!((watcher.check(), change(&reports)), (None, Some((false, Some(1500)))));
}

#[test]
fn interface_is_found_after_an_unanswered_first_question() {
    let (mut watcher, reports) = watcher(false);
    assert_eq!((watcher.check(), change(&reports)), (Some(RETRY), None));
    watcher.links.answers = true;
    assert_eq!((watcher.check(), change(&reports)), (None, Some((true, Some(1500)))));
}

#[test]
fn kept_interface_without_its_name_is_looked_for_again() {
    let (mut watcher, _reports) = watcher(true);
    watcher.drop_device();
    watcher.name = "eth9".parse().unwrap();
    assert_eq!(watcher.check(), None, "no file descriptor is kept");
    watcher.kept.keep_if_free(IdleDevice::new(None).as_fd());
    assert_eq!(watcher.check(), Some(RETRY), "the interface was renamed after its name was read");
}

#[test]
fn interface_with_the_index_of_a_moved_tap_is_not_its_own() {
    let mut links = OneInterface { up: true, answers: true };
    for (is_here, expected) in [(Some(true), Some(1500)), (Some(false), None), (None, Some(1500))] {
        let mut index = Some(7);
        let seen = state_of(&IdleDevice::new(is_here), &mut index, &mut links);
        assert_eq!((seen.unwrap().unwrap().mtu, index), (expected, Some(7)), "{is_here:?}");
    }
}

#[test]
fn frames_unsent_by_a_detached_device_are_counted_as_dropped() {
    let name = "eth7".parse().unwrap();
    let mut uplink =
        with_resources(|resources| InterfaceUplink::<IdleDevice>::open(&name, &(), resources).unwrap());
    let poller = Poller::new().unwrap();
    let at = UplinkPollContext { poller: &poller, token: 0, now: i82576::Time::ZERO };
    uplink.join(at).unwrap();
    assert_eq!(uplink.receive(&mut [0; 64]), None, "the device cannot be read");
    assert!(uplink.follow(at), "the uplink detaches from the device");
    assert_eq!(uplink.status(at.now).unwrap().drops.no_link, 3);
}

/// Tap whose reads fail a given number of times, as if the kernel had refused them.
#[derive(Debug)]
struct FailingTap {
    tap: TapDevice<HostStackTap>,
    failures: Arc<AtomicU32>,
}

impl AsFd for FailingTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

impl UplinkDevice for FailingTap {
    const KIND: &'static str = "tap";
    const ONE_ATTACHMENT: bool = TapDevice::<HostStackTap>::ONE_ATTACHMENT;
    type Terms = Arc<AtomicU32>;
    type Burst = <TapDevice<HostStackTap> as UplinkDevice>::Burst;

    fn open(name: &InterfaceName, terms: &Self::Terms) -> Result<Self, UplinkError> {
        Ok(Self { tap: TapDevice::open(name, &())?, failures: terms.clone() })
    }

    fn adopt(fd: OwnedFd, name: &InterfaceName, terms: &Self::Terms) -> Option<Self> {
        Some(Self { tap: TapDevice::adopt(fd, name, &())?, failures: terms.clone() })
    }

    fn open_existing(name: &InterfaceName, terms: &Self::Terms) -> Result<Option<Self>, (String, bool)> {
        let tap = TapDevice::open_existing(name, &())?;
        Ok(tap.map(|tap| Self { tap, failures: terms.clone() }))
    }

    fn interface(&self) -> Option<String> {
        self.tap.interface()
    }

    fn is_up_elsewhere(&self) -> bool {
        self.tap.is_up_elsewhere()
    }

    fn set_up(&self) {
        self.tap.set_up();
    }

    fn transmit(&self, burst: &mut Self::Burst, frame: &[u8]) -> UnsentFrameCounts {
        self.tap.transmit(burst, frame)
    }

    fn receive(&self, burst: &mut Self::Burst, into: &mut [u8]) -> io::Result<UplinkReceiveOutcome> {
        match self.failures.fetch_update(AcqRel, Acquire, |left| left.checked_sub(1)) {
            Ok(_) => Err(io::ErrorKind::InvalidData.into()),
            Err(_) => self.tap.receive(burst, into),
        }
    }
}

#[test]
fn tap_given_back_while_it_exists_is_attached_again() {
    in_network_namespace("tap given back", || {
        let (name, failures) = ("back0".parse().unwrap(), Arc::new(AtomicU32::new(0)));
        let poller = Poller::new().unwrap();
        let at = UplinkPollContext { poller: &poller, token: 0, now: i82576::Time::ZERO };
        with_resources(|resources| {
            let mut uplink = InterfaceUplink::<FailingTap>::open(&name, &failures, resources).unwrap();
            uplink.join(at).unwrap();
            for round in 1..=2 {
                failures.store(1, Release);
                assert_eq!(uplink.receive(&mut [0; 2048]), None, "the tap cannot be read");
                assert!(uplink.follow(at), "the uplink detaches from the tap");
                assert_eq!(uplink.status(at.now).unwrap().state, UplinkState::Gone);
                let deadline = Instant::now() + Duration::from_secs(60);
                let is_back = |uplink: &InterfaceUplink<FailingTap>| {
                    let status = uplink.status(at.now).unwrap();
                    (status.state, status.reattached) == (UplinkState::Up, round)
                };
                while !is_back(&uplink) {
                    assert!(Instant::now() < deadline, "{:?}", uplink.status(at.now));
                    std::thread::sleep(Duration::from_millis(20));
                    uplink.follow(at);
                }
                assert!(uplink.transmit(&[0xff; 60]), "the tap takes no frame");
            }
        });
    });
}
