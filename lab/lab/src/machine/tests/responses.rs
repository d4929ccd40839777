//! Tests of a guest program that answers network requests, one at a time.

use super::setup;
use crate::machine::topology::WireProperties;
use crate::machine::{ClientTraffic, NetworkAccessMode, ServerResults, ServerSetup, ServerSimulation};
use driver::moderation::ModerationPolicy;
use guest::{KernelConfig, ProgramWorkload};
use hypervisor::cost::CostConstant;
use hypervisor::domain::DomainKind;
use sim::VirtualDuration;

fn responder(interval_us: u32) -> ServerSetup {
    ServerSetup {
        spec: KernelConfig::linux_2_6_28(ProgramWorkload::RequestResponse),
        traffic: ClientTraffic::RequestResponse,
        moderation: ModerationPolicy::Fixed(interval_us),
        ..setup()
    }
}

fn measured(setup: &ServerSetup) -> ServerResults {
    ServerSimulation::new(setup)
        .unwrap()
        .measure(VirtualDuration::from_millis(20), VirtualDuration::from_millis(100))
        .unwrap()
}

/// Checks that a request that arrives within the interrupt interval waits for the interval's end: one transaction per
/// interval.
#[test]
fn guest_program_responds_once_per_interrupt() {
    for interval_us in [1_000, 500, 100] {
        let measured = measured(&responder(interval_us));
        let each = f64::from(interval_us) * 1e-6;
        for rate in [measured.transactions_per_s(), measured.interrupts_per_s()] {
            assert!((rate * each - 1.0).abs() < 0.02, "{interval_us} us: {rate}");
        }
    }
}

/// Cost constants that a bare machine charges from a request's interrupt to its response.
const PATH: [CostConstant; 12] = [
    CostConstant::InterruptEntry,
    CostConstant::InterruptHandler,
    CostConstant::Softirq,
    CostConstant::NapiEntry,
    CostConstant::RxDriver,
    CostConstant::RxSkb,
    CostConstant::RxUdp,
    CostConstant::RxUdpAccounting,
    CostConstant::ContextSwitch,
    CostConstant::RxWake,
    CostConstant::TxSyscall,
    CostConstant::TxStack,
];

/// Checks that an unthrottled round trip takes only processing time and each frame's 84 bytes on the wire; copies and
/// card accesses are added.
#[test]
fn unthrottled_round_trip_takes_only_processing_and_wire_time() {
    let setup = ServerSetup { kind: DomainKind::Native, ..responder(0) };
    let cycles: u64 = PATH.iter().map(|cost| setup.table[*cost]).sum();
    let path = cycles as f64 / setup.table[CostConstant::ClockHertz] as f64 * 1e6 + 2.0 * 0.672;
    let round_trip = measured(&setup).round_trip_us();
    assert!(
        (path..path + 1.0).contains(&round_trip),
        "the round trip takes {round_trip} us, the path {path} us"
    );
}

/// Checks that a transaction of request and response takes a round trip and the client's turnaround, since a client has
/// one outstanding request.
#[test]
fn request_rate_is_one_per_round_trip_plus_client_turnaround() {
    for interval_us in [0, 50, 1_000] {
        let measured = measured(&responder(interval_us));
        let each = measured.round_trip_us() + WireProperties::GIGABIT.turnaround.as_secs_f64() * 1e6;
        let rate = measured.transactions_per_s() * each / 1e6;
        assert!((rate - 1.0).abs() < 0.02, "{interval_us} us: {rate}");
    }
}

/// Checks that every request was read and answered, except one request in flight per client.
#[test]
fn no_request_or_response_of_a_guest_is_lost() {
    for network in [NetworkAccessMode::Direct, NetworkAccessMode::Split { workers: 1 }] {
        let guests = 3;
        let mut world = ServerSimulation::new(&ServerSetup { guests, network, ..responder(50) }).unwrap();
        world.measure(VirtualDuration::from_millis(5), VirtualDuration::from_millis(20)).unwrap();
        let line = &world.system.ports[0].line;
        let answered = line.round_trips.len() as u64;
        let responses: u64 = world.system.vms.iter().map(|vm| vm.counters().responses).sum();
        let read: u64 = world.system.vms.iter().map(|vm| vm.counters().read_packets).sum();
        let on_the_way = |from: u64, to: u64| from.checked_sub(to).is_some_and(|left| left <= guests.into());
        assert!(on_the_way(line.frames, read), "{network:?}: {} asked, {read} read", line.frames);
        assert!(on_the_way(read, responses), "{network:?}: {read} read, {responses} answered");
        assert!(on_the_way(responses, answered), "{network:?}: {responses}, {answered} came");
        assert!(world.system.vms.iter().all(|vm| vm.counters().responses > 100), "{network:?}");
        assert!(world.system.vms.iter().all(|vm| vm.counters().send_drops == 0), "{network:?}");
    }
}
