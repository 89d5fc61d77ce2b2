//! Which pairs have a link, and which are to get one.

use super::{Action, Link, Occupant, Places, Role, Seat, frontend_seat, owner_seat};
use crate::base::ids::Generation;
use crate::base::time::Nanos;

impl Places {
    /// There is no link any more between this frontend and this start of that owner.
    pub fn on_link_lost(&mut self, now: Nanos, frontend: u16, owner: u16, of: Generation) {
        if usize::from(owner) >= usize::from(self.owners)
            || self.child(owner_seat(owner)).ready() != Some(of)
        {
            return;
        }
        let link = self.link_mut(frontend, owner);
        if link.is_made {
            link.is_made = false;
            link.not_before = link.backoff.on_end(now);
        }
    }

    pub(super) fn make_links(&mut self, now: Nanos, due: &mut Vec<Action>) {
        let missing: Vec<(u16, u16)> = self.missing_links().collect();
        for (f, o) in missing {
            let link = self.link_mut(f, o);
            if link.not_before > now {
                continue;
            }
            link.is_made = true;
            link.backoff.on_ready(now);
            let ends = [frontend_seat(f), owner_seat(o)].map(|seat| Occupant {
                seat,
                generation: self.child(seat).ready().unwrap_or(Generation::NONE),
            });
            let [frontend, owner] = ends;
            due.push(Action::Link { frontend, owner });
        }
    }

    /// Pairs that both serve, can be told something, and have no link.
    pub(super) fn missing_links(&self) -> impl Iterator<Item = (u16, u16)> {
        let can_link = |seat| {
            let child = self.child(seat);
            child.ready().is_some() && !child.is_slow && child.closed.is_none()
        };
        let frontends = (0..self.frontends()).filter(move |&f| can_link(frontend_seat(f)));
        let owners = move |f| (0..self.owners).map(move |o| (f, o));
        frontends
            .flat_map(owners)
            .filter(move |&(f, o)| !self.link(f, o).is_made && can_link(owner_seat(o)))
    }

    /// The pairs that this one belongs to, as indexes of a frontend and an owner.
    pub(super) fn links_of(&self, seat: Seat) -> Vec<(u16, u16)> {
        match seat.role {
            Role::Owner => (0..self.frontends()).map(|f| (f, seat.index)).collect(),
            Role::Frontend => (0..self.owners).map(|o| (seat.index, o)).collect(),
        }
    }

    pub(super) fn link(&self, frontend: u16, owner: u16) -> &Link {
        &self.links[usize::from(frontend) * usize::from(self.owners) + usize::from(owner)]
    }

    pub(super) fn link_mut(&mut self, frontend: u16, owner: u16) -> &mut Link {
        &mut self.links[usize::from(frontend) * usize::from(self.owners) + usize::from(owner)]
    }
}
