//! pause-tube. The end of a pause is in [`Engine::tick`].

use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::host::{Host, Record};
use crate::engine::tube::Pause;
use crate::engine::{By, Engine};

impl Engine {
    /// Replaces a pause that runs, be it longer or shorter. A pause of 0 counts as one (K6) and
    /// ends the one that runs at once.
    pub(super) fn pause_tube(
        &mut self,
        now: Nanos,
        by: By,
        name: TubeName<'_>,
        length: Secs,
        host: &mut impl Host,
    ) {
        let Some(tube) = self.tubes.find(name) else {
            return host.emit(by.from, Event::NotFound);
        };
        if length.0 > 0 && host.reserve_pause(name).is_err() {
            return host.emit(by.from, Event::OutOfMemory);
        }

        // Nothing below can fail.
        self.tubes[tube].pauses += 1;
        if length.0 == 0 {
            self.end_pause(tube, host);
        } else {
            let until = now.after(length);
            self.tubes.start_pause(tube, Pause { length, until });
            host.append(Record::Pause {
                tube: name,
                length,
                until,
            });
        }
        host.emit(by.from, Event::Paused);
        self.serve(now, tube, host);
    }

    /// Ends the tube's pause, if one runs.
    pub(super) fn end_pause(&mut self, tube: u32, host: &mut impl Host) {
        if self.tubes.end_pause(tube) {
            let tube = self.tubes[tube].name.as_name();
            host.append(Record::Resume { tube });
        }
    }

    /// Lets the tube vanish if nothing refers to it any more, and its pause with it.
    pub(super) fn drop_if_unreferred(&mut self, tube: u32, host: &mut impl Host) {
        if let Some(paused) = self.tubes.drop_if_unreferred(tube) {
            let tube = paused.as_name();
            host.append(Record::Resume { tube });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::body::Body;
    use crate::base::hash::NameHasher;
    use crate::base::ids::{Caller, JobId, Pri, Seq, SessionId};
    use crate::engine::host::{Journal, NoRoom, Outbox};
    use crate::engine::job::{JobCounts, JobKey, JobRecord, JobState};
    use crate::engine::op::Op;
    use crate::engine::stats::JournalStats;
    use crate::engine::{IdScheme, Settings};

    /// What was told of pauses, and the answers.
    #[derive(Default)]
    struct Told {
        lines: Vec<String>,
        is_full: bool,
    }

    impl Outbox for Told {
        fn emit(&mut self, _: Caller, event: Event<'_>) {
            if matches!(event, Event::Paused | Event::OutOfMemory) {
                self.lines.push(format!("{event:?}"));
            }
        }
    }

    impl Journal for Told {
        fn reserve_put(&mut self, _: TubeName<'_>, _: &[u8]) -> Result<(), NoRoom> {
            Ok(())
        }

        fn reserve_update(&mut self, _: JobId) -> Result<(), NoRoom> {
            Ok(())
        }

        fn reserve_pause(&mut self, _: TubeName<'_>) -> Result<(), NoRoom> {
            if self.is_full { Err(NoRoom) } else { Ok(()) }
        }

        fn append(&mut self, record: Record<'_>) {
            match record {
                Record::Pause {
                    tube,
                    length,
                    until,
                } => {
                    let line = format!("pause {tube:?} {} until {}", length.0, until.0);
                    self.lines.push(line);
                }
                Record::Resume { tube } => self.lines.push(format!("resume {tube:?}")),
                Record::Put { .. } | Record::Update { .. } | Record::Delete { .. } => {}
            }
        }

        fn segment_of(&self, _: JobId, _: JobKey) -> u64 {
            0
        }

        fn stats(&self) -> JournalStats {
            JournalStats::default()
        }
    }

    const SESSION: SessionId = SessionId {
        frontend: 0,
        number: 1,
    };

    fn engine() -> Engine {
        let mut engine = Engine::new(Settings {
            ids: IdScheme::Slotted,
            hasher: NameHasher::new([1, 2]),
            has_default: true,
        });
        engine.attach(SESSION);
        engine
    }

    fn ask(engine: &mut Engine, told: &mut Told, op: Op<'_>) -> String {
        let from = Caller {
            session: SESSION,
            seq: Seq(1),
        };
        engine.apply(Nanos(0), from, op, told).unwrap();
        engine.check_invariants();
        std::mem::take(&mut told.lines).join(", ")
    }

    fn pause(tube: TubeName<'_>, secs: u32) -> Op<'_> {
        let pause = Secs(secs);
        Op::PauseTube { tube, pause }
    }

    #[test]
    fn a_journal_is_told_of_pauses_and_of_every_end() {
        let (mut engine, mut told) = (engine(), Told::default());
        let (default, mail) = (TubeName::DEFAULT, TubeName::parse(b"mail").unwrap());
        let mut say = |op| ask(&mut engine, &mut told, op);
        assert_eq!(
            say(pause(default, 2)),
            "pause \"default\" 2 until 2000000000, Paused"
        );
        assert_eq!(
            say(pause(default, 1)),
            "pause \"default\" 1 until 1000000000, Paused"
        );
        assert_eq!(say(pause(default, 0)), "resume \"default\", Paused");
        assert_eq!(say(pause(default, 0)), "Paused");
        say(Op::Watch { tube: mail });
        say(pause(mail, 9));
        assert_eq!(say(Op::Ignore { tube: mail }), "resume \"mail\"");
        say(pause(default, 1));
        engine.tick(Nanos(1_000_000_000), &mut told);
        assert_eq!(told.lines, ["resume \"default\""]);
        told.lines.clear();
        told.is_full = true;
        let answer = ask(&mut engine, &mut told, pause(default, 1));
        assert_eq!(answer, "OutOfMemory");
        assert_eq!(engine.next_deadline(), None);
    }

    #[test]
    fn a_pause_comes_back_where_there_is_a_tube() {
        let (mut engine, mail) = (engine(), TubeName::parse(b"mail").unwrap());
        let (now, until) = (Nanos(5), Nanos(9));
        assert!(!engine.restore_pause(now, mail, Secs(4), until));
        let job = JobRecord {
            id: JobId(1 << 10),
            pri: Pri(0),
            delay: Secs(0),
            ttr: Secs(1),
            created_at: Nanos(0),
            deadline: Nanos(0),
            counts: JobCounts::default(),
            state: JobState::Ready,
        };
        engine.restore(job, mail, Body::copy_of(b"")).unwrap();
        assert!(!engine.restore_pause(until, mail, Secs(4), until));
        assert!(engine.restore_pause(now, mail, Secs(4), until));
        assert_eq!(engine.next_deadline(), Some(until));
        engine.check_invariants();
    }
}
