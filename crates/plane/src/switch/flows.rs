//! Remembers decisions by flow: sender, addresses and VLAN. A decision, the checks of the sender included, depends only on these,
//! on the tables and on the frame's length. New tables begin a new generation, and flows of earlier generations no longer match.
//! Frames that fit every port are not decided by their length; longer frames are not remembered and are looked up each time.
//!
//! Each sender has its own flows: a guest that sends with ever new addresses evicts only its own, and each of its frames costs a
//! look-up. Flows are not saved: a restored plane starts without any.

use super::claims::AddressClaims;
use super::decide::{FrameMetadata, FrameOrigin, SwitchDecision};
use super::tables::SwitchTables;
use crate::frame::AddressPair;
use alloc::boxed::Box;
use units::MacAddress;

/// Number of flows that the flow cache remembers per sender.
const FLOWS: usize = 32;

/// Key of a sender's flow: all bits of both addresses, of the tag, and of the generation. Zero is no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FlowKey(u64, u64);

impl FlowKey {
    const TAGGED: u64 = 1 << 48;
    /// Lowest bit of the generation in a flow's key, which has all bits from here to 63.
    const GENERATION: u32 = 49;

    #[inline]
    fn new(ends: AddressPair, vlan: Option<u16>, generation: u64) -> Self {
        let tag = vlan.map_or(0, |tag| Self::TAGGED | u64::from(tag) << 32);
        Self(ends.low, u64::from(ends.high) | tag | generation)
    }

    /// Returns the source address of the flow's frames.
    fn source(self) -> MacAddress {
        // The upper half has the tag and the generation.
        AddressPair { low: self.0, high: (self.1 & 0xffff_ffff) as u32 }.source()
    }

    /// Returns the flow's index among the sender's flows, by Fibonacci hashing.
    #[inline]
    fn place(self) -> usize {
        let mixed = (self.0 ^ self.1.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Bits that always fit: the shift leaves an index below `FLOWS`.
        usize::try_from(mixed >> (64 - FLOWS.ilog2())).unwrap_or_default()
    }
}

/// Remembered flows of a sender, with their decisions.
type SenderFlows = [(FlowKey, SwitchDecision); FLOWS];

/// Remembered flows of all senders.
#[derive(Debug, Clone)]
pub(crate) struct FlowCache<const N: usize> {
    ports: Box<[SenderFlows; N]>,
    uplink: Box<SenderFlows>,
    /// Generation of the tables, shifted to its place in a flow's key; never zero.
    generation: u64,
    remembers: bool,
}

impl<const N: usize> FlowCache<N> {
    const NOTHING: (FlowKey, SwitchDecision) = (FlowKey(0, 0), SwitchDecision::NOWHERE);
    const NONE: SenderFlows = [Self::NOTHING; FLOWS];

    /// Creates a flow cache that remembers no flow.
    pub(crate) fn new() -> Self {
        Self {
            ports: Box::new([Self::NONE; N]),
            uplink: Box::new(Self::NONE),
            generation: 1 << FlowKey::GENERATION,
            remembers: true,
        }
    }

    /// Forgets all flows, since the tables have changed. When the generation wraps, the entries are erased: flows of the first
    /// generation would match again.
    pub(crate) fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1 << FlowKey::GENERATION);
        if self.generation == 0 {
            self.ports.fill(Self::NONE);
            self.uplink.fill(Self::NOTHING);
            self.generation = 1 << FlowKey::GENERATION;
        }
    }

    /// Forgets the flows of frames from the uplink.
    pub(crate) fn forget_uplink(&mut self) {
        self.uplink.fill(Self::NOTHING);
    }

    #[cfg(test)]
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Switches the flow cache off.
    pub(crate) fn never_remember(&mut self) {
        self.remembers = false;
        self.forget();
    }

    /// Returns true if decisions for flows are remembered.
    pub(crate) fn remembers(&self) -> bool {
        self.remembers
    }

    /// Returns the decision of [`SwitchTables::decide`] on a frame of `length` bytes.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        (tables, claims): (&SwitchTables<N>, &mut AddressClaims<N>),
        ends: AddressPair,
        vlan: Option<u16>,
        length: usize,
        origin: FrameOrigin,
    ) -> SwitchDecision {
        let key = FlowKey::new(ends, vlan, self.generation);
        let (known, decision) = &self.flows_of(origin)[key.place()];
        let usual = tables.fits_everybody(length, vlan.is_some());
        if *known == key && usual {
            return *decision;
        }
        let frame = FrameMetadata { dst: ends.destination(), src: ends.source(), vlan, length, origin };
        self.decide_closely((tables, claims), key, usual, &frame)
    }

    /// Decides on a frame by the switch tables, remembers a `usual` frame's flow, and notes the station of a frame from the
    /// uplink. The function is out of line, because most frames belong to a remembered flow.
    #[cold]
    #[inline(never)]
    fn decide_closely(
        &mut self,
        (tables, claims): (&SwitchTables<N>, &mut AddressClaims<N>),
        key: FlowKey,
        usual: bool,
        frame: &FrameMetadata,
    ) -> SwitchDecision {
        if frame.origin == FrameOrigin::Uplink
            && let Some(evicted) = claims.note(frame.src, &tables.exact)
        {
            self.forget_station(evicted);
        }
        let decision = tables.decide(frame);
        // A decision that must not be found again is stored under the empty key.
        let known = if usual && self.remembers { key } else { FlowKey::default() };
        self.flows_of(frame.origin)[key.place()] = (known, decision);
        decision
    }

    /// Forgets the flows of a station beyond the uplink, so that its next frame is noted.
    fn forget_station(&mut self, station: MacAddress) {
        self.uplink
            .iter_mut()
            .filter(|(key, _)| key.source() == station)
            .for_each(|flow| *flow = Self::NOTHING);
    }

    #[inline]
    fn flows_of(&mut self, origin: FrameOrigin) -> &mut SenderFlows {
        match origin {
            FrameOrigin::Port(port) => &mut self.ports[port.index::<N>()],
            FrameOrigin::Uplink => &mut self.uplink,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FLOWS, FlowCache, FlowKey};
    use crate::frame::AddressPair;
    use crate::switch::{
        AddressClaims, FrameMetadata, FrameOrigin, MaxFrameLength, PortGuard, PortMirrorRule, SwitchTables,
    };
    use crate::{PortIndex, PortSet};
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
    use units::{MacAddress, VlanIds};

    const PORTS: usize = 16;

    fn address() -> impl Strategy<Value = [u8; 6]> {
        let few = (0u8..6).prop_map(|n| [2, 0, 0, 0, 0, n]);
        let group = (0u8..4).prop_map(|n| [1, 0x80, 0xc2, 0, 0, n * 7]);
        prop_oneof![6 => few, 1 => group, 1 => Just([0xff; 6])]
    }

    fn frame() -> impl Strategy<Value = (AddressPair, FrameMetadata)> {
        let vlan = proptest::option::of(prop_oneof![0u16..4, (0u16..4).prop_map(|id| id | 0x6000)]);
        let length = prop_oneof![60usize..100, 1400usize..1600, 1512usize..1520, 8000usize..9700];
        let origin = prop_oneof![
            Just(FrameOrigin::Uplink),
            (0u32..16).prop_map(|n| FrameOrigin::Port(PortIndex::of_field(n)))
        ];
        (address(), address(), vlan, length, origin).prop_map(|(dst, src, vlan, length, origin)| {
            (
                AddressPair::of(&[dst, src].concat()),
                FrameMetadata { dst: MacAddress(dst), src: MacAddress(src), vlan, length, origin },
            )
        })
    }

    /// Draws random switch tables: addresses, VLANs, checks of senders, and perhaps a mirror rule.
    fn tables() -> impl Strategy<Value = SwitchTables<PORTS>> {
        let fits = proptest::array::uniform16(1500usize..9000);
        (any::<[bool; 6]>(), proptest::array::uniform16(any::<u16>()), fits).prop_map(
            |(flags, sets, fits)| {
                let ports = |n: usize| PortSet::new(sets[n].into());
                let mut tables = SwitchTables::closed(PORTS);
                (tables.shared, tables.replicate, tables.alone) = (true, flags[0], !flags[0]);
                (tables.filter_vlans, tables.loopback, tables.all) =
                    (flags[1], flags[2], PortSet::new(0xffff));
                (tables.untagged, tables.broadcast, tables.every_multicast) = (ports(0), ports(1), ports(2));
                (tables.check_source, tables.check_vlan, tables.enabled) =
                    (ports(3), ports(4), ports(5) | ports(6));
                (tables.guests, tables.own_loopback, tables.default_ports) = (ports(7), ports(8), ports(9));
                tables.vlans.accept(VlanIds::from_bitmap(|word| if word == 0 { 0b1011 } else { 0 }));
                for n in 0..4u8 {
                    tables.vlans.add(n.into(), ports(usize::from(n) + 10), flags[3]);
                    tables.exact.add(MacAddress([2, 0, 0, 0, 0, n]), PortIndex::of_field(n.into()).only());
                }
                if flags[4] {
                    let rule = PortMirrorRule {
                        to: ports(14).first(),
                        ports: ports(15),
                        from_uplink: flags[5],
                        to_uplink: !flags[5],
                        vlans: VlanIds::new(),
                    };
                    tables.mirrors.add(rule);
                }
                let fit = |bytes: usize| {
                    if bytes.is_multiple_of(4) {
                        MaxFrameLength::STANDARD
                    } else {
                        MaxFrameLength::whole(bytes)
                    }
                };
                tables.set_longest(fits[0] + 10);
                tables.set_fits(fits.map(fit));
                tables
            },
        )
    }

    proptest! {
        #[test]
        fn flow_cache_decision_equals_the_switch_tables_decision(
            policies in proptest::collection::vec((tables(), proptest::collection::vec(frame(), 1..40)), 1..4)
        ) {
            let (mut flows, mut claims) = (FlowCache::new(), AddressClaims::new());
            // Near the last generation, so that some cases wrap.
            flows.generation = (1u64 << (64 - FlowKey::GENERATION)).wrapping_sub(2) << FlowKey::GENERATION;
            for (tables, frames) in &policies {
                flows.forget();
                for (ends, frame) in frames.iter().chain(frames) {
                    let FrameMetadata { vlan, length, origin, .. } = *frame;
                    assert_eq!(flows.decide((tables, &mut claims), *ends, vlan, length, origin), tables.decide(frame), "{frame:?}");
                }
            }
        }
    }

    #[test]
    fn wrapped_generation_of_the_flow_cache_discards_old_flows() {
        let (mut flows, tables) = (FlowCache::<PORTS>::new(), SwitchTables::closed(0));
        let ends = AddressPair::of(&[[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]].concat());
        let decide = |flows: &mut FlowCache<PORTS>, tables: &SwitchTables<PORTS>| {
            flows.decide((tables, &mut AddressClaims::new()), ends, None, 60, FrameOrigin::Uplink)
        };
        let closed = decide(&mut flows, &tables);
        let mut open = tables;
        (open.default_ports, open.enabled, open.all) = (PortSet::new(1), PortSet::new(1), PortSet::new(1));
        for _ in 0..1 << (64 - FlowKey::GENERATION) {
            flows.forget();
        }
        assert_ne!(decide(&mut flows, &open), closed);
    }

    #[test]
    fn flows_of_a_flooding_sender_evict_none_of_another() {
        let (mut flows, closed) = (FlowCache::<PORTS>::new(), SwitchTables::closed(1));
        let generation = flows.generation;
        let ends = |number: u32| {
            let [a, b, c, d] = number.to_be_bytes();
            AddressPair::of(&[[2, 0, 0, 0, 0, 1], [2, 0, a, b, c, d]].concat())
        };
        let decide = |flows: &mut FlowCache<PORTS>, tables: &SwitchTables<PORTS>, sender, number| {
            let origin = FrameOrigin::Port(PortIndex::of_field(sender));
            flows.decide((tables, &mut AddressClaims::new()), ends(number), None, 60, origin)
        };
        // Port 2's part of the cache is full of flows that closed tables have decided.
        let mut kept = [None; FLOWS];
        (0..10_000)
            .for_each(|number| kept[FlowKey::new(ends(number), None, generation).place()] = Some(number));
        let kept = kept.map(|number| number.expect("each place has a flow"));
        let decisions = kept.map(|number| decide(&mut flows, &closed, 2, number));
        let mut open = closed.clone();
        (open.shared, open.loopback) = (true, true);
        (open.enabled, open.all) = (PortSet::new(1 << 5), PortSet::new(1 << 5));
        open.exact.add(MacAddress([2, 0, 0, 0, 0, 1]), PortIndex::of_field(5).only());
        (0..100_000).for_each(|number| _ = decide(&mut flows, &open, 1, number));
        for (number, decision) in kept.into_iter().zip(decisions) {
            assert_ne!(decide(&mut flows.clone(), &open, 1, number), decision, "the tables decide alike");
            assert_eq!(decide(&mut flows, &open, 2, number), decision, "flow {number} was evicted");
        }
    }

    #[test]
    fn evicted_station_is_noted_again_with_its_next_frame() {
        let (mut flows, tables) = (FlowCache::<PORTS>::new(), SwitchTables::closed(0));
        let mut claims = AddressClaims::<PORTS>::new();
        let guard = PortGuard { checks_claims: true, ..PortGuard::default() };
        claims.set_rules(&[guard], &[], 7, &tables.exact);
        let (port, station) = (PortIndex::of_field(0), MacAddress([2, 0, 0, 0, 0, 2]));
        let ends = |source: MacAddress| AddressPair::of(&[[2, 0, 0, 0, 0, 1], source.0].concat());
        let generation = flows.generation;
        let place = |source| FlowKey::new(ends(source), None, generation).place();
        let mut arrive = |claims: &mut _, source| {
            flows.decide((&tables, claims), ends(source), None, 60, FrameOrigin::Uplink);
        };
        arrive(&mut claims, station);
        assert!(!claims.may_learn(port, station));
        // A flood that evicts the station, but not its flow.
        let flood = (0..100_000u32).map(|n| {
            let [a, b, c, d] = n.to_be_bytes();
            MacAddress([6, 6, a, b, c, d])
        });
        for source in flood.filter(|source| place(*source) != place(station)) {
            arrive(&mut claims, source);
        }
        assert!(claims.may_learn(port, station), "the flood has not evicted the station");
        arrive(&mut claims, station);
        assert!(!claims.may_learn(port, station));
    }
}
