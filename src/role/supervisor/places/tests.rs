//! Children that exist on paper, and a clock that is turned by hand.

use proptest::prelude::*;

use super::*;
use crate::base::limits::STOP_LIMIT_SECS;
use crate::base::time::Secs;

const START: Nanos = Nanos(1 << 40);
const SECOND: u64 = 1_000_000_000;

/// Places, the time, and what was to be done.
struct World {
    places: Places,
    now: Nanos,
}

fn owner(index: u16) -> Seat {
    owner_seat(index)
}

fn frontend(index: u16) -> Seat {
    frontend_seat(index)
}

impl World {
    fn new(owners: u16, frontends: u16) -> World {
        World {
            places: Places::new(owners, frontends),
            now: START,
        }
    }

    /// One in which everybody serves.
    fn serving(owners: u16, frontends: u16) -> World {
        let mut world = World::new(owners, frontends);
        for _ in 0..2 {
            for action in world.due() {
                if let Action::Start(child) = action {
                    world.places.on_ready(world.now, child.seat);
                }
            }
        }
        assert!(world.due().contains(&Action::Announce));
        world
    }

    fn due(&mut self) -> Vec<Action> {
        let due = self.places.due(self.now);
        assert_eq!(self.places.due(self.now), [], "it was taken to be done");
        assert!(self.places.moment().is_none_or(|moment| moment > self.now));
        due
    }

    fn wait(&mut self, nanos: u64) {
        self.now.0 += nanos;
    }

    /// Waits for the next moment, and says how long that was in milliseconds.
    fn wait_for_moment(&mut self) -> u64 {
        let moment = self.places.moment().unwrap();
        let waited = moment.since(self.now) / NANOS_PER_MILLI;
        self.now = moment;
        waited
    }

    fn ready(&mut self, seat: Seat) {
        self.places.on_ready(self.now, seat);
    }

    fn end(&mut self, seat: Seat) -> Option<Ended> {
        self.places.on_end(self.now, seat)
    }

    fn generation(&self, seat: Seat) -> Generation {
        self.places.child(seat).ready().unwrap()
    }
}

fn started(due: &[Action]) -> Vec<(Seat, u32)> {
    let starts = due.iter().filter_map(|action| match action {
        Action::Start(child) => Some((child.seat, child.generation.0)),
        _ => None,
    });
    starts.collect()
}

fn linked(due: &[Action]) -> Vec<(u16, u16)> {
    let links = due.iter().filter_map(|action| match action {
        Action::Link { frontend, owner } => Some((frontend.seat.index, owner.seat.index)),
        _ => None,
    });
    links.collect()
}

#[test]
fn frontends_are_started_when_all_owners_serve_and_clients_when_all_do() {
    let mut world = World::new(2, 2);
    assert_eq!(started(&world.due()), [(owner(0), 1), (owner(1), 2)]);
    world.ready(owner(1));
    assert_eq!(world.due(), []);
    world.ready(owner(0));
    assert_eq!(started(&world.due()), [(frontend(0), 3), (frontend(1), 4)]);
    world.ready(frontend(1));
    assert_eq!(linked(&world.due()), [(1, 0), (1, 1)]);
    world.ready(frontend(0));
    let due = world.due();
    assert_eq!(linked(&due), [(0, 0), (0, 1)]);
    assert_eq!(
        due.last(),
        Some(&Action::Announce),
        "and not before there are links"
    );
    for number in 0..4 {
        assert_eq!(world.places.number(world.places.seat(number)), number);
    }
}

#[test]
fn a_child_that_has_ended_is_started_anew_and_linked_to_all() {
    let mut world = World::serving(2, 2);
    let before = world.generation(owner(1));
    let ended = Ended {
        generation: before,
        has_served: true,
        is_expected: false,
    };
    assert_eq!(world.end(owner(1)), Some(ended));
    assert_eq!(world.end(owner(1)), None);
    assert_eq!(
        world.due(),
        [Action::Start(Occupant {
            seat: owner(1),
            generation: Generation(5),
        })]
    );
    world.ready(owner(1));
    assert_eq!(linked(&world.due()), [(0, 1), (1, 1)]);
    world.end(frontend(0));
    assert_eq!(started(&world.due()), [(frontend(0), 6)]);
    world.ready(frontend(0));
    assert_eq!(linked(&world.due()), [(0, 0), (0, 1)]);
    // The second time in a row it takes longer.
    world.end(frontend(0));
    assert_eq!(world.due(), []);
    assert_eq!(world.wait_for_moment(), 100);
    assert_eq!(started(&world.due()), [(frontend(0), 7)]);
    assert!(!world.places.is_stopping());
}

#[test]
fn a_start_that_fails_again_and_again_is_given_up() {
    let mut world = World::new(1, 1);
    world.due();
    let mut waited = Vec::new();
    for _ in 1..FAILED_STARTS_MAX {
        world.end(owner(0));
        if world.due().is_empty() {
            waited.push(world.wait_for_moment());
            world.due();
        }
        assert_eq!(world.places.outcome(world.now), None);
    }
    assert_eq!(waited, [100, 1_000, 5_000]);
    world.end(owner(0));
    assert_eq!(world.due(), []);
    assert_eq!(
        world.places.outcome(world.now),
        Some(Outcome::GaveUp(owner(0)))
    );

    // Who has served is tried again, and later nobody is given up.
    let mut world = World::serving(1, 1);
    for _ in 0..2 * FAILED_STARTS_MAX {
        world.end(owner(0));
        world.due();
        world.wait(5 * SECOND);
        world.due();
    }
    assert_eq!(world.places.outcome(world.now), None);
}

#[test]
fn a_lost_link_is_made_anew_unless_it_keeps_breaking() {
    let mut world = World::serving(1, 2);
    let of = world.generation(owner(0));
    let lose = |world: &mut World, of| world.places.on_link_lost(world.now, 1, 0, of);
    lose(&mut world, Generation(of.0 + 1));
    world.places.on_link_lost(world.now, 1, 9, of);
    assert_eq!(world.due(), [], "of another start, and of nobody");
    lose(&mut world, of);
    lose(&mut world, of);
    assert_eq!(linked(&world.due()), [(1, 0)]);
    lose(&mut world, of);
    assert_eq!(world.due(), []);
    assert_eq!(world.wait_for_moment(), 100);
    assert_eq!(linked(&world.due()), [(1, 0)]);
    lose(&mut world, of);
    world.end(owner(0));
    assert_eq!(linked(&world.due()), []);
    world.ready(owner(0));
    assert_eq!(
        linked(&world.due()),
        [(0, 0), (1, 0)],
        "a new owner has a fresh start"
    );
}

/// The actions that are no questions after health.
fn but_pings(due: Vec<Action>) -> Vec<Action> {
    let is_ping = |action: &Action| matches!(action, Action::Ping(..));
    due.into_iter().filter(|action| !is_ping(action)).collect()
}

#[test]
fn who_does_not_answer_is_slow_is_said_once_and_is_told_nothing_new() {
    let mut world = World::serving(1, 1);
    assert_eq!(world.wait_for_moment(), PING_EVERY_MS);
    let due = world.due();
    assert_eq!(
        due,
        [Action::Ping(owner(0), 1), Action::Ping(frontend(0), 2)]
    );
    assert!(!world.places.on_pong(owner(0), 2), "another's question");
    assert!(!world.places.on_pong(frontend(0), 2));
    world.wait_for_moment();
    assert_eq!(world.due(), [Action::Ping(frontend(0), 3)]);
    world.wait_for_moment();
    assert_eq!(world.due(), [Action::ReportSlow(owner(0))]);
    world.places.on_pong(frontend(0), 3);
    world.wait_for_moment();
    assert_eq!(but_pings(world.due()), []);
    // Never killed, and owed what it cannot be told.
    world
        .places
        .on_link_lost(world.now, 0, 0, world.generation(owner(0)));
    for _ in 0..1_000 {
        world.wait_for_moment();
        assert_eq!(
            but_pings(world.due()),
            [Action::ReportSlow(frontend(0))][..0]
        );
        let pings = world.places.pings;
        world.places.on_pong(frontend(0), pings);
    }
    assert!(world.places.on_pong(owner(0), 1));
    assert_eq!(linked(&world.due()), [(0, 0)]);
    assert!(!world.places.on_pong(owner(0), 1));
}

#[test]
fn nothing_but_health_wakes_who_has_nothing_to_do() {
    let mut world = World::serving(3, 3);
    for _ in 0..10 {
        assert_eq!(world.wait_for_moment(), PING_EVERY_MS);
        for action in world.due() {
            let Action::Ping(seat, number) = action else {
                panic!("{action:?}");
            };
            world.places.on_pong(seat, number);
        }
    }
}

#[test]
fn all_are_told_to_drain_once_and_later_ones_begin_so() {
    let mut world = World::serving(1, 1);
    world.end(frontend(0));
    world.due();
    world.places.drain();
    let due = world.due();
    assert_eq!(due, [Action::Drain(owner(0)), Action::Drain(frontend(0))]);
    world.places.drain();
    world.end(owner(0));
    assert_eq!(started(&world.due()), [(owner(0), 4)]);
    assert!(world.places.is_draining());
}

#[test]
fn frontends_end_before_owners() {
    let mut world = World::serving(1, 2);
    world.places.stop(world.now);
    let due = world.due();
    assert_eq!(
        due,
        [Action::Goodbye(frontend(0)), Action::Goodbye(frontend(1))]
    );
    assert!(world.places.is_stopping());
    assert!(world.end(frontend(0)).unwrap().is_expected);
    assert_eq!(world.due(), [], "nobody is started again");
    world.end(frontend(1));
    assert_eq!(world.due(), [Action::Goodbye(owner(0))]);
    assert_eq!(world.places.outcome(world.now), None);
    world.end(owner(0));
    assert_eq!(world.due(), []);
    assert_eq!(world.places.outcome(world.now), Some(Outcome::Stopped));
}

#[test]
fn who_does_not_end_is_killed() {
    let mut world = World::serving(1, 1);
    world.places.stop(world.now);
    world.due();
    assert_eq!(world.wait_for_moment(), u64::from(STOP_LIMIT_SECS) * 1_000);
    assert_eq!(world.due(), [Action::Kill(frontend(0))]);
    assert_eq!(world.places.moment(), None, "nothing is left but its end");
    world.end(frontend(0));
    assert_eq!(world.due(), [Action::Goodbye(owner(0))]);
    assert_eq!(world.wait_for_moment(), u64::from(STOP_LIMIT_SECS) * 1_000);
    assert_eq!(world.due(), [Action::Kill(owner(0))]);
    world.end(owner(0));
    assert_eq!(world.places.outcome(world.now), Some(Outcome::Stopped));
}

#[test]
fn a_second_stop_ends_all_at_once() {
    let mut world = World::serving(1, 1);
    world.places.stop(world.now);
    world.due();
    world.places.stop(world.now);
    world.places.stop(world.now);
    assert_eq!(
        world.due(),
        [Action::Kill(owner(0)), Action::Kill(frontend(0))]
    );
    world.end(owner(0));
    assert_eq!(world.places.outcome(world.now), None);
    // One that even that does not end is not waited for.
    world.wait_for_moment();
    assert_eq!(world.places.outcome(world.now), Some(Outcome::Forced));
}

#[test]
fn who_closes_its_socket_and_stays_is_killed() {
    let mut world = World::serving(1, 1);
    world.places.on_closed(world.now, frontend(0));
    world
        .places
        .on_link_lost(world.now, 0, 0, world.generation(owner(0)));
    world.wait(SECOND);
    world.places.on_closed(world.now, frontend(0));
    assert_eq!(but_pings(world.due()), [], "and it is told nothing new");
    let late = START.after(Secs(STOP_LIMIT_SECS));
    while world.now < late {
        world.wait_for_moment();
        if world.now < late {
            assert!(!world.due().contains(&Action::Kill(frontend(0))));
        }
    }
    assert_eq!(world.now, late);
    assert!(world.due().contains(&Action::Kill(frontend(0))));
    world.end(frontend(0));
    assert_eq!(started(&world.due()), [(frontend(0), 3)]);
}

proptest! {
    #![proptest_config(crate::base::property_config())]

    /// Whatever happens: generations only grow, one child has one place, and as soon as nothing
    /// happens any more all that should be there is.
    #[test]
    fn what_there_should_be_is_reached_after_anything(
        owners in 1u16..4,
        frontends in 1u16..4,
        events in prop::collection::vec((0u8..6, any::<u16>(), 0u64..3_000), 0..60),
    ) {
        let mut world = World::serving(owners, frontends);
        let mut last = u32::from(owners + frontends);
        let mut step = |world: &mut World, links: &mut Vec<(u16, u16)>| {
            for action in world.due() {
                match action {
                    Action::Start(child) => {
                        assert_eq!(child.generation.0, last + 1);
                        last += 1;
                    }
                    Action::Link { frontend, owner } => {
                        assert_eq!(world.generation(frontend.seat), frontend.generation);
                        assert_eq!(world.generation(owner.seat), owner.generation);
                        links.push((frontend.seat.index, owner.seat.index));
                    }
                    _ => {}
                }
            }
        };
        let mut made: Vec<(u16, u16)> = (0..frontends)
            .flat_map(|f| (0..owners).map(move |o| (f, o)))
            .collect();
        for (event, which, millis) in events {
            let seat = world.places.seat(usize::from(which) % world.places.len());
            match event {
                0 | 1 => {
                    world.end(seat);
                    made.retain(|&(f, o)| frontend(f) != seat && owner(o) != seat);
                }
                2 => world.ready(seat),
                3 => {
                    let (f, o) = (which % frontends, which / frontends % owners);
                    if let Some(of) = world.places.child(owner(o)).ready() {
                        made.retain(|&pair| pair != (f, o));
                        world.places.on_link_lost(world.now, f, o, of);
                    }
                }
                4 => {
                    let number = world.places.child(seat).ping.map_or(0, |ping| ping.number);
                    world.places.on_pong(seat, number);
                }
                _ => world.wait(millis * NANOS_PER_MILLI),
            }
            step(&mut world, &mut made);
        }
        for _ in 0..3 {
            world.wait(5 * SECOND);
            step(&mut world, &mut made);
            for number in 0..world.places.len() {
                let seat = world.places.seat(number);
                world.ready(seat);
                let number = world.places.child(seat).ping.map_or(0, |ping| ping.number);
                world.places.on_pong(seat, number);
            }
            step(&mut world, &mut made);
        }
        made.sort_unstable();
        let all: Vec<(u16, u16)> = (0..frontends)
            .flat_map(|f| (0..owners).map(move |o| (f, o)))
            .collect();
        prop_assert_eq!(made, all, "each pair has one link");
    }
}
