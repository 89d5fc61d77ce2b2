//! What a session refers to: the tube it uses and those it watches. A tube lives as long as
//! something refers to it.

use crate::base::name::TubeName;
use crate::engine::client::{Watch, watch_hash};
use crate::engine::event::Event;
use crate::engine::host::Host;
use crate::engine::{By, Engine};

impl Engine {
    pub(super) fn use_tube(&mut self, by: By, name: TubeName<'_>, host: &mut impl Host) {
        let tube = self.tubes.find_or_make(name);
        // The new reference comes before the old one goes, lest using a tube anew ends it.
        self.tubes[tube].using += 1;
        self.unuse(by.client, host);
        self.clients[by.client].using = Some(tube);
        host.emit(by.from, Event::Using);
    }

    pub(super) fn unuse(&mut self, client: u32, host: &mut impl Host) {
        if let Some(tube) = self.clients[client].using.take() {
            self.tubes[tube].using -= 1;
            self.drop_if_unreferred(tube, host);
        }
    }

    pub(super) fn watch(&mut self, by: By, name: TubeName<'_>, host: &mut impl Host) {
        self.end_wait(by.client);
        let tube = self.tubes.find_or_make(name);
        let client = &mut self.clients[by.client];
        if client.watch_index(tube).is_none() {
            client.watches.push(Watch { tube, waiter: 0 }, watch_hash);
            self.tubes[tube].watching += 1;
        }
        host.emit(by.from, Event::Watching);
    }

    pub(super) fn ignore(&mut self, by: By, name: TubeName<'_>, host: &mut impl Host) {
        self.end_wait(by.client);
        if let Some(tube) = self.tubes.find(name) {
            let client = &mut self.clients[by.client];
            if let Some(index) = client.watch_index(tube) {
                client.watches.swap_remove(index, watch_hash);
                self.unwatch(tube, host);
            }
        }
        host.emit(by.from, Event::Ignored);
    }

    /// Quirk: the first entry goes and the last takes its place, again and again, which shows in
    /// the order of `list-tubes` when several tubes vanish at once (transcript
    /// `list-order-after-close`).
    pub(super) fn unwatch_all(&mut self, client: u32, host: &mut impl Host) {
        while !self.clients[client].watches.is_empty() {
            let watch = self.clients[client].watches.swap_remove(0, watch_hash);
            self.unwatch(watch.tube, host);
        }
    }

    fn unwatch(&mut self, tube: u32, host: &mut impl Host) {
        self.tubes[tube].watching -= 1;
        self.drop_if_unreferred(tube, host);
    }
}
