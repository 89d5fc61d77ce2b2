//! Control sockets, whole and in pieces, with their descriptors.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;

use super::*;
use crate::base::ids::{Generation, RunId};
use crate::base::time::Nanos;
use crate::wire::setup::{LinkLost, Peer, Setup};

/// The supervisor's end and a frontend's.
fn pair() -> (ControlSocket, ControlSocket) {
    let (near, far) = Stream::pair().unwrap();
    let near = ControlSocket::new(near, Sender::Frontend);
    (near, ControlSocket::new(far, Sender::Supervisor))
}

fn setup(role: Sender) -> Control<'static> {
    Control::Setup(Setup {
        sync_ms: None,
        skips_damage: true,
        role,
        index: 0,
        owners: 1,
        frontends: 1,
        generation: Generation(1),
        run: RunId(2),
        supervisor_pid: 3,
        started_at: Nanos(4),
        body_len_max: 5,
        binlog_size_max: 6,
        owner_wait_ms: 7,
        rejects_multi_watch: false,
        verbose: 0,
        is_draining: false,
    })
}

fn link(index: u16) -> Control<'static> {
    Control::Link(Peer {
        role: Sender::Owner,
        index,
        generation: Generation(1),
    })
}

/// What can be said, by a number; some of it with a descriptor.
fn said(number: u16) -> Control<'static> {
    match number % 6 {
        0 => link(number),
        1 => Control::Ping(u64::from(number)),
        2 => setup(Sender::Frontend),
        3 => setup(Sender::Owner),
        4 => Control::Drain,
        _ => Control::Goodbye(None),
    }
}

/// A stream that goes along, which says `number` at its other end, and that end.
fn marked(number: u16) -> (OwnedFd, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    (&near).write_all(&number.to_le_bytes()).unwrap();
    (far.into(), near)
}

fn mark_of(descriptor: OwnedFd) -> u16 {
    let mut bytes = [0; 2];
    UnixStream::from(descriptor).read_exact(&mut bytes).unwrap();
    u16::from_le_bytes(bytes)
}

/// Says it, with a descriptor that is marked with `number` if one belongs to it.
fn say(socket: &mut ControlSocket, control: &Control<'_>, number: u16) -> Option<UnixStream> {
    let (descriptor, kept) = brings_descriptor(control).then(|| marked(number)).unzip();
    socket.push(control, descriptor).unwrap();
    kept
}

/// All that is there now: what it is, and how its descriptor is marked.
fn heard(socket: &mut ControlSocket) -> Vec<(String, Option<u16>)> {
    let mut heard = Vec::new();
    while let Some((control, descriptor)) = socket.next_message().unwrap() {
        heard.push((format!("{control:?}"), descriptor.map(mark_of)));
    }
    heard
}

#[test]
fn a_message_arrives_with_its_descriptor_and_both_sides_see_the_end() {
    let (mut near, mut far) = pair();
    assert_eq!(far.read().unwrap(), ControlRead::Nothing);
    assert!(!near.interest().writable);
    let kept = say(&mut near, &setup(Sender::Frontend), 7);
    say(&mut near, &Control::Ping(1), 0);
    assert!(near.interest().writable);
    near.flush().unwrap();
    assert!(!near.interest().writable);
    // Ours is closed once it is sent: the last copy is the child's.
    assert_eq!(far.read().unwrap(), ControlRead::Bytes);
    let (control, descriptor) = far.next_message().unwrap().unwrap();
    assert_eq!(control, setup(Sender::Frontend));
    assert_eq!(mark_of(descriptor.unwrap()), 7);
    assert_eq!(kept.unwrap().read(&mut [0]).unwrap(), 0);
    let counted = Control::Pong(1);
    say(&mut far, &counted, 0);
    far.flush().unwrap();
    drop(far);
    // What was not read by the peer makes its end a reset, which is an end all the same.
    assert_eq!(near.read().unwrap(), ControlRead::Bytes);
    assert_eq!(near.next_message().unwrap().unwrap().0, counted);
    assert_eq!(near.read().unwrap(), ControlRead::End);
    assert!(near.has_ended() && !near.interest().readable);
    assert!(near.next_message().unwrap().is_none());
    near.push(&Control::Drain, None).unwrap();
    let error = near.flush().unwrap_err();
    assert!(matches!(error, ControlError::Write { .. }) && error.is_peer_gone());
}

proptest! {
    #![proptest_config(crate::base::property_config())]

    /// However the bytes are cut on their way: the peer's socket gets pieces of them, each with
    /// the descriptors that may come with it.
    #[test]
    fn a_descriptor_arrives_with_its_message(
        numbers in prop::collection::vec(any::<u16>(), 1..12),
        pieces in prop::collection::vec(1usize..150, 1..20),
    ) {
        let (mut near, between) = Stream::pair().map(|(near, between)| {
            (ControlSocket::new(near, Sender::Frontend), between)
        }).unwrap();
        let (relay, far) = Stream::pair().unwrap();
        let mut far = ControlSocket::new(far, Sender::Supervisor);
        let mut kept = Vec::new();
        let mut expected = Vec::new();
        for &number in &numbers {
            let control = said(number);
            kept.push(say(&mut near, &control, number));
            let mark = brings_descriptor(&control).then_some(number);
            expected.push((format!("{control:?}"), mark));
        }
        near.flush().unwrap();

        let mut arrived = Vec::new();
        for &len in pieces.iter().cycle() {
            let (mut bytes, mut fds) = (Vec::new(), Vec::new());
            let socket = between.as_fd();
            if receive_with_fds(socket, &mut bytes, len, &mut fds).unwrap().is_none() {
                break;
            }
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            send_with_fds(relay.as_fd(), &bytes, &fds).unwrap();
            prop_assert_eq!(far.read().unwrap(), ControlRead::Bytes);
            arrived.extend(heard(&mut far));
        }
        prop_assert_eq!(arrived, expected);
    }
}

#[test]
fn more_than_the_socket_takes_goes_in_parts() {
    let (mut near, mut far) = pair();
    let numbers: Vec<u16> = (0..2_000).filter(|number| number % 6 != 2).collect();
    let mut kept = Vec::new();
    let mut arrived = Vec::new();
    for &number in &numbers {
        kept.push(say(&mut near, &said(number), number));
        if number % 100 == 99 {
            near.flush().unwrap();
        }
        // A reader that is far behind, and nothing at first.
        if number % 700 == 699 {
            far.read().unwrap();
            arrived.extend(heard(&mut far));
        }
    }
    assert!(near.interest().writable, "the socket is full");
    while near.interest().writable || far.read().unwrap() == ControlRead::Bytes {
        near.flush().unwrap();
        far.read().unwrap();
        arrived.extend(heard(&mut far));
    }
    let expected: Vec<_> = numbers
        .iter()
        .map(|&number| {
            let control = said(number);
            let mark = brings_descriptor(&control).then_some(number);
            (format!("{control:?}"), mark)
        })
        .collect();
    assert!(arrived == expected, "{} messages arrived", arrived.len());
}

/// What a supervisor says whose end is written to by hand.
fn by_hand(write: impl FnOnce(&Stream)) -> Result<(), ControlError> {
    let (near, far) = Stream::pair().unwrap();
    let mut far = ControlSocket::new(far, Sender::Supervisor);
    write(&near);
    drop(near);
    while far.read()? != ControlRead::End {
        while far.next_message()?.is_some() {}
    }
    assert!(far.next_message()?.is_none());
    Ok(())
}

fn frame(control: &Control<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = Head::apart(NO_ENDS, Kind::Control(control.kind()));
    write_bare(&mut bytes, head, |out| control.write_fields(out));
    bytes
}

#[test]
fn a_message_without_its_descriptor_or_the_other_way_is_an_error() {
    let send = |bytes: &[u8], with: usize| {
        by_hand(|socket| {
            let fds = vec![socket.as_fd(); with];
            send_with_fds(socket.as_fd(), bytes, &fds).unwrap();
        })
    };
    assert!(send(&frame(&link(1)), 1).is_ok());
    let error = send(&frame(&link(1)), 0).unwrap_err();
    assert!(matches!(
        error,
        ControlError::NoDescriptor {
            kind: ControlKind::Link
        }
    ));
    let error = send(&frame(&setup(Sender::Frontend)), 0).unwrap_err();
    assert!(matches!(
        error,
        ControlError::NoDescriptor {
            kind: ControlKind::Setup
        }
    ));
    for (control, with) in [(Control::Drain, 1), (link(1), 2), (setup(Sender::Owner), 1)] {
        let error = send(&frame(&control), with).unwrap_err();
        assert!(
            matches!(error, ControlError::SpareDescriptors { .. }),
            "{error:?}"
        );
    }
}

#[test]
fn what_has_no_place_there_is_refused() {
    let send = |bytes: &[u8]| {
        by_hand(|socket| {
            send_with_fds(socket.as_fd(), bytes, &[]).unwrap();
        })
        .unwrap_err()
    };
    // A child hears of no child.
    for control in [
        Control::Attach,
        Control::Detach,
        Control::Ready,
        Control::Refused(Refusal::Kind),
        Control::LinkLost(LinkLost {
            index: 0,
            generation: Generation(1),
        }),
    ] {
        let error = send(&frame(&control));
        let is_kind = matches!(
            error,
            ControlError::Refused {
                source: Refusal::Kind
            }
        );
        assert!(is_kind, "{control:?}: {error:?}");
    }
    let mut bytes = frame(&Control::Drain);
    bytes[28] = 1;
    let error = send(&bytes);
    assert!(matches!(
        error,
        ControlError::Refused {
            source: Refusal::Session
        }
    ));
    bytes[28] = 0;
    bytes[36] = 1;
    let error = send(&bytes);
    assert!(matches!(
        error,
        ControlError::Refused {
            source: Refusal::Request
        }
    ));
    let error = send(&frame(&Control::Ping(1))[..55]);
    assert!(matches!(error, ControlError::Cut { len: 55 }), "{error:?}");
    let mut bytes = frame(&setup(Sender::Owner));
    bytes[HEADER_LEN] = 1;
    let error = send(&bytes);
    assert!(matches!(
        error,
        ControlError::Unreadable {
            source: DecodeError::Value
        }
    ));
}

#[test]
fn a_peer_that_does_not_read_has_a_limit() {
    let (mut near, _far) = pair();
    let mut told = 0;
    let error = loop {
        near.flush().unwrap();
        match near.push(&Control::Ping(told), None) {
            Ok(()) => told += 1,
            Err(error) => break error,
        }
        assert!(told < 100_000);
    };
    assert!(matches!(error, ControlError::Backlog { len } if len > CONTROL_BACKLOG_BYTES_MAX));

    let (mut near, _far) = pair();
    let taken = (0..2 * CONTROL_BACKLOG_FDS_MAX)
        .take_while(|_| near.push(&link(1), Some(marked(1).0)).is_ok());
    assert_eq!(taken.count(), CONTROL_BACKLOG_FDS_MAX);
}
