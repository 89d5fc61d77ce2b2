//! Whether the machine let tests that count on the clock have it.
//!
//! A transcript says that something happens within a second, or not before one has passed. On a
//! machine that is busy with other things a client or a server may not get to run for that long,
//! and then the transcript proves nothing. A thread that only wants to run every few milliseconds
//! notices that. A failure in such a time is void, and the transcript is played again; a failure
//! in a calm time, or in several times one after another, is one.

use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Plays until it succeeds, until it fails in a calm time, or until it has failed so often that
/// the machine is no excuse.
pub(crate) fn in_calm<T, E>(mut play: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let weather = WEATHER.get_or_init(Weather::watch);
    let mut outcome = play_once(weather, &mut play);
    for _ in 1..PLAYS_MAX {
        match outcome {
            (Err(_), true) => outcome = play_once(weather, &mut play),
            (outcome, _) => return outcome,
        }
    }
    outcome.0
}

/// The outcome, and whether the machine has stalled meanwhile.
fn play_once<T, E>(
    weather: &Weather,
    play: &mut impl FnMut() -> Result<T, E>,
) -> (Result<T, E>, bool) {
    let start = Instant::now();
    let outcome = play();
    (outcome, weather.has_stalled_since(start))
}

/// How often a transcript is played at most.
const PLAYS_MAX: usize = 6;
/// How often the machine is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// A thread that is kept waiting for so long is a stall. Transcripts leave at least twice that.
const STALL: Duration = Duration::from_millis(40);

static WEATHER: OnceLock<&'static Weather> = OnceLock::new();

struct Weather {
    last_stall: Mutex<Option<Instant>>,
    never: Condvar,
}

impl Weather {
    fn watch() -> &'static Weather {
        let weather: &'static Weather = Box::leak(Box::new(Weather {
            last_stall: Mutex::new(None),
            never: Condvar::new(),
        }));
        thread::spawn(move || {
            loop {
                weather.look();
            }
        });
        weather
    }

    /// Waits for a moment, and notes if that took much longer than a moment.
    fn look(&self) {
        let asked = Instant::now();
        let guard = self.last_stall.lock().expect("nobody panics with it");
        let (mut last_stall, _) = self
            .never
            .wait_timeout(guard, LOOK_EVERY)
            .expect("nobody panics with it");
        if asked.elapsed() > LOOK_EVERY + STALL {
            *last_stall = Some(Instant::now());
        }
    }

    fn has_stalled_since(&self, start: Instant) -> bool {
        let last_stall = self.last_stall.lock().expect("nobody panics with it");
        last_stall.is_some_and(|stall| stall >= start)
    }
}
