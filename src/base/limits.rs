//! Every limit, with its unit, and how they relate to one another.

/// Longest command line in bytes, its CR LF included: `pause-tube`, a space, the longest name, a
/// space, the largest number. The original's line buffer.
pub const LINE_LEN_MAX: usize = 224;

/// Longest tube name in bytes.
pub const TUBE_NAME_LEN_MAX: usize = 200;

const _: () = assert!(
    LINE_LEN_MAX >= "pause-tube ".len() + TUBE_NAME_LEN_MAX + " 4294967295\r\n".len(),
    "the longest command fits a line"
);

/// Largest job body in bytes unless `-z` says otherwise.
pub const BODY_LEN_MAX_DEFAULT: u32 = 65_535;

/// Largest job body in bytes that `-z` can allow.
pub const BODY_LEN_MAX_CEILING: u32 = 1 << 30;

/// Longest wait in seconds that `reserve-with-timeout` accepts (the original's).
pub const RESERVE_TIMEOUT_SECS_MAX: u32 = i32::MAX as u32;

/// Shortest time to run in seconds; a put that asks for less gets this.
pub const TTR_SECS_MIN: u32 = 1;

/// Seconds before the end of a reservation in which a reserve is answered `DEADLINE_SOON`.
pub const SAFETY_MARGIN_SECS: u32 = 1;

/// Seconds that a job on offer to a session is kept from others before the offer ends by itself.
pub const OFFER_SECS_MAX: u32 = 1;

/// Bodies of up to this many bytes are copied out of the input when they are complete; larger ones
/// are read straight into memory of their own.
pub const BODY_GATHER_LEN_MAX: usize = 16 * 1024;

/// Bodies of up to this many bytes get their memory at once when they begin to arrive. It costs
/// address space, and pages only as they are filled, and saves moving what has arrived. Of a
/// larger body no more than about twice what has arrived is allocated.
pub const BODY_RESERVE_LEN_MAX: usize = 2 << 20;

/// Bodies of up to this many bytes are copied into a reply; larger ones are shared with the store.
/// Below it a copy costs less than the bookkeeping of one more piece in a gathered write.
pub const BODY_COPY_LEN_MAX: usize = 2 * 1024;

/// Bytes of unsent replies above which a session's further commands wait. One reply may pass it,
/// so the bound on what a session holds is this plus the largest reply.
pub const REPLY_BACKLOG_BYTES_MAX: usize = 64 * 1024;

/// Bytes of unsent replies of all sessions of a process above which commands that are answered with
/// a job wait. What shards are busy with already may pass it.
pub const REPLIES_BYTES_MAX: usize = 256 << 20;

const _: () = assert!(
    REPLIES_BYTES_MAX >= 1024 * REPLY_BACKLOG_BYTES_MAX,
    "a few clients that do not read are not everybody's affair"
);

/// Asks of a session that may be under way behind a reserve that is not answered, or together with
/// others that are answered with a job.
pub const AHEAD_ASKS_MAX: u32 = 64;

/// Largest body in bytes of a put that is sent behind a reserve that is not answered. The owner
/// keeps it while the session waits.
pub const AHEAD_PUT_LEN_MAX: u32 = 512;

const _: () = assert!(
    AHEAD_ASKS_MAX as usize * AHEAD_PUT_LEN_MAX as usize <= READ_AHEAD_BYTES_MAX,
    "what owners keep of a client that waits is no more than is read ahead of it"
);

/// Largest body in bytes of the job that a session was given last with which it may be given
/// several at once: who is given large ones is given them one by one.
pub const AHEAD_REPLY_LEN_MAX: usize = 4 * 1024;

/// Seconds within which all processes have to answer `stats` and `list-tubes`.
pub const GATHER_SECS_MAX: u32 = 1;

/// Microseconds for which a frontend keeps replies to a client whose next commands are being
/// obeyed, so that they go out together.
pub const REPLIES_KEPT_MICROS: u64 = 1_000;

/// Bytes of replies that are kept so.
pub const REPLIES_KEPT_BYTES_MAX: usize = 8 * 1024;

/// Bytes that are read from one conn in one turn. Of a large body, which is read into memory of its
/// own, it is what the kernel has and that memory has room for.
pub const READ_BYTES_MAX: usize = 64 * 1024;

/// Bytes of pipelined input held for a session whose reserve waits. One read may pass it; the rest
/// stays in the kernel.
pub const READ_AHEAD_BYTES_MAX: usize = 64 * 1024;

const _: () = assert!(
    READ_AHEAD_BYTES_MAX >= READ_BYTES_MAX,
    "what one read brings can be kept if its first command turns out to wait"
);
const _: () = assert!(
    READ_BYTES_MAX > BODY_GATHER_LEN_MAX + LINE_LEN_MAX,
    "a put whose body is gathered fits one read"
);

/// Connections accepted from one listener in one turn.
pub const ACCEPT_BATCH_MAX: usize = 64;

/// Milliseconds for which a listener is left alone after accept failed for lack of descriptors or
/// memory, unless a connection closes before.
pub const ACCEPT_PAUSE_MS: u64 = 500;

/// Length of the queue of connections not yet accepted, as asked of the kernel.
pub const LISTEN_BACKLOG: i32 = 1024;

/// Memory for replies that is kept for the next session that needs some, in sessions. More than
/// these that are answered in one turn cost an allocation each.
pub const SPARE_REPLIES_MAX: usize = 256;

/// Bytes of text that each of them keeps room for: the replies to some hundred commands.
pub const SPARE_REPLY_LEN_MAX: usize = 16 * 1024;

/// Records of reserves, of sessions that have been answered, that are kept for the next ones.
pub const SPARE_RESERVES_MAX: usize = 256;

/// Memory for the reservations of a session that is kept for the next one, in sessions. More than
/// these that begin to hold a job while none lets go of its last cost an allocation each.
pub const SPARE_RESERVATIONS_MAX: usize = 256;

/// Pieces of text and bodies that one gathered write takes.
pub const WRITE_PIECES_MAX: usize = 16;

/// Bytes by which the jobs have to shrink before freed memory is given back to the system.
pub const TRIM_BYTES_MIN: usize = 16 << 20;

/// Milliseconds between two attempts to give memory back, because each looks at all of it.
pub const TRIM_PAUSE_MS: u64 = 1000;

/// Bytes of a job body that one frame between two processes carries. What is longer goes in parts,
/// between which other sessions have their turn.
pub const BODY_PART_LEN_MAX: usize = 64 * 1024;

/// Bytes of a frame's metadata: everything that it says besides its header and a body.
pub const META_LEN_MAX: usize = 1024;

/// Bytes of a frame's header.
pub const HEADER_LEN: usize = 52;

/// Bytes of the longest frame.
pub const FRAME_LEN_MAX: usize = HEADER_LEN + META_LEN_MAX + BODY_PART_LEN_MAX;

const _: () = assert!(
    META_LEN_MAX <= u16::MAX as usize,
    "a header can say how much metadata there is"
);
const _: () = assert!(
    META_LEN_MAX >= 2 * TUBE_NAME_LEN_MAX,
    "a name and all numbers about a tube or job fit one frame"
);

/// Processes that have clients, at most: as many as there can be shards.
pub const FRONTENDS_MAX: u16 = 64;

/// Milliseconds for which a command waits for an owner that is not there, unless something else is
/// asked for.
pub const OWNER_WAIT_MS_DEFAULT: u32 = 1_000;

/// Milliseconds that can be asked for: an hour.
pub const OWNER_WAIT_MS_MAX: u32 = 3_600_000;

/// Numbers that a process tells of itself in one frame, besides those of its shard.
pub const COUNTS_MAX: usize = 64;

const _: () = assert!(
    META_LEN_MAX >= COUNTS_MAX * size_of::<u64>() + META_LEN_MAX / 4,
    "all numbers of a process fit one frame, with those of its shard"
);

/// Questions for its numbers that a process may leave without an answer until it is asked no more:
/// one for each process that may ask.
pub const COUNTS_ASKED_MAX: usize = FRONTENDS_MAX as usize;

/// Asks of one frontend that one owner has not answered yet.
pub const CREDIT_ASKS: u32 = 4096;

/// Bytes that the bodies of such asks cost, of which none costs more than a part of it has: some 64
/// large bodies can be under way at once, and one does not keep all others waiting.
pub const CREDIT_BYTES: u32 = 4 << 20;

/// Bytes of bodies on their way over one link above which an owner gives its frontend no more work.
/// What was asked for already may pass it.
pub const LINK_BODIES_BYTES_MAX: usize = 256 << 20;

/// Bytes that a body which is being put together costs besides itself and its metadata.
pub const ASSEMBLY_OVERHEAD_BYTES: u64 = 128;

const _: () = assert!(
    CREDIT_BYTES as usize >= 8 * FRAME_LEN_MAX,
    "a window keeps a link busy with frames of full length"
);
const _: () = assert!(
    BODY_PART_LEN_MAX <= BODY_RESERVE_LEN_MAX,
    "the first part of a body fits the memory that it gets at once"
);

/// Descriptors that one message between processes can carry: more than one link for each shard
/// there can be. The systems stop at 253 and above.
pub const PASSED_FDS_MAX: usize = 64;

/// Bytes of what one process has to say to a child, or a child to it, that wait because the peer
/// does not read. A peer that is only slow is told nothing new, so one that lets this much come
/// together is lost.
pub const CONTROL_BACKLOG_BYTES_MAX: usize = 256 * 1024;

/// Descriptors among them: a link to each possible peer, and as many again because peers may end
/// and come back.
pub const CONTROL_BACKLOG_FDS_MAX: usize = 512;

/// Bytes that are read from one control socket in one turn.
pub const CONTROL_READ_BYTES_MAX: usize = 32 * 1024;

/// Bytes of room that a control socket keeps in each direction when it has nothing to carry.
pub const CONTROL_KEEP_BYTES_MAX: usize = 4 * 1024;

const _: () = assert!(
    CONTROL_BACKLOG_BYTES_MAX >= CONTROL_BACKLOG_FDS_MAX * (HEADER_LEN + META_LEN_MAX / 16),
    "descriptors that wait have room for what is said of them"
);

/// Bytes that are read from one link in one turn.
pub const LINK_READ_BYTES_MAX: usize = 512 * 1024;

/// Bytes that one call reads from a link; the room for them is made before.
pub const LINK_READ_LEN_MAX: usize = 64 * 1024;

/// Bytes on their way out over one link above which its peer is given no more work and is not read.
/// What a peer has asked for already may pass it.
pub const LINK_BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Bytes on their way out over one link above which no part of a large body is added. A large body
/// alone never makes a peer slow: whoever is to be given no more work until most has been taken
/// would not be read before the end of the body.
pub const LINK_PARTS_BYTES_MAX: usize = 256 << 10;

const _: () = assert!(
    LINK_PARTS_BYTES_MAX + FRAME_LEN_MAX <= LINK_BACKLOG_BYTES_MAX / 2,
    "a link that has nothing but parts to carry counts as drained"
);

/// Bytes of room that a link keeps in each direction when it has nothing to carry: a little more
/// than Linux takes in one write, so that a busy link asks for no memory.
pub const LINK_KEEP_BYTES_MAX: usize = 256 * 1024;

/// Pieces of bytes and bodies that one gathered write to a link takes. A link carries the answers
/// to many sessions, of which each may have a body.
pub const LINK_PIECES_MAX: usize = 64;

const _: () = assert!(
    LINK_READ_BYTES_MAX >= FRAME_LEN_MAX,
    "a turn can bring a whole frame"
);
const _: () = assert!(
    LINK_BACKLOG_BYTES_MAX >= FRAME_LEN_MAX,
    "a link that is empty has room for a frame"
);
const _: () = assert!(
    LINK_KEEP_BYTES_MAX >= LINK_READ_LEN_MAX,
    "a link that is read now and then asks for no memory"
);

/// Milliseconds for which a child that has ended stays away: the first time, the second, and so on;
/// the last is for every time after.
pub const RESTART_DELAYS_MS: [u64; 4] = [0, 100, 1_000, 5_000];

/// Seconds of service after which a child that ends is treated as if it were the first time.
pub const RESTART_RESET_SECS: u32 = 10;

const _: () = assert!(
    RESTART_RESET_SECS as u64 * 1_000 > RESTART_DELAYS_MS[RESTART_DELAYS_MS.len() - 1],
    "a child that keeps ending is not forgiven sooner than it is started"
);

/// Times in a row that a child may end before it serves, when the program starts, until the start
/// is given up.
pub const FAILED_STARTS_MAX: u32 = 5;

/// Exit status of a child for which another start would change nothing (`EX_DATAERR` of
/// `sysexits.h`): what its binlog has is to be looked at by somebody.
pub const HOPELESS_STATUS: u8 = 65;

/// Milliseconds between two questions whether a child still turns.
pub const PING_EVERY_MS: u64 = 5_000;

/// Seconds without an answer after which a child is said to be slow, and told nothing new.
pub const SLOW_AFTER_SECS: u32 = 10;

/// Seconds that children have to end when they are told to: all frontends, then all owners.
pub const STOP_LIMIT_SECS: u32 = 30;

/// Seconds for which a killed child is waited for.
pub const KILL_LIMIT_SECS: u32 = 1;

const _: () = assert!(
    SLOW_AFTER_SECS as u64 * 1_000 >= 2 * PING_EVERY_MS,
    "who has just missed a question has time to answer it"
);
