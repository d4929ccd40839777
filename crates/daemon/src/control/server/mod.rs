//! Server of the control interface. One thread serves all clients and never blocks; another thread carries out their
//! requests ([`requests`]). [`service`] has the paths.
//!
//! Everything that a client can make the host spend is bounded: the number of connections, the length of heads and
//! bodies, the time in which they have to arrive, the time for which a response may stay unread, and the pending
//! requests.

mod accept;
mod caller;
mod capture;
mod context;
mod gate;
mod host_field;
mod page;
mod refusal;
mod requests;
mod service;
mod stream;

use caller::IdentifiedConnection;
use capture::CaptureService;
pub(crate) use capture::CaptureStarter;
use context::{ControlHandlerContext, PATIENCE, PermittedRequestFlag};
pub(crate) use gate::ControlThreadGate;
pub(crate) use requests::{ControlRequestSender, WatchdogProbe};

use crate::control::tcp::BearerToken;
use axum::Router;
use host::socket::SocketListener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// Longest time in which pending answers are still sent when the host ends.
const FAREWELL: Duration = Duration::from_secs(1);
/// Pause of a control listener after a failed accept. The process may be out of file descriptors, and other threads may
/// close some meanwhile.
const AFTER_ERROR: Duration = Duration::from_millis(50);
/// Maximum number of control clients at a time. One more replaces the oldest client that has not sent a permitted
/// request, or else the oldest client.
const MAX_CLIENTS: usize = 64;
/// Bytes of the longest head of a request, and of a response's unread part.
const BUFFER: usize = 16 * 1024;
/// Maximum number of header fields of a control request.
const MAX_HEADERS: usize = 64;

/// Server of the control interface: its listening sockets, and the parts that handle the clients' requests.
#[derive(Debug)]
pub(crate) struct ControlServer {
    runtime: Runtime,
    listener: SocketListener,
    /// Copy of the listener's file descriptor that the runtime polls.
    waiting: UnixListener,
    tcp: Option<(TcpListener, BearerToken)>,
    sender: ControlRequestSender,
    captures: CaptureService,
    hold: watch::Receiver<bool>,
    stop: watch::Receiver<bool>,
}

/// Handle by which the host pauses and stops its control server.
#[derive(Debug)]
pub(crate) struct ControlServerHandle {
    hold: watch::Sender<bool>,
    stop: watch::Sender<bool>,
}

impl ControlServerHandle {
    /// Stops accepting control clients (`hold`), or resumes. New clients wait in the socket's queue meanwhile, for this
    /// process or for a successor process with the same socket.
    pub(crate) fn hold(&self, hold: bool) {
        self.hold.send_replace(hold);
    }

    /// Stops accepting control clients, and ends the server after the pending answers.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl ControlServer {
    /// Creates a control server for clients of `listener`, and for TCP clients that have the token. Requests go to
    /// `sender`, and captures to ports by `starter`.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub(crate) fn new(
        listener: SocketListener,
        tcp: Option<(std::net::TcpListener, BearerToken)>,
        sender: ControlRequestSender,
        starter: CaptureStarter,
    ) -> io::Result<(Self, ControlServerHandle)> {
        // The runtime must not create threads of its own: the confinement covers the thread that runs it.
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let entered = runtime.enter();
        let waiting = UnixListener::from_std(listener.as_fd().try_clone_to_owned()?.into())?;
        let tcp = match tcp {
            Some((listener, token)) => Some((TcpListener::from_std(listener)?, token)),
            None => None,
        };
        drop(entered);
        let (holder, hold) = watch::channel(false);
        let (stopper, stop) = watch::channel(false);
        let handle = ControlServerHandle { hold: holder, stop: stopper };
        let captures = CaptureService::new(starter);
        Ok((Self { runtime, listener, waiting, tcp, sender, captures, hold, stop }, handle))
    }

    /// Serves control clients until the host stops the server, and returns the listening socket.
    pub(crate) fn run(self) -> SocketListener {
        let Self { runtime, mut listener, waiting, tcp, sender, captures, hold, stop } = self;
        let context =
            |sender, token| ControlHandlerContext::new(sender, stop.clone(), token, captures.clone());
        let local = ControlListenerClients::new(context(sender.for_another_listener(), None));
        let (tcp, token) = tcp.unzip();
        let remote = ControlListenerClients::new(context(sender, token));
        runtime.block_on(serve((&waiting, &mut listener), tcp.as_ref(), [local, remote], hold, stop));
        listener
    }
}

/// Accepts and serves control clients until the host changes `stop`.
async fn serve(
    (waiting, listener): (&UnixListener, &mut SocketListener),
    tcp: Option<&TcpListener>,
    [mut local, mut remote]: [ControlListenerClients; 2],
    mut hold: watch::Receiver<bool>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepts = !*hold.borrow_and_update();
        tokio::select! {
            accepted = accept(waiting, listener), if accepts => local.admit(accepted, &stop),
            accepted = accept_tcp(tcp), if accepts => remote.admit(accepted, &stop),
            Ok(()) = hold.changed() => {}
            _ = stop.changed() => break,
            Some(_) = local.tasks.join_next() => {}
            Some(_) = remote.tasks.join_next() => {}
        }
    }
    // Every client's task ends by itself after its answer; slow ones are aborted.
    let ended = async {
        while local.tasks.join_next().await.is_some() {}
        while remote.tasks.join_next().await.is_some() {}
    };
    let _ = timeout(FAREWELL, ended).await;
}

/// Accepts a client of the UNIX control socket. If the process is out of file descriptors, rejects the client, and
/// waits before it returns the error: an immediate retry would keep the thread busy.
async fn accept(waiting: &UnixListener, listener: &mut SocketListener) -> io::Result<UnixStream> {
    let error = match waiting.accept().await {
        Ok((stream, _)) => return Ok(stream),
        Err(error) => error,
    };
    if let Ok(Some(stream)) = listener.accept() {
        return UnixStream::from_std(OwnedFd::from(stream).into());
    }
    sleep(AFTER_ERROR).await;
    Err(error)
}

/// Accepts a TCP client of the control interface. Waits forever if there is no TCP socket.
async fn accept_tcp(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    let Some(listener) = listener else { return pending().await };
    match listener.accept().await {
        Ok((stream, _)) => Ok(stream),
        Err(error) => {
            sleep(AFTER_ERROR).await;
            Err(error)
        }
    }
}

/// Control clients of one listener. UNIX and TCP have separate limits, so that neither keeps the other out.
#[derive(Debug)]
struct ControlListenerClients {
    router: Router,
    tasks: JoinSet<()>,
    /// Connected control clients in the order of their arrival.
    open: VecDeque<ControlClientTask>,
}

/// Task that serves a control client.
#[derive(Debug)]
struct ControlClientTask {
    task: AbortHandle,
    has_asked: PermittedRequestFlag,
}

impl ControlListenerClients {
    fn new(context: ControlHandlerContext) -> Self {
        Self { router: service::router(context), tasks: JoinSet::new(), open: VecDeque::new() }
    }

    /// Serves a new control client. If there are too many clients, disconnects another one first.
    fn admit(&mut self, accepted: io::Result<impl ControlConnection>, stop: &watch::Receiver<bool>) {
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => return tracing::debug!(%error, "cannot accept a control client"),
        };
        self.open.retain(|client| !client.task.is_finished());
        if self.open.len() >= MAX_CLIENTS {
            let silent = self.open.iter().position(|client| !client.has_asked.get());
            if let Some(client) = self.open.remove(silent.unwrap_or(0)) {
                client.task.abort();
                tracing::debug!("too many control clients: disconnected the oldest");
            }
        }
        let has_asked = PermittedRequestFlag::default();
        let attended = attend(stream, self.router.clone(), stop.clone(), has_asked.clone());
        self.open.push_back(ControlClientTask { task: self.tasks.spawn(attended), has_asked });
    }
}

/// Byte stream of a control client, UNIX or TCP.
trait ControlConnection: AsyncRead + AsyncWrite + IdentifiedConnection + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + IdentifiedConnection + Send + 'static> ControlConnection for S {}

/// Serves a client until the client disconnects or is too slow, or the host stops.
async fn attend(
    stream: impl ControlConnection,
    router: Router,
    mut stop: watch::Receiver<bool>,
    has_asked: PermittedRequestFlag,
) {
    let service = router.layer(axum::Extension(has_asked)).layer(axum::Extension(stream.caller()));
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(PATIENCE));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(BUFFER)
        .max_headers(MAX_HEADERS)
        .half_close(true)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "disconnected a control client after an error");
    }
}

#[cfg(test)]
mod tests {
    use super::context::ControlHandlerContext;
    use super::service;
    use super::{
        AFTER_ERROR, CaptureService, CaptureStarter, ControlRequestSender, ControlServer,
        PermittedRequestFlag, accept, attend,
    };
    use crate::control::tcp::BearerToken;
    use host::socket::{SocketFilePermissions, SocketListener};
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::watch;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn failing_control_listener_uses_no_processor_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut listener =
            SocketListener::bind(&folder.path().join("control.sock"), SocketFilePermissions::PRIVATE)
                .unwrap();
        runtime().block_on(async {
            // A connected socket does not listen, so accept fails at once, as it does without free descriptors.
            let (end, other) = net::UnixStream::pair().unwrap();
            drop(other);
            end.set_nonblocking(true).unwrap();
            let failing = UnixListener::from_std(OwnedFd::from(end).into()).unwrap();
            let began = Instant::now();
            assert!(accept(&failing, &mut listener).await.is_err());
            assert!(began.elapsed() >= AFTER_ERROR, "accept returned without a pause");
        });
    }

    #[test]
    fn control_clients_wait_while_the_control_server_is_paused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let listener = SocketListener::bind(&path, SocketFilePermissions::PRIVATE).unwrap();
        let (server, handle) =
            ControlServer::new(listener, None, ControlRequestSender::new().0, nothing()).unwrap();
        handle.hold(true);
        let running = std::thread::spawn(move || server.run());
        let mut client = net::UnixStream::connect(&path).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(client.read(&mut [0]).is_err(), "the client got an answer or an end");
        client.set_read_timeout(None).unwrap();
        handle.hold(false);
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        handle.stop();
        running.join().unwrap();
    }

    fn nothing() -> CaptureStarter {
        Arc::new(|_, _| Ok(()))
    }

    /// Sends a request as a TCP client, and returns true if the server then counts the client as one that has sent a
    /// permitted request.
    async fn counts(path: &str, token: &str) -> bool {
        let (_stop, stopped) = watch::channel(false);
        let context = ControlHandlerContext::new(
            ControlRequestSender::new().0,
            stopped.clone(),
            Some(BearerToken::of("0123456789abcdef")),
            CaptureService::new(nothing()),
        );
        let (ours, mut theirs) = net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = UnixStream::from_std(ours).unwrap();
        let has_asked = PermittedRequestFlag::default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        theirs.write_all(request.as_bytes()).unwrap();
        attend(ours, service::router(context), stopped, has_asked.clone()).await;
        let mut reply = String::new();
        theirs.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 "), "{reply}");
        has_asked.get()
    }

    #[test]
    fn only_a_request_with_the_token_counts_as_client_activity() {
        runtime().block_on(async {
            assert!(!counts("/v1/openapi.json", "wrong").await);
            assert!(!counts("/", "wrong").await, "the page needs no token, so it protects no client");
            assert!(counts("/v1/openapi.json", "0123456789abcdef").await);
        });
    }
}
