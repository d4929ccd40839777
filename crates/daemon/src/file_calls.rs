//! File calls of threads that serve no port: those of recordings, replays and flight recordings. A disk may hang in such a call,
//! and the kernel may not interrupt it. A process with such a thread cannot end, so that a host does not restart meanwhile.

use crate::disk_wait::DiskWait;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// Files that the host's threads use, with the beginning of each file call in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileCalls(Arc<Mutex<Vec<Weak<FileInUse>>>>);

/// File or folder that a thread uses.
#[derive(Debug)]
struct FileInUse {
    /// Name of the thread, which names the port, too.
    thread: String,
    path: PathBuf,
    call: DiskWait,
}

/// Mark of the calls that one thread makes to a file or folder.
#[derive(Debug)]
pub(crate) struct FileCallMarker(Arc<FileInUse>);

/// Open file whose calls are marked: reads, writes, and the close, in which a network file system writes.
#[derive(Debug)]
pub(crate) struct MarkedFile<F> {
    // Dropped before the marker, whose last mark is that of the close.
    file: F,
    marker: FileCallMarker,
}

/// File call in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingFileCall {
    thread: String,
    path: PathBuf,
    /// Time at which the call has begun.
    pub(crate) began: Instant,
}

impl FileCalls {
    /// Returns the marker for the calls of a thread to a file or folder.
    pub(crate) fn marker(&self, thread: &str, path: &Path) -> FileCallMarker {
        let file = FileInUse { thread: thread.to_owned(), path: path.to_owned(), call: DiskWait::default() };
        let file = Arc::new(file);
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&file));
        FileCallMarker(file)
    }

    /// Opens a file for a thread by `open`.
    pub(crate) fn open<F>(
        &self,
        thread: &str,
        path: &Path,
        open: impl FnOnce(&Path) -> io::Result<F>,
    ) -> io::Result<MarkedFile<F>> {
        let marker = self.marker(thread, path);
        let file = marker.during(|| open(path))?;
        Ok(MarkedFile { file, marker })
    }

    /// Returns true if a thread uses the file or folder, whether it makes a call or not.
    #[cfg(test)]
    pub(crate) fn has(&self, path: &Path) -> bool {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().any(|file| file.upgrade().is_some_and(|file| file.path == path))
    }

    /// Returns the file call in progress that began first, or `None` if there is none.
    pub(crate) fn oldest(&self) -> Option<PendingFileCall> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = files.iter().filter_map(|file| {
            let file = file.upgrade()?;
            let began = file.call.began()?;
            Some(PendingFileCall { thread: file.thread.clone(), path: file.path.clone(), began })
        });
        calls.min_by_key(|call| call.began)
    }
}

impl FileCallMarker {
    /// Makes a call that may wait for a disk.
    pub(crate) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        self.0.call.during(call)
    }
}

impl<F: Read> Read for MarkedFile<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.marker.during(|| self.file.read(into))
    }
}

impl<F: Write> Write for MarkedFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.marker.during(|| self.file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.marker.during(|| self.file.flush())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.marker.during(|| self.file.write_all(bytes))
    }
}

impl<F> Drop for MarkedFile<F> {
    fn drop(&mut self) {
        self.marker.0.call.begin();
    }
}

impl fmt::Display for PendingFileCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, seconds) = (self.path.display(), self.began.elapsed().as_secs_f64());
        write!(f, "the thread {} has waited for {path} for {seconds:.1} s", self.thread)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileCalls, MarkedFile};
    use std::io::{self, Read, Write};
    use std::path::Path;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// Disk whose calls begin with a message, and end once the test answers.
    struct SlowDisk(Sender<()>, Receiver<()>);

    impl SlowDisk {
        fn wait(&self) {
            self.0.send(()).unwrap();
            let _ = self.1.recv();
        }
    }

    impl Write for SlowDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.wait();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.wait();
            Ok(())
        }
    }

    impl Read for SlowDisk {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            self.wait();
            Ok(0)
        }
    }

    impl Drop for SlowDisk {
        fn drop(&mut self) {
            self.wait();
        }
    }

    #[test]
    fn each_call_to_a_file_is_marked_until_it_ends() {
        let (calls, (begins, begun), (answer, answers)) = (FileCalls::default(), channel(), channel());
        let (theirs, path) = (calls.clone(), Path::new("/disk/x"));
        let using = thread::spawn(move || {
            let open = |_: &Path| {
                let disk = SlowDisk(begins, answers);
                disk.wait();
                Ok(disk)
            };
            let mut file: MarkedFile<SlowDisk> = theirs.open("pf0-record", path, open).unwrap();
            file.write_all(b"x").unwrap();
            file.flush().unwrap();
            assert_eq!(file.read(&mut [0]).unwrap(), 0);
        });
        let other = calls.marker("pf1-record", Path::new("/disk/y"));
        for call in ["open", "write", "flush", "read", "close"] {
            begun.recv().unwrap();
            let pending = other.during(|| calls.oldest()).unwrap_or_else(|| panic!("{call} is not marked"));
            let named = pending.to_string();
            assert!(named.contains("pf0-record has waited for /disk/x for"), "{call}: {named}");
            answer.send(()).unwrap();
        }
        using.join().unwrap();
        assert_eq!(calls.oldest(), None);
    }
}
