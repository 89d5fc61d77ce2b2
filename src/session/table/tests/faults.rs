//! Shards to which there is no way, and links that break.

use super::*;

fn body() -> Body {
    Body::copy_of(b"x")
}

fn reserved(body: &Body, id: u64) -> Event<'_> {
    Event::Reserved {
        id: JobId(id),
        deadline: Nanos(2_000 * SECOND),
        body: body.clone().into(),
    }
}

fn offered(id: u64) -> Event<'static> {
    Event::Offered {
        id: JobId(id),
        pri: Pri(0),
        created_at: Nanos(1),
    }
}

// C4.6, R3.9
#[test]
fn a_command_waits_for_a_shard_that_is_gone_as_long_as_is_allowed_and_then_fails() {
    let mut world = World::new(1);
    world.lose(home());
    let away = job_at(away());
    world.say(0, "put 0 0 1 4\r\nquit\r\n");
    world.say(0, &format!("kick 1\r\ndelete {away}\r\n"));
    world.pass(OWNER_WAIT - 1);
    assert_eq!(world.read(0), "");
    world.pass(1);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n", "the kick waits anew");
    assert_eq!(world.told(), [""; 0]);
    world.pass(OWNER_WAIT - 1);
    assert_eq!(world.read(0), "");
    world.pass(1);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n");
    assert_eq!(world.told(), ["0 away attach", "0 away 1 Delete"]);
    world.hear(0, 1 - home(), 1, Event::NotFound);
    assert_eq!(world.read(0), "NOT_FOUND\r\n");
    assert!(!world.is_lost(0));
}

#[test]
fn without_a_wait_a_command_for_a_shard_that_is_gone_fails_at_once() {
    let settings = Settings {
        owner_wait: 0,
        ..settings(2)
    };
    let mut world = World::with(settings, 1);
    world.lose(home());
    world.say(0, "put 0 0 1 0\r\n\r\npeek-ready\r\nlist-tube-used\r\n");
    let expected = "INTERNAL_ERROR\r\nINTERNAL_ERROR\r\nUSING default\r\n";
    assert_eq!(world.read(0), expected);
}

// R3.9
#[test]
fn what_a_session_answers_by_itself_needs_no_shard() {
    let mut world = World::new(1);
    world.lose(0);
    world.lose(1);
    world.say(
        0,
        "list-tube-used\r\nwatch default\r\nignore x\r\nignore default\r\nbad\r\n\
         put 0 0 1 2000\r\n",
    );
    world.say(0, &format!("{}\r\n", "x".repeat(2_000)));
    let expected = "USING default\r\nWATCHING 1\r\nWATCHING 1\r\nNOT_IGNORED\r\n\
                    UNKNOWN_COMMAND\r\nJOB_TOO_BIG\r\n";
    assert_eq!(world.read(0), expected);
    world.say(0, "quit\r\n");
    assert_eq!(world.clients[0].fed, Fed::Closing);
}

#[test]
fn a_shard_that_comes_back_in_time_is_introduced_to_and_asked_once() {
    let mut world = World::new(2);
    let tube = tube_at(home());
    world.say(0, &format!("watch {tube}\r\n"));
    world.hear(0, home(), 1, Event::Watching);
    world.say(1, &format!("use {}\r\n", tube_at(away())));
    world.hear(1, away(), 1, Event::Using);
    world.told();
    world.lose(home());
    world.say(0, "kick 1\r\nreserve\r\n");
    world.pass(OWNER_WAIT - 1);
    world.regain(home());
    world.pass(10 * OWNER_WAIT);
    let expected = [
        "0 home attach",
        "0 home - Use",
        "0 home - Watch",
        "0 home - Watch",
        "1 home attach",
        "1 home - Watch",
        "0 home 2 Kick",
        "0 home 3 Reserve",
    ];
    assert_eq!(world.told(), expected);
    world.read(0);
    world.hear(0, home(), 0, Event::Watching);
    assert_eq!(world.read(0), "", "nobody has asked for that");
    world.hear(0, home(), 2, Event::Kicked { count: 0 });
    assert_eq!(world.read(0), "KICKED 0\r\n");
    assert_eq!(world.told(), [""; 0]);
}

#[test]
fn a_session_that_is_opened_while_its_shard_is_gone_is_introduced_later() {
    let mut world = World::new(0);
    world.lose(home());
    world.open();
    world.say(0, "kick 1\r\n");
    assert_eq!(world.told(), [""; 0]);
    world.regain(home());
    let introduced = ["0 home attach", "0 home - Use", "0 home - Watch"];
    assert_eq!(world.told(), [&introduced[..], &["0 home 1 Kick"]].concat());
}

// R3.9
#[test]
fn a_put_whose_shard_goes_while_its_body_comes_is_kept_for_a_while() {
    for comes_back in [true, false] {
        let mut world = World::new(1);
        world.say(0, "put 0 0 1 4\r\nwo");
        world.lose(home());
        world.say(0, "rk\r\nlist-tube-used\r\n");
        world.pass(OWNER_WAIT - 1);
        assert_eq!(world.told(), [""; 0]);
        assert!(!world.table.is_answered(world.clients[0].id));
        if comes_back {
            world.regain(home());
            let expected = [
                "0 home attach",
                "0 home - Use",
                "0 home - Watch",
                "0 home 1 Put",
            ];
            assert_eq!(world.told(), expected);
            world.hear(0, home(), 1, Event::Inserted { id: JobId(1) });
        }
        world.pass(1);
        let answer = if comes_back {
            "INSERTED 1"
        } else {
            "INTERNAL_ERROR"
        };
        assert_eq!(world.read(0), format!("{answer}\r\nUSING default\r\n"));
        world.pass(10 * OWNER_WAIT);
        world.regain(home());
        assert!(!world.told().iter().any(|told| told.ends_with("Put")));
    }
}

#[test]
fn the_body_of_a_put_is_given_away_though_no_more_commands_are_taken() {
    let mut world = World::new(1);
    world.say(0, "put 0 0 1 4\r\n");
    world.way(home(), Way::Credit(0));
    world.say(0, "work\r\n");
    assert_eq!(world.told(), ["0 home 1 Put"]);
}

// C4.6
#[test]
fn who_had_something_under_way_at_a_shard_that_is_gone_is_lost_and_nobody_else() {
    let (here, there) = (tube_at(home()), tube_at(away()));
    let job = body();
    let mut world = World::new(9);
    world.say(0, "kick 1\r\n");
    world.say(1, &format!("delete {}\r\n", job_at(away())));
    world.say(2, "reserve\r\n");
    world.hear(2, home(), 1, Event::NoJob);
    world.say(3, "reserve\r\n");
    world.hear(3, home(), 1, reserved(&job, job_at(home())));
    world.say(4, &format!("reserve-job {}\r\n", job_at(away())));
    world.hear(4, away(), 1, reserved(&job, job_at(away())));
    world.say(5, &format!("watch {here}\r\n"));
    world.say(6, &format!("use {there}\r\n"));
    world.say(7, &format!("watch {there}\r\n"));
    world.hear(7, away(), 1, Event::Watching);
    world.say(7, "reserve\r\n");
    world.hear(7, home(), 2, offered(job_at(home())));
    (0..9).for_each(|client| drop(world.read(client)));
    world.told();

    world.lose(home());
    let lost: Vec<usize> = (0..9).filter(|&client| world.is_lost(client)).collect();
    assert_eq!(lost, [0, 2, 3, 5, 7]);
    assert_eq!(world.counts().waiting, 0);
    for client in lost {
        assert_eq!(world.read(client), "");
        world.say(client, "list-tube-used\r\n");
        assert_eq!(world.clients[client].fed, Fed::Closing);
        world.hear(client, away(), 2, reserved(&job, job_at(away())));
        world.hear(client, home(), 1, Event::Using);
        assert_eq!(world.read(client), "", "what comes late is not for them");
    }
    world.hear(1, away(), 1, Event::NotFound);
    world.hear(6, away(), 1, Event::Using);
    assert_eq!(world.read(1), "NOT_FOUND\r\n");
    assert_eq!(world.read(6), format!("USING {there}\r\n"));
    assert_eq!(
        world.told(),
        [""; 0],
        "there is no way to say that a tube is not used"
    );
    world.close(7);
    assert_eq!(world.told(), ["7 away detach"], "the others are told");
}

#[test]
fn a_reservation_that_has_run_out_is_nothing_to_lose() {
    let mut world = World::new(1);
    world.say(0, "reserve\r\n");
    world.hear(0, home(), 1, reserved(&body(), job_at(home())));
    world.now = Nanos(2_000 * SECOND);
    world.lose(home());
    assert!(!world.is_lost(0));
}

#[test]
fn a_session_that_a_shard_refuses_is_lost() {
    let mut world = World::new(2);
    world.say(0, "reserve\r\n");
    let (refused, other) = (world.clients[0].id, world.clients[1].id);
    world.table.disown(refused);
    assert!(world.table.is_lost(refused) && !world.table.is_lost(other));
    assert_eq!(world.counts().waiting, 0);
    world.close(0);
    assert!(world.told().contains(&"0 home detach".to_owned()));
    world.table.disown(refused);
    assert!(!world.table.is_lost(refused), "there is no such session");
}

#[test]
fn what_waited_for_credit_waits_for_the_shard_when_that_is_gone() {
    let mut world = World::new(1);
    world.way(home(), Way::Credit(0));
    world.say(0, "kick 1\r\n");
    world.pass(100 * OWNER_WAIT);
    assert_eq!(world.read(0), "");
    world.lose(home());
    world.pass(OWNER_WAIT - 1);
    assert_eq!(world.read(0), "");
    world.pass(1);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n");
}

#[test]
fn what_could_not_be_answered_in_turn_is_answered_later() {
    let mut world = World::new(1);
    world.say(0, "kick 1\r\n");
    world.way(home(), Way::Credit(0));
    world.say(0, "kick 1\r\n");
    // The link is known to be gone a moment before what was under way is given up.
    world.way(home(), Way::Gone);
    world.resume_blindly(home());
    world.pass(OWNER_WAIT);
    assert_eq!(world.read(0), "");
    world.hear(0, home(), 1, Event::Kicked { count: 0 });
    assert_eq!(world.read(0), "KICKED 0\r\nINTERNAL_ERROR\r\n");
}

impl World {
    fn resume_blindly(&mut self, shard: u8) {
        self.table.resume(self.now, ShardId(shard), 1);
        self.settle();
    }
}

fn stats(jobs: u64) -> Event<'static> {
    Event::ShardStats(ShardStats {
        total_jobs: jobs,
        ..ShardStats::default()
    })
}

impl World {
    fn answer_stats(&mut self, fleet: Option<&Fleet>) {
        let mut due = Vec::new();
        self.table.take_stats_due(&mut due);
        let process = ProcessStats::default();
        self.table.answer_stats(&due, &process, fleet);
        self.settle();
    }
}

// S4.4
#[test]
fn stats_that_do_not_come_together_in_time_fail_and_late_parts_are_not_taken_for_others() {
    let limit = u64::from(GATHER_SECS_MAX) * SECOND;
    let mut world = World::new(1);
    world.say(0, "stats\r\n");
    world.hear(0, 0, 1, stats(1));
    world.pass(limit - 1);
    assert_eq!(world.read(0), "");
    world.pass(1);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n");
    world.say(0, "stats\r\n");
    world.hear(0, 1, 1, stats(2));
    world.hear(0, 0, 2, stats(4));
    assert!(!world.table.is_stats_due());
    world.hear(0, 1, 2, stats(8));
    assert!(world.table.is_stats_due());
    world.answer_stats(None);
    assert!(world.read(0).contains("\ntotal-jobs: 12\n"));
    world.pass(10 * limit);
    assert_eq!(world.read(0), "");
}

// S4.4
#[test]
fn stats_for_which_the_other_processes_do_not_answer_fail_too() {
    let mut world = World::new(1);
    world.say(0, "stats\r\n");
    world.hear(0, 0, 1, stats(1));
    world.hear(0, 1, 1, stats(1));
    let mut due = Vec::new();
    world.table.take_stats_due(&mut due);
    world.pass(u64::from(GATHER_SECS_MAX) * SECOND);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n");
    world.say(0, "stats\r\n");
    let (process, fleet) = (ProcessStats::default(), Fleet::default());
    world.table.answer_stats(&due, &process, Some(&fleet));
    assert_eq!(world.read(0), "", "that was the answer to another question");
}

// S4.4
#[test]
fn lists_that_do_not_come_together_in_time_fail_and_late_parts_are_not_taken_for_others() {
    let mut world = World::new(1);
    world.say(0, "list-tubes\r\n");
    world.hear(0, home(), 1, Event::TubesEnd);
    world.pass(u64::from(GATHER_SECS_MAX) * SECOND);
    assert_eq!(world.read(0), "INTERNAL_ERROR\r\n");
    world.say(0, "list-tubes\r\n");
    world.hear(0, away(), 1, Event::Tube(TubeName::parse(b"late").unwrap()));
    world.hear(0, away(), 1, Event::TubesEnd);
    world.hear(0, home(), 2, Event::Tube(TubeName::DEFAULT));
    world.hear(0, home(), 2, Event::TubesEnd);
    assert_eq!(world.read(0), "");
    world.hear(0, away(), 2, Event::TubesEnd);
    assert_eq!(world.read(0), "OK 14\r\n---\n- default\n\r\n");
}

// C4.6
#[test]
fn what_is_gathered_from_a_shard_that_is_gone_fails_at_once() {
    let mut world = World::new(3);
    world.say(0, "stats\r\n");
    world.say(1, "list-tubes\r\n");
    world.say(2, "list-tubes\r\n");
    world.hear(2, home(), 1, Event::TubesEnd);
    world.lose(home());
    for client in [0, 1] {
        assert_eq!(world.read(client), "INTERNAL_ERROR\r\n");
        assert!(!world.is_lost(client));
    }
    assert_eq!(world.read(2), "", "it had what it needs from there");
    world.hear(2, away(), 1, Event::TubesEnd);
    assert_eq!(world.read(2), "OK 4\r\n---\n\r\n");
}

#[test]
fn a_reserve_over_several_shards_is_refused_where_that_is_wanted() {
    let settings = Settings {
        multi_watch: MultiWatch::Reject,
        ..settings(2)
    };
    let mut world = World::with(settings, 1);
    world.say(0, &format!("watch {}\r\n", tube_at(away())));
    world.hear(0, away(), 1, Event::Watching);
    world.told();
    world.read(0);
    world.lose(home());
    world.say(0, "reserve\r\nreserve-with-timeout 0\r\n");
    assert_eq!(world.read(0), "CROSS_OWNER\r\nCROSS_OWNER\r\n");
    assert_eq!(world.told(), [""; 0]);
    world.regain(home());
    world.say(0, "ignore default\r\n");
    world.hear(0, home(), 2, Event::Ignored);
    world.told();
    world.say(0, "reserve\r\n");
    assert_eq!(world.told(), ["0 away 3 Reserve"]);
}
