//! The input is what comes over a link: the first byte says from whom, frames follow. Nothing
//! panics, no more memory is held than has been allowed, and what is understood is written again
//! as it was read.

#![no_main]

use beanshard::base::ids::{Caller, Fingerprint, Generation, SessionId};
use beanshard::base::limits::BODY_PART_LEN_MAX;
use beanshard::wire::assembler::{Assembler, Message};
use beanshard::wire::frame::{Frame, Head, Rest, write_bare};
use beanshard::wire::header::{Ends, Expected};
use beanshard::wire::kind::{Kind, Sender};
use beanshard::wire::refusal::DecodeError;
use beanshard::wire::{control, event, op};
use libfuzzer_sys::fuzz_target;

const ENDS: Ends = Ends {
    topology: Fingerprint(0),
    sender: Generation(0),
    receiver: Generation(0),
};

/// Bytes of bodies that may be under way.
const BUDGET: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((&from, mut bytes)) = input.split_first() else {
        return;
    };
    let senders = [Sender::Frontend, Sender::Owner, Sender::Supervisor];
    let expected = Expected {
        ends: ENDS,
        from: senders[usize::from(from) % senders.len()],
        body_len_max: 1 << 30,
    };
    let mut assembler = Assembler::new(BUDGET);
    loop {
        let before = bytes;
        let Ok(Some(frame)) = Frame::cut(&mut bytes, &expected) else {
            return;
        };
        let used = &before[..before.len() - bytes.len()];
        assert!(used.starts_with(&frame.header.encode()));
        let is_one = !frame.header.continues;
        let taken = assembler.take(frame);
        assert!(assembler.held() <= BUDGET);
        let Ok(Some(message)) = taken else { continue };
        let mut again = Vec::new();
        if let Ok(rest) = write(&mut again, &message)
            && is_one
        {
            assert!(rest.is_none());
            assert_eq!(again, used, "{message:?}");
        }
    }
});

/// The message as frames, if it says something.
fn write(out: &mut Vec<u8>, message: &Message<'_>) -> Result<Option<Rest>, DecodeError> {
    let head = Head {
        ends: ENDS,
        kind: message.kind,
        session: message.session,
        request: message.request,
    };
    let caller = Caller {
        session: SessionId {
            frontend: 0,
            number: message.session,
        },
        seq: message.request,
    };
    let body = message.body.as_ref();
    Ok(match message.kind {
        Kind::Control(kind) => {
            let control = control::decode(kind, &message.meta)?;
            write_bare(out, head, |out| control.write_fields(out));
            None
        }
        Kind::Op(kind) => {
            let asked = op::decode(kind, &message.meta, body.cloned())?;
            op::write(out, ENDS, caller, &asked, BODY_PART_LEN_MAX)
        }
        Kind::Event(kind) => {
            let event = event::decode(kind, &message.meta, body)?;
            event::write(out, ENDS, caller, &event, BODY_PART_LEN_MAX)
        }
    })
}
