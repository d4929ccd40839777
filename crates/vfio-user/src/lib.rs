//! The vfio-user protocol: codec and sessions as pure state machines.
