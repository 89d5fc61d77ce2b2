//! What is asked behind a reserve that is not answered.

use super::*;
use crate::base::limits::{AHEAD_ASKS_MAX, AHEAD_PUT_LEN_MAX, AHEAD_REPLY_LEN_MAX};
use crate::base::time::Secs;

/// A world whose client has been given a job with a body of so many bytes, by its first ask.
fn world(body_len: usize) -> World {
    let mut world = World::new(1);
    world.say(0, "reserve\r\n");
    give(&mut world, 1, body_len);
    world.told();
    world.read(0);
    world
}

fn give(world: &mut World, seq: u64, body_len: usize) {
    let body = Body::copy_of(&vec![b'x'; body_len]);
    let event = Event::Reserved {
        id: JobId(seq),
        deadline: world.now.after(Secs(1_000)),
        body: body.into(),
    };
    world.hear(0, home(), seq, event);
}

fn kinds(world: &mut World) -> String {
    let told = world.told().into_iter();
    let kind = |told: String| told.rsplit(' ').next().unwrap_or_default().to_owned();
    told.map(kind).collect::<Vec<_>>().join(" ")
}

// R3.5
#[test]
fn who_is_given_small_jobs_is_given_several_at_once_in_the_order_of_the_commands() {
    let mut world = world(AHEAD_REPLY_LEN_MAX);
    world.say(0, "reserve\r\nkick 1\r\nreserve-with-timeout 0\r\n");
    assert_eq!(kinds(&mut world), "Reserve Kick Reserve");
    give(&mut world, 2, 1);
    world.hear(0, home(), 3, Event::Kicked { count: 0 });
    world.hear(0, home(), 4, Event::NoJob);
    let expected = "RESERVED 2 1\r\nx\r\nKICKED 0\r\nTIMED_OUT\r\n";
    assert_eq!(world.read(0), expected);
}

// R3.8
#[test]
fn who_is_given_a_large_one_is_given_one_at_a_time() {
    let mut world = world(AHEAD_REPLY_LEN_MAX + 1);
    world.say(0, "reserve\r\nreserve\r\n");
    assert_eq!(kinds(&mut world), "Reserve");
    give(&mut world, 2, 1);
    assert_eq!(kinds(&mut world), "Reserve");
}

#[test]
fn behind_a_reserve_asks_are_few_and_puts_small() {
    let mut world = world(1);
    let many = AHEAD_ASKS_MAX as usize + 5;
    world.say(0, &"reserve\r\n".repeat(many));
    assert_eq!(world.told().len(), AHEAD_ASKS_MAX as usize);
    give(&mut world, 2, 1);
    assert_eq!(kinds(&mut world), "Reserve", "there is room for one more");

    let mut world = World::new(1);
    let len = AHEAD_PUT_LEN_MAX as usize;
    let put = |len| format!("put 0 0 9 {len}\r\n{}\r\n", "x".repeat(len));
    world.say(0, &["reserve\r\n", &put(len), &put(len + 1)].concat());
    let told = kinds(&mut world);
    assert!(told.ends_with("Reserve Put"), "{told}");
    give(&mut world, 1, 1);
    assert_eq!(kinds(&mut world), "Put");
}

// R3.13, R3.15
#[test]
fn nothing_more_is_asked_once_the_session_waits_and_a_wait_begins_with_its_turn() {
    let mut world = world(1);
    world.say(0, "reserve-with-timeout 5\r\nreserve-with-timeout 5\r\n");
    assert_eq!(kinds(&mut world), "Reserve Reserve");
    world.hear(0, home(), 2, Event::NoJob);
    world.say(0, "kick 1\r\n");
    assert_eq!(world.counts().waiting, 1);
    world.pass(5 * SECOND);
    assert_eq!(world.told(), ["0 home 2 Cancel"]);
    world.hear(0, home(), 2, Event::Cancelled);
    assert_eq!(world.read(0), "TIMED_OUT\r\n");
    assert_eq!(world.told(), ["0 home 4 Kick"], "it is not known to wait");
    world.hear(0, home(), 3, Event::NoJob);
    world.pass(5 * SECOND - 1);
    assert_eq!(world.told(), [""; 0]);
    world.pass(1);
    assert_eq!(world.told(), ["0 home 3 Cancel"]);
}

#[test]
fn commands_behind_a_reserve_count_when_it_is_answered() {
    let mut world = world(1);
    world.say(0, "reserve\r\nput 0 0 9 1\r\nx\r\nreserve\r\ntouch 5\r\n");
    let counts = |world: &World| {
        let mut numbers = Vec::new();
        world.counts().write_numbers(&mut numbers);
        let kinds = [Kind::Put, Kind::Reserve, Kind::Touch];
        (
            kinds.map(|kind| numbers[kind as usize]),
            world.counts().producers,
        )
    };
    assert_eq!(counts(&world), ([0, 2, 0], 0));
    give(&mut world, 2, 1);
    assert_eq!(counts(&world), ([1, 3, 0], 1));
    world.hear(0, home(), 3, Event::Inserted { id: JobId(9) });
    world.hear(0, home(), 4, Event::NoJob);
    assert_eq!(counts(&world), ([1, 3, 0], 1));
}

#[test]
fn a_client_that_is_gone_does_not_wait_with_a_reserve_that_was_on_its_way() {
    let mut world = world(1);
    world.say(0, "reserve\r\nreserve\r\n");
    world.told();
    let id = world.clients[0].id;
    world.table.end_input(world.now, id);
    assert_eq!(world.told(), [""; 0], "the first answer decides");
    world.hear(0, home(), 2, Event::NoJob);
    assert_eq!(world.told(), ["0 home 2 Cancel"]);
    world.hear(0, home(), 2, Event::Cancelled);
    world.hear(0, home(), 3, Event::NoJob);
    assert_eq!(world.told(), ["0 home 3 Cancel"]);
    world.hear(0, home(), 3, Event::Cancelled);
    assert_eq!(world.read(0), "TIMED_OUT\r\nTIMED_OUT\r\n");
}
