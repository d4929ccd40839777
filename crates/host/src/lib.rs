//! Everything that touches the host: guest memory, sockets with descriptors, eventfd, epoll, tap.
