//! What is owed to all clients together.

use super::*;

/// A world in which no more than `max` bytes may be owed before commands wait.
fn world(clients: usize, max: usize) -> World {
    let mut world = World::new(clients);
    world.table.hall.ledger.owed_max = max;
    world
}

/// The client is answered with `len` bytes and more, which it does not read.
fn owe(world: &mut World, client: usize, len: usize) {
    world.say(client, "peek-ready\r\n");
    let body = BodyCow::from(Body::from_vec(vec![b'x'; len]));
    let id = JobId(1);
    world.hear(client, home(), 1, Event::Found { id, body });
    world.told();
}

// R3.8, R4.6
#[test]
fn commands_that_bring_a_job_wait_while_too_much_is_owed_and_others_do_not() {
    let mut world = world(6, 5_000);
    owe(&mut world, 0, 5_000);
    world.say(1, "reserve\r\n");
    world.say(2, "peek-ready\r\n");
    world.say(3, "reserve-job 5\r\n");
    world.say(4, "kick 1\r\n");
    assert_eq!(world.told(), ["4 home 1 Kick"]);
    world.pass(1_000 * SECOND);
    assert_eq!(world.told(), [""; 0]);
    assert!(world.read(0).starts_with("FOUND 1 5000\r\n"));
    world.settle();
    let told = world.told();
    let asks: Vec<_> = told
        .iter()
        .filter(|told| !told.contains("attach"))
        .collect();
    assert_eq!(asks.len(), 3, "{told:?}");
    assert!(asks[0].ends_with("Reserve") && asks[1].ends_with("PeekReady"));
    world.hear(1, home(), 1, Event::NoJob);
    assert_eq!(world.counts().waiting, 1);
}

#[test]
fn what_is_owed_to_a_client_that_goes_is_not_owed_any_more() {
    let mut world = world(2, 100);
    owe(&mut world, 0, 5_000);
    world.say(1, "peek-ready\r\n");
    assert_eq!(world.told(), [""; 0]);
    world.close(0);
    assert_eq!(world.told(), ["0 home detach", "1 home 1 PeekReady"]);
    assert_eq!(world.table.hall.ledger.owed, 0);
}

#[test]
fn who_waits_for_room_goes_on_first_come_first_as_long_as_there_is_some() {
    let mut world = world(4, 100);
    owe(&mut world, 0, 5_000);
    for client in [2, 1, 3] {
        world.say(client, "peek-ready\r\n");
    }
    world.read(0);
    world.table.take_touched(&mut Vec::new());
    assert_eq!(world.table.hall.queues.front(Place::Replies), Some(1));
    world.feed(2);
    assert_eq!(world.told(), ["2 home 1 PeekReady"]);
    let found = Event::Found {
        id: JobId(1),
        body: BodyCow::Borrowed(&[b'x'; 200]),
    };
    world.hear(2, home(), 1, found);
    assert_eq!(world.told(), [""; 0], "that was all the room");
    world.read(2);
    world.settle();
    assert_eq!(world.told(), ["1 home 1 PeekReady", "3 home 1 PeekReady"]);
}

#[test]
fn a_command_that_waits_for_room_and_then_for_its_shard_is_obeyed_once() {
    let mut world = world(2, 100);
    owe(&mut world, 0, 5_000);
    world.say(1, "peek-ready\r\nkick 1\r\n");
    world.way(home(), Way::Credit(0));
    world.read(0);
    world.settle();
    assert_eq!(world.told(), [""; 0]);
    world.resume(home(), 2);
    assert_eq!(world.told(), ["1 home 1 PeekReady", "1 home 2 Kick"]);
}

// R3.8
#[test]
fn of_the_asks_that_bring_a_body_one_is_under_way() {
    let mut world = World::new(1);
    world.say(
        0,
        "kick 1\r\npeek-ready\r\nkick 2\r\npeek-buried\r\nkick 3\r\n",
    );
    assert_eq!(
        world.told(),
        ["0 home 1 Kick", "0 home 2 PeekReady", "0 home 3 Kick"]
    );
    world.hear(0, home(), 1, Event::Kicked { count: 1 });
    assert_eq!(world.told(), [""; 0]);
    let (id, body) = (JobId(1), BodyCow::Borrowed(b"x"));
    world.hear(0, home(), 2, Event::Found { id, body });
    assert_eq!(world.told(), ["0 home 4 PeekBuried", "0 home 5 Kick"]);
    world.hear(0, home(), 3, Event::Kicked { count: 2 });
    world.hear(0, home(), 4, Event::NotFound);
    world.hear(0, home(), 5, Event::Kicked { count: 3 });
    let expected = "KICKED 1\r\nFOUND 1 1\r\nx\r\nKICKED 2\r\nNOT_FOUND\r\nKICKED 3\r\n";
    assert_eq!(world.read(0), expected);
    world.say(0, "peek-ready\r\n");
    assert_eq!(world.told(), ["0 home 6 PeekReady"]);
}
