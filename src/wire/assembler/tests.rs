//! What becomes of a body for which there is no memory.

use super::*;
use crate::base::ids::{Caller, Fingerprint, Generation, SessionId};
use crate::base::limits::BODY_LEN_MAX_CEILING;
use crate::wire::frame::{self, Head};
use crate::wire::header::{Ends, Expected};
use crate::wire::kind::{OpKind, Sender};

const ENDS: Ends = Ends {
    topology: Fingerprint(1),
    sender: Generation(2),
    receiver: Generation(3),
};

/// Ten bytes in parts of two, each part in a frame.
fn parts(session: u64) -> Vec<Vec<u8>> {
    let about = Caller {
        session: SessionId {
            frontend: 0,
            number: session,
        },
        seq: Seq(9),
    };
    let head = Head::about(ENDS, Kind::Op(OpKind::Put), about);
    let body = b"0123456789";
    let mut frames = vec![Vec::new()];
    let write_meta = |out: &mut Vec<u8>| out.extend_from_slice(b"meta");
    let mut rest = frame::write(&mut frames[0], head, write_meta, body, 2);
    while let Some(more) = rest {
        let mut frame = Vec::new();
        rest = more.write(&mut frame, body, 2);
        frames.push(frame);
    }
    frames
}

fn frame(mut bytes: &[u8]) -> Frame<'_> {
    let expected = Expected {
        ends: ENDS,
        from: Sender::Frontend,
        body_len_max: BODY_LEN_MAX_CEILING,
    };
    Frame::cut(&mut bytes, &expected).unwrap().unwrap()
}

/// What the session's parts become if for the `nth` of them there is memory for `memory` bytes, and
/// for the others as much as is wanted.
fn body_with(assembler: &mut Assembler, nth: usize, memory: usize) -> Option<Vec<u8>> {
    let parts = parts(5);
    for (at, part) in parts.iter().enumerate() {
        assembler.limit_memory(if at == nth { memory } else { usize::MAX });
        let message = assembler.take(frame(part)).unwrap();
        let Some(message) = message else { continue };
        assert_eq!(at + 1, parts.len(), "it is taken to its end");
        assert_eq!((message.session, message.request), (5, Seq(9)));
        assert_eq!(&message.meta[..], b"meta");
        assert_eq!(assembler.held(), 0);
        return message.body.map(|body| body.to_vec());
    }
    panic!("the last part ends it");
}

// R4.6
#[test]
fn a_body_without_memory_is_taken_to_its_end_and_left_out() {
    let whole = Some(b"0123456789".to_vec());
    let mut assembler = Assembler::new(1000);
    // Memory is taken for 2, 4, 8 and 10 bytes, with the first, second, third and last part.
    for (nth, memory) in [(0, 1), (1, 3), (2, 7), (4, 9)] {
        assert_eq!(body_with(&mut assembler, nth, memory), None, "part {nth}");
        assert_eq!(body_with(&mut assembler, nth, memory + 1), whole);
    }
}

// R4.6
#[test]
fn a_body_without_memory_keeps_its_order_and_leaves_others_alone() {
    let (parts, others) = (parts(5), parts(6));
    let mut assembler = Assembler::new(1000);
    assembler.limit_memory(1);
    assert!(assembler.take(frame(&parts[0])).unwrap().is_none());
    assembler.limit_memory(10);
    let held = assembler.held();
    for other in &others[..4] {
        assert!(assembler.take(frame(other)).unwrap().is_none());
    }
    let refused = assembler.take(frame(&parts[2])).err();
    assert_eq!(refused, Some(Refusal::Order), "one is left out");
    let refused = assembler.take(frame(&parts[0])).err();
    assert_eq!(refused, Some(Refusal::Order), "it is under way");
    let other = assembler.take(frame(&others[4])).unwrap().unwrap();
    assert_eq!(&other.body.unwrap()[..], b"0123456789");
    assert_eq!(assembler.held(), held, "what is thrown away still counts");
    assembler.forget(5);
    assert_eq!(assembler.held(), 0);
}
