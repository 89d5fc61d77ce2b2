//! Both ends of a link against each other, and against what no end of ours would send.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::base::body::Body;
use crate::base::ids::{
    Caller, Fingerprint, Generation, JobId, Pri, RunId, Seq, SessionId, ShardId,
};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::channel::far::{Asked, FarEnd};
use crate::channel::near::{Heard, NearEnd};
use crate::engine::event::Event;
use crate::engine::host::Ticket;
use crate::engine::op::{Op, Put, Style};
use crate::session::shards::Reach;
use crate::wire::control::Control;
use crate::wire::frame::{Frame, Head, write_bare};
use crate::wire::header::Ends;
use crate::wire::kind::{ControlKind, Kind, OpKind, Sender};
use crate::wire::op;
use crate::wire::refusal::Refusal;

const SHARD: ShardId = ShardId(3);
const FRONTEND: u16 = 2;

fn terms() -> Terms {
    let ends = Ends {
        topology: Fingerprint(77),
        sender: Generation(5),
        receiver: Generation(6),
    };
    let own = Hello::new(RunId(9), ends, Sender::Frontend, FRONTEND);
    let awaited = Hello::new(RunId(9), ends.reversed(), Sender::Owner, 3);
    Terms {
        own,
        awaited,
        body_len_max: 1 << 20,
        window: Amount {
            asks: 4,
            bytes: 1000,
        },
    }
}

fn reversed(terms: Terms) -> Terms {
    Terms {
        own: terms.awaited,
        awaited: terms.own,
        ..terms
    }
}

fn session(number: u64) -> SessionId {
    SessionId {
        frontend: FRONTEND,
        number,
    }
}

fn caller(number: u64, seq: u64) -> Caller {
    Caller {
        session: session(number),
        seq: Seq(seq),
    }
}

fn put(len: usize) -> Op<'static> {
    Op::Put(Put {
        id: None,
        created_at: Nanos(1),
        pri: Pri(2),
        delay: Secs(0),
        ttr: Secs(60),
        body: Body::from_vec(vec![7; len]).into(),
    })
}

/// Both ends, and the bytes in between.
struct Pair {
    near: NearEnd,
    far: FarEnd,
    to_far: Vec<u8>,
    to_near: Vec<u8>,
    /// What has reached the owner, by session: `+`, `-`, or the number of the request.
    asked: BTreeMap<u64, Vec<String>>,
    /// What has reached the frontend.
    heard: Vec<String>,
}

impl Pair {
    fn new() -> Pair {
        Pair::on(terms())
    }

    fn on(terms: Terms) -> Pair {
        let mut near = NearEnd::new(SHARD);
        near.connect(&terms);
        Pair {
            near,
            far: FarEnd::new(&reversed(terms)),
            to_far: Vec::new(),
            to_near: Vec::new(),
            asked: BTreeMap::new(),
            heard: Vec::new(),
        }
    }

    fn greeted() -> Pair {
        let mut pair = Pair::new();
        pair.flow().unwrap();
        assert_eq!(pair.near.reach(), Reach::Now);
        pair
    }

    /// Lets everything take its way.
    fn flow(&mut self) -> Result<(), Refusal> {
        for _ in 0..200 {
            self.near.write(&mut self.to_far, usize::MAX);
            let asked = self.deliver(usize::MAX)?;
            self.far
                .write(&mut self.to_near, usize::MAX, Ticket::default());
            let heard = self.hear(usize::MAX)?;
            if asked + heard == 0 {
                return Ok(());
            }
        }
        panic!("there is no end to it");
    }

    /// Has the owner take up to `most` frames; how many there were.
    fn deliver(&mut self, most: usize) -> Result<usize, Refusal> {
        let bytes = std::mem::take(&mut self.to_far);
        let mut rest = &bytes[..];
        let mut count = 0;
        while count < most
            && let Some(frame) = Frame::cut(&mut rest, self.far.expected())?
        {
            count += 1;
            let number = frame.header.session;
            let line = match self.far.take(frame)? {
                Asked::Attach(_) => "+".to_owned(),
                Asked::Detach(_) => "-".to_owned(),
                Asked::Op { from, message, .. } => {
                    let len = message.body.map_or(0, |body| body.len());
                    format!("{} {len}", from.seq.0)
                }
                Asked::Refused(why) => format!("{why:?}"),
                Asked::Goodbye(why) => format!("{why:?}"),
                Asked::Nothing => continue,
            };
            self.asked.entry(number).or_default().push(line);
        }
        self.to_far = rest.to_vec();
        Ok(count)
    }

    fn hear(&mut self, most: usize) -> Result<usize, Refusal> {
        let bytes = std::mem::take(&mut self.to_near);
        let mut rest = &bytes[..];
        let mut count = 0;
        let expected = *self.near.expected().expect("there is a link");
        while count < most
            && let Some(frame) = Frame::cut(&mut rest, &expected)?
        {
            count += 1;
            self.heard.push(match self.near.take(frame)? {
                Heard::Greeting => "up".to_owned(),
                Heard::Event { to, kind, message } => {
                    let body = message.body.map_or(0, |body| body.len());
                    format!("{} {kind:?} {body}", to.session.number)
                }
                Heard::Refused { session, why } => format!("{} {why:?}", session.number),
                Heard::Goodbye(why) => format!("{why:?}"),
                Heard::Credit { .. } | Heard::Nothing => continue,
            });
        }
        self.to_near = rest.to_vec();
        Ok(count)
    }

    /// Has the owner take what no frontend of ours would send.
    fn forge(&mut self, number: u64, seq: u64, op: &Op<'_>) {
        let rest = op::write(
            &mut self.to_far,
            terms().own.ends,
            caller(number, seq),
            op,
            1 << 16,
        );
        assert!(rest.is_none());
    }

    fn forge_control(&mut self, number: u64, seq: u64, control: &Control<'_>) {
        let kind = Kind::Control(control.kind());
        let head = Head::about(terms().own.ends, kind, caller(number, seq));
        write_bare(&mut self.to_far, head, |out| control.write_fields(out));
    }

    fn asked(&self, number: u64) -> String {
        self.asked
            .get(&number)
            .map_or_else(String::new, |all| all.join(", "))
    }
}

// R3.2, A3.2
#[test]
fn nobody_is_asked_before_both_have_said_who_they_are() {
    let mut pair = Pair::new();
    assert_eq!(pair.near.reach(), Reach::Down(SHARD));
    pair.forge(1, 1, &Op::Stats);
    assert_eq!(pair.deliver(1), Err(Refusal::Order));

    type Change = fn(&mut Hello);
    let wrong: [(Change, Refusal); 7] = [
        (|hello| hello.version += 1, Refusal::Version),
        (|hello| hello.run = RunId(1), Refusal::Run),
        (
            |hello| hello.ends.topology = Fingerprint(1),
            Refusal::Topology,
        ),
        (|hello| hello.ends.sender = Generation(1), Refusal::Sender),
        (
            |hello| hello.ends.receiver = Generation(1),
            Refusal::Receiver,
        ),
        (|hello| hello.index += 1, Refusal::Peer),
        (|hello| hello.role = Sender::Supervisor, Refusal::Peer),
    ];
    for (change, refusal) in wrong {
        let mut awaited = reversed(terms());
        change(&mut awaited.awaited);
        let mut far = FarEnd::new(&awaited);
        let mut pair = Pair::new();
        pair.near.write(&mut pair.to_far, usize::MAX);
        let frame = Frame::cut(&mut &pair.to_far[..], pair.far.expected());
        let frame = frame.unwrap().unwrap();
        assert_eq!(far.take(frame).err(), Some(refusal));
    }
}

#[test]
fn a_greeting_comes_once() {
    let mut pair = Pair::greeted();
    let hello = Control::Hello(terms().own);
    pair.forge_control(0, 0, &hello);
    assert_eq!(pair.deliver(1), Err(Refusal::Order));
}

// R3.7, A3.2
#[test]
fn an_attach_that_comes_late_undoes_no_clean_up() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.near.attach(session(2));
    pair.near.submit(caller(1, 1), &Op::Stats);
    pair.near.detach(session(1));
    pair.near.detach(session(1));
    pair.flow().unwrap();
    assert_eq!(pair.asked(1), "+, 1 0, -");
    assert_eq!(pair.far.sessions(), [session(2)]);

    pair.forge_control(1, 1, &Control::Attach);
    pair.forge(1, 2, &Op::Stats);
    pair.forge_control(1, 0, &Control::Detach);
    pair.deliver(9).unwrap();
    assert_eq!(pair.asked(1), "+, 1 0, -, LateAttach, Session");
    assert_eq!(pair.far.sessions(), [session(2)]);
    pair.far
        .write(&mut pair.to_near, usize::MAX, Ticket::default());
    assert_eq!(pair.hear(2), Ok(2));
    assert_eq!(pair.heard, ["up", "1 LateAttach", "1 Session"]);
}

// R3.3
#[test]
fn sessions_need_not_come_in_the_order_of_their_numbers() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(7));
    pair.near.detach(session(7));
    pair.near.attach(session(2));
    pair.flow().unwrap();
    assert_eq!(pair.far.sessions(), [session(2)]);
}

// A3.2, R3.9
#[test]
fn requests_come_in_order_and_never_twice() {
    let reserve = Op::Reserve {
        style: Style::Offer,
        wait: true,
    };
    let tube = TubeName::DEFAULT;
    let decline = Op::Decline { id: JobId(1) };
    let cases: [(u64, Op<'_>, bool); 9] = [
        (0, Op::Watch { tube }, true),
        (0, Op::Stats, false),
        (4, Op::Watch { tube }, true),
        (4, put(1), false),
        (3, put(1), false),
        (0, Op::Use { tube }, false),
        (7, reserve, true),
        (7, Op::Cancel, true),
        (4, decline, true),
    ];
    let mut accepted = Vec::new();
    for (seq, op, is_right) in cases {
        let mut pair = Pair::greeted();
        pair.near.attach(session(1));
        for (seq, op) in &accepted {
            pair.near.submit(caller(1, *seq), op);
            pair.flow().unwrap();
        }
        pair.forge(1, seq, &op);
        let taken = pair.deliver(1).map(|_| ());
        let expected = if is_right {
            Ok(())
        } else {
            Err(Refusal::Request)
        };
        assert_eq!(taken, expected, "{seq} {op:?} after {accepted:?}");
        if is_right {
            accepted.push((seq, op));
        }
    }
}

// R3.6
#[test]
fn who_asks_for_more_than_there_is_credit_for_loses_the_link() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.flow().unwrap();
    for seq in 1..=4 {
        pair.forge(1, seq, &Op::Stats);
        assert_eq!(pair.deliver(1), Ok(1));
    }
    pair.forge(1, 5, &Op::Stats);
    assert_eq!(pair.deliver(1), Err(Refusal::Credit));
}

// R3.6
#[test]
fn a_large_body_under_way_leaves_credit_for_others() {
    const LARGE: usize = 1_000_000;
    let window = Amount {
        asks: 9,
        bytes: 200_000,
    };
    let mut pair = Pair::on(Terms { window, ..terms() });
    pair.flow().unwrap();
    for number in 1..=4 {
        pair.near.attach(session(number));
        pair.near.submit(caller(number, 1), &put(LARGE));
        let is_open = pair.near.reach() == Reach::Now;
        assert_eq!(is_open, number < 4, "after {number}");
    }
    pair.near.attach(session(5));
    assert!(pair.near.write(&mut pair.to_far, 300_000));
    pair.deliver(usize::MAX).unwrap();
    assert_eq!(pair.asked(1), "+");
    pair.flow().unwrap();
    assert_eq!(
        [1, 2, 3, 4].map(|number| pair.asked(number)),
        ["+, 1 1000000"; 4]
    );
    assert_eq!(pair.near.reach(), Reach::Now);

    // One of them alone is in nobody's way.
    pair.near.submit(caller(1, 2), &put(LARGE));
    pair.near.submit(caller(5, 2), &put(5));
    assert!(pair.near.write(&mut pair.to_far, 300_000));
    pair.deliver(usize::MAX).unwrap();
    assert_eq!(pair.asked(1), "+, 1 1000000");
    assert_eq!(pair.asked(5), "+, 2 5");
}

// R3.9: what was under way is never sent again.
#[test]
fn a_link_that_is_lost_takes_everything_with_it() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    for seq in 1..=6 {
        pair.near.submit(caller(1, seq), &put(2_000));
    }
    assert!(pair.near.lose());
    assert!(!pair.near.lose());
    assert_eq!(pair.near.reach(), Reach::Down(SHARD));
    assert!(!pair.near.has_output());
    pair.near.connect(&terms());
    pair.far = FarEnd::new(&reversed(terms()));
    pair.flow().unwrap();
    assert_eq!(pair.asked(1), "");
    assert_eq!(pair.near.reach(), Reach::Now);
}

// R4.5
#[test]
fn what_is_not_confirmed_stays_and_keeps_nothing_of_before() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.near.attach(session(2));
    pair.flow().unwrap();
    let body = Body::from_vec(vec![1; 100_000]);
    let found = Event::Found {
        id: JobId(5),
        body: body.clone().into(),
    };
    let inserted = Event::Inserted { id: JobId(5) };
    pair.far.event(Ticket(7), caller(1, 1), &found);
    drop(found);
    pair.far.event(Ticket(0), caller(2, 1), &Event::NotFound);
    pair.far.event(Ticket(0), caller(1, 2), &Event::NoJob);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(6));
    assert!(pair.to_near.is_empty());
    pair.far.event(Ticket(9), caller(2, 2), &inserted);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(6));
    pair.far.event(Ticket(0), caller(2, 3), &Event::NotFound);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(8));
    pair.hear(9).unwrap();
    let first = ["up", "2 NotFound 0", "1 Found 100000", "1 NoJob 0"];
    assert_eq!(pair.heard, first);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(9));
    pair.hear(9).unwrap();
    assert_eq!(pair.heard[4..], ["2 Inserted 0", "2 NotFound 0"]);
    pair.far.event(Ticket(0), caller(2, 4), &Event::NotFound);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(0));
    pair.hear(9).unwrap();
    assert_eq!(pair.heard.len(), 7, "nothing is held any more");
    assert_eq!(body.holders(), 1);
}

#[test]
fn what_is_held_for_a_session_that_goes_has_no_end() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.flow().unwrap();
    let body = Body::from_vec(vec![1; 300_000]);
    let found = Event::Found {
        id: JobId(5),
        body: body.clone().into(),
    };
    pair.far.event(Ticket(7), caller(1, 1), &found);
    drop(found);
    pair.near.detach(session(1));
    pair.flow().unwrap();
    assert_eq!(body.holders(), 1);
    pair.far.write(&mut pair.to_near, usize::MAX, Ticket(7));
    pair.hear(9).unwrap();
    pair.near.attach(session(2));
    pair.flow().unwrap();
    assert_eq!(pair.heard, ["up"]);
}

// R4.5
#[test]
fn what_is_not_confirmed_is_not_said_after_a_farewell_either() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.flow().unwrap();
    pair.far
        .event(Ticket(7), caller(1, 1), &Event::Inserted { id: JobId(5) });
    pair.far.part(Some(Refusal::Order));
    let mut said = Vec::new();
    pair.far.write(&mut said, usize::MAX, Ticket(u64::MAX));
    let mut rest = &said[..];
    let frame = Frame::cut(&mut rest, pair.near.expected().unwrap());
    let kind = frame.unwrap().unwrap().header.kind;
    assert_eq!(kind, Kind::Control(ControlKind::Goodbye));
    assert!(rest.is_empty());
}

// A3.4
#[test]
fn a_session_that_goes_hears_nothing_more_and_disturbs_nobody() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    pair.near.attach(session(2));
    pair.flow().unwrap();
    let body = Body::from_vec(vec![1; 300_000]);
    let found = Event::Found {
        id: JobId(5),
        body: body.clone().into(),
    };
    pair.far.event(Ticket(0), caller(1, 1), &found);
    pair.far.event(Ticket(0), caller(2, 1), &found);
    drop(found);
    pair.far.write(&mut pair.to_near, 150_000, Ticket(0));
    assert_eq!(pair.hear(3), Ok(3));
    // Some parts have come, some are under way, the rest is not sent.
    pair.near.detach(session(1));
    pair.flow().unwrap();
    assert_eq!(pair.heard, ["up", "2 Found 300000"]);
    assert_eq!(body.holders(), 1);
}

// R3.6
#[test]
fn clients_that_come_and_go_do_not_pile_up_before_an_owner_that_does_nothing() {
    let mut pair = Pair::greeted();
    let introduce = |pair: &mut Pair, number| {
        pair.near.attach(session(number));
        let tube = TubeName::DEFAULT;
        pair.near.submit(caller(number, 0), &Op::Use { tube });
        pair.near.submit(caller(number, 0), &Op::Watch { tube });
    };
    for number in 1..1000 {
        introduce(&mut pair, number);
        pair.near.detach(session(number));
    }
    assert!(pair.near.waiting() < 10, "{}", pair.near.waiting());
    introduce(&mut pair, 1000);
    pair.flow().unwrap();
    assert_eq!(pair.near.reach(), Reach::Now);
    assert_eq!(pair.far.sessions(), [session(1000)]);
}

// A client that puts and goes has put.
#[test]
fn what_a_session_has_asked_goes_out_though_it_is_gone_before_it_was_introduced() {
    let mut pair = Pair::greeted();
    pair.near.attach(session(1));
    (1..6).for_each(|seq| pair.near.submit(caller(1, seq), &Op::PeekReady));
    pair.near.attach(session(2));
    pair.near.submit(caller(2, 1), &put(9));
    pair.near.detach(session(2));
    pair.flow().unwrap();
    assert_eq!(pair.asked[&2], ["+", "1 9", "-"]);
}

proptest! {
    #![proptest_config(crate::base::property_config())]

    // R3.1, R3.5, R3.6, A3.1
    #[test]
    fn everything_arrives_once_and_in_order_whatever_the_credit(
        steps in prop::collection::vec((0u8..9, 1u64..5, 0usize..3_000), 1..150),
    ) {
        let mut pair = Pair::greeted();
        let mut said: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut seq = 0;
        let mut begun = 0;
        for (what, number, size) in steps {
            let lines = said.entry(number).or_default();
            let is_attached = lines.last().is_some_and(|line| line != "-");
            match what {
                0 if lines.is_empty() => {
                    pair.near.attach(session(number));
                    lines.push("+".to_owned());
                }
                1 if is_attached && size < 300 => {
                    pair.near.detach(session(number));
                    lines.push("-".to_owned());
                }
                2..=4 if is_attached => {
                    seq += 1;
                    begun += u64::from(pair.near.reach() == Reach::Now);
                    let op = if what == 2 { Op::PeekReady } else { put(size) };
                    pair.near.submit(caller(number, seq), &op);
                    let len = if what == 2 { 0 } else { size };
                    lines.push(format!("{seq} {len}"));
                }
                5 => { pair.near.write(&mut pair.to_far, size); }
                6 => { pair.deliver(size / 500).unwrap(); }
                7 => { pair.far.write(&mut pair.to_near, size, Ticket(0)); }
                _ => { pair.hear(size / 500).unwrap(); }
            }
        }
        pair.flow().unwrap();
        // Who has asked nothing may have gone before anybody was told.
        let is_told = |number: &u64| pair.asked.contains_key(number);
        said.retain(|number, lines| lines.len() > 2 || is_told(number));
        prop_assert_eq!(&pair.asked, &said);
        prop_assert_eq!(pair.near.reach(), Reach::Now, "all credit has come back");
        prop_assert!(begun <= seq);
        let is_open = |lines: &[String]| lines.last().is_some_and(|line| line != "-");
        let attached = said.iter().filter(|(_, lines)| is_open(lines));
        let attached: Vec<SessionId> = attached.map(|(number, _)| session(*number)).collect();
        prop_assert_eq!(pair.far.sessions(), attached);
    }
}

#[test]
fn kinds_say_what_they_refer_to() {
    let back: Vec<&OpKind> = OpKind::ALL
        .iter()
        .filter(|kind| kind.refers_back())
        .collect();
    assert_eq!(back, [&OpKind::Accept, &OpKind::Decline, &OpKind::Cancel]);
}
