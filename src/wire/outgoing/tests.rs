//! Whose turn it is, and how much is left, beside a list of lengths that does the same.

use proptest::prelude::*;

use super::*;
use crate::base::ids::{Caller, Fingerprint, Generation, Seq, SessionId};
use crate::base::limits::BODY_LEN_MAX_CEILING;
use crate::wire::frame::{self, Frame, Head};
use crate::wire::header::{Ends, Expected};
use crate::wire::kind::{Kind, OpKind, Sender};

const ENDS: Ends = Ends {
    topology: Fingerprint(1),
    sender: Generation(2),
    receiver: Generation(3),
};

/// Bytes of a body in one frame.
const PART_LEN_MAX: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// The session says something with a body of this length, or without one if it is 0.
    Push {
        session: u64,
        body_len: usize,
    },
    Turn,
    Forget {
        session: u64,
    },
}

/// Sessions in the middle of a body, the one whose turn it is first, and what has been written.
#[derive(Default)]
struct Model {
    unfinished: VecDeque<Lengths>,
    /// Session and part of each frame.
    frames: Vec<(u64, usize)>,
}

struct Lengths {
    session: u64,
    /// Bytes that are left of the body that has been begun.
    left: usize,
    /// Lengths of the bodies that wait.
    held: VecDeque<usize>,
}

impl Model {
    /// Writes a part; what is left of the body.
    fn write(&mut self, session: u64, body_len: usize) -> usize {
        let part_len = body_len.min(PART_LEN_MAX);
        self.frames.push((session, part_len));
        body_len - part_len
    }

    fn push(&mut self, session: u64, body_len: usize) {
        let mut others = self.unfinished.iter_mut();
        if let Some(one) = others.find(|one| one.session == session) {
            one.held.push_back(body_len);
            return;
        }
        let left = self.write(session, body_len);
        if left > 0 {
            self.unfinished.push_back(Lengths {
                session,
                left,
                held: VecDeque::new(),
            });
        }
    }

    fn turn(&mut self) {
        let Some(mut one) = self.unfinished.pop_front() else {
            return;
        };
        one.left = self.write(one.session, one.left);
        while one.left == 0
            && let Some(next) = one.held.pop_front()
        {
            one.left = self.write(one.session, next);
        }
        if one.left > 0 {
            self.unfinished.push_back(one);
        }
    }

    fn forget(&mut self, session: u64) {
        self.unfinished.retain(|one| one.session != session);
    }

    fn len(&self) -> usize {
        let lens = self.unfinished.iter();
        lens.map(|one| one.left + one.held.iter().sum::<usize>())
            .sum()
    }
}

fn push(outgoing: &mut Outgoing, out: &mut Vec<u8>, session: u64, body_len: usize) {
    let about = Caller {
        session: SessionId {
            frontend: 0,
            number: session,
        },
        seq: Seq(9),
    };
    let (kind, body) = if body_len == 0 {
        (OpKind::Cancel, None)
    } else {
        (
            OpKind::Put,
            Some(BodyCow::from(Body::from_vec(vec![b'x'; body_len]))),
        )
    };
    let head = Head::about(ENDS, Kind::Op(kind), about);
    outgoing.push(out, session, body.as_ref(), |out| {
        let body = body.as_deref().unwrap_or(&[]);
        frame::write(out, head, |_| {}, body, PART_LEN_MAX)
    });
}

/// Session and part of each frame in `bytes`.
fn frames(mut bytes: &[u8]) -> Vec<(u64, usize)> {
    let expected = Expected {
        ends: ENDS,
        from: Sender::Frontend,
        body_len_max: BODY_LEN_MAX_CEILING,
    };
    let mut frames = Vec::new();
    while let Some(frame) = Frame::cut(&mut bytes, &expected).unwrap() {
        frames.push((frame.header.session, frame.part.len()));
    }
    frames
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0u64..6;
    prop_oneof![
        4 => (session.clone(), 0usize..20).prop_map(|(session, body_len)| Step::Push {
            session,
            body_len
        }),
        6 => Just(Step::Turn),
        1 => session.prop_map(|session| Step::Forget { session }),
    ]
}

proptest! {
    #![proptest_config(crate::base::property_config())]

    // R3.1, R3.6
    #[test]
    fn turns_go_round_and_what_is_left_is_known(steps in prop::collection::vec(step(), 1..100)) {
        let (mut outgoing, mut out, mut model) =
            (Outgoing::default(), Vec::new(), Model::default());
        for step in steps {
            match step {
                Step::Push { session, body_len } => {
                    push(&mut outgoing, &mut out, session, body_len);
                    model.push(session, body_len);
                }
                Step::Turn => {
                    let more = outgoing.turn(&mut out, PART_LEN_MAX);
                    model.turn();
                    prop_assert_eq!(more, !model.unfinished.is_empty());
                }
                Step::Forget { session } => {
                    outgoing.forget(session);
                    model.forget(session);
                }
            }
            prop_assert_eq!(outgoing.len(), model.len());
            prop_assert_eq!(outgoing.is_empty(), model.unfinished.is_empty());
        }
        prop_assert_eq!(frames(&out), model.frames);
        prop_assert_eq!(outgoing.turns.len(), outgoing.unfinished.len());
    }
}
