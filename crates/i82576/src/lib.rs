//! What the 82576 datasheet says: registers, descriptors, mailbox words; shared by the card and its drivers.
