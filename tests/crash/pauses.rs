//! Tubes that are paused, in formats that keep pauses.

use beanshard::base::time::Secs;
use beanshard::engine::op::Op;

use crate::book::{Pause, pause_id, shown_pause};
use crate::form::Form;
use crate::life::{Life, TUBES, name, onlooker};
use crate::notes::{Notes, Said};

impl<F: Form> Life<F> {
    /// Pauses a tube, or ends its pause.
    pub(crate) fn pause(&mut self) -> Result<(), String> {
        let at = self.random.index(TUBES.len() - 1);
        let pause = Secs(self.random.pick(&[0, 1, 2, 5, 1000]));
        let until = self.time.wall_of(self.time.now.after(pause));
        let before = self.position();
        let tube = name(at);
        let notes = self.raw(self.sessions[0], Op::PauseTube { tube, pause });
        let answer = notes.iter().find(|note| note.to == self.sessions[0]);
        match answer.map(|note| note.said) {
            Some(Said::Other) => {
                let shown = (pause.0 > 0).then(|| shown_pause(TUBES[at], pause, until));
                let after = self.position();
                let ticket = answer.map_or(0, |note| note.ticket);
                self.book
                    .note_pause(pause_id(TUBES[at]), shown, before, after, ticket);
            }
            Some(Said::OutOfMemory) if self.is_full => {}
            said => return Err(format!("pause: {said:?}")),
        }
        // The end of a pause may have given jobs to those that waited.
        self.on_done(self.position(), &Notes(notes), None)
    }

    /// After a start the pauses run that were found, where there is a tube.
    pub(crate) fn resume_pauses(&mut self, found: &[Pause]) -> Result<(), String> {
        for (at, tube) in TUBES.into_iter().enumerate() {
            let pause = found.iter().find(|(name, ..)| *name == tube);
            let pause = pause.map(|&(_, length, until)| shown_pause(tube, length, until));
            let has_jobs = self.book.live().any(|(_, shown)| shown.tube == tube);
            let is_there = at == 0 || has_jobs;
            let runs = pause.as_ref().filter(|pause| {
                let is_over = pause.created_at <= self.time.wall;
                is_there && !is_over
            });
            let notes = self.raw(onlooker(), Op::StatsTube { tube: name(at) });
            let shown = notes.iter().find_map(|note| match note.said {
                Said::Pause(length) => Some(length),
                _ => None,
            });
            let expected = runs.map_or(Secs(0), |pause| pause.delay);
            if shown.unwrap_or_default() != expected {
                return Err(format!("{tube}: pause {expected:?}, shown {shown:?}"));
            }
            let is_running = runs.is_some();
            self.book.begin_pause(pause_id(tube), pause, is_running);
        }
        Ok(())
    }
}
