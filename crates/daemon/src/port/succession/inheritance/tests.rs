//! Tests of the saved PCI configuration on 82576 and AVF ports. A guest's write to configuration space or MSI-X table
//! is saved for its function alone.

use super::super::notes::{note_function, note_software};
use super::*;
use crate::config::HostConfig;
use crate::confine::ThreadSandboxes;
use crate::port::engine::family;
use crate::state::port::ClientState;
use pcie::Function;
use pcie::VfIndex;
use std::path::Path;
use vfio_user::wire::pci_region::{BAR3, CONFIG};

const VFS: usize = 7;
const NOW: Time = Time::from_nanos(1_000_000_000);
const VF: VfIndex = VfIndex::of_field(5);
/// Value of the PCI command register with memory and bus master enabled.
const ENABLED: [u8; 2] = [6, 0];

fn config(family: CardFamily, settings: &str) -> HostConfig {
    let name = family.name();
    let text = format!("[[port]]\nfamily = \"{name}\"\nvfs = {VFS}\n{settings}");
    HostConfig::check(HostConfig::parse(&text).unwrap(), Path::new("/run/softiov")).unwrap()
}

fn port(family: CardFamily) -> (PortConfig, GuestBus) {
    let mut config = config(family, "");
    let threads = ThreadSandboxes::prepare(&config).unwrap();
    let bus = GuestBus::new(("pf0", &[family; VFS]), 1 << 30, &threads.helper).unwrap();
    (config.ports.remove(0), bus)
}

fn read<const N: usize>(card: &mut dyn family::PortCard, region: u32, offset: u64) -> [u8; N] {
    let mut bytes = [0; N];
    card.read(VF.function(), region, offset, &mut bytes, NOW);
    bytes
}

#[test]
fn pci_configuration_write_saves_state_of_its_function_only() {
    for family in [CardFamily::I82576, CardFamily::Avf] {
        let (config, mut bus) = port(family);
        let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
        let journal = PortJournal::new(family.limits().vfs).unwrap();
        let notes = journal.function(VF.function());
        note_software(&journal, &mut *card);
        let whole = journal.software();
        let control = u64::from(read::<1>(&mut *card, CONFIG, 0x34)[0]);
        let writes: [(u32, u64, &[u8]); 3] =
            [(CONFIG, 4, &ENABLED), (BAR3, 8, &[7, 1, 0, 0]), (CONFIG, control, &[0])];
        for (region, offset, data) in writes {
            card.write(VF.function(), region, offset, data, NOW);
            note_function(&journal, &notes, VF.function(), &mut *card);
            assert!(journal.software() == whole, "{family:?}: the note of all functions does not change");
            let noted = journal.configuration(VF.function()).unwrap();
            assert!(noted.len() < 200, "{family:?}: {} bytes of one function", noted.len());
        }
        let found = configurations(&config, &journal);
        assert_eq!(found.iter().map(|(vf, _)| *vf).collect::<Vec<_>>(), [VF]);
        let mut card = by_software(&config, true, (&whole, found), &mut bus, NOW).unwrap().card;
        assert!(card.is_bus_master(VF.function()) && !card.is_bus_master(Function::Vf(4)));
        assert_eq!(read(&mut *card, CONFIG, 4), ENABLED);
        assert_eq!(read(&mut *card, BAR3, 8), [7, 1, 0, 0]);
        note_software(&journal, &mut *card);
        assert!(configurations(&config, &journal).is_empty(), "{family:?}: the software's note includes it");
    }
}

#[test]
fn damaged_saved_pci_configuration_of_a_function_is_ignored() {
    let (config, mut bus) = port(CardFamily::Avf);
    let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
    let journal = PortJournal::new(64).unwrap();
    note_software(&journal, &mut *card);
    assert!(journal.function(VF.function()).note_configuration(b"no state"));
    assert!(configurations(&config, &journal).is_empty());
}

#[test]
fn next_process_accepts_swapped_mac_addresses_of_two_vfs() {
    let swapped = |one: u8, two: u8| {
        let vf =
            |n: usize, mac: u8| format!("[[port.vf]]\nindex = {n}\nmac = \"02:00:00:00:00:{mac:02x}\"\n");
        vf(0, one) + &vf(1, two)
    };
    for family in [CardFamily::I82576, CardFamily::Avf, CardFamily::Virtio] {
        let (_, mut bus) = port(family);
        let [before, after] =
            [(1, 2), (2, 1)].map(|(one, two)| config(family, &swapped(one, two)).ports.remove(0));
        let mut card = anew(&before, true, &mut bus, NOW).unwrap().card;
        let clients = vec![ClientState::default(); VFS];
        let rest = card.save_all(Time::ZERO, clients, &mut bus, NOW).unwrap();
        let found = at_rest(&after, &rest, &mut bus, NOW).map(|inherited| inherited.card.is_hosted());
        assert!(matches!(found, Ok(true)), "{family:?}: {:?}", found.err());
    }
}

/// A virtio VF has no PCI configuration, so only the driver state is saved.
#[test]
fn virtio_port_is_set_up_from_the_saved_driver_state() {
    let (config, mut bus) = port(CardFamily::Virtio);
    let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
    card.quarantine(VF, true, &mut bus, NOW);
    let journal = PortJournal::new(CardFamily::Virtio.limits().vfs).unwrap();
    note_function(&journal, &journal.function(VF.function()), VF.function(), &mut *card);
    let found = configurations(&config, &journal);
    assert!(found.is_empty() && !journal.software().is_empty());
    let trusted = (&journal, SavedStateTrust::Notes);
    let config = self::config(CardFamily::Virtio, QUARANTINE).ports.remove(0);
    let (inherited, exact) = super::card(&config, true, trusted, &mut bus, NOW).unwrap();
    let quarantine = inherited.card.vf_status(VF).unwrap().conduct.quarantine;
    assert_eq!((quarantine.as_deref(), exact), (Some("administrator"), false));
}

/// Returns the causes of the VF's quarantine in two successors of a card: one restored from the saved state of the whole port, and
/// one set up from the driver state. `settings` are the successors' settings of the port.
fn successors_quarantines(
    card: &mut dyn family::PortCard,
    (family, settings): (CardFamily, &str),
    bus: &mut GuestBus,
) -> [Option<String>; 2] {
    let config = config(family, settings).ports.remove(0);
    let clients = vec![ClientState::default(); VFS];
    let rest = card.save_all(Time::ZERO, clients, bus, NOW).unwrap();
    let software = card.save_drivers().unwrap();
    let restored = at_rest(&config, &rest, bus, NOW).unwrap();
    let set_up = by_software(&config, true, (&software, Vec::new()), bus, NOW).unwrap();
    [restored, set_up].map(|successor| {
        let status = successor.card.vf_status(VF).unwrap();
        let is_set = status.settings.quarantine;
        let cause = status.conduct.quarantine;
        assert_eq!(
            is_set,
            Some(cause.as_deref() == Some("administrator")),
            "{family:?}: the status contradicts itself"
        );
        cause
    })
}

/// Families of the VF, each with its port's settings. The VFs of a mixed port have the family of the port or another.
const FAMILIES: [(CardFamily, &str); 5] = [
    (CardFamily::I82576, ""),
    (CardFamily::Avf, ""),
    (CardFamily::Virtio, ""),
    (CardFamily::Avf, "[[port.vf]]\nindex = 0\nfamily = \"virtio\"\n"),
    (CardFamily::Virtio, "[[port.vf]]\nindex = 0\nfamily = \"avf\"\n"),
];
const QUARANTINE: &str = "[[port.vf]]\nindex = 5\nquarantine = true\n";

/// The process ends after the state file keeps the release, and before the port applies it.
#[test]
fn successor_releases_vf_that_the_settings_release() {
    let (_, mut bus) = port(CardFamily::Avf);
    for (family, others) in FAMILIES {
        let config = config(family, &format!("{others}{QUARANTINE}")).ports.remove(0);
        let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
        let found = successors_quarantines(&mut *card, (family, others), &mut bus);
        assert_eq!(found, [None, None], "{family:?} {others}");
    }
}

#[test]
fn successor_keeps_a_quarantine_that_the_settings_have() {
    let (_, mut bus) = port(CardFamily::Avf);
    for (family, others) in FAMILIES {
        let config = config(family, others).ports.remove(0);
        let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
        card.quarantine(VF, true, &mut bus, NOW);
        let found = successors_quarantines(&mut *card, (family, &format!("{others}{QUARANTINE}")), &mut bus);
        assert_eq!(
            found,
            [Some("administrator".into()), Some("administrator".into())],
            "{family:?} {others}"
        );
    }
}

#[test]
fn successor_keeps_a_quarantine_for_an_offence() {
    let (_, mut bus) = port(CardFamily::Avf);
    for (family, others) in FAMILIES {
        let settings = format!("limits.interrupts.quarantine = 1000\n{others}");
        let config = config(family, &settings).ports.remove(0);
        let mut card = anew(&config, true, &mut bus, NOW).unwrap().card;
        for (interrupts, at) in [(0, 1), (5_000, 2)] {
            card.judge(VF, interrupts, &mut bus, Time::from_nanos(at * 1_000_000_000));
        }
        let found = successors_quarantines(&mut *card, (family, &settings), &mut bus);
        assert_eq!(found, [Some("interrupts".into()), Some("interrupts".into())], "{family:?} {others}");
    }
}
