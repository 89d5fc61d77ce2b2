//! Links over real socket pairs, with pieces of any size and peers of any speed.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use socket2::SockRef;

use super::*;
use crate::base::body::Body;
use crate::base::limits::{BODY_COPY_LEN_MAX, LINK_KEEP_BYTES_MAX};
use crate::base::property_config;

/// A frame of the tests: its whole length in four bytes, and what it carries.
const HEAD: usize = 4;

const LIMITS: LinkLimits = LinkLimits {
    frame_len_max: 20_000,
    read_bytes_max: 30_000,
    backlog_bytes_max: 40_000,
};

#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
#[error("no frame")]
struct NoFrame;

/// Lengths from the top of the range are no frames at all.
fn len_of(start: &[u8]) -> Result<Option<usize>, NoFrame> {
    let Some(head) = start.first_chunk::<HEAD>() else {
        return Ok(None);
    };
    match u32::from_le_bytes(*head) {
        u32::MAX => Err(NoFrame),
        len => Ok(Some(len as usize)),
    }
}

fn pair() -> (Link, Link) {
    let (near, far) = Stream::pair().unwrap();
    (Link::new(near, LIMITS), Link::new(far, LIMITS))
}

/// A link, and its other end as a bare socket.
fn half() -> (Link, UnixStream) {
    let (near, far) = Stream::pair().unwrap();
    let far = UnixStream::from(OwnedFd::from(far));
    far.set_nonblocking(false).unwrap();
    (Link::new(near, LIMITS), far)
}

fn head(payload_len: usize) -> [u8; HEAD] {
    ((HEAD + payload_len) as u32).to_le_bytes()
}

fn frame(payload: &[u8]) -> Vec<u8> {
    [&head(payload.len())[..], payload].concat()
}

/// A body that differs from others in every place.
fn body(seed: usize, len: usize) -> Body {
    Body::from_vec((0..len).map(|at| (at * 31 + seed * 7) as u8).collect())
}

fn say(link: &mut Link, body: &Body) {
    let out = link.outgoing();
    out.bytes().extend_from_slice(&head(body.len()));
    out.share(body, 0..body.len());
}

/// Takes all whole frames and returns what they carry.
fn heard(link: &mut Link) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(frame) = link.halves().0.next_frame(len_of).unwrap() {
        all.push(frame[HEAD..].to_vec());
    }
    all
}

/// Nothing that a link does makes it hold more than this.
fn assert_bounded(link: &mut Link) {
    let (incoming, outgoing) = link.halves();
    assert!(incoming.len() <= LIMITS.frame_len_max + LIMITS.read_bytes_max);
    let most = LIMITS.frame_len_max + LIMITS.read_bytes_max + LINK_READ_LEN_MAX;
    assert!(incoming.capacity() <= 2 * most, "{}", incoming.capacity());
    let most = 2 * (LIMITS.backlog_bytes_max + LIMITS.frame_len_max).max(LINK_KEEP_BYTES_MAX);
    assert!(outgoing.capacity() <= 2 * most, "{}", outgoing.capacity());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Say(usize),
    Flush,
    Read,
    Take(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![0..20usize, 2_040..2_060usize, 0..15_000usize];
    let step = prop_oneof![
        4 => len.prop_map(Step::Say),
        2 => Just(Step::Flush),
        1 => Just(Step::Read),
        1 => (1..9usize).prop_map(Step::Take),
    ];
    prop::collection::vec(step, 1..150)
}

proptest! {
    #![proptest_config(property_config())]

    // R3.1, R3.6, A3.1, A3.3
    #[test]
    fn frames_come_out_as_they_went_in_and_memory_has_a_limit(
        steps in steps(),
        send_buffer in 1_000..100_000usize,
    ) {
        let (mut near, mut far) = pair();
        SockRef::from(&near).set_send_buffer_size(send_buffer).unwrap();
        let (mut said, mut came) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                // Who is told that the link is over its limit says no more.
                Step::Say(_) if near.outgoing().is_over_limit() => {
                    prop_assert!(near.outgoing().len() > LIMITS.backlog_bytes_max);
                    prop_assert!(near.interest(true).writable);
                }
                Step::Say(len) => {
                    let body = body(said.len(), len);
                    say(&mut near, &body);
                    said.push(body.to_vec());
                }
                Step::Flush => near.flush().unwrap(),
                Step::Read => {
                    let before = far.halves().0.len();
                    let has_room = before < LIMITS.frame_len_max + LIMITS.read_bytes_max;
                    prop_assert_eq!(far.interest(true).readable, has_room);
                    prop_assert_eq!(far.read().unwrap() != LinkRead::Full, has_room);
                }
                Step::Take(count) => for _ in 0..count {
                    let frame = far.halves().0.next_frame(len_of).unwrap();
                    came.extend(frame.map(|frame| frame[HEAD..].to_vec()));
                },
            }
            assert_bounded(&mut near);
            assert_bounded(&mut far);
        }
        while came.len() < said.len() {
            near.flush().unwrap();
            far.read().unwrap();
            came.extend(heard(&mut far));
        }
        prop_assert_eq!(came, said);
        prop_assert!(near.outgoing().is_empty());
        drop(near);
        prop_assert_eq!(far.read().unwrap(), LinkRead::End);
        prop_assert_eq!(far.end(), Some(LinkEnd::Whole));
    }

    // R3.1, A3.1
    #[test]
    fn any_pieces_give_the_same_frames(
        lens in prop::collection::vec(prop_oneof![0..10usize, 0..3_000usize], 0..20),
        chunks in prop::collection::vec(prop_oneof![1..8usize, 1..4_000usize], 1..50),
    ) {
        let (mut link, mut peer) = half();
        let sent: Vec<Vec<u8>> = lens.iter().zip(0..).map(|(&len, at)| body(at, len).to_vec())
            .collect();
        let stream: Vec<u8> = sent.iter().flat_map(|payload| frame(payload)).collect();
        let (mut rest, mut came) = (stream.as_slice(), Vec::new());
        for chunk in chunks.iter().cycle() {
            let (now, later) = rest.split_at((*chunk).min(rest.len()));
            peer.write_all(now).unwrap();
            let expected = if now.is_empty() {
                LinkRead::Nothing
            } else {
                LinkRead::Bytes(now.len())
            };
            prop_assert_eq!(link.read().unwrap(), expected);
            came.extend(heard(&mut link));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(came, sent);
    }
}

// R3.6, A3.3
#[test]
fn a_slow_peer_puts_the_link_over_its_limit_and_loses_nothing() {
    let (mut near, mut far) = pair();
    let body = body(1, 10_000);
    let mut said = 0;
    while !near.outgoing().is_over_limit() {
        assert!(near.outgoing().room() > 0 || near.outgoing().len() == 40_000);
        say(&mut near, &body);
        near.flush().unwrap();
        said += 1;
    }
    assert_eq!(near.outgoing().room(), 0);
    assert!(near.outgoing().len() <= LIMITS.backlog_bytes_max + LIMITS.frame_len_max);
    let mut came = 0;
    while came < said {
        far.read().unwrap();
        came += heard(&mut far).len();
        near.flush().unwrap();
    }
    assert!(!near.outgoing().is_over_limit() && near.outgoing().is_empty());
    assert_eq!(near.interest(true), Interest::READ);
}

// R3.8
#[test]
fn a_large_body_is_shared_until_it_is_sent_and_a_small_one_is_copied() {
    let (mut near, mut far) = pair();
    let (large, small) = (body(1, BODY_COPY_LEN_MAX + 1), body(2, BODY_COPY_LEN_MAX));
    say(&mut near, &large);
    say(&mut near, &small);
    assert_eq!((large.holders(), small.holders()), (2, 1));
    near.flush().unwrap();
    assert_eq!(large.holders(), 1);
    far.read().unwrap();
    assert_eq!(heard(&mut far), [large.to_vec(), small.to_vec()]);
}

#[test]
fn a_part_of_a_body_can_be_sent() {
    let (mut near, mut far) = pair();
    let whole = body(1, 9_000);
    for range in [0..4_000, 4_000..4_000, 4_000..9_000] {
        near.outgoing()
            .bytes()
            .extend_from_slice(&head(range.len()));
        near.outgoing().share(&whole, range);
    }
    near.flush().unwrap();
    far.read().unwrap();
    assert_eq!(heard(&mut far).concat(), whole.to_vec());
}

/// More pieces than one write takes are left for the next.
#[test]
fn many_bodies_go_out_in_several_writes() {
    let (mut near, mut far) = pair();
    let body = body(1, BODY_COPY_LEN_MAX + 1);
    for _ in 0..LINK_PIECES_MAX {
        say(&mut near, &body);
    }
    near.flush().unwrap();
    assert!(near.interest(true).writable);
    let mut came = 0;
    while came < LINK_PIECES_MAX {
        far.read().unwrap();
        came += heard(&mut far).len();
        near.flush().unwrap();
    }
    assert_eq!(body.holders(), 1);
}

// R3.6, A3.1
#[test]
fn a_frame_that_claims_too_much_costs_the_link_and_no_memory() {
    let max = LIMITS.frame_len_max;
    for claim in [0, max + 1, u32::MAX as usize - 1] {
        let (mut link, mut peer) = half();
        peer.write_all(&(claim as u32).to_le_bytes()).unwrap();
        link.read().unwrap();
        let lost = Err(FrameError::Length { len: claim, max });
        assert_eq!(link.halves().0.next_frame(len_of), lost);
        assert_eq!(link.halves().0.next_frame(len_of), lost);
        assert!(link.halves().0.capacity() <= 2 * LINK_READ_LEN_MAX);
    }
    let (mut link, mut peer) = half();
    peer.write_all(&u32::MAX.to_le_bytes()).unwrap();
    link.read().unwrap();
    let lost = Err(FrameError::Unreadable { source: NoFrame });
    assert_eq!(link.halves().0.next_frame(len_of), lost);
}

// R3.6, A3.1
#[test]
fn a_frame_that_never_tells_its_length_costs_the_link() {
    let (mut link, mut peer) = half();
    let never = |_: &[u8]| Ok::<_, NoFrame>(None);
    peer.write_all(&vec![7; LIMITS.frame_len_max]).unwrap();
    link.read().unwrap();
    assert_eq!(link.halves().0.next_frame(never), Ok(None));
    peer.write_all(&[7]).unwrap();
    link.read().unwrap();
    let lost = link.halves().0.next_frame(never);
    assert!(matches!(lost, Err(FrameError::Length { .. })), "{lost:?}");
}

#[test]
fn the_longest_frame_is_taken() {
    let (mut link, mut peer) = half();
    let payload = vec![9; LIMITS.frame_len_max - HEAD];
    peer.write_all(&frame(&payload)).unwrap();
    link.read().unwrap();
    assert_eq!(heard(&mut link), [payload]);
}

// A3.1
#[test]
fn an_end_between_frames_within_one_and_a_reset_are_told_apart() {
    let (mut link, mut peer) = half();
    assert_eq!(link.read().unwrap(), LinkRead::Nothing);
    peer.write_all(&frame(b"whole")).unwrap();
    drop(peer);
    assert_eq!(link.read().unwrap(), LinkRead::Bytes(9));
    assert_eq!(link.end(), None);
    assert_eq!(link.read().unwrap(), LinkRead::End);
    assert_eq!(heard(&mut link), [b"whole"]);
    assert_eq!(link.end(), Some(LinkEnd::Whole));
    assert_eq!(link.interest(true), Interest::NONE);

    let (mut link, mut peer) = half();
    peer.write_all(&frame(b"half")[..6]).unwrap();
    drop(peer);
    while link.read().unwrap() != LinkRead::End {}
    assert!(heard(&mut link).is_empty());
    assert_eq!(link.end(), Some(LinkEnd::InFrame(6)));
}

// A3.1
#[test]
fn a_peer_that_went_is_an_error_of_the_write_and_what_it_said_can_be_read() {
    let (mut link, mut peer) = half();
    peer.write_all(&frame(b"last")).unwrap();
    drop(peer);
    say(&mut link, &body(1, 10));
    let error = link.flush().unwrap_err();
    assert!(matches!(error, LinkError::Write { .. }), "{error:?}");
    assert_eq!(link.read().unwrap(), LinkRead::Bytes(8));
    assert_eq!(heard(&mut link), [b"last"]);
}

// A3.1. A peer that ends with input it has not read resets the connection on Linux.
#[cfg(target_os = "linux")]
#[test]
fn a_reset_is_an_error_of_the_read() {
    let (mut link, peer) = half();
    say(&mut link, &body(1, 10));
    link.flush().unwrap();
    drop(peer);
    let error = link.read().unwrap_err();
    assert!(matches!(error, LinkError::Read { .. }), "{error:?}");
    assert_eq!(link.end(), None);
}

// R3.6
#[test]
fn a_link_that_is_never_empty_does_not_grow() {
    let (mut near, mut far) = pair();
    let (mut said, mut came) = (0, 0);
    while said < 2_000 {
        while !near.outgoing().is_over_limit() {
            near.outgoing()
                .bytes()
                .extend_from_slice(&frame(&[5; 2_000]));
            said += 1;
        }
        // The peer takes too little to empty it.
        let frame = far.halves().0.next_frame(len_of).unwrap();
        came += usize::from(frame.is_some());
        far.read().unwrap();
        near.flush().unwrap();
        if near.outgoing().is_empty() {
            continue; // The socket's own buffer is not full yet.
        }
        assert!(near.outgoing().capacity() <= LINK_KEEP_BYTES_MAX);
    }
    while came < said {
        near.flush().unwrap();
        far.read().unwrap();
        came += heard(&mut far).len();
    }
}

// R3.6
#[test]
fn memory_of_a_burst_goes_back() {
    let limits = LinkLimits::default();
    let (near, far) = Stream::pair().unwrap();
    let (mut near, mut far) = (Link::new(near, limits), Link::new(far, limits));
    let mut said = 0;
    while !near.outgoing().is_over_limit() {
        near.outgoing()
            .bytes()
            .extend_from_slice(&frame(&[5; 60_000]));
        said += 1;
    }
    assert!(near.outgoing().capacity() > LINK_KEEP_BYTES_MAX);
    let mut came = 0;
    while came < said {
        near.flush().unwrap();
        far.read().unwrap();
        came += heard(&mut far).len();
    }
    assert!(near.outgoing().capacity() <= LINK_KEEP_BYTES_MAX);
    far.read().unwrap();
    assert!(far.halves().0.capacity() <= LINK_KEEP_BYTES_MAX);
}
