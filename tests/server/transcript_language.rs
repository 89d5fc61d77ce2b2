//! The transcripts' runner must fail where a server differs from what is written: here it meets
//! servers of a few lines of shell that always say the same.

use crate::transcript::{Ids, Target, parse, play};

/// Plays `script` against a server that says `printed` (in the words of printf) and nothing more.
/// The server is `sh`; descriptor 3, where a real one would accept, is handed to socat's like: so
/// the pipe ends here and the outcome is the runner's error.
fn problem(script: &str) -> String {
    let words = ["sleep", "60"].map(str::to_owned).to_vec();
    let target = Target { words, is_1_12: false };
    let script = parse("test.txt", script, Ids::Exact).unwrap();
    play(&script, &target).unwrap_err()
}
