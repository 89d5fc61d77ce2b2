//! Everything that can be said, to bytes and back: pinned, at random, cut short, and damaged.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::base::body::Body;
use crate::base::ids::{Caller, Fingerprint, Generation, JobId, Pri, RunId, Seq, SessionId};
use crate::base::limits::{
    ASSEMBLY_OVERHEAD_BYTES, BODY_LEN_MAX_CEILING, BODY_PART_LEN_MAX, HEADER_LEN, META_LEN_MAX,
};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::op::{Op, Put, Style};
use crate::engine::stats::{
    JobCounts, JobGauges, JobState, JobStats, JournalStats, ShardStats, TubeStats,
};
use crate::wire::assembler::{Assembler, Message};
use crate::wire::control::{self, Control, Counts, Hello, Numbers};
use crate::wire::credit::Amount;
use crate::wire::frame::{Frame, Head, write_bare};
use crate::wire::header::{Ends, Expected};
use crate::wire::kind::{ControlKind, EventKind, Kind, OpKind, Sender};
use crate::wire::outgoing::Outgoing;
use crate::wire::refusal::{DecodeError, Refusal};
use crate::wire::setup;
use crate::wire::{event, op};

const ENDS: Ends = Ends {
    topology: Fingerprint(0x1112_1314_1516_1718),
    sender: Generation(2),
    receiver: Generation(3),
};

fn expected(from: Sender) -> Expected {
    Expected {
        ends: ENDS,
        from,
        body_len_max: BODY_LEN_MAX_CEILING,
    }
}

fn caller(number: u64) -> Caller {
    Caller {
        session: SessionId {
            frontend: 7,
            number,
        },
        seq: Seq(11),
    }
}

/// What the fields of a sample are made of.
#[derive(Clone, Debug)]
struct Values {
    longs: [u64; 7],
    ints: [u32; 5],
    flag: bool,
    name: String,
    body: Body,
}

impl Values {
    fn fixed() -> Values {
        Values {
            longs: [1, 2, 3, 4, 5, 6, 7].map(|n| n * 0x0101),
            ints: [8, 9, 10, 11, 12],
            flag: true,
            name: "ab".to_string(),
            body: Body::copy_of(b"work"),
        }
    }

    fn tube(&self) -> TubeName<'_> {
        TubeName::parse(self.name.as_bytes()).unwrap()
    }

    fn id(&self) -> JobId {
        JobId(self.longs[0])
    }

    fn gauges(&self) -> JobGauges {
        JobGauges {
            urgent: self.longs[0],
            ready: self.longs[1],
            reserved: self.longs[2],
            delayed: self.longs[3],
            buried: self.longs[4],
        }
    }

    fn shard(&self) -> ShardStats {
        ShardStats {
            jobs: self.gauges(),
            job_timeouts: self.longs[5],
            total_jobs: self.longs[6],
            tubes: self.longs[0],
            journal: JournalStats {
                oldest_index: self.longs[1],
                current_index: self.longs[2],
                records_migrated: self.longs[3],
                records_written: self.longs[4],
            },
        }
    }

    fn state(&self) -> JobState {
        match self.longs[6] % 5 {
            0 => JobState::Ready,
            1 => JobState::Offered { to: self.ints[0] },
            2 => JobState::Reserved { by: self.ints[0] },
            3 => JobState::Delayed,
            _ => JobState::Buried,
        }
    }

    fn job(&self) -> JobStats<'_> {
        JobStats {
            id: self.id(),
            tube: self.tube(),
            state: self.state(),
            pri: Pri(self.ints[1]),
            age_secs: self.longs[1],
            delay: Secs(self.ints[2]),
            ttr: Secs(self.ints[3]),
            left_secs: self.longs[2],
            segment: self.longs[3],
            counts: JobCounts {
                reserves: self.ints[0],
                timeouts: self.ints[1],
                releases: self.ints[2],
                buries: self.ints[3],
                kicks: self.ints[4],
            },
        }
    }

    fn tube_stats(&self) -> TubeStats<'_> {
        TubeStats {
            name: self.tube(),
            jobs: self.gauges(),
            total_jobs: self.longs[0],
            using: self.longs[1],
            watching: self.longs[2],
            waiting: self.longs[3],
            deletes: self.longs[4],
            pauses: self.longs[5],
            pause: Secs(self.ints[0]),
            pause_left_secs: self.longs[6],
        }
    }

    fn put(&self) -> Put<'_> {
        Put {
            id: self.flag.then_some(JobId(self.longs[0].max(1))),
            created_at: Nanos(self.longs[1]),
            pri: Pri(self.ints[0]),
            delay: Secs(self.ints[1]),
            ttr: Secs(self.ints[2].max(1)),
            body: self.body.clone().into(),
        }
    }

    fn op(&self, kind: OpKind) -> Op<'_> {
        let (id, tube) = (self.id(), self.tube());
        let (pri, delay) = (Pri(self.ints[0]), Secs(self.ints[1]));
        match kind {
            OpKind::Use => Op::Use { tube },
            OpKind::Unuse => Op::Unuse,
            OpKind::Watch => Op::Watch { tube },
            OpKind::Ignore => Op::Ignore { tube },
            OpKind::Put => Op::Put(self.put()),
            OpKind::Reserve => Op::Reserve {
                style: [Style::Take, Style::Offer][self.ints[0] as usize % 2],
                wait: self.flag,
            },
            OpKind::Accept => Op::Accept { id },
            OpKind::Decline => Op::Decline { id },
            OpKind::Cancel => Op::Cancel,
            OpKind::ReserveJob => Op::ReserveJob { id },
            OpKind::Delete => Op::Delete { id },
            OpKind::Release => Op::Release { id, pri, delay },
            OpKind::Bury => Op::Bury { id, pri },
            OpKind::Touch => Op::Touch { id },
            OpKind::Kick => Op::Kick {
                count: self.ints[0],
            },
            OpKind::KickJob => Op::KickJob { id },
            OpKind::Peek => Op::Peek { id },
            OpKind::PeekReady => Op::PeekReady,
            OpKind::PeekDelayed => Op::PeekDelayed,
            OpKind::PeekBuried => Op::PeekBuried,
            OpKind::PauseTube => Op::PauseTube { tube, pause: delay },
            OpKind::StatsJob => Op::StatsJob { id },
            OpKind::StatsTube => Op::StatsTube { tube },
            OpKind::Stats => Op::Stats,
            OpKind::ListTubes => Op::ListTubes,
        }
    }

    fn event(&self, kind: EventKind) -> Event<'_> {
        let (id, deadline, body) = (self.id(), Nanos(self.longs[1]), self.body.clone().into());
        match kind {
            EventKind::Using => Event::Using,
            EventKind::Watching => Event::Watching,
            EventKind::Ignored => Event::Ignored,
            EventKind::Inserted => Event::Inserted { id },
            EventKind::Draining => Event::Draining,
            EventKind::OutOfMemory => Event::OutOfMemory,
            EventKind::Reserved => Event::Reserved { id, deadline, body },
            EventKind::NoJob => Event::NoJob,
            EventKind::Offered => Event::Offered {
                id,
                pri: Pri(self.ints[0]),
                created_at: deadline,
            },
            EventKind::Gone => Event::Gone,
            EventKind::Cancelled => Event::Cancelled,
            EventKind::Expired => Event::Expired { id },
            EventKind::Deleted => Event::Deleted { id },
            EventKind::Released => Event::Released { id },
            EventKind::Buried => Event::Buried { id },
            EventKind::Touched => Event::Touched { id, deadline },
            EventKind::Kicked => Event::Kicked {
                count: self.ints[0],
            },
            EventKind::KickedJob => Event::KickedJob,
            EventKind::Found => Event::Found { id, body },
            EventKind::NotFound => Event::NotFound,
            EventKind::Paused => Event::Paused,
            EventKind::JobStats => Event::JobStats(self.job()),
            EventKind::TubeStats => Event::TubeStats(self.tube_stats()),
            EventKind::ShardStats => Event::ShardStats(self.shard()),
            EventKind::Tube => Event::Tube(self.tube()),
            EventKind::TubesEnd => Event::TubesEnd,
        }
    }

    fn control(&self, kind: ControlKind) -> Control<'_> {
        let number = self.longs[0];
        let refusal = Refusal::ALL[self.ints[0] as usize % Refusal::ALL.len()];
        match kind {
            ControlKind::Hello => {
                Control::Hello(Hello::new(RunId(number), ENDS, Sender::Frontend, 9))
            }
            ControlKind::Goodbye => Control::Goodbye(self.flag.then_some(refusal)),
            ControlKind::Ping => Control::Ping(number),
            ControlKind::Pong => Control::Pong(number),
            ControlKind::Credit => Control::Credit(Amount {
                asks: self.ints[0],
                bytes: number,
            }),
            ControlKind::Refused => Control::Refused(refusal),
            ControlKind::Drain => Control::Drain,
            ControlKind::AskCounts => Control::AskCounts(number),
            ControlKind::Counts => Control::Counts(Counts {
                asked: number,
                role: Sender::Owner,
                index: 4,
                shard: self.shard(),
                numbers: Numbers::of(&self.longs),
            }),
            ControlKind::Setup | ControlKind::Link | ControlKind::LinkLost => {
                setup::tests::sample(kind, &self.longs, &self.ints, self.flag)
            }
            ControlKind::Ready => Control::Ready,
            ControlKind::Attach => Control::Attach,
            ControlKind::Detach => Control::Detach,
        }
    }

    /// A frame of this kind, whole.
    fn frame(&self, kind: Kind) -> Vec<u8> {
        let mut out = Vec::new();
        let most = BODY_PART_LEN_MAX;
        let rest = match kind {
            Kind::Control(kind) => {
                let control = self.control(kind);
                let head = Head::about(ENDS, Kind::Control(control.kind()), caller(5));
                write_bare(&mut out, head, |out| control.write_fields(out));
                None
            }
            Kind::Op(kind) => op::write(&mut out, ENDS, caller(5), &self.op(kind), most),
            Kind::Event(kind) => event::write(&mut out, ENDS, caller(5), &self.event(kind), most),
        };
        assert!(rest.is_none(), "the bodies here are small");
        out
    }
}

fn all_kinds() -> Vec<Kind> {
    let controls = ControlKind::ALL.iter().map(|&kind| Kind::Control(kind));
    let ops = OpKind::ALL.iter().map(|&kind| Kind::Op(kind));
    let events = EventKind::ALL.iter().map(|&kind| Kind::Event(kind));
    controls.chain(ops).chain(events).collect()
}

fn sender_of(kind: Kind) -> Sender {
    let all = [Sender::Frontend, Sender::Owner, Sender::Supervisor];
    let sender = all.into_iter().find(|&from| kind.is_from(from));
    sender.expect("somebody may send it")
}

/// What a message says, as text that tells everything.
fn shown(message: &Message<'_>) -> Result<String, DecodeError> {
    let body = message.body.as_ref();
    let said = match message.kind {
        Kind::Control(kind) => format!("{:?}", control::decode(kind, &message.meta)?),
        Kind::Op(kind) => format!("{:?}", op::decode(kind, &message.meta, body.cloned())?),
        Kind::Event(kind) => format!("{:?}", event::decode(kind, &message.meta, body.cloned())?),
    };
    Ok(format!("{said} {:?}", body.map(|body| body.to_vec())))
}

/// The same of what was to be said.
fn meant(values: &Values, kind: Kind) -> String {
    let said = match kind {
        // Decoded numbers are shown otherwise than plain ones.
        Kind::Control(kind) => {
            let mut meta = Vec::new();
            let control = values.control(kind);
            control.write_fields(&mut meta);
            let decoded = control::decode(kind, &meta).unwrap();
            assert_eq!(decoded, control);
            format!("{decoded:?}")
        }
        Kind::Op(kind) => format!("{:?}", values.op(kind)),
        Kind::Event(kind) => format!("{:?}", values.event(kind)),
    };
    let body = kind.has_body().then(|| values.body.to_vec());
    format!("{said} {body:?}")
}

/// The message that `bytes` are, all of them.
fn message<'a>(mut bytes: &'a [u8], from: Sender) -> Result<Option<Message<'a>>, Refusal> {
    let Some(frame) = Frame::cut(&mut bytes, &expected(from))? else {
        return Ok(None);
    };
    assert!(bytes.is_empty(), "it was one frame");
    Assembler::new(u64::MAX).take(frame)
}

fn values() -> impl Strategy<Value = Values> {
    let longs = any::<[u64; 7]>();
    let names = prop_oneof!["[a-zA-Z0-9+/;.$_()][a-zA-Z0-9+/;.$_()-]{0,199}", "default"];
    let body = prop::collection::vec(any::<u8>(), 0..300);
    let rest = (any::<[u32; 5]>(), any::<bool>(), names, body);
    (longs, rest).prop_map(|(longs, (ints, flag, name, body))| Values {
        longs,
        ints,
        flag,
        name,
        body: Body::copy_of(&body),
    })
}

// R3.2
#[test]
fn metadata_is_pinned() {
    let values = Values::fixed();
    let id = b"\x01\x01\0\0\0\0\0\0";
    let two = b"\x02\x02\0\0\0\0\0\0";
    let name = b"\x02ab";
    let gauges: Vec<u8> = (1..6).flat_map(|n| [n, n, 0, 0, 0, 0, 0, 0]).collect();
    let longs: Vec<u8> = (1..8).flat_map(|n| [n, n, 0, 0, 0, 0, 0, 0]).collect();
    let shard = [&gauges[..], &longs[40..], &longs[..40]].concat();
    let pinned = |kind: Kind| -> Vec<u8> {
        match kind.number() {
            1 => b"\x01\0\x01\x01\0\0\0\0\0\0\x18\x17\x16\x15\x14\x13\x12\x11\
                \x02\x09\0\x02\0\0\0\x03\0\0\0"
                .to_vec(),
            2 | 6 => b"\x09".to_vec(),
            3 | 4 | 8 => id.to_vec(),
            5 => [&b"\x08\0\0\0"[..], id].concat(),
            9 => [&id[..], b"\x03\x04\0", &shard, b"\x07", &longs].concat(),
            10 | 12 | 13 => setup::tests::pinned(kind),
            32 | 34 | 35 | 54 | 152 => name.to_vec(),
            36 => [&id[..], two, b"\x08\0\0\0\x09\0\0\0\x0a\0\0\0"].concat(),
            37 => b"\0\x01".to_vec(),
            38 | 39 | 41 | 42 | 45 | 47 | 48 | 53 => id.to_vec(),
            43 => [&id[..], b"\x08\0\0\0\x09\0\0\0"].concat(),
            44 => [&id[..], b"\x08\0\0\0"].concat(),
            46 | 144 => b"\x08\0\0\0".to_vec(),
            52 => [&name[..], b"\x09\0\0\0"].concat(),
            131 | 139..=142 | 146 => id.to_vec(),
            134 | 143 => [&id[..], two].concat(),
            136 => [&id[..], b"\x08\0\0\0", two].concat(),
            149 => [
                &id[..],
                name,
                // 0x0707 modulo 5 is 4: buried.
                b"\x04\x09\0\0\0",
                two,
                b"\x0a\0\0\0\x0b\0\0\0",
                &longs[16..32],
                b"\x08\0\0\0\x09\0\0\0\x0a\0\0\0\x0b\0\0\0\x0c\0\0\0",
            ]
            .concat(),
            150 => [
                &name[..],
                &gauges,
                &longs[..48],
                b"\x08\0\0\0",
                &longs[48..],
            ]
            .concat(),
            151 => shard.clone(),
            _ => Vec::new(),
        }
    };
    for kind in all_kinds() {
        let bytes = values.frame(kind);
        let body = if kind.has_body() { &b"work"[..] } else { b"" };
        let expected = [&pinned(kind)[..], body].concat();
        assert_eq!(bytes[HEADER_LEN..], expected, "{kind:?}");
    }
}

// R3.6
#[test]
fn the_longest_metadata_fits() {
    let mut values = Values::fixed();
    values.name = "x".repeat(200);
    values.longs = [1; 7];
    let longest = all_kinds().into_iter().map(|kind| values.frame(kind).len());
    assert!(longest.max().unwrap() - HEADER_LEN <= META_LEN_MAX);
}

// A3.1
#[test]
fn a_message_cut_short_is_never_taken_for_one() {
    let values = Values::fixed();
    for kind in all_kinds() {
        let bytes = values.frame(kind);
        let from = sender_of(kind);
        for len in 0..bytes.len() {
            let cut = message(&bytes[..len], from);
            assert!(matches!(cut, Ok(None)), "{kind:?} of {len} bytes: {cut:?}");
        }
        let mut whole = message(&bytes, from).unwrap().unwrap();
        let meta = whole.meta.to_vec();
        for len in 0..meta.len() {
            whole.meta = meta[..len].to_vec().into();
            assert_eq!(shown(&whole), Err(DecodeError::Short), "{kind:?}, {len}");
        }
        whole.meta = [&meta[..], b"\0"].concat().into();
        let longer = shown(&whole);
        assert_eq!(longer, Err(DecodeError::Long), "{kind:?}");
    }
}

// A3.2
#[test]
fn a_hello_is_checked_in_order() {
    let right = Hello::new(RunId(1), ENDS, Sender::Frontend, 2);
    assert_eq!(right.check(&right), Ok(()));
    let mut wrong = right;
    wrong.index = 3;
    assert_eq!(wrong.check(&right), Err(Refusal::Peer));
    wrong.ends.receiver = Generation(9);
    assert_eq!(wrong.check(&right), Err(Refusal::Receiver));
    wrong.ends.sender = Generation(9);
    assert_eq!(wrong.check(&right), Err(Refusal::Sender));
    wrong.ends.topology = Fingerprint(9);
    assert_eq!(wrong.check(&right), Err(Refusal::Topology));
    wrong.run = RunId(9);
    assert_eq!(wrong.check(&right), Err(Refusal::Run));
    wrong.version = 9;
    assert_eq!(wrong.check(&right), Err(Refusal::Version));
}

/// A put of a session, in parts of `part_len_max` bytes, as single frames.
fn put_in_parts(number: u64, body: &[u8], part_len_max: usize) -> Vec<Vec<u8>> {
    let mut values = Values::fixed();
    values.body = Body::copy_of(body);
    let mut frames = vec![Vec::new()];
    let put = values.op(OpKind::Put);
    let mut rest = op::write(&mut frames[0], ENDS, caller(number), &put, part_len_max);
    while let Some(more) = rest {
        let mut frame = Vec::new();
        rest = more.write(&mut frame, body, part_len_max);
        frames.push(frame);
    }
    frames
}

fn frame(mut bytes: &[u8]) -> Frame<'_> {
    let frame = Frame::cut(&mut bytes, &expected(Sender::Frontend));
    frame.unwrap().unwrap()
}

// R3.6, A3.1
#[test]
fn parts_out_of_order_are_refused_and_change_nothing() {
    let parts = put_in_parts(5, b"abcdef", 2);
    let other = put_in_parts(6, b"abcdef", 2);
    let again = put_in_parts(5, b"abcdef", 2);
    let mut assembler = Assembler::new(10_000);
    let mut take = |bytes: &[u8]| {
        let taken = assembler.take(frame(bytes));
        taken.map(|message| message.map(|message| message.body.unwrap().to_vec()))
    };
    assert_eq!(take(&parts[1]), Err(Refusal::Order), "nothing has begun");
    assert_eq!(take(&parts[0]), Ok(None));
    assert_eq!(take(&parts[2]), Err(Refusal::Order), "one is left out");
    assert_eq!(take(&again[0]), Err(Refusal::Order), "one is under way");
    assert_eq!(take(&other[0]), Ok(None), "of another session");
    assert_eq!(take(&parts[1]), Ok(None));
    assert_eq!(take(&parts[1]), Err(Refusal::Order), "it comes twice");
    assert_eq!(take(&parts[2]), Ok(Some(b"abcdef".to_vec())));
    assert_eq!(take(&other[1]), Ok(None));
    assert_eq!(take(&other[2]), Ok(Some(b"abcdef".to_vec())));
    assert_eq!(assembler.held(), 0);
}

// R3.6, A3.4
#[test]
fn bodies_under_way_keep_to_a_budget_and_go_with_their_session() {
    let meta_len = 28;
    let cost = ASSEMBLY_OVERHEAD_BYTES + meta_len + 6;
    let mut assembler = Assembler::new(2 * cost - 1);
    let parts = put_in_parts(5, b"abcdef", 2);
    let other = put_in_parts(6, b"abcdef", 2);
    assert!(assembler.take(frame(&parts[0])).unwrap().is_none());
    assert_eq!(assembler.held(), cost);
    let refused = assembler.take(frame(&other[0]));
    assert_eq!(refused.err(), Some(Refusal::Budget));

    let mut detach = Vec::new();
    let kind = Kind::Control(ControlKind::Detach);
    write_bare(&mut detach, Head::about(ENDS, kind, caller(5)), |_| {});
    let refused = assembler.take(frame(&detach));
    assert_eq!(refused.err(), Some(Refusal::Order), "it comes after");
    assembler.forget(5);
    assert_eq!(assembler.held(), 0);
    let detached = assembler.take(frame(&detach)).unwrap().unwrap();
    assert_eq!((detached.kind, detached.session), (kind, 5));
    assert!(assembler.take(frame(&other[0])).unwrap().is_none());
    assembler.forget(6);
    assembler.forget(6);
    assert_eq!(assembler.held(), 0);
}

// R3.6
#[test]
fn a_body_on_its_way_is_neither_copied_nor_allocated_at_once() {
    let body = Body::from_vec(vec![b'x'; 10 << 20]);
    let (mut out, mut outgoing) = (Vec::new(), Outgoing::default());
    let event = Event::Found {
        id: JobId(1),
        body: body.clone().into(),
    };
    outgoing.push(&mut out, 5, event::body_of(&event), |out| {
        event::write(out, ENDS, caller(5), &event, BODY_PART_LEN_MAX)
    });
    drop(event);
    assert_eq!(body.holders(), 2);
    assert!(out.len() < BODY_PART_LEN_MAX + 100);
    let mut assembler = Assembler::new(11 << 20);
    let expected = expected(Sender::Owner);
    loop {
        let mut bytes = &out[..];
        let frame = Frame::cut(&mut bytes, &expected).unwrap().unwrap();
        if let Some(message) = assembler.take(frame).unwrap() {
            assert!(outgoing.is_empty());
            assert_eq!(body.holders(), 1);
            assert!(message.body.unwrap()[..] == body[..]);
            return;
        }
        out.clear();
        outgoing.turn(&mut out, BODY_PART_LEN_MAX);
    }
}

proptest! {
    #![proptest_config(crate::base::property_config())]

    // R3.1, R3.2
    #[test]
    fn what_is_said_is_understood(values in values(), kind in select(all_kinds())) {
        let bytes = values.frame(kind);
        let whole = message(&bytes, sender_of(kind)).unwrap().unwrap();
        prop_assert_eq!((whole.kind, whole.session), (kind, 5));
        prop_assert_eq!(whole.request, Seq(11));
        prop_assert_eq!(shown(&whole), Ok(meant(&values, kind)));
    }

    // R3.1, R3.5, A3.1: whatever pieces bodies and the stream itself are cut into.
    #[test]
    fn sessions_take_turns_and_keep_their_order(
        said in prop::collection::vec((values(), select(OpKind::ALL), 0u64..4, 0usize..3), 1..20),
        part_len_max in 1usize..200,
        pieces in prop::collection::vec(1usize..400, 1..20),
    ) {
        let (mut out, mut outgoing) = (Vec::new(), Outgoing::default());
        let mut meant_by: [Vec<String>; 4] = Default::default();
        for (values, kind, session, turns) in &said {
            let asked = values.op(*kind);
            meant_by[*session as usize].push(meant(values, Kind::Op(*kind)));
            outgoing.push(&mut out, *session, op::body_of(&asked), |out| {
                op::write(out, ENDS, caller(*session), &asked, part_len_max)
            });
            (0..*turns).for_each(|_| { outgoing.turn(&mut out, part_len_max); });
        }
        while outgoing.turn(&mut out, part_len_max) {}

        let mut assembler = Assembler::new(1 << 20);
        let mut heard_of: [Vec<String>; 4] = Default::default();
        let (mut arrived, mut sent, mut cuts) = (Vec::new(), &out[..], pieces.iter().cycle());
        while !sent.is_empty() {
            let (piece, rest) = sent.split_at((*cuts.next().unwrap()).min(sent.len()));
            sent = rest;
            arrived.extend_from_slice(piece);
            let mut bytes = &arrived[..];
            while let Some(frame) = Frame::cut(&mut bytes, &expected(Sender::Frontend)).unwrap() {
                if let Some(message) = assembler.take(frame).unwrap() {
                    heard_of[message.session as usize].push(shown(&message).unwrap());
                }
            }
            let used = arrived.len() - bytes.len();
            arrived.drain(..used);
        }
        prop_assert!(arrived.is_empty());
        prop_assert_eq!(assembler.held(), 0);
        prop_assert_eq!(heard_of, meant_by);
    }

    // A3.1, A3.2: damage is refused, or says something that is written just so.
    #[test]
    fn damage_is_refused_or_means_something(
        values in values(),
        kind in select(all_kinds()),
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = values.frame(kind);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_any(&bytes, sender_of(kind));
    }

    // A3.1
    #[test]
    fn any_metadata_is_refused_or_means_something(
        meta in prop::collection::vec(prop_oneof![0u8..3, any::<u8>()], 0..200),
        kind in select(all_kinds()),
    ) {
        let mut bytes = Vec::new();
        let head = Head::about(ENDS, kind, caller(5));
        write_bare(&mut bytes, head, |out| out.extend_from_slice(&meta));
        check_any(&bytes, sender_of(kind));
    }
}

/// What is understood of `bytes` is written as it was read.
fn check_any(bytes: &[u8], from: Sender) {
    let mut rest = bytes;
    let Ok(Some(frame)) = Frame::cut(&mut rest, &expected(from)) else {
        return;
    };
    let used = &bytes[..bytes.len() - rest.len()];
    assert_eq!(used[..HEADER_LEN], frame.header.encode());
    let Ok(Some(message)) = Assembler::new(1 << 20).take(frame) else {
        return;
    };
    let who = frame.header.caller(7);
    let mut again = Vec::new();
    let most = BODY_PART_LEN_MAX;
    let body = message.body.as_ref();
    let rest = match message.kind {
        Kind::Control(kind) => match control::decode(kind, &message.meta) {
            Ok(control) => {
                let head = Head::about(ENDS, message.kind, who);
                write_bare(&mut again, head, |out| control.write_fields(out));
                None
            }
            Err(_) => return,
        },
        Kind::Op(kind) => match op::decode(kind, &message.meta, body.cloned()) {
            Ok(asked) => op::write(&mut again, ENDS, who, &asked, most),
            Err(_) => return,
        },
        Kind::Event(kind) => match event::decode(kind, &message.meta, body.cloned()) {
            Ok(event) => event::write(&mut again, ENDS, who, &event, most),
            Err(_) => return,
        },
    };
    assert!(rest.is_none());
    assert_eq!(again, used);
}
