//! Stock Linux guests: QEMU, kernel and initramfs from Debian packages, booted and spoken to.
