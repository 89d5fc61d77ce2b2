//! Who goes on when a shard can take more.

use super::*;

/// Who has asked since last looked at, in that order.
fn who_asked(world: &mut World) -> Vec<usize> {
    let told = world.told();
    let asks = told.iter().filter(|told| told.contains(" Kick"));
    asks.map(|told| told[..told.find(' ').unwrap()].parse().unwrap())
        .collect()
}

// R3.6
#[test]
fn as_many_go_on_as_there_is_credit_for_first_come_first() {
    let mut world = World::new(6);
    world.way(home(), Way::Credit(0));
    for client in [3, 1, 4, 0] {
        world.say(client, "kick 1\r\n");
    }
    assert_eq!(who_asked(&mut world), [0; 0]);
    world.resume(home(), 2);
    assert_eq!(who_asked(&mut world), [3, 1]);
    // Who has been waiting comes before who comes now, also if there is credit at the moment.
    world.way(home(), Way::Credit(1));
    world.say(5, "kick 1\r\n");
    assert_eq!(who_asked(&mut world), [4]);
    world.resume(home(), 9);
    assert_eq!(who_asked(&mut world), [0, 5]);
    world.say(2, "kick 1\r\n");
    assert_eq!(who_asked(&mut world), [2]);
}

#[test]
fn a_session_with_many_commands_takes_its_turn_with_the_others() {
    let mut world = World::new(3);
    world.way(home(), Way::Credit(0));
    for client in 0..3 {
        world.say(client, &"kick 1\r\n".repeat(3));
    }
    world.resume(home(), 4);
    assert_eq!(who_asked(&mut world), [0, 1, 2, 0]);
    world.resume(home(), 9);
    assert_eq!(who_asked(&mut world), [1, 2, 0, 1, 2]);
}

// R3.6
#[test]
fn only_as_many_are_called_as_were_granted() {
    let mut world = World::new(4);
    world.way(home(), Way::Credit(0));
    (0..4).for_each(|client| world.say(client, "kick 1\r\n"));
    world.table.resume(world.now, ShardId(home()), 3);
    let mut touched = Vec::new();
    world.table.take_touched(&mut touched);
    let called: Vec<_> = world.clients[..3].iter().map(|client| client.id).collect();
    assert_eq!(touched, called);
    assert!(world.table.may_go_on(called[0]) && !world.table.is_answered(called[0]));
    assert!(!world.table.may_go_on(world.clients[3].id));
}

#[test]
fn who_is_called_in_vain_keeps_its_place_before_the_others() {
    let mut world = World::new(4);
    world.way(home(), Way::Credit(0));
    (0..4).for_each(|client| world.say(client, "kick 1\r\n"));
    // It was said that there is credit, and there is none.
    world.table.resume(world.now, ShardId(home()), 3);
    world.settle();
    assert_eq!(who_asked(&mut world), [0; 0]);
    world.resume(home(), 2);
    assert_eq!(who_asked(&mut world), [0, 1]);
    world.resume(home(), 2);
    assert_eq!(who_asked(&mut world), [2, 3]);
}

#[test]
fn credit_is_not_kept_for_who_does_not_come_for_it() {
    let mut world = World::new(3);
    world.way(home(), Way::Credit(0));
    (0..3).for_each(|client| world.say(client, "kick 1\r\n"));
    world.way(home(), Way::Credit(1));
    world.table.resume(world.now, ShardId(home()), 1);
    world.table.take_touched(&mut Vec::new());
    // The first one has been called, and its socket is full. Nobody says that there is credit.
    world.settle();
    assert_eq!(who_asked(&mut world), [1]);
    world.way(home(), Way::Credit(1));
    world.close(0);
    assert_eq!(who_asked(&mut world), [2]);
}

#[test]
fn who_waits_and_goes_leaves_no_trace() {
    let mut world = World::new(4);
    world.way(home(), Way::Credit(0));
    (0..4).for_each(|client| world.say(client, "kick 1\r\n"));
    world.close(0);
    world.close(2);
    world.told();
    world.resume(home(), 2);
    assert_eq!(who_asked(&mut world), [1, 3]);
    assert!(world.table.hall.queues.are_empty());
}

#[test]
fn other_shards_are_asked_while_one_takes_no_more() {
    let mut world = World::new(2);
    world.way(home(), Way::Credit(0));
    world.say(0, "kick 1\r\n");
    world.say(1, &format!("delete {}\r\nstats\r\n", job_at(away())));
    assert_eq!(world.told(), ["1 away attach", "1 away 1 Delete"]);
    world.hear(1, away(), 1, Event::NotFound);
    world.resume(home(), 1);
    assert_eq!(world.told(), ["0 home 1 Kick"], "stats comes later");
    world.resume(home(), 1);
    assert_eq!(world.told().len(), 2);
}

#[test]
fn a_half_closed_client_is_answered_when_its_shard_can_be_asked() {
    let mut world = World::new(1);
    world.way(home(), Way::Credit(0));
    world.say(0, "reserve\r\n");
    world.table.end_input(world.now, world.clients[0].id);
    world.settle();
    world.resume(home(), 1);
    world.hear(0, home(), 1, Event::NoJob);
    assert_eq!(world.read(0), "TIMED_OUT\r\n");
}

/// What happens in a run of chance.
#[derive(Clone, Debug)]
enum Step {
    /// A client says something about its tube, or about a job of one of the shards.
    Say {
        client: usize,
        what: u8,
    },
    /// A shard answers the first ask that it has not answered.
    Answer {
        shard: u8,
    },
    Grant {
        shard: u8,
        count: usize,
    },
    Break {
        shard: u8,
    },
    Mend {
        shard: u8,
    },
    Pass {
        millis: u64,
    },
    Close {
        client: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (client, shard) = (0..5usize, 0..2u8);
    prop_oneof![
        8 => (client.clone(), 0..5u8).prop_map(|(client, what)| Step::Say { client, what }),
        6 => shard.clone().prop_map(|shard| Step::Answer { shard }),
        4 => (shard.clone(), 0..4usize).prop_map(|(shard, count)| Step::Grant { shard, count }),
        1 => shard.clone().prop_map(|shard| Step::Break { shard }),
        2 => shard.prop_map(|shard| Step::Mend { shard }),
        2 => (0..700u64).prop_map(|millis| Step::Pass { millis }),
        1 => client.prop_map(|client| Step::Close { client }),
    ]
}

/// Asks that each shard has not answered, and how often each client has spoken and was answered.
struct Run {
    world: World,
    asked: [Vec<(usize, u64, String)>; 2],
    said: Vec<usize>,
    answered: Vec<usize>,
}

impl Run {
    fn take_asks(&mut self) {
        for told in self.world.told() {
            let words: Vec<&str> = told.split(' ').collect();
            let &[client, shard, seq, op] = &words[..] else {
                continue;
            };
            let shard = if shard == "home" { home() } else { away() };
            if let Ok(seq) = seq.parse() {
                let ask = (client.parse().unwrap(), seq, op.to_owned());
                self.asked[usize::from(shard)].push(ask);
            }
        }
        for client in 0..self.said.len() {
            self.answered[client] += self.world.read(client).matches("\r\n").count();
        }
    }

    fn do_step(&mut self, step: &Step) {
        let world = &mut self.world;
        match *step {
            Step::Say { client, what } => {
                let text = match what {
                    0 => "kick 1\r\n".to_owned(),
                    1 => "put 0 0 1 1\r\nx\r\n".to_owned(),
                    2 => "reserve-with-timeout 0\r\n".to_owned(),
                    what => format!("delete {}\r\n", job_at(what - 3)),
                };
                self.said[client] += 1;
                world.say(client, &text);
            }
            Step::Answer { shard } => self.answer(shard),
            Step::Grant { shard, count } => {
                if let Way::Credit(left) = world.table.shards.ways[usize::from(shard)] {
                    world.way(shard, Way::Credit(left + count));
                    world.table.resume(world.now, ShardId(shard), count);
                    world.settle();
                }
            }
            Step::Break { shard } => {
                self.asked[usize::from(shard)].clear();
                world.lose(shard);
            }
            Step::Mend { shard } => {
                if world.table.shards.ways[usize::from(shard)] == Way::Gone {
                    world.way(shard, Way::Credit(2));
                    world.table.regain(world.now, ShardId(shard));
                    world.settle();
                }
            }
            Step::Pass { millis } => world.pass(millis * (SECOND / 1000)),
            Step::Close { client } => self.replace(client),
        }
        self.take_asks();
        for client in 0..self.said.len() {
            if self.world.is_lost(client) {
                self.replace(client);
            }
        }
        self.take_asks();
    }

    fn answer(&mut self, shard: u8) {
        let asked = &mut self.asked[usize::from(shard)];
        if asked.is_empty() {
            return;
        }
        let (client, seq, op) = asked.remove(0);
        let event = match &op[..] {
            "Kick" => Event::Kicked { count: 0 },
            "Put" => Event::Inserted { id: JobId(1) },
            "Reserve" => Event::NoJob,
            "Cancel" => Event::Cancelled,
            _ => Event::NotFound,
        };
        self.world.hear(client, shard, seq, event);
    }

    /// Another client takes the place of this one.
    fn replace(&mut self, client: usize) {
        self.world.close(client);
        self.world.told();
        let id = self.world.table.open(self.world.now);
        self.world.clients[client] = Client {
            id,
            unread: Vec::new(),
            fed: Fed::WantsMore,
        };
        self.asked
            .iter_mut()
            .for_each(|asked| asked.retain(|(asker, ..)| *asker != client));
        (self.said[client], self.answered[client]) = (0, 0);
    }
}

proptest! {
    #![proptest_config(property_config())]

    // R3.6, R3.9
    #[test]
    fn whatever_is_in_the_way_everybody_is_answered_once_in_the_end(
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut run = Run {
            world: World::new(5),
            asked: [Vec::new(), Vec::new()],
            said: vec![0; 5],
            answered: vec![0; 5],
        };
        run.world.way(0, Way::Credit(2));
        run.world.way(1, Way::Credit(2));
        for step in &steps {
            run.do_step(step);
            for client in 0..5 {
                prop_assert!(run.answered[client] <= run.said[client]);
            }
        }
        for shard in [0, 1] {
            run.do_step(&Step::Mend { shard });
            run.do_step(&Step::Grant { shard, count: 10_000 });
        }
        while run.asked.iter().any(|asked| !asked.is_empty()) {
            run.do_step(&Step::Answer { shard: 0 });
            run.do_step(&Step::Answer { shard: 1 });
        }
        prop_assert_eq!(run.said, run.answered);
        prop_assert!(run.world.table.hall.queues.are_empty());
    }
}
