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
