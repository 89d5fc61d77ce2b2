//! What happens to a session table, one thing after another, and how a string of bytes is read as
//! that: the text of the protocol stands for itself, sent by the client whose turn it is, and a
//! byte 0xff with the one behind it says everything else.

/// Clients of a script.
pub(crate) const CLIENTS: usize = 4;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Bytes of a client arrive.
    Feed { client: usize, bytes: Vec<u8> },
    /// So much time passes.
    Pass { nanos: u64 },
    /// The client sends nothing more.
    End { client: usize },
    /// The client goes; another one comes in its place.
    Close { client: usize },
    /// The server takes no new jobs from now on.
    Drain,
}

/// Reads a script. Behind 0xff: 0 to 3 gives a client the turn, 4 cuts the bytes that arrive in
/// two, 5 and 6 let time pass, 7 ends the input of the client, 8 closes it, 9 drains the server,
/// and any other byte stands for itself.
#[allow(dead_code, reason = "for the fuzzer")]
pub(crate) fn read(script: &[u8]) -> Vec<Op> {
    let mut ops = Vec::new();
    let (mut client, mut bytes) = (0, Vec::new());
    let mut script = script.iter();
    while let Some(&byte) = script.next() {
        let code = if byte == 0xff { script.next() } else { None };
        let Some(&code) = code.filter(|code| **code <= 9) else {
            bytes.push(*code.unwrap_or(&byte));
            continue;
        };
        if !bytes.is_empty() {
            let bytes = std::mem::take(&mut bytes);
            ops.push(Op::Feed { client, bytes });
        }
        match code {
            0..=3 => client = usize::from(code),
            5 => ops.push(Op::Pass { nanos: 300_000_000 }),
            6 => ops.push(Op::Pass {
                nanos: 1_000_000_000,
            }),
            7 => ops.push(Op::End { client }),
            8 => ops.push(Op::Close { client }),
            9 => ops.push(Op::Drain),
            _ => {}
        }
    }
    if !bytes.is_empty() {
        ops.push(Op::Feed { client, bytes });
    }
    ops
}
