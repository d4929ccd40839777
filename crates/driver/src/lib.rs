//! The PF and VF drivers, portable over any bus through the Hal traits.
