//! The SR-IOV manager: enables VFs, gives each a full configuration space, assigns, resets and removes it.
