//! What PCI Express says: functions, configuration space, capabilities, BARs, MSI-X, and the bus a device masters.
