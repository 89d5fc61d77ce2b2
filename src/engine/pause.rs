//! pause-tube. The end of a pause is in [`Engine::tick`].

use crate::base::name::TubeName;
use crate::base::time::{Nanos, Secs};
use crate::engine::event::Event;
use crate::engine::host::Host;
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
        self.tubes[tube].pauses += 1;
        if length.0 == 0 {
            self.tubes.end_pause(tube);
        } else {
            self.tubes.start_pause(
                tube,
                Pause {
                    length,
                    until: now.after(length),
                },
            );
        }
        host.emit(by.from, Event::Paused);
        self.serve(now, tube, host);
    }
}
