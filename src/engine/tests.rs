//! Life stories of jobs, told to an engine whose clock is a number.

use crate::base::body::BodyCow;
use crate::base::hash::NameHasher;
use crate::base::ids::{Caller, JobId, Pri, Seq, SessionId};
use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::host::{Joined, NoJournal, Outbox};
use crate::engine::op::{Op, Put, Style};
use crate::engine::{Engine, IdScheme, NotAttached, Settings};

/// An engine, a clock, and all that was said since it was last asked for.
struct World {
    engine: Engine,
    now: Nanos,
    said: Said,
}

#[derive(Default)]
struct Said(Vec<String>);

impl Outbox for Said {
    fn emit(&mut self, to: Caller, event: Event<'_>) {
        let name = char::from(b'a' + to.session.slot() as u8);
        let text = match event {
            Event::Reserved { id, .. } => format!("reserved {}", id.0),
            Event::Offered { id, .. } => format!("offered {}", id.0),
            Event::Expired { id } => format!("expired {}", id.0),
            Event::Inserted { id } => format!("inserted {}", id.0),
            Event::Found { id, .. } => format!("found {}", id.0),
            Event::Kicked { count } => format!("kicked {count}"),
            Event::Tube(name) => format!("tube {name:?}"),
            other => format!("{other:?}")
                .split([' ', '{'])
                .next()
                .unwrap_or("")
                .to_lowercase(),
        };
        self.0.push(format!("{name} {text}"));
    }
}

/// The frontend of sessions `x`, `y` and `z`. All others are of frontend 0.
const SLOW: u16 = 7;

fn session(name: char) -> SessionId {
    let slot = name as u32 - 'a' as u32;
    let frontend = if name >= 'x' { SLOW } else { 0 };
    SessionId::new(frontend, u64::from(slot) + 1, slot)
}

fn tube(name: &str) -> TubeName<'_> {
    TubeName::parse(name.as_bytes()).unwrap()
}

impl World {
    fn new() -> World {
        let hasher = NameHasher::new([1, 2]);
        let settings = Settings {
            ids: IdScheme::Plain,
            hasher,
            has_default: true,
        };
        let engine = Engine::new(settings);
        World {
            engine,
            now: Nanos(1_000_000_000_000),
            said: Said::default(),
        }
    }

    /// A world with these sessions, which use and watch the default tube.
    fn of(names: &str) -> World {
        let mut world = World::new();
        for name in names.chars() {
            world.engine.attach(session(name));
            world.ask(
                name,
                Op::Use {
                    tube: TubeName::DEFAULT,
                },
            );
            world.ask(
                name,
                Op::Watch {
                    tube: TubeName::DEFAULT,
                },
            );
        }
        world.said.0.clear();
        world
    }

    fn ask(&mut self, name: char, op: Op<'_>) {
        let caller = Caller {
            session: session(name),
            seq: Seq(1),
        };
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut self.said, &mut journal);
        self.engine.apply(self.now, caller, op, host).unwrap();
        self.engine.check_invariants();
    }

    fn put(&mut self, name: char, pri: u32, delay: u32, ttr: u32) {
        let put = Put {
            id: None,
            created_at: self.now,
            pri: Pri(pri),
            delay: Secs(delay),
            ttr: Secs(ttr),
            body: BodyCow::Borrowed(b"work"),
        };
        self.ask(name, Op::Put(put));
    }

    fn reserve(&mut self, name: char) {
        self.ask(
            name,
            Op::Reserve {
                style: Style::Take,
                wait: true,
            },
        );
    }

    /// Lets time pass up to the moment just before `secs` from now, and then to that moment.
    fn pass(&mut self, secs: u32) {
        let then = self.now.after(Secs(secs));
        for moment in [Nanos(then.0 - 1), then] {
            self.now = moment;
            let mut journal = NoJournal;
            let host = &mut Joined::new(&mut self.said, &mut journal);
            self.engine.tick(self.now, host);
            self.engine.check_invariants();
            if moment < then {
                self.said.0.push("-".into());
            }
        }
    }

    fn leave(&mut self, name: char) {
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut self.said, &mut journal);
        self.engine.detach(self.now, session(name), host);
        self.engine.check_invariants();
    }

    fn hold_back(&mut self) {
        self.engine.hold_back(SLOW);
        self.engine.check_invariants();
    }

    fn let_go(&mut self) {
        let mut journal = NoJournal;
        let host = &mut Joined::new(&mut self.said, &mut journal);
        self.engine.let_go(self.now, SLOW, host);
        self.engine.check_invariants();
    }

    /// How many sessions wait for a job of the default tube, as `stats-tube` has it.
    fn waiting(&mut self) -> u64 {
        struct Waiting(u64);
        impl Outbox for Waiting {
            fn emit(&mut self, _: Caller, event: Event<'_>) {
                let Event::TubeStats(stats) = event else {
                    panic!("{event:?}")
                };
                self.0 = stats.waiting;
            }
        }
        let (mut waiting, mut journal) = (Waiting(0), NoJournal);
        let tube = TubeName::DEFAULT;
        let from = Caller {
            session: session('a'),
            seq: Seq(1),
        };
        let host = &mut Joined::new(&mut waiting, &mut journal);
        let op = Op::StatsTube { tube };
        self.engine.apply(self.now, from, op, host).unwrap();
        waiting.0
    }

    fn said(&mut self) -> String {
        std::mem::take(&mut self.said.0).join(", ")
    }
}

// Q1: at the deadline a reservation is over, not a moment later.
#[test]
fn a_reservation_ends_at_its_deadline() {
    let mut w = World::of("ab");
    w.put('a', 0, 0, 3);
    w.reserve('a');
    w.reserve('b');
    assert_eq!(w.said(), "a inserted 1, a reserved 1, b nojob");
    assert_eq!(w.engine.next_deadline(), Some(w.now.after(Secs(3))));
    w.pass(3);
    assert_eq!(w.said(), "-, a expired 1, b reserved 1");
    w.ask('a', Op::Delete { id: JobId(1) });
    assert_eq!(w.said(), "a notfound");
}

#[test]
fn a_delayed_job_goes_to_a_waiter_when_its_time_has_come() {
    let mut w = World::of("ab");
    w.reserve('b');
    w.put('a', 0, 5, 3);
    w.pass(5);
    assert_eq!(w.said(), "b nojob, a inserted 1, -, b reserved 1");
}

#[test]
fn touch_gives_the_whole_time_again() {
    let mut w = World::of("a");
    w.put('a', 0, 0, 3);
    w.reserve('a');
    w.pass(2);
    w.ask('a', Op::Touch { id: JobId(1) });
    w.said();
    w.pass(2);
    assert_eq!(w.said(), "-");
    w.pass(1);
    assert_eq!(w.said(), "-, a expired 1");
}

#[test]
fn a_pause_keeps_jobs_from_waiters_until_it_ends() {
    let mut w = World::of("ab");
    let pause = |secs| Op::PauseTube {
        tube: TubeName::DEFAULT,
        pause: Secs(secs),
    };
    w.ask('a', pause(9));
    w.put('a', 0, 0, 3);
    w.reserve('b');
    assert_eq!(w.said(), "a paused, a inserted 1, b nojob");
    w.ask('a', pause(2));
    w.pass(2);
    assert_eq!(w.said(), "a paused, -, b reserved 1");
    w.ask('a', pause(9));
    w.reserve('b');
    w.put('a', 0, 0, 3);
    w.ask('a', pause(0));
    assert_eq!(
        w.said(),
        "a paused, b nojob, a inserted 2, a paused, b reserved 2"
    );
}

#[test]
fn a_session_that_goes_gives_everything_back() {
    let mut w = World::of("abc");
    w.put('a', 0, 0, 3);
    w.put('a', 0, 0, 3);
    w.reserve('b');
    w.reserve('b');
    w.reserve('c');
    w.ask(
        'b',
        Op::Use {
            tube: tube("only-b"),
        },
    );
    w.said();
    w.leave('b');
    w.leave('b');
    assert_eq!(w.said(), "c reserved 1");
    w.ask('a', Op::ListTubes);
    assert_eq!(w.said(), "a tube \"default\", a tubesend");
    let unknown = Caller {
        session: session('b'),
        seq: Seq(9),
    };
    let mut journal = NoJournal;
    let host = &mut Joined::new(&mut w.said, &mut journal);
    assert_eq!(
        w.engine.apply(w.now, unknown, Op::PeekReady, host),
        Err(NotAttached)
    );
}

#[test]
fn an_offer_that_is_declined_or_left_alone_goes_back_to_its_place() {
    let mut w = World::of("ab");
    w.put('a', 0, 0, 3);
    w.put('a', 0, 0, 3);
    let ask = Op::Reserve {
        style: Style::Offer,
        wait: true,
    };
    w.said();
    w.ask('a', ask.clone());
    w.reserve('b');
    w.ask('a', Op::Decline { id: JobId(1) });
    w.ask('a', ask.clone());
    assert_eq!(w.said(), "a offered 1, b reserved 2, a offered 1");
    w.reserve('b');
    w.pass(1);
    w.ask('a', Op::Accept { id: JobId(1) });
    assert_eq!(w.said(), "b nojob, -, b reserved 1, a gone");
    w.ask(
        'b',
        Op::Release {
            id: JobId(1),
            pri: Pri(0),
            delay: Secs(0),
        },
    );
    w.ask('a', ask);
    w.ask('a', Op::Accept { id: JobId(1) });
    assert_eq!(w.said(), "b released, a offered 1, a reserved 1");
}

#[test]
fn an_offered_job_that_is_deleted_is_gone() {
    let mut w = World::of("ab");
    w.put('a', 0, 0, 3);
    w.ask(
        'a',
        Op::Reserve {
            style: Style::Offer,
            wait: false,
        },
    );
    w.ask('b', Op::ReserveJob { id: JobId(1) });
    w.ask('b', Op::KickJob { id: JobId(1) });
    w.ask('b', Op::Delete { id: JobId(1) });
    w.ask('a', Op::Accept { id: JobId(1) });
    assert_eq!(
        w.said(),
        "a inserted 1, a offered 1, b notfound, b notfound, b deleted, a gone"
    );
}

#[test]
fn the_most_urgent_of_all_watched_tubes_comes_first() {
    let mut w = World::of("ab");
    w.ask('b', Op::Watch { tube: tube("t") });
    w.put('a', 5, 0, 3);
    w.ask('a', Op::Use { tube: tube("t") });
    w.put('a', 5, 0, 3);
    w.put('a', 4, 0, 3);
    w.said();
    for _ in 0..4 {
        w.reserve('b');
    }
    assert_eq!(
        w.said(),
        "b reserved 3, b reserved 1, b reserved 2, b nojob"
    );
    w.put('a', 5, 0, 3);
    assert_eq!(w.said(), "a inserted 4, b reserved 4");
}

// K5
#[test]
fn an_id_that_was_taken_is_never_given_again() {
    let mut w = World::of("a");
    assert_eq!(w.engine.take_id(session('a')), Some(JobId(1)));
    w.put('a', 0, 0, 1);
    assert_eq!(w.said(), "a inserted 2");
}

#[test]
fn a_server_that_drains_takes_no_jobs() {
    let mut w = World::of("a");
    w.put('a', 0, 0, 1);
    w.engine.drain();
    w.put('a', 0, 0, 1);
    w.reserve('a');
    assert_eq!(w.said(), "a inserted 1, a draining, a reserved 1");
}

#[test]
fn ids_that_nobody_can_have_counted_to_are_not_counted_on_from() {
    let mut w = World::of("a");
    w.engine.skip_ids(JobId(u64::MAX));
    w.put('a', 0, 0, 1);
    w.engine.skip_ids(JobId(JobId::UNCOUNTED.0 - 2));
    w.put('a', 0, 0, 1);
    let next = JobId::UNCOUNTED.0 - 1;
    assert_eq!(w.said(), format!("a inserted 1, a inserted {next}"));
}

// R3.6
#[test]
fn a_slow_frontend_is_handed_nothing_that_another_could_have() {
    let mut w = World::of("abx");
    w.reserve('x');
    w.hold_back();
    w.hold_back();
    w.reserve('b');
    w.put('a', 0, 0, 3);
    w.put('a', 0, 0, 3);
    assert_eq!(
        w.said(),
        "x nojob, b nojob, a inserted 1, b reserved 1, a inserted 2"
    );
    w.reserve('b');
    assert_eq!(w.said(), "b reserved 2", "who asks now gets it");
    w.let_go();
    assert_eq!(w.said(), "", "nothing is ready");
    w.put('a', 0, 0, 3);
    assert_eq!(w.said(), "a inserted 3, x reserved 3");
}

// R3.6
#[test]
fn who_waits_at_a_slow_frontend_meets_what_is_ready_when_it_is_let_go() {
    let mut w = World::of("axyz");
    for name in ['z', 'y'] {
        w.reserve(name);
    }
    w.hold_back();
    w.reserve('x');
    w.put('a', 1, 0, 3);
    w.put('a', 0, 0, 3);
    w.said();
    w.let_go();
    w.let_go();
    assert_eq!(w.said(), "x reserved 2, y reserved 1");
    w.put('a', 0, 0, 3);
    assert_eq!(w.said(), "a inserted 3, z reserved 3");
}

// R3.6
#[test]
fn a_reserve_of_a_slow_frontend_is_answered_with_what_is_ready() {
    let mut w = World::of("ax");
    w.put('a', 0, 0, 3);
    w.put('a', 0, 0, 3);
    w.hold_back();
    w.reserve('x');
    w.ask(
        'x',
        Op::Reserve {
            style: Style::Offer,
            wait: true,
        },
    );
    w.reserve('x');
    w.reserve('x');
    assert_eq!(
        w.said(),
        "a inserted 1, a inserted 2, x reserved 1, x offered 2, x reserved 2, x nojob"
    );
    w.pass(3);
    assert_eq!(w.said(), "-, x expired 1, x expired 2", "and stay ready");
    w.let_go();
    assert_eq!(w.said(), "x reserved 1");
}

// R3.6
#[test]
fn who_is_held_back_can_end_its_wait_in_every_way() {
    let another = tube("another");
    let reserve = Op::Reserve {
        style: Style::Take,
        wait: false,
    };
    for (end, said) in [
        (Some(Op::Cancel), "x cancelled"),
        (Some(Op::Watch { tube: another }), "x watching"),
        (Some(Op::Ignore { tube: another }), "x ignored"),
        (Some(reserve), "x nojob"),
        (None, ""),
    ] {
        let mut w = World::of("axy");
        w.ask('x', Op::Watch { tube: another });
        w.reserve('x');
        w.reserve('y');
        w.hold_back();
        assert_eq!(w.waiting(), 2);
        w.said();
        match end {
            Some(op) => w.ask('x', op),
            None => w.leave('x'),
        }
        assert_eq!(w.said(), said);
        assert_eq!(w.waiting(), 1);
        w.put('a', 0, 0, 3);
        w.put('a', 0, 0, 3);
        w.said();
        w.let_go();
        assert_eq!(w.said(), "y reserved 1", "after {said:?}");
    }
}

// R3.6
#[test]
fn a_pause_keeps_jobs_from_those_that_are_let_go_too() {
    let mut w = World::of("ax");
    w.reserve('x');
    w.hold_back();
    w.put('a', 0, 0, 3);
    w.ask(
        'a',
        Op::PauseTube {
            tube: TubeName::DEFAULT,
            pause: Secs(2),
        },
    );
    w.said();
    w.let_go();
    assert_eq!(w.waiting(), 1);
    w.pass(2);
    assert_eq!(w.said(), "-, x reserved 1");
}
