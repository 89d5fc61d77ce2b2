//! The poller against real sockets, on the path of this system and on the portable one.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use socket2::SockRef;

use super::*;
use crate::sys::clock;

/// Longest wait for something that is about to happen, in nanoseconds.
const SOON: Option<u64> = Some(10_000_000_000);
const AT_ONCE: Option<u64> = Some(0);

fn readable(key: usize) -> Ready {
    Ready {
        key,
        readable: true,
        writable: false,
        hangup: false,
    }
}

fn gone(key: usize) -> Ready {
    Ready {
        key,
        readable: true,
        writable: true,
        hangup: cfg!(target_os = "linux"),
    }
}

fn wait(poller: &mut Poller, timeout: Option<u64>) -> Vec<Ready> {
    let mut ready = vec![readable(99)];
    poller.wait(timeout, &mut ready).unwrap();
    ready
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

#[test]
fn what_is_left_alone_is_reported_again() {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 7, Interest::READ).unwrap();
    assert_eq!(wait(&mut poller, AT_ONCE), []);
    near.write_all(b"x").unwrap();
    for _ in 0..3 {
        assert_eq!(wait(&mut poller, SOON), [readable(7)]);
    }
    far.read_exact(&mut [0]).unwrap();
    assert_eq!(wait(&mut poller, AT_ONCE), []);
    poller.forget(far.as_fd()).unwrap();
    near.write_all(b"x").unwrap();
    assert_eq!(wait(&mut poller, AT_ONCE), []);
}

#[test]
fn interest_and_key_can_be_changed() {
    let (mut near, far) = UnixStream::pair().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::NONE).unwrap();
    near.write_all(b"x").unwrap();
    assert_eq!(wait(&mut poller, AT_ONCE), []);
    poller.change(far.as_fd(), 2, Interest::WRITE).unwrap();
    let writable = Ready {
        key: 2,
        readable: false,
        writable: true,
        hangup: false,
    };
    assert_eq!(wait(&mut poller, SOON), [writable]);
    poller.change(far.as_fd(), 3, Interest::READ).unwrap();
    assert_eq!(wait(&mut poller, SOON), [readable(3)]);
}

#[test]
fn what_is_closed_is_not_reported_again() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::READ).unwrap();
    drop(near);
    assert_eq!(wait(&mut poller, SOON), [gone(1)]);
    poller.forget_closing(far.as_fd()).unwrap();
    drop(far);
    assert_eq!(wait(&mut poller, AT_ONCE), []);
    // The next one has the same number, and is not in the set.
    let (_near, far) = UnixStream::pair().unwrap();
    poller.watch(far.as_fd(), 2, Interest::READ).unwrap();
    assert_eq!(wait(&mut poller, AT_ONCE), []);
}

#[test]
fn misuse_is_refused() {
    let (near, far) = UnixStream::pair().unwrap();
    let poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::READ).unwrap();
    assert!(poller.watch(far.as_fd(), 1, Interest::READ).is_err());
    assert!(poller.change(near.as_fd(), 1, Interest::READ).is_err());
    assert!(poller.forget(near.as_fd()).is_err());
    assert!(
        poller
            .watch(near.as_fd(), usize::MAX, Interest::READ)
            .is_err()
    );
    poller.watch(near.as_fd(), 1, Interest::READ).unwrap();
}

#[test]
fn a_half_close_is_input_and_no_hangup() {
    let (near, far) = tcp_pair();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::READ).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let ready = wait(&mut poller, SOON);
    assert_eq!(ready.len(), 1);
    assert!(ready[0].readable && !ready[0].hangup);
}

#[test]
fn a_lost_peer_is_readable_and_writable() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::READ).unwrap();
    drop(near);
    assert_eq!(wait(&mut poller, SOON), [gone(1)]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_reset_is_reported_without_interest() {
    let (near, far) = tcp_pair();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::NONE).unwrap();
    SockRef::from(&near)
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
    drop(near);
    assert_eq!(wait(&mut poller, SOON), [gone(1)]);
}

#[test]
fn urgent_data_wakes_nobody() {
    let (near, mut far) = tcp_pair();
    let mut poller = Poller::new().unwrap();
    poller.watch(far.as_fd(), 1, Interest::READ).unwrap();
    SockRef::from(&near).send_out_of_band(b"!").unwrap();
    (&near).write_all(b"x").unwrap();
    assert_eq!(wait(&mut poller, SOON), [readable(1)]);
    far.read_exact(&mut [0]).unwrap();
    SockRef::from(&near).send_out_of_band(b"!").unwrap();
    assert_eq!(wait(&mut poller, Some(20_000_000)), []);
}

#[test]
fn a_wait_does_not_end_early() {
    let mut poller = Poller::new().unwrap();
    for timeout in [1, 400_000, 1_500_000] {
        let before = clock::monotonic();
        assert_eq!(wait(&mut poller, Some(timeout)), []);
        assert!(clock::monotonic().since(before) >= timeout);
    }
}

/// Sorted, and one entry a key, as the portable path may split it.
fn keys(mut ready: Vec<Ready>) -> Vec<Ready> {
    ready.sort_by_key(|ready| ready.key);
    ready.dedup_by(|later, first| {
        first.readable |= later.readable;
        first.writable |= later.writable;
        first.key == later.key
    });
    ready
}

#[test]
fn all_paths_report_the_same() {
    let mut poller = Poller::new().unwrap();
    let pairs: Vec<_> = (0..6).map(|_| UnixStream::pair().unwrap()).collect();
    let both = Interest {
        readable: true,
        writable: true,
    };
    let interests = [
        Interest::READ,
        Interest::READ,
        both,
        Interest::WRITE,
        Interest::NONE,
        both,
    ];
    for (key, (_, far)) in pairs.iter().enumerate() {
        poller.watch(far.as_fd(), key, interests[key]).unwrap();
    }
    for key in [1, 2, 4] {
        (&pairs[key].0).write_all(b"x").unwrap();
    }
    pairs[5].0.shutdown(Shutdown::Both).unwrap();

    let direct = keys(wait(&mut poller, SOON));
    let mut portable = Vec::new();
    poller.wait_portably(SOON, &mut portable).unwrap();
    assert_eq!(direct, keys(portable));
    let seen: Vec<usize> = direct.iter().map(|ready| ready.key).collect();
    assert_eq!(seen, [1, 2, 3, 5]);

    // `polling` has armed its timer by now; what it leaves behind must not be reported as ours.
    poller.wait_portably(Some(1), &mut Vec::new()).unwrap();
    #[cfg(target_os = "linux")]
    {
        poller.epoll = epoll::Waiter::without_pwait2();
        assert_eq!(keys(wait(&mut poller, SOON)), direct);
    }
    assert_eq!(keys(wait(&mut poller, AT_ONCE)), direct);
}

#[cfg(target_os = "linux")]
#[test]
fn whole_milliseconds_are_rounded_up() {
    let mut poller = Poller::new().unwrap();
    poller.epoll = epoll::Waiter::without_pwait2();
    let before = clock::monotonic();
    assert_eq!(wait(&mut poller, Some(1_000_001)), []);
    assert!(clock::monotonic().since(before) >= 1_000_001);
}
