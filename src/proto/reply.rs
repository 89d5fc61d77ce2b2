//! The reply lines. Those that never vary are constants, the others are appended to the reply
//! buffer by a function each. All include the CR LF that ends them.

use crate::base::ids::JobId;
use crate::base::name::TubeName;
use crate::proto::line::CRLF;

/// Answers `bury`, and `release` of a job that could not be queued.
pub const BURIED: &[u8] = b"BURIED\r\n";
/// Answers `put` when no CR LF stands behind the announced bytes.
pub const EXPECTED_CRLF: &[u8] = b"EXPECTED_CRLF\r\n";
/// Answers `put` of a body above the limit.
pub const JOB_TOO_BIG: &[u8] = b"JOB_TOO_BIG\r\n";
/// Answers `put` while the server takes no new jobs.
pub const DRAINING: &[u8] = b"DRAINING\r\n";
/// Ends a reserve because a reservation of the same session is about to end.
pub const DEADLINE_SOON: &[u8] = b"DEADLINE_SOON\r\n";
/// Ends a reserve that got no job in its time.
pub const TIMED_OUT: &[u8] = b"TIMED_OUT\r\n";
/// Answers `delete`.
pub const DELETED: &[u8] = b"DELETED\r\n";
/// Answers `release`.
pub const RELEASED: &[u8] = b"RELEASED\r\n";
/// Answers `touch`.
pub const TOUCHED: &[u8] = b"TOUCHED\r\n";
/// Answers `kick-job`. That of `kick` has a count: [`write_kicked`].
pub const KICKED: &[u8] = b"KICKED\r\n";
/// Answers every command whose job or tube is not there or not in the state that it needs.
pub const NOT_FOUND: &[u8] = b"NOT_FOUND\r\n";
/// Answers `ignore` of the last tube that is watched.
pub const NOT_IGNORED: &[u8] = b"NOT_IGNORED\r\n";
/// Answers `pause-tube`.
pub const PAUSED: &[u8] = b"PAUSED\r\n";
/// Answers any command for which memory or room in the binlog is lacking.
pub const OUT_OF_MEMORY: &[u8] = b"OUT_OF_MEMORY\r\n";
/// Answers a command in which the server met a fault of its own.
pub const INTERNAL_ERROR: &[u8] = b"INTERNAL_ERROR\r\n";
/// Answers a reserve whose watched tubes are at several owners, where the operator wants such a
/// reserve to be refused. The original has no such line.
pub const CROSS_OWNER: &[u8] = b"CROSS_OWNER\r\n";
/// Answers a line that is too long or malformed.
pub const BAD_FORMAT: &[u8] = b"BAD_FORMAT\r\n";
/// Answers a line that is no command.
pub const UNKNOWN_COMMAND: &[u8] = b"UNKNOWN_COMMAND\r\n";

/// Appends the answer to `put`: the new job's id.
pub fn write_inserted(out: &mut Vec<u8>, id: JobId) {
    write_with_number(out, b"INSERTED ", id.0);
}

/// Appends the answer to a `put` whose job could not be queued and is buried under this id.
pub fn write_buried(out: &mut Vec<u8>, id: JobId) {
    write_with_number(out, b"BURIED ", id.0);
}

/// Appends the answer to `use` and `list-tube-used`: the tube in use.
pub fn write_using(out: &mut Vec<u8>, tube: TubeName<'_>) {
    out.extend_from_slice(b"USING ");
    out.extend_from_slice(tube.as_bytes());
    out.extend_from_slice(CRLF);
}

/// Appends the line that announces a reserved job. The body, of `body_len` bytes, and a CR LF have
/// to follow.
pub fn write_reserved(out: &mut Vec<u8>, id: JobId, body_len: usize) {
    write_job_line(out, b"RESERVED ", id, body_len);
}

/// Appends the line that announces a peeked job. The body, of `body_len` bytes, and a CR LF have to
/// follow.
pub fn write_found(out: &mut Vec<u8>, id: JobId, body_len: usize) {
    write_job_line(out, b"FOUND ", id, body_len);
}

/// Appends the answer to `kick`: how many jobs were kicked.
pub fn write_kicked(out: &mut Vec<u8>, count: u64) {
    write_with_number(out, b"KICKED ", count);
}

/// Appends the answer to `watch` and `ignore`: how many tubes are watched.
pub fn write_watching(out: &mut Vec<u8>, tubes: usize) {
    write_with_number(out, b"WATCHING ", tubes as u64);
}

/// Appends `OK`, the length of the data that `write_data` appends, that data, and a CR LF.
///
/// The length stands in front of what it measures. The data is written first and moved behind its
/// header then, which costs one move of it but no buffer of its own.
pub fn write_ok(out: &mut Vec<u8>, write_data: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write_data(out);
    let data_end = out.len();
    write_with_number(out, b"OK ", (data_end - start) as u64);

    let header_len = out.len() - data_end;
    out[start..].rotate_right(header_len);
    out.extend_from_slice(CRLF);
}

/// Appends a number in decimal.
pub fn write_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_job_line(out: &mut Vec<u8>, word: &[u8], id: JobId, body_len: usize) {
    out.extend_from_slice(word);
    write_u64(out, id.0);
    write_with_number(out, b" ", body_len as u64);
}

fn write_with_number(out: &mut Vec<u8>, word: &[u8], number: u64) {
    out.extend_from_slice(word);
    write_u64(out, number);
    out.extend_from_slice(CRLF);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(write: impl FnOnce(&mut Vec<u8>), appended: &str) {
        let mut out = b"before\r\n".to_vec();
        write(&mut out);
        assert_eq!(
            out.escape_ascii().to_string(),
            format!("before\r\n{appended}")
                .as_bytes()
                .escape_ascii()
                .to_string()
        );
    }

    #[test]
    fn each_line_is_appended_as_the_protocol_spells_it() {
        let id = JobId(u64::MAX);
        check(|out| write_inserted(out, JobId(1)), "INSERTED 1\r\n");
        check(
            |out| write_buried(out, id),
            "BURIED 18446744073709551615\r\n",
        );
        check(
            |out| write_using(out, TubeName::DEFAULT),
            "USING default\r\n",
        );
        check(|out| write_reserved(out, JobId(7), 0), "RESERVED 7 0\r\n");
        check(|out| write_found(out, JobId(0), 65535), "FOUND 0 65535\r\n");
        check(|out| write_kicked(out, 4294967295), "KICKED 4294967295\r\n");
        check(|out| write_watching(out, 1), "WATCHING 1\r\n");
    }

    #[test]
    fn lines_that_never_vary_are_their_word_and_crlf() {
        for (line, word) in [
            (BURIED, "BURIED"),
            (EXPECTED_CRLF, "EXPECTED_CRLF"),
            (JOB_TOO_BIG, "JOB_TOO_BIG"),
            (DRAINING, "DRAINING"),
            (DEADLINE_SOON, "DEADLINE_SOON"),
            (TIMED_OUT, "TIMED_OUT"),
            (DELETED, "DELETED"),
            (RELEASED, "RELEASED"),
            (TOUCHED, "TOUCHED"),
            (KICKED, "KICKED"),
            (NOT_FOUND, "NOT_FOUND"),
            (NOT_IGNORED, "NOT_IGNORED"),
            (PAUSED, "PAUSED"),
            (OUT_OF_MEMORY, "OUT_OF_MEMORY"),
            (INTERNAL_ERROR, "INTERNAL_ERROR"),
            (CROSS_OWNER, "CROSS_OWNER"),
            (BAD_FORMAT, "BAD_FORMAT"),
            (UNKNOWN_COMMAND, "UNKNOWN_COMMAND"),
        ] {
            assert_eq!(line, format!("{word}\r\n").as_bytes());
        }
    }

    #[test]
    fn ok_counts_the_data_without_its_crlf() {
        check(|out| write_ok(out, |_| {}), "OK 0\r\n\r\n");
        check(
            |out| write_ok(out, |out| out.extend_from_slice(b"---\n- default\n")),
            "OK 14\r\n---\n- default\n\r\n",
        );
        let data = "x".repeat(100_000);
        check(
            |out| write_ok(out, |out| out.extend_from_slice(data.as_bytes())),
            &format!("OK 100000\r\n{data}\r\n"),
        );
    }
}
