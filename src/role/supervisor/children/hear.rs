//! What children say, and what follows from it.

use super::{Children, LOG, complain};
use crate::base::time::Nanos;
use crate::role::control::{ControlError, ControlRead};
use crate::role::supervisor::places::{Places, Seat};
use crate::sys::poller::{Poller, Ready};
use crate::sys::process;
use crate::wire::control::Control;
use crate::wire::setup::LinkLost;

/// What a child has said, if it is not only of use to itself.
enum Heard {
    Ready,
    Pong(u64),
    LinkLost(LinkLost),
    AskCounts(u64),
}

impl Children {
    /// Hears what the child in place `number` says.
    pub(in crate::role::supervisor) fn on_ready(
        &mut self,
        now: Nanos,
        number: usize,
        ready: Ready,
        places: &mut Places,
        poller: &Poller,
    ) {
        let seat = places.seat(number);
        if !ready.readable {
            return;
        }
        let Some(running) = &mut self.running[number] else {
            return;
        };
        let read = running.control.read();
        loop {
            match self.next_heard(number) {
                Ok(Some(heard)) => self.on_heard(now, seat, heard, places),
                Ok(None) => break,
                Err(error) => {
                    complain(seat, &error);
                    return self.kill_and_forget(number, poller);
                }
            }
        }
        match read {
            Ok(ControlRead::Bytes | ControlRead::Nothing) => {}
            Ok(ControlRead::End) => {
                places.on_closed(now, seat);
                self.forget(number, poller);
            }
            Err(error) => {
                complain(seat, &error);
                self.kill_and_forget(number, poller);
            }
        }
    }

    /// The next thing that the child says to us, after those that are done with when heard.
    fn next_heard(&mut self, number: usize) -> Result<Option<Heard>, ControlError> {
        let Some(running) = &mut self.running[number] else {
            return Ok(None);
        };
        while let Some((control, _)) = running.control.next_message()? {
            match control {
                Control::Ready => return Ok(Some(Heard::Ready)),
                Control::Pong(number) => return Ok(Some(Heard::Pong(number))),
                Control::LinkLost(owner) => return Ok(Some(Heard::LinkLost(owner))),
                Control::AskCounts(asked) => return Ok(Some(Heard::AskCounts(asked))),
                Control::Counts(counts) => self.rounds.on_counts(number, &counts),
                Control::Ping(asked) => running.control.push(&Control::Pong(asked), None)?,
                // Nothing that a child could mean by it.
                Control::Goodbye(_)
                | Control::Hello(_)
                | Control::Credit(_)
                | Control::Refused(_)
                | Control::Drain
                | Control::Setup(_)
                | Control::Link(_)
                | Control::Attach
                | Control::Detach => {}
            }
        }
        Ok(None)
    }

    fn on_heard(&mut self, now: Nanos, seat: Seat, heard: Heard, places: &mut Places) {
        match heard {
            Heard::Ready => places.on_ready(now, seat),
            Heard::Pong(number) => {
                if places.on_pong(seat, number) {
                    let (role, index) = (seat.role, seat.index);
                    log::info!(target: LOG, "child answers again role={role} index={index}");
                }
            }
            Heard::LinkLost(owner) => {
                places.on_link_lost(now, seat.index, owner.index, owner.generation);
            }
            Heard::AskCounts(asked) => self.ask_counts(seat, asked, places),
        }
    }

    /// Asks all others on behalf of `seat`.
    fn ask_counts(&mut self, seat: Seat, asked: u64, places: &Places) {
        let own = places.number(seat);
        let mut others: Vec<usize> = (0..places.len())
            .filter(|&number| number != own && places.is_ready(places.seat(number)))
            .collect();
        let number = self.rounds.begin(own, asked, &mut others);
        for other in others {
            let ask = Control::AskCounts(number);
            self.tell(places, places.seat(other), &ask, None);
        }
    }

    /// Answers those who have asked for numbers and for whom all have come.
    pub(in crate::role::supervisor) fn answer_counts(&mut self) {
        while let Some((number, mut round)) = self.rounds.take_complete() {
            let answer = Control::Counts(round.answer(process::usage_with_ended_children()));
            if let Some(running) = &mut self.running[number]
                && running.control.push(&answer, None).is_err()
            {
                // It does not read, and has been given up on by whoever asked.
                log::debug!(target: LOG, "an answer was dropped");
            }
        }
    }
}
