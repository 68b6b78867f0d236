//! poll: waits until one of many descriptors is ready.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// A descriptor, what it is watched for, and whether it is ready for that. Of a descriptor that has failed or been hung up, it is ready too: reading or
/// writing says why.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Watched(libc::pollfd);

impl Watched {
    /// Ready when there is something to read, or somebody to accept.
    #[must_use]
    pub fn reader(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
    }

    /// Ready when something can be written.
    #[must_use]
    pub fn writer(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLOUT, revents: 0 })
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Sleeps until one of them is ready, or the time has passed. A signal may end it early, with none ready.
///
/// # Errors
/// When the kernel has no memory for it, or there are more descriptors than a process may open.
pub fn wait(watched: &mut [Watched], timeout: Duration) -> io::Result<()> {
    for one in watched.iter_mut() {
        one.0.revents = 0;
    }
    let timeout = libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    };
    // SAFETY: `Watched` has the layout of pollfd; the kernel writes to as many as there are.
    let ready = unsafe { libc::ppoll(watched.as_mut_ptr().cast(), watched.len() as libc::nfds_t, &raw const timeout, std::ptr::null()) };
    match io::Error::last_os_error() {
        error if ready < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    /// Check which descriptors are ready, and that a wait without any ends in time.
    #[test]
    fn ready_descriptors_are_found() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut watched = [Watched::reader(reader.as_raw_fd()), Watched::writer(writer.as_raw_fd())];
        wait(&mut watched, Duration::from_secs(30)).unwrap();
        assert_eq!(watched.map(|one| one.is_ready()), [false, true]);
        let began = Instant::now();
        wait(&mut watched[..1], Duration::from_millis(20)).unwrap();
        assert!(!watched[0].is_ready() && began.elapsed() >= Duration::from_millis(20));
        writer.write_all(b"x").unwrap();
        wait(&mut watched[..1], Duration::from_secs(30)).unwrap();
        assert!(watched[0].is_ready());
        drop(writer);
        wait(&mut watched[..1], Duration::ZERO).unwrap();
        assert!(watched[0].is_ready(), "the other side is gone");
    }
}
