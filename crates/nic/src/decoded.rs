//! Values that follow from a port's registers, kept so that no frame has to compute them. They are decoded forms of
//! registers ([`ReceiveSettings`], [`RssSettings`], [`ReceiveFilters`], and the plane's tables). The register table names the
//! forms that a register belongs to ([`DecodedRegisterSet`]); a write to it has them loaded at the next poll. Each form is
//! defined in the module that uses it.

use crate::file::RegisterMap;
use crate::offload::rss::RssSettings;
use crate::state::DeviceState;
use crate::steering::ReceiveFilters;
use crate::switch::{self, ReceiveSettings};
use i82576::table::DecodedRegisterSet;

/// Decoded forms of the card's registers, which frames use.
#[derive(Debug, Clone)]
pub(crate) struct DecodedRegisters {
    /// Settings of reception: hashing, check sequence, tag type.
    pub(crate) receive: ReceiveSettings,
    /// Key and table of receive-side scaling.
    pub(crate) rss: RssSettings,
    /// Receive filters, which choose a frame's queue.
    pub(crate) steering: ReceiveFilters,
    /// Decoded forms whose registers were written since the last decoding.
    pub(crate) stale: DecodedRegisterSet,
    /// Register at each offset of the PF's BAR0. The map follows from the register table alone and never changes.
    pub(crate) map: RegisterMap,
}

impl DecodedRegisters {
    /// Decodes the registers of a card into all their decoded forms.
    pub(crate) fn new(state: &DeviceState) -> Self {
        Self {
            receive: switch::load(&state.file, state.owners.vfs).1,
            rss: RssSettings::load(&state.file),
            steering: ReceiveFilters::load(&state.file),
            stale: DecodedRegisterSet::NONE,
            map: RegisterMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::offload::rss::RssSettings;
    use crate::steering::ReceiveFilters;
    use crate::switch;
    use crate::{Nic, NicConfig, PollBudget, UnpluggedWire};
    use alloc::vec::Vec;
    use i82576::bits::ctrl;
    use i82576::config::pf::SRIOV;
    use i82576::{MacAddress, Time, VfIndex, register as r, table, window};
    use pcie::Function::{self, Pf, Vf};
    use pcie::capability::sriov;
    use pcie::config::offset;
    use pcie::{Bus, ConfigAccess, DmaFault, Iova};
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    /// Bus for a test, on which every memory request faults.
    struct FaultingBus;

    impl Bus for FaultingBus {
        fn dma_read(&mut self, function: Function, iova: Iova, _into: &mut [u8]) -> Result<(), DmaFault> {
            Err(DmaFault { function, iova })
        }

        fn dma_write(&mut self, function: Function, iova: Iova, _from: &[u8]) -> Result<(), DmaFault> {
            Err(DmaFault { function, iova })
        }

        fn msix(&mut self, _function: Function, _vector: u16) {}
    }

    /// Action of a test that may change a register.
    #[derive(Debug, Clone)]
    enum RegisterTestAction {
        Write(Function, u32, u32),
        WriteBytes(Function, u64, Vec<u8>),
        WriteByPort(u32, u32),
        Vfs(u16),
        FunctionLevelReset(Function),
        ConventionalReset,
        SoftwareReset(Function),
        Clone,
        Poll,
    }

    fn function() -> impl Strategy<Value = Function> {
        prop_oneof![Just(Pf), (0u8..8).prop_map(Vf)]
    }

    /// Draws a register of the PF or of a VF. Each row of the register table is equally likely, regardless of its
    /// number of registers.
    fn register() -> impl Strategy<Value = (Function, u32)> {
        let rows: Vec<Vec<u32>> =
            table::rows().map(|row| row.offsets().chain(row.aliases()).collect()).collect();
        let pf =
            (0..rows.len(), any::<usize>()).prop_map(move |(row, i)| (Pf, rows[row][i % rows[row].len()]));
        let vf = (0u8..8, 0..window::TABLE.len(), any::<u32>()).prop_map(|(vf, row, element)| {
            let row = &window::TABLE[row];
            (Vf(vf), row.offset + element % row.count * row.stride)
        });
        prop_oneof![4 => pf, 1 => vf]
    }

    fn act() -> impl Strategy<Value = RegisterTestAction> {
        let bytes = proptest::collection::vec(any::<u8>(), 1..9);
        prop_oneof![
            12 => (register(), any::<u32>()).prop_map(|((function, at), value)| RegisterTestAction::Write(function, at, value)),
            4 => (register(), 0u64..4, bytes).prop_map(|((function, at), lane, bytes)| {
                RegisterTestAction::WriteBytes(function, u64::from(at) + lane, bytes)
            }),
            2 => (register(), any::<u32>()).prop_map(|((_, at), value)| RegisterTestAction::WriteByPort(at, value)),
            1 => (0u16..9).prop_map(RegisterTestAction::Vfs),
            1 => function().prop_map(RegisterTestAction::FunctionLevelReset),
            1 => Just(RegisterTestAction::ConventionalReset),
            1 => function().prop_map(RegisterTestAction::SoftwareReset),
            1 => Just(RegisterTestAction::Clone),
            4 => Just(RegisterTestAction::Poll),
        ]
    }

    fn perform(nic: &mut Nic, act: &RegisterTestAction) {
        let now = Time::ZERO;
        match act {
            RegisterTestAction::Write(function, at, value) => nic.write(*function, *at, *value, now),
            RegisterTestAction::WriteBytes(function, at, bytes) => {
                nic.write_bytes(*function, *at, bytes, now);
            }
            RegisterTestAction::WriteByPort(at, value) => {
                nic.io_write(0, &at.to_le_bytes(), now);
                nic.io_write(4, &value.to_le_bytes(), now);
            }
            RegisterTestAction::Vfs(vfs) => {
                let on = u32::from(sriov::CONTROL_ENABLE | sriov::CONTROL_MEMORY);
                nic.config_write(Pf, SRIOV + sriov::CONTROL, 2, 0);
                nic.config_write(Pf, SRIOV + sriov::NUM_VFS, 2, u32::from(*vfs));
                nic.config_write(Pf, SRIOV + sriov::CONTROL, 2, on);
            }
            RegisterTestAction::FunctionLevelReset(function) => nic.reset_function(*function),
            RegisterTestAction::ConventionalReset => nic.conventional_reset(),
            RegisterTestAction::SoftwareReset(Pf) => nic.write(Pf, r::CTRL, ctrl::RST, now),
            RegisterTestAction::SoftwareReset(Vf(n)) => {
                let Some(vf) = VfIndex::new(*n) else { return };
                nic.write(Pf, r::vf_block(vf), ctrl::RST, now);
            }
            RegisterTestAction::Clone => *nic = nic.clone(),
            RegisterTestAction::Poll => {
                let _ = nic.poll(now, PollBudget::default(), &mut FaultingBus, &mut UnpluggedWire);
            }
        }
    }

    proptest! {
        #[test]
        fn cached_decoded_settings_follow_every_register_write(acts in proptest::collection::vec(act(), 1..60), mode in 0u32..8) {
            let mut nic = Nic::new(NicConfig { mac: MacAddress([2, 0, 0, 0, 0, 1]), iov: true, loopback: None });
            let master = u32::from(offset::COMMAND_MEMORY | offset::COMMAND_BUS_MASTER);
            nic.config_write(Pf, offset::COMMAND, 2, master);
            nic.write(Pf, r::MRQC, mode, Time::ZERO);
            for act in &acts {
                perform(&mut nic, act);
                nic.decode();
                let (tables, receive) = switch::load(&nic.state.file, nic.state.owners.vfs);
                assert_eq!((nic.plane.tables(), nic.derived.receive), (&tables, receive), "{act:?}");
                assert_eq!(nic.plane.storm, switch::storm::load(&nic.state.file, nic.plane.storm.began), "{act:?}");
                assert_eq!(nic.derived.rss, RssSettings::load(&nic.state.file), "{act:?}");
                assert_eq!(nic.derived.steering, ReceiveFilters::load(&nic.state.file), "{act:?}");
            }
        }
    }
}
