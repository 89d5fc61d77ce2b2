//! What can happen in a run, and how often. Steps name sessions, tubes and jobs by number; which
//! ones those are is settled when the step is taken, from what there is then, so that a run that is
//! cut short still makes sense.

use proptest::prelude::*;

/// Tubes by number, each with the slot that is pinned for its name.
pub(crate) const TUBES: [(&str, u64); 12] = [
    ("default", 26),
    ("a", 543),
    ("email", 929),
    ("x_y", 574),
    ("b", 63),
    ("c", 27),
    ("d", 970),
    ("e", 632),
    ("f", 666),
    ("g", 663),
    ("h", 614),
    ("i", 718),
];

/// Sessions that there can be at once.
pub(crate) const SEATS: usize = 8;

/// Frontends among which the sessions are shared out.
pub(crate) const FRONTENDS: u16 = 2;

/// What kind of shard it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Whether ids carry the slot of the job's tube.
    pub(crate) slotted: bool,
    /// Whether the default tube is there for ever.
    pub(crate) has_default: bool,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A session comes, with the default tube in use and watched unless `bare`.
    Attach { seat: usize, bare: bool },
    /// A session goes; if `laden`, preferably one with much to give back.
    Detach { seat: usize, laden: bool },
    /// A session that is not there asks something.
    Stranger { seat: usize },
    /// A session begins to send a job.
    TakeId { seat: usize },
    /// A session watches `count` tubes more, which can take it past the size where lists get an
    /// index, in an order that is not theirs. When it goes, many tubes vanish at once.
    WatchMany {
        seat: usize,
        first: usize,
        count: usize,
    },
    /// No new jobs from now on.
    Drain,
    /// A frontend is slow: its waiters are handed nothing.
    HoldBack { frontend: u16 },
    /// It is not slow any more.
    LetGo { frontend: u16 },
    /// Time passes, and what is due is done.
    Pass(Pass),
    /// A session asks something, while the journal has room for this many records.
    Ask {
        seat: usize,
        ask: Ask,
        room: Option<u32>,
    },
}

/// How much time passes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    /// Half seconds.
    Halves(u64),
    /// All that is left to the next deadline.
    ToDeadline,
    /// The same, but for the last nanosecond.
    AlmostToDeadline,
}

/// What a session asks.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Use(usize),
    Unuse,
    Watch(usize),
    Ignore(usize),
    Put {
        pri: u32,
        delay: u32,
        ttr: u32,
        len: usize,
    },
    Reserve {
        offer: bool,
        wait: bool,
    },
    Accept(Which),
    Decline(Which),
    Cancel,
    ReserveJob(Which),
    Delete(Which),
    Release {
        job: Which,
        pri: u32,
        delay: u32,
    },
    Bury {
        job: Which,
        pri: u32,
    },
    Touch(Which),
    Kick(u32),
    KickJob(Which),
    Peek(Which),
    PeekReady,
    PeekDelayed,
    PeekBuried,
    PauseTube {
        tube: usize,
        secs: u32,
    },
    StatsJob(Which),
    StatsTube(usize),
    Stats,
    ListTubes,
}

/// Which job: the `nth` of those that `among` names, modulo their number, or if there are none of
/// all jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub(crate) among: Among,
    pub(crate) nth: usize,
}

/// A choice of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// Those that the session holds.
    Held,
    /// The one on offer to the session.
    OnOffer,
    /// Those on offer to anybody.
    OnAnyOffer,
    /// Delayed and buried ones.
    Parked,
    /// All there are.
    All,
    /// None: an id that was never given, or whose job may be gone.
    Nowhere,
}

pub(crate) fn kind() -> impl Strategy<Value = Kind> {
    (any::<bool>(), prop::bool::weighted(0.7)).prop_map(|(slotted, has_default)| Kind {
        slotted,
        has_default,
    })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let seat = 0..SEATS;
    let attach = (seat.clone(), prop::bool::weighted(0.2));
    let detach = (seat.clone(), any::<bool>());
    let watch_many = (seat.clone(), 0..TUBES.len(), 2..TUBES.len());
    let ask = (seat.clone(), ask(), room());
    prop_oneof![
        200 => ask.prop_map(|(seat, ask, room)| Step::Ask { seat, ask, room }),
        24 => pass().prop_map(Step::Pass),
        10 => attach.prop_map(|(seat, bare)| Step::Attach { seat, bare }),
        6 => detach.prop_map(|(seat, laden)| Step::Detach { seat, laden }),
        4 => seat.clone().prop_map(|seat| Step::TakeId { seat }),
        4 => (0..FRONTENDS).prop_map(|frontend| Step::HoldBack { frontend }),
        8 => (0..FRONTENDS).prop_map(|frontend| Step::LetGo { frontend }),
        3 => watch_many.prop_map(|(seat, first, count)| Step::WatchMany { seat, first, count }),
        1 => seat.prop_map(|seat| Step::Stranger { seat }),
        // Rare, because a run has little to tell after it.
        1 => prop::bool::weighted(0.3).prop_map(|drain| {
            if drain { Step::Drain } else { Step::Pass(Pass::ToDeadline) }
        }),
    ]
}

fn room() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![9 => Just(None), 1 => (0..3u32).prop_map(Some)]
}

fn pass() -> impl Strategy<Value = Pass> {
    prop_oneof![
        5 => (0..=2u64).prop_map(Pass::Halves),
        1 => (3..=10u64).prop_map(Pass::Halves),
        4 => Just(Pass::ToDeadline),
        1 => Just(Pass::AlmostToDeadline),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        22 => put(),
        16 => prop::bool::weighted(0.7).prop_map(|wait| Ask::Reserve { offer: false, wait }),
        10 => prop::bool::weighted(0.7).prop_map(|wait| Ask::Reserve { offer: true, wait }),
        12 => offer(),
        3 => Just(Ask::Cancel),
        24 => ask_about_held(),
        18 => ask_about_any(),
        11 => peek(),
        13 => ask_of_tube(),
        2 => Just(Ask::Stats),
        2 => Just(Ask::ListTubes),
    ]
}

fn put() -> impl Strategy<Value = Ask> {
    let delay = prop_oneof![2 => Just(0), 1 => 1..=5u32];
    (pri(), delay, 1..=4u32, 0..6usize).prop_map(|(pri, delay, ttr, len)| Ask::Put {
        pri,
        delay,
        ttr,
        len,
    })
}

/// Few priorities, so that ids decide, on both sides of where urgency ends.
fn pri() -> impl Strategy<Value = u32> {
    prop::sample::select(&[0, 1, 1023, 1024][..])
}

fn which(mostly: Among) -> impl Strategy<Value = Which> {
    let among = prop_oneof![
        8 => Just(mostly),
        2 => Just(Among::All),
        1 => Just(Among::OnAnyOffer),
        1 => Just(Among::Nowhere),
    ];
    (among, 0..64usize).prop_map(|(among, nth)| Which { among, nth })
}

fn offer() -> impl Strategy<Value = Ask> {
    prop_oneof![
        3 => which(Among::OnOffer).prop_map(Ask::Accept),
        2 => which(Among::OnOffer).prop_map(Ask::Decline),
    ]
}

fn ask_about_held() -> impl Strategy<Value = Ask> {
    let held = || which(Among::Held);
    let release = (held(), pri(), prop_oneof![Just(0), 1..=5u32]);
    prop_oneof![
        10 => release.prop_map(|(job, pri, delay)| Ask::Release { job, pri, delay }),
        8 => (held(), pri()).prop_map(|(job, pri)| Ask::Bury { job, pri }),
        4 => held().prop_map(Ask::Touch),
        3 => held().prop_map(Ask::Delete),
    ]
}

fn ask_about_any() -> impl Strategy<Value = Ask> {
    prop_oneof![
        4 => which(Among::Parked).prop_map(Ask::ReserveJob),
        4 => which(Among::Parked).prop_map(Ask::KickJob),
        4 => which(Among::All).prop_map(Ask::Delete),
        6 => prop_oneof![4 => 1..4u32, 1 => Just(0), 1 => Just(u32::MAX)].prop_map(Ask::Kick),
    ]
}

fn peek() -> impl Strategy<Value = Ask> {
    prop_oneof![
        which(Among::All).prop_map(Ask::Peek),
        which(Among::All).prop_map(Ask::StatsJob),
        Just(Ask::PeekReady),
        Just(Ask::PeekDelayed),
        Just(Ask::PeekBuried),
    ]
}

fn ask_of_tube() -> impl Strategy<Value = Ask> {
    // Few tubes for the most part, so that sessions meet in them.
    let tube = || prop_oneof![5 => 0..3usize, 1 => 0..TUBES.len()];
    prop_oneof![
        2 => tube().prop_map(Ask::Use),
        2 => (0..TUBES.len()).prop_map(Ask::Use),
        4 => tube().prop_map(Ask::Watch),
        2 => tube().prop_map(Ask::Ignore),
        4 => (tube(), 0..=4u32).prop_map(|(tube, secs)| Ask::PauseTube { tube, secs }),
        1 => tube().prop_map(Ask::StatsTube),
        1 => Just(Ask::Unuse),
    ]
}
