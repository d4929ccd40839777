//! Tests that VF requests are served once and in order, with bounded work per poll of the monitor thread.

use super::admin::{AdminQueueFirmware, VFS, VfMessage};
use super::monitor::PfInboxThread;
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::{pf_register as pf, register as own};
use avf_nic::Nic;
use driver::avf::inbox::{VfMessageInbox, VfMessageInboxLimits};
use driver::avf::queue::{AdminDescriptorContents, AdminReceiveQueue, MessageFromVf};
use i82576::Time;
use pcie::{Bus, DmaFault, Function, Iova};

const SLOTS: u16 = 32;

fn machine(limits: VfMessageInboxLimits) -> (Vec<u8>, AdminQueueFirmware, PfInboxThread) {
    let mut ring = vec![0; usize::from(SLOTS) * SIZE];
    let queue = AdminReceiveQueue::new(SLOTS, 4_096, 0, VFS, ring.as_mut_slice());
    (ring, AdminQueueFirmware::new(SLOTS), PfInboxThread::new(VfMessageInbox::new(queue, limits, VFS)))
}

fn vf_message(vf: u16, operation: u32) -> VfMessage {
    VfMessage { vf, operation, length: 24 }
}

/// Returns the served messages of VFs, in the form in which the VFs sent them.
fn asked(served: &[MessageFromVf]) -> Vec<VfMessage> {
    served.iter().map(|m| VfMessage { vf: m.vf, operation: m.operation, length: m.length }).collect()
}

const LIMITS: VfMessageInboxLimits = VfMessageInboxLimits { messages: 8, resets_every: 1 };

#[test]
fn monitor_serves_vf_messages_once_in_order_across_ring_wraps() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    let mut seen = Vec::new();
    for n in 0..1_000 {
        assert!(card.send(vf_message((n % 5) as u16, n), &mut ring));
        if n % 7 == 0 {
            seen.extend(monitor.visit(&mut ring, &mut card, &mut 0).served);
        }
    }
    loop {
        let served = monitor.visit(&mut ring, &mut card, &mut 0).served;
        assert!(served.len() <= 8, "bounded");
        if served.is_empty() {
            break;
        }
        seen.extend(served);
    }
    assert!(seen.iter().map(|message| message.operation).eq(0..1_000));
}

#[test]
fn full_monitor_queue_refuses_further_vf_messages() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    let sent = (0..100).filter(|n| card.send(vf_message(1, *n), &mut ring)).count();
    assert_eq!((sent, card.refused), (31, 69));
    let mut served = 0;
    for _ in 0..4 {
        served += monitor.visit(&mut ring, &mut card, &mut 0).served.len();
    }
    assert_eq!(served, 31);
    let again = (0..100).filter(|n| card.send(vf_message(1, *n), &mut ring)).count();
    assert_eq!(again, 31, "the queue accepts as many messages as were served");
}

#[test]
fn vf_reset_cancels_only_its_own_queued_requests() {
    let (mut ring, mut card, mut monitor) = machine(LIMITS);
    for (vf, operation) in [(1, 10), (2, 20), (1, 11)] {
        assert!(card.send(vf_message(vf, operation), &mut ring));
    }
    let mut resets = 1 << 1;
    let visit = monitor.visit(&mut ring, &mut card, &mut resets);
    assert_eq!((asked(&visit.served), resets, monitor.dropped()), (vec![vf_message(2, 20)], 0, 2));
    card.send(vf_message(1, 12), &mut ring);
    let visit = monitor.visit(&mut ring, &mut card, &mut resets);
    assert_eq!(asked(&visit.served), [vf_message(1, 12)]);
}

#[test]
fn only_one_processor_at_a_time_runs_the_monitor_thread() {
    let (_, _, mut monitor) = machine(LIMITS);
    assert!(monitor.enter() && !monitor.enter());
    monitor.leave();
    assert!(monitor.enter());
}

/// Address of the PF's message buffers in the test. The PF's ring is at lower addresses.
const BUFFERS: u64 = 0x1000;
/// Address in the test of the VFs' send rings.
const RINGS: u64 = 0x4_0000;

/// Memory that the PF and all VFs of the card can access.
struct CardMemory(Vec<u8>);

impl Bus for CardMemory {
    fn dma_read(&mut self, _: Function, at: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
        Ok(())
    }

    fn dma_write(&mut self, _: Function, at: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.0[at as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn msix(&mut self, _: Function, _: u16) {}
}

/// Real `avf_nic` card with a PF queue of `SLOTS` buffers and two sending VFs.
struct AvfCardFixture {
    card: Nic,
    memory: CardMemory,
    queue: AdminReceiveQueue,
    tails: [u32; 2],
}

impl AvfCardFixture {
    fn new() -> Self {
        let mut memory = CardMemory(vec![0; 0x4_4000]);
        let queue = AdminReceiveQueue::new(SLOTS, 4_096, BUFFERS, VFS, memory.0.as_mut_slice());
        let mut card = Nic::new(2);
        let length = u32::from(SLOTS) | aqlen::ENABLE;
        card.pf_write(pf::PF_ARQLEN, length, &mut memory);
        card.pf_write(pf::PF_ARQT, queue.tail().into(), &mut memory);
        for vf in 0..2 {
            card.set_bus_master(vf, true);
            card.write(vf, own::VF_ATQBAL, (RINGS + 0x1000 * u64::from(vf)) as u32);
            card.write(vf, own::VF_ATQLEN, length);
        }
        Self { card, memory, queue, tails: [0; 2] }
    }

    /// Sends a message of a VF's driver. Returns `true` if the card passed the message to the PF.
    fn send(&mut self, message: VfMessage) -> bool {
        let VfMessage { vf, operation, length } = message;
        let tail = &mut self.tails[usize::from(vf)];
        let sent = AdminQueueDescriptor {
            flags: flag::BUF | flag::RD,
            opcode: opcode::SEND_TO_PF,
            length,
            cookie_high: operation,
            ..AdminQueueDescriptor::default()
        };
        let at = RINGS as usize + 0x1000 * usize::from(vf) + *tail as usize * SIZE;
        self.memory.0[at..][..SIZE].copy_from_slice(&sent.emit());
        *tail = (*tail + 1) % u32::from(SLOTS);
        self.card.write(vf as u8, own::VF_ATQT, *tail);
        self.card.poll(Time::ZERO, &mut self.memory);
        self.card.read(vf as u8, own::VF_ATQH) == *tail
    }

    fn take(&mut self) -> Option<AdminDescriptorContents> {
        let found = self.queue.take(self.memory.0.as_mut_slice());
        self.card.pf_write(pf::PF_ARQT, self.queue.tail().into(), &mut self.memory);
        found
    }
}

/// Compares messages and ring slots of the modelled admin queue and the `nic` crate's. They differ only without a free
/// buffer: the real card leaves a message in its VF's ring, the modelled card refuses it.
#[test]
fn modelled_admin_queue_delivers_messages_like_the_avf_card() {
    let mut real = AvfCardFixture::new();
    let mut ring = vec![0; usize::from(SLOTS) * SIZE];
    let mut queue = AdminReceiveQueue::new(SLOTS, 4_096, BUFFERS, VFS, ring.as_mut_slice());
    let mut model = AdminQueueFirmware::new(SLOTS);
    for round in 0..7 {
        for n in 0..31 {
            let message = VfMessage { vf: n % 2, operation: 100 * round + u32::from(n), length: 8 + n };
            assert!(model.send(message, &mut ring) && real.send(message), "{message:?}");
        }
        let more = vf_message(0, 1);
        assert!(
            !model.send(more, &mut ring) && (round < 6 || !real.send(more)),
            "a message without a posted buffer is refused"
        );
        for _ in 0..31 {
            let found = queue.take(ring.as_mut_slice());
            assert!(matches!(found, Some(AdminDescriptorContents::Message(_))));
            assert_eq!(found, real.take());
            model.set_tail(queue.tail());
        }
    }
}
