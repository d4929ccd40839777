//! A guest in this process: the VF driver over a vfio-user socket, with a TCP/IP stack on top.
