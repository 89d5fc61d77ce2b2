//! A bar that shows on a terminal how far a tool has come. Where standard error is no terminal
//! there is none.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::data::{Stage, Step};

/// Times in a second that the bar is drawn at most.
const DRAWS_PER_SEC: u8 = 10;

/// See the module's description.
pub struct Bar {
    bar: ProgressBar,
    stage: Option<Stage>,
}

impl Bar {
    /// One that shows nothing yet.
    #[must_use]
    pub fn new() -> Bar {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SEC);
        Bar {
            bar: ProgressBar::with_draw_target(None, target),
            stage: None,
        }
    }

    /// Shows this step.
    pub fn show(&mut self, step: Step) {
        if self.stage != Some(step.stage) {
            self.stage = Some(step.stage);
            let counts = match step.stage {
                Stage::Read(_) => "{bytes} of {total_bytes}",
                Stage::Write(_) => "{human_pos} of {human_len} jobs",
                Stage::Swap | Stage::Clean => "{pos} of {len}",
            };
            let style = ProgressStyle::with_template(&format!("{{msg:24}} {{wide_bar}} {counts}"));
            // A bar in another style is better than none.
            self.bar
                .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.bar.set_message(words(step.stage));
        }
        if self.bar.length() != Some(step.all) {
            self.bar.set_length(step.all);
        }
        self.bar.set_position(step.done);
    }

    /// Takes it off the terminal.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

fn words(stage: Stage) -> String {
    match stage {
        Stage::Read(Some(owner)) => format!("reading owner {owner}"),
        Stage::Read(None) => "reading the binlog".to_owned(),
        Stage::Write(Some(owner)) => format!("writing owner {owner}"),
        Stage::Write(None) => "writing the binlog".to_owned(),
        Stage::Swap => "putting in place".to_owned(),
        Stage::Clean => "removing the old".to_owned(),
    }
}
